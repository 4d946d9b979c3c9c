"""Benchmarks of cygrad against PyTorch and NumPy in one process: `python -m benchmarks`."""
