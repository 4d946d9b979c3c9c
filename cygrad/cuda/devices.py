"""Queries and selects GPUs."""

from types import SimpleNamespace
from typing import Any

from cygrad._core.types.device import check_device, device
from cygrad._kernels.device import cupy_library

__all__ = [
    "can_device_access_peer",
    "current_device",
    "device_count",
    "device_of",
    "device_of_thread",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a GPU that CuPy and its driver can use. Never raises.

    >>> import cygrad
    >>> device = cygrad.device("cuda" if cygrad.cuda.is_available() else "cpu")
    """
    return cupy_library.is_available()


def device_count() -> int:
    """Return the number of GPUs; 0 if they cannot be used.

    >>> import cygrad
    >>> cygrad.cuda.is_available() == (cygrad.cuda.device_count() > 0)
    True
    """
    return cupy_library.cupy().cuda.runtime.getDeviceCount() if is_available() else 0


def is_initialized() -> bool:
    """Whether a GPU is in use.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> cygrad.cuda.is_initialized()
    True
    """
    return cupy_library.is_loaded()


def init() -> None:
    """Initialize GPU use. Raises RuntimeError, with a text that states what is missing, if there is no GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.init()
    >>> cygrad.cuda.is_initialized()
    True
    """
    cupy_library.cupy()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU supports bfloat16: natively from compute capability 8.0, or by slow emulation.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.is_bf16_supported() in (True, False)
    True
    """
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the current GPU multiplies matrices in TF32: from compute capability 8.0.

    >>> import cygrad
    >>> cygrad.cuda.is_available() or not cygrad.cuda.is_tf32_supported()
    True
    """
    return is_available() and get_device_capability()[0] >= 8


def current_device() -> int:
    """Return the index of this thread's current GPU. Raises RuntimeError if there is none.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.current_device()
    0
    """
    return cupy_library.current_device()


def _index(wanted: Any) -> int:
    """Return the index of a GPU given by its index, as a device or its name, or None for the current one."""
    if wanted is None:
        return current_device()
    place = device("cuda", wanted) if isinstance(wanted, int) else device(wanted)
    if place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return check_device(place).index


def set_device(device: Any) -> None:
    """Switch this thread to another GPU; a negative index is a no-op. Raises RuntimeError if there is no such GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.set_device(0)
    >>> cygrad.ones(2, device="cuda").device
    device(type='cuda', index=0)
    """
    if not (isinstance(device, int) and device < 0):
        cupy_library.on_device(_index(device)).use()


class device_of_thread:
    """A context in which the thread uses another GPU; None or a negative index is a no-op.

    `cygrad.cuda.device(1)`, `cygrad.cuda.device("cuda:1")`.

    >>> import cygrad  # on a machine with a GPU
    >>> with cygrad.cuda.device(0):
    ...     cygrad.ones(2, device="cuda").device
    device(type='cuda', index=0)
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
    """A context in which the thread uses the GPU of a tensor; a CPU tensor is a no-op.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda:0")
    >>> with cygrad.cuda.device_of(x):
    ...     cygrad.cuda.current_device()
    0
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


def synchronize(device: Any = None) -> None:
    """Wait until a GPU has finished its work. Raises RuntimeError if there is none.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda") + 1  # the addition is queued
    >>> cygrad.cuda.synchronize()  # and done
    """
    place = cupy_library.on_device(_index(device))
    try:
        place.synchronize()
    except RuntimeError as error:
        raise cupy_library.explained(error) from None


def get_device_properties(device: Any = None) -> Any:
    """Return the properties of a GPU: name, major, minor, total_memory (in bytes), multi_processor_count, warp_size.

    >>> import cygrad  # on a machine with a GPU
    >>> properties = cygrad.cuda.get_device_properties(0)
    >>> properties.total_memory > 0, properties.multi_processor_count > 0
    (True, True)
    """
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
    """Return the name of a GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> isinstance(cygrad.cuda.get_device_name(0), str)
    True
    """
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a GPU as (major, minor).

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.get_device_capability(0) >= (5, 0)
    True
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one GPU can access the memory of another.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.can_device_access_peer(0, 0) in (True, False)
    True
    """
    first, second = _index(device), _index(peer_device)
    return first != second and bool(cupy_library.cupy().cuda.runtime.deviceCanAccessPeer(first, second))


def get_arch_list() -> list[str]:
    """Return the architectures for which kernels are compiled, those of the GPUs: ["sm_90"]. Empty without a GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.get_arch_list()
    ['sm_...']
    """
    found = {"sm_{}{}".format(*get_device_capability(i)) for i in range(device_count())}
    return sorted(found, key=lambda name: int(name.removeprefix("sm_")))


def get_gencode_flags() -> str:
    """Return the flags for NVCC that compile for these architectures. Empty without a GPU.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.get_gencode_flags()
    '-gencode compute=compute_...'
    """
    numbers = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{number},code=sm_{number}" for number in numbers)
