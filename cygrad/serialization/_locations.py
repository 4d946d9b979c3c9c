"""Where storages were, and where they are loaded to: location tags and PyTorch's `map_location`."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any

import cygrad

MAP_LOCATION = Callable[[Any, str], Any] | cygrad.device | str | dict[str, str] | None
STORAGE = cygrad.TypedStorage | cygrad.UntypedStorage


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Register how storages are tagged with a location when saved, and moved to it when loaded.

    `tagger(storage)` returns the tag of its location, and `deserializer(storage, location)` the storage at a location;
    None leaves it to the next one. Those of lower `priority` are asked first; the CPU has 10, GPUs 20, meta 22.

    >>> import cygrad
    >>> cygrad.serialization.register_package(
    ...     30, lambda storage: None, lambda storage, location: storage if location == "disk" else None
    ... )
    >>> cygrad.serialization.default_restore_location(cygrad.ones(1).untyped_storage(), "disk").nbytes()
    4
    """
    insort(_packages, (priority, tagger, deserializer), key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """Return the tag of the location of a storage: "cpu", "cuda:0", "meta", or what a registered tagger says.

    >>> import cygrad
    >>> cygrad.serialization.location_tag(cygrad.ones(2).untyped_storage())
    'cpu'
    """
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_kind(storage)}")


def location_of(tensor: Any) -> str:
    """Return the tag of the location of a tensor's storage."""
    if len(_packages) == _BUILT_IN:
        return str(tensor.device)
    return location_tag(tensor.untyped_storage())


def default_restore_location(storage: Any, location: str) -> Any:
    """Return a storage at the location with that tag. Raises RuntimeError if there is no such device.

    >>> import cygrad
    >>> storage = cygrad.ones(2).untyped_storage()
    >>> cygrad.serialization.default_restore_location(storage, "cpu").nbytes()
    8
    """
    for _, _, deserializer in _packages:
        restored = deserializer(storage, location)
        if restored is not None:
            return restored
    raise RuntimeError(
        f"don't know how to restore data location of {_kind(storage)} (tagged with {location})\n"
        "  cygrad supports 'cpu', 'cuda' and 'meta': use map_location='cpu'"
    )


def restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """Return the function of a storage and its location in the file that moves it as `map_location` says."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, cygrad.device)):
        place = map_location.decode("ascii") if isinstance(map_location, bytes) else str(map_location)
        return lambda storage, location: default_restore_location(storage, place)

    def restore(storage: Any, location: str) -> Any:
        answer = map_location(storage, location)
        if answer is None:
            return default_restore_location(storage, location)
        if not isinstance(answer, STORAGE):
            raise RuntimeError(
                f"a map_location function returned a {type(answer).__name__}\n"
                "  it must return storage, storage.cpu(), storage.cuda() or None"
            )
        return answer.untyped() if isinstance(answer, cygrad.TypedStorage) else answer

    return restore


def is_meta(map_location: Any) -> bool:
    """Whether `map_location` sends everything to the device "meta", so that no elements need be read."""
    return str(map_location) == "meta" if isinstance(map_location, (str, cygrad.device)) else False


def placed(array: Any, restore: Callable[[Any, str], Any], location: str) -> Any:
    """Return a tensor on an array's memory, moved from `location` in the file to where it is to be."""
    tensor = cygrad.from_numpy(array)
    storage = tensor.untyped_storage()
    moved = restore(storage, location)
    if moved is storage:
        return tensor
    return moved._flat.view(tensor.dtype).view(tensor.shape)


def validate_cuda_device(location: Any) -> int:
    """Return the index of the GPU that a location names. Raises RuntimeError if there is none.

    >>> import cygrad
    >>> try:
    ...     index = cygrad.serialization.validate_cuda_device("cuda:0")
    ... except RuntimeError:
    ...     print("cpu")
    cpu
    """
    if not cygrad.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    place = cygrad.device(location)
    index = cygrad.cuda.current_device() if place.index is None else place.index
    count = cygrad.cuda.device_count()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {count}. Please "
            "use torch.load with map_location to map your storages to an existing device."
        )
    return index


def _kind(storage: Any) -> str:
    return f"torch.storage.{type(storage).__name__}"


def _tagger(kind: str) -> Callable[[Any], str | None]:
    return lambda storage: str(storage.device) if storage.device.type == kind else None


def _to_cpu(storage: Any, location: str) -> Any:
    return storage.cpu() if location == "cpu" else None


def _to_gpu(storage: Any, location: str) -> Any:
    return storage.cuda(validate_cuda_device(location)) if location.partition(":")[0] == "cuda" else None


def _to_meta(storage: Any, location: str) -> Any:
    if location.partition(":")[0] != "meta":
        return None
    return cygrad.UntypedStorage(cygrad.empty(storage.nbytes(), dtype=cygrad.uint8, device="meta"))


_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = [
    (10, _tagger("cpu"), _to_cpu),
    (20, _tagger("cuda"), _to_gpu),
    (22, _tagger("meta"), _to_meta),
]
_BUILT_IN = len(_packages)
