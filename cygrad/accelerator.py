"""The kind of device beside the CPU that tensors can be on, for programs that choose one: there is none."""

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available():
    """Whether there is such a device: no.

    >>> import cygrad
    >>> cygrad.accelerator.current_accelerator().type if cygrad.accelerator.is_available() else "cpu"
    'cpu'
    """
    return False


def current_accelerator(check_available=False):
    """The kind of device in use: None."""
    return None


def device_count():
    """The number of such devices: 0."""
    return 0
