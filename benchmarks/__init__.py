"""How fast cygrad is, beside PyTorch and NumPy in the same process: `python -m benchmarks`."""
