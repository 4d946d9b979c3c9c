"""Intel's library of linear algebra, which is not in use: products are NumPy's BLAS's, or our own."""

from contextlib import nullcontext

__all__ = ["is_available", "verbose"]


def is_available():
    """Whether it is in use: no."""
    return False


def verbose(enable):
    """A block that changes nothing."""
    return nullcontext()
