"""Several processes that train one model: cygrad has no such thing, and says so to programs that ask first."""

__all__ = ["destroy_process_group", "init_process_group", "is_available", "is_initialized", "is_torchelastic_launched"]


def is_available():
    """Whether processes can work together: no. Programs that ask run in one process.

    >>> import cygrad
    >>> dist = cygrad.distributed
    >>> dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    0
    """
    return False


def is_initialized():
    """Whether this process is one of a group: no."""
    return False


def is_torchelastic_launched():
    """Whether `torchrun` has started this process: no."""
    return False


def init_process_group(*args, **kwargs):
    """Raises RuntimeError. Scripts import this name whether or not they are started as several processes."""
    raise RuntimeError(
        "cygrad trains in one process: start the script without torchrun, and without its options for it"
    )


def destroy_process_group(group=None):
    """Raises ValueError: there is none."""
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def __getattr__(name):
    raise AttributeError(
        f"module 'cygrad.distributed' has no attribute {name!r}"
        + ("" if name.startswith("__") else "\n  cygrad trains in one process: ask `distributed.is_available()` first")
    )
