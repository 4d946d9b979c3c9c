"""Marks the part of a program that NVIDIA's profilers record, and `cudart`, which calls CUDA's runtime directly."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cygrad._kernels.device import cupy_library

__all__ = ["profile", "start", "stop"]


class _Runtime:
    """The functions of CUDA's runtime that programs call by its name for them. Those that return a status return 0."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def cudaProfilerStart(self) -> int:
        """Begin recording."""
        self._functions.profilerStart()
        return 0

    def cudaProfilerStop(self) -> int:
        """End recording."""
        self._functions.profilerStop()
        return 0

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:
        """Return (free, total) bytes of a GPU."""
        with cupy_library.on_device(device):
            return self._functions.memGetInfo()

    def cudaHostRegister(self, pointer: int, size: int, flags: int) -> int:
        """Lock the pages of memory on the CPU."""
        self._functions.hostRegister(pointer, size, flags)
        return 0

    def cudaHostUnregister(self, pointer: int) -> int:
        """Unlock them."""
        self._functions.hostUnregister(pointer)
        return 0


def cudart() -> Any:
    """Return CUDA's runtime. Raises AssertionError without a GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> free, total = cygrad.cuda.cudart().cudaMemGetInfo(0)
    >>> 0 < free <= total
    True
    """
    if not cupy_library.is_available():
        raise AssertionError("Torch not compiled with CUDA enabled\n  there is no GPU: check cuda.is_available() first")
    return _Runtime(cupy_library.cupy().cuda.runtime)


def start() -> None:
    """Begin recording. Raises AssertionError without a GPU.

    >>> import cygrad
    >>> if cygrad.cuda.is_available():
    ...     cygrad.cuda.profiler.start()
    ...     x = cygrad.ones(2, device="cuda") + 1
    ...     cygrad.cuda.profiler.stop()
    """
    cudart().cudaProfilerStart()


def stop() -> None:
    """End recording. Raises AssertionError without a GPU.

    >>> import cygrad
    >>> if cygrad.cuda.is_available():
    ...     cygrad.cuda.profiler.start()
    ...     cygrad.cuda.profiler.stop()
    """
    cudart().cudaProfilerStop()


@contextmanager
def profile() -> Iterator[None]:
    """A context that is recorded. Raises AssertionError when it is entered without a GPU.

    >>> import cygrad
    >>> if cygrad.cuda.is_available():
    ...     with cygrad.cuda.profiler.profile():
    ...         x = cygrad.ones(2, device="cuda") + 1
    """
    start()
    try:
        yield
    finally:
        stop()
