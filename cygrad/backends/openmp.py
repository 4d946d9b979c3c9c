"""OpenMP, which is not in use: threads are our own (`set_num_threads`)."""

__all__ = ["is_available"]


def is_available():
    """Whether it is in use: no."""
    return False
