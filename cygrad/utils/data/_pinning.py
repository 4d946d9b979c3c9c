"""Copies batches to pinned (page-locked) memory for transfers to a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cygrad import Tensor


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return a batch with its tensors, including those in dicts, lists and tuples, in pinned memory.

    Objects with a `pin_memory` method are pinned by it; other values are unchanged. Pinned memory belongs to no device;
    `device` is there because PyTorch takes it.
    """
    if isinstance(data, (Tensor, str, bytes)):
        return data.pin_memory() if isinstance(data, Tensor) else data
    if isinstance(data, Mapping):
        pinned = {key: pin_memory(value) for key, value in data.items()}
        return pinned if type(data) is dict else type(data)(pinned)  # type: ignore[call-arg]
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin_memory, data))
    if isinstance(data, (list, tuple)):
        return type(data)(map(pin_memory, data))
    return data.pin_memory() if hasattr(data, "pin_memory") else data
