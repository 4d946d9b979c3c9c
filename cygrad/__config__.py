"""Build information about cygrad, for programs that print it."""

import platform

import numpy

from cygrad._core.runtime.threads import get_num_threads
from cygrad.version import __version__

__all__ = ["parallel_info", "show"]


def show():
    """Return a text about cygrad, NumPy, and the machine.

    >>> import cygrad
    >>> print(cygrad.__config__.show().splitlines()[0])  # doctest: +ELLIPSIS
    cygrad ... built with:
    """
    return (
        f"cygrad {__version__} built with:\n  - NumPy {numpy.__version__}\n  - Python {platform.python_version()}, "
        f"{platform.python_compiler()}\n  - {platform.platform()}\n"
    )


def parallel_info():
    """Return a text about threads."""
    return f"cygrad parallel info:\n\tget_num_threads() : {get_num_threads()}\n"
