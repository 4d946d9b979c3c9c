"""Settings of cuDNN, which computes convolutions on GPUs where the package nvidia-cudnn-frontend and cuDNN are there:
whether it is `enabled`, `allow_tf32` (True) in float32, `deterministic`. Without it convolutions are products by
cuBLAS, which `allow_tf32` is for, too, always the same for the same input. `benchmark` changes nothing.

>>> import cygrad
>>> cygrad.backends.cudnn.benchmark = True
>>> with cygrad.backends.cudnn.flags(enabled=False):
...     cygrad.backends.cudnn.enabled
False
"""

from contextlib import contextmanager

from cygrad._kernels.device import cupy_library as _library
from cygrad._kernels.gpu.libraries import cudnn as _kernels

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "set_flags",
    "version",
]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
_kernels.settings = globals()  # where users assign
_FLAGS = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def is_available():
    """Whether cuDNN can be used."""
    return _library.is_available() and _kernels.module() is not None


def is_acceptable(tensor):
    """Whether cuDNN computes with this tensor."""
    return tensor.is_cuda and tensor.is_floating_point() and enabled and is_available()


def version():
    """The version of cuDNN, as a number; None where it can not be used."""
    return _kernels.module().backend_version() if is_available() else None


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None):
    """Set what is not None; gives what was set before."""
    before = tuple(globals()[name] for name in _FLAGS)
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    globals().update({name: value for name, value in zip(_FLAGS, given) if value is not None})
    return before


@contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    """A block in which these are set."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
