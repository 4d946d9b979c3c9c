"""Signal processing, under the names of PyTorch's `torch.signal`: window functions."""

from cygrad.signal import windows
