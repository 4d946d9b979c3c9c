"""Placement of loaded tensors: PyTorch's `map_location`."""

from __future__ import annotations

from typing import Any

import cygrad


class Place:
    """Location of a storage: passed to a `map_location` function, which returns `storage`, `storage.cpu()`,
    `storage.cuda()` or None."""

    gpu: int | str | None = None  # index of the target GPU; None for the CPU, "meta" for no memory

    def cpu(self) -> Place:
        """Return a location on the CPU."""
        return _at(None)

    def cuda(self, device: Any = None) -> Place:
        """Return a location on a GPU, by default the current one."""
        return _at(_gpu("cuda" if device is None else device))


def _at(gpu: int | str | None) -> Place:
    place = Place()
    place.gpu = gpu
    return place


def place_wanted(map_location: Any, storage: Place, location: str) -> int | str | None:
    """Return the index of the GPU to which `map_location` sends tensors from `location`; None for the CPU, or "meta".

    Raises RuntimeError if there is no such device.
    """
    wanted: Any = location
    if isinstance(map_location, dict):
        wanted = map_location.get(location, location)
    elif isinstance(map_location, (str, cygrad.device)):
        wanted = map_location
    elif map_location is not None:
        answer = map_location(storage, location)
        if isinstance(answer, Place):
            return answer.gpu
        if answer is not None:
            raise RuntimeError(
                f"a map_location function returned a {type(answer).__name__}\n"
                "  it must return storage, storage.cpu(), storage.cuda() or None"
            )
    kind = str(wanted).partition(":")[0]
    if kind == "cuda":
        return _gpu(wanted)
    if kind == "meta":
        return kind
    if kind != "cpu":
        raise RuntimeError(
            f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {wanted})\n"
            "  cygrad supports 'cpu', 'cuda' and 'meta': use map_location='cpu'"
        )
    return None


def _gpu(wanted: Any) -> int:
    if not cygrad.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    place = cygrad.device("cuda", wanted) if isinstance(wanted, int) else cygrad.device(wanted)
    index = cygrad.cuda.current_device() if place.index is None else place.index
    count = cygrad.cuda.device_count()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {count}. Please "
            "use torch.load with map_location to map your storages to an existing device."
        )
    return index


def placed(array: Any, gpu: int | str | None) -> Any:
    """Return a tensor that shares an array's memory, or a copy on a GPU or on the device "meta"."""
    tensor = cygrad.from_numpy(array)
    return tensor if gpu is None else tensor.to("meta" if gpu == "meta" else f"cuda:{gpu}")
