"""Copies batches to pinned (page-locked) memory for transfers to a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cygrad import Tensor


def in_pinned_memory(batch: Any) -> Any:
    """Return a batch with its tensors, including those in dicts, lists and tuples, in pinned memory.

    Objects with a `pin_memory` method are pinned by it; other values are unchanged.
    """
    if isinstance(batch, (Tensor, str, bytes)):
        return batch.pin_memory() if isinstance(batch, Tensor) else batch
    if isinstance(batch, Mapping):
        pinned = {key: in_pinned_memory(value) for key, value in batch.items()}
        return pinned if type(batch) is dict else type(batch)(pinned)  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(in_pinned_memory, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(in_pinned_memory, batch))
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch
