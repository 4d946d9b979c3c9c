"""The parts of `cygrad.utils.benchmark`, by the names of PyTorch's modules."""
