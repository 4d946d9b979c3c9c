"""Settings of the libraries that PyTorch computes with, for programs that set them: none is in use, nothing changes."""

from cygrad.backends import cuda, cudnn, mps

__all__ = ["cuda", "cudnn", "mps"]
