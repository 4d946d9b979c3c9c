"""GPUs of Apple, which are not in use."""

__all__ = ["is_available", "is_built"]


def is_available():
    """Whether there is such a GPU to compute on: no."""
    return False


def is_built():
    """Whether cygrad can use such GPUs: no."""
    return False
