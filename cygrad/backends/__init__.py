"""Settings of the libraries that PyTorch computes with, for programs that set them: none is in use, nothing changes."""

from cygrad.backends import cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
