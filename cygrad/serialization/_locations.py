"""Where loaded tensors go: what PyTorch calls `map_location`."""

from __future__ import annotations

from typing import Any

import cygrad


def check_location(map_location: Any, storage: Any, location: str) -> None:
    """Raise RuntimeError unless `map_location` sends what was at `location` to the CPU."""
    wanted: Any = location
    if isinstance(map_location, dict):
        wanted = map_location.get(location, location)
    elif isinstance(map_location, (str, cygrad.device)):
        wanted = map_location
    elif map_location is not None and map_location(storage, location) is not None:
        return  # a function that gives a storage: all of them are memory of the CPU
    kind = str(wanted).partition(":")[0]
    if kind == "cuda":
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    if kind != "cpu":
        raise RuntimeError(
            f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {wanted})\n"
            "  cygrad: this version keeps tensors on the CPU; use map_location='cpu'"
        )
