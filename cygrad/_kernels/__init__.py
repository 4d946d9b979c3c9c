"""Array kernels: loops over NumPy and CuPy arrays that know nothing of tensors."""
