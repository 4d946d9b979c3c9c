"""Tools that PyTorch calls experimental."""
