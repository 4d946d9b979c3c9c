"""What programs ask and set of GPUs. There is none yet: this version keeps tensors on the CPU."""

from cygrad._core.device import check_device
from cygrad._core.memory import empty_cache
from cygrad.cuda import amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "set_device",
    "synchronize",
]


def is_available():
    """Whether there is a GPU to compute on: no.

    >>> import cygrad
    >>> cygrad.device("cuda" if cygrad.cuda.is_available() else "cpu")
    device(type='cpu')
    """
    return False


def device_count():
    """How many GPUs there are: none."""
    return 0


def is_initialized():
    """Whether a GPU is in use: no."""
    return False


def is_bf16_supported(including_emulation=True):
    """Whether a GPU computes in bfloat16: no."""
    return False


# --- Of one GPU: errors -----------------------------------------------------------------------------------


def init():
    """Begin to use GPUs. Raises RuntimeError, for there is none."""
    check_device("cuda")


def current_device():
    """The number of the GPU in use. Raises RuntimeError, for there is none."""
    check_device("cuda")


def set_device(device):
    """Use another GPU; a negative number stands for none. Raises RuntimeError, for there is none."""
    if not (isinstance(device, int) and device < 0):
        check_device("cuda")


def synchronize(device=None):
    """Wait until a GPU has done its work. Raises RuntimeError, for there is none."""
    check_device("cuda")


def get_device_name(device=None):
    """What a GPU is called. Raises RuntimeError, for there is none."""
    check_device("cuda")


def get_device_capability(device=None):
    """What a GPU can do, as two numbers. Raises RuntimeError, for there is none."""
    check_device("cuda")


def get_device_properties(device=None):
    """What is known of a GPU. Raises RuntimeError, for there is none."""
    check_device("cuda")


# --- Random numbers and memory ----------------------------------------------------------------------------


def manual_seed(seed):
    """Seed the GPU in use, if any."""


def manual_seed_all(seed):
    """Seed all GPUs, of which there are none."""


def memory_allocated(device=None):
    """How many bytes tensors take on a GPU: 0."""
    return 0


def max_memory_allocated(device=None):
    """How many bytes tensors took at most on a GPU: 0."""
    return 0


def memory_reserved(device=None):
    """How many bytes are held for tensors on a GPU: 0."""
    return 0


def max_memory_reserved(device=None):
    """How many bytes were held at most for tensors on a GPU: 0."""
    return 0
