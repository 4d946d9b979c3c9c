"""Connects the GPU code of the package to CuPy; `cupy_library.py` imports this module once CuPy is loaded."""

from cygrad._kernels.device import launch
from cygrad._kernels.device.dispatch import use_gpu
from cygrad._kernels.gpu.runtime import allocator, matmul_precision


def connect(module):
    """Enable GPU arrays in kernels and launches, and pass the user's settings and our allocator to CuPy."""
    use_gpu()
    launch.connect(module)
    matmul_precision.apply()
    allocator.install(module)
