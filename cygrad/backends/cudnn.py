"""Settings of cuDNN, which is not in use: convolutions on GPUs are products by cuBLAS, whose precision
`backends.cuda.matmul` sets, and always the same for the same input. What is set here is kept, and changes nothing.

>>> import cygrad
>>> cygrad.backends.cudnn.benchmark = True
>>> with cygrad.backends.cudnn.flags(enabled=False):
...     cygrad.backends.cudnn.enabled
False
"""

from contextlib import contextmanager

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
_FLAGS = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def is_available():
    """Whether cuDNN can be used: no."""
    return False


def is_acceptable(tensor):
    """Whether cuDNN computes with this tensor: no."""
    return False


def version():
    """The version of cuDNN: None."""
    return None


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
