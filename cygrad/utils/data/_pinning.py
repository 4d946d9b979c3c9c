"""Batches in memory that is locked for transfers to a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cygrad import Tensor


def in_pinned_memory(batch: Any) -> Any:
    """A batch whose tensors, in dicts, lists and tuples too, are in pinned memory; other values stay as they are.

    Objects with a method `pin_memory` are asked.
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
