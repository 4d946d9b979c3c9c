"""Which GPUs there are, which one is in use, and what is known of it."""

from types import SimpleNamespace
from typing import Any

from cygrad._core.types.device import check_device, device
from cygrad._kernels.device import cupy_library


def is_available() -> bool:
    """Whether there is a GPU, with CuPy and a driver to compute on it. Never raises.

    >>> import cygrad
    >>> device = cygrad.device("cuda" if cygrad.cuda.is_available() else "cpu")
    """
    return cupy_library.is_available()


def device_count() -> int:
    """How many GPUs there are; 0 where they can not be used.

    >>> import cygrad
    >>> cygrad.cuda.is_available() == (cygrad.cuda.device_count() > 0)
    True
    """
    return cupy_library.cupy().cuda.runtime.getDeviceCount() if is_available() else 0


def is_initialized() -> bool:
    """Whether a GPU is in use."""
    return cupy_library.is_loaded()


def init() -> None:
    """Begin to use GPUs. Raises RuntimeError where there is none; what is missing is in the text."""
    cupy_library.cupy()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU in use computes in bfloat16: from compute capability 8.0 on, or slowly by emulation."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def current_device() -> int:
    """The number of the GPU that this thread uses. Raises RuntimeError where there is none."""
    return cupy_library.current_device()


def _index(wanted: Any) -> int:
    """The number of a GPU that is given by its number, as a device or its name, or None for the current one."""
    if wanted is None:
        return current_device()
    place = device("cuda", wanted) if isinstance(wanted, int) else device(wanted)
    if place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return check_device(place).index


def set_device(device: Any) -> None:
    """Let this thread use another GPU; a negative number changes nothing. Raises RuntimeError if there is none such."""
    if not (isinstance(device, int) and device < 0):
        cupy_library.on_device(_index(device)).use()


class device_of_thread:
    """A context in which the thread uses another GPU; None or a negative number changes nothing.

    `cygrad.cuda.device(1)`, `cygrad.cuda.device("cuda:1")`.
    """

    def __init__(self, device: Any) -> None:
        is_none = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if is_none else _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *error: Any) -> None:
        if self.idx >= 0:
            set_device(self.prev_idx)


device_of_thread.__name__ = device_of_thread.__qualname__ = "device"


class device_of(device_of_thread):
    """A context in which the thread uses the GPU of a tensor; a tensor on the CPU changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


def synchronize(device: Any = None) -> None:
    """Wait until a GPU has done its work. Raises RuntimeError where there is none."""
    place = cupy_library.on_device(_index(device))
    try:
        place.synchronize()
    except RuntimeError as error:
        raise cupy_library.explained(error) from None


def get_device_properties(device: Any = None) -> Any:
    """What is known of a GPU: name, major, minor, total_memory (in bytes), multi_processor_count, warp_size."""
    found = cupy_library.cupy().cuda.runtime.getDeviceProperties(_index(device))
    name = found["name"]
    return SimpleNamespace(
        name=name.decode() if isinstance(name, bytes) else name,
        major=found["major"],
        minor=found["minor"],
        total_memory=found["totalGlobalMem"],
        multi_processor_count=found["multiProcessorCount"],
        warp_size=found["warpSize"],
    )


def get_device_name(device: Any = None) -> str:
    """What a GPU is called."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU, as two numbers."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one GPU can read the memory of another."""
    first, second = _index(device), _index(peer_device)
    return first != second and bool(cupy_library.cupy().cuda.runtime.deviceCanAccessPeer(first, second))
