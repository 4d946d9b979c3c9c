"""Integer functions for SymPy, by which programs for PyTorch write shapes: `functions`, which imports SymPy."""
