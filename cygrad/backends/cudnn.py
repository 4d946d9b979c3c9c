"""Settings of cuDNN, which is not in use.

>>> import cygrad
>>> cygrad.backends.cudnn.benchmark = True
"""

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "is_available", "version"]

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available():
    """Whether cuDNN can be used: no."""
    return False


def version():
    """The version of cuDNN: None."""
    return None
