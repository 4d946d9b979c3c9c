"""Settings of cuDNN, which computes GPU convolutions if it is installed: `enabled`, `allow_tf32` (True) for float32,
`deterministic`. `source()` says whether its package nvidia-cudnn-frontend is used, or the library alone.

Without cuDNN, convolutions in half precision, and in float32 if `allow_tf32`, run on tensor cores by kernels of our
own. Others are matrix products by cuBLAS. Both are always deterministic. `benchmark` has no effect.

>>> import cygrad
>>> cygrad.backends.cudnn.benchmark = True
>>> with cygrad.backends.cudnn.flags(enabled=False):
...     cygrad.backends.cudnn.enabled
False
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cygrad import Tensor
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
    "source",
    "version",
]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
_kernels.settings = globals()  # the namespace that users assign settings in
_FLAGS = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def is_available() -> bool:
    """Whether cuDNN can be used.

    >>> import cygrad
    >>> cygrad.backends.cudnn.is_available() <= cygrad.cuda.is_available()
    True
    """
    return _library.is_available() and _kernels.source() is not None


def is_acceptable(tensor: Tensor) -> bool:
    """Whether cuDNN can compute with this tensor.

    >>> import cygrad
    >>> cygrad.backends.cudnn.is_acceptable(cygrad.ones(2))  # on the CPU
    False
    """
    return tensor.is_cuda and tensor.is_floating_point() and enabled and is_available()


def version() -> int | None:
    """Return the version of cuDNN as a number; None if it cannot be used.

    >>> import cygrad
    >>> (cygrad.backends.cudnn.version() is None) == (not cygrad.backends.cudnn.is_available())
    True
    """
    return _kernels.version() if is_available() else None


def source() -> str | None:
    """Return what computes: "nvidia-cudnn-frontend", cuDNN's package; "libcudnn", the library alone; None without it.

    >>> import cygrad
    >>> (cygrad.backends.cudnn.source() is None) == (not cygrad.backends.cudnn.is_available())
    True
    """
    return _kernels.source() if _library.is_available() else None


def set_flags(
    _enabled: Any = None,
    _benchmark: Any = None,
    _benchmark_limit: Any = None,
    _deterministic: Any = None,
    _allow_tf32: Any = None,
) -> tuple[Any, ...]:
    """Set the flags that are not None; return the previous values.

    >>> import cygrad
    >>> before = cygrad.backends.cudnn.set_flags(_benchmark=True)
    >>> cygrad.backends.cudnn.benchmark
    True
    >>> before = cygrad.backends.cudnn.set_flags(_benchmark=False)
    """
    before = tuple(globals()[name] for name in _FLAGS)
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    globals().update({name: value for name, value in zip(_FLAGS, given) if value is not None})
    return before


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """A context in which these are set.

    >>> import cygrad
    >>> with cygrad.backends.cudnn.flags(enabled=True, benchmark=True):
    ...     cygrad.backends.cudnn.benchmark
    True
    >>> cygrad.backends.cudnn.benchmark
    False
    """
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
