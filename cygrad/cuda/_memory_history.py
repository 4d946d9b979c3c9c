"""What holds the memory of GPUs: each block with the line that made it, as data and as a file.

The allocator notes the lines of large blocks always, and of all blocks while history is recorded
(`_kernels/gpu/runtime/allocator.py`). CuPy's pool does not tell how it cuts the driver's memory into blocks, so each
block that is in use is shown as a segment of its own, and what the pool keeps for later as a segment without blocks.
"""

from __future__ import annotations

import pickle
from typing import Any

from cygrad._core.errors.sites import line_of
from cygrad._kernels.gpu.runtime import allocator
from cygrad.cuda.devices import device_count, is_initialized


def _record_memory_history(enabled: str | bool | None = "all", *args: Any, **kwargs: Any) -> None:
    """Note the line of each block that is made from now on, however small; `None` ends this.

    Blocks of 1 MB and more are noted without it. Other arguments of PyTorch's, which select what is recorded of each
    event, have no effect.
    """
    allocator.connected.least = allocator.LARGE if enabled in (None, False) else 0


def memory_snapshot(mempool_id: Any = None) -> list[dict[str, Any]]:
    """Return the memory of all GPUs as PyTorch does: a list of segments, each with its blocks and their lines.

    A segment has the keys `device`, `address`, `total_size`, `allocated_size`, `active_size`, `requested_size`,
    `stream`, `segment_type` ("large" or "small"), `segment_pool_id`, `is_expandable`, `frames` and `blocks`; a block
    has `address`, `size`, `requested_size`, `state` and `frames`. Sizes are in bytes. A frame has `name`, `filename`
    and `line`.

    >>> import cygrad
    >>> cygrad.cuda.is_initialized() or cygrad.cuda.memory_snapshot()
    []
    """
    if not is_initialized():
        return []
    found = []
    for device in range(device_count()):
        used, reserved = allocator.measured(device)
        for block in allocator.blocks(device):
            found.append(_segment(device, block.pointer.ptr, block.size, [_described(block)]))
        if reserved > used:
            found.append(_segment(device, 0, reserved - used, []))
    return found


def _segment(device: int, address: int, size: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    held = sum(block["size"] for block in blocks)
    return {
        "device": device,
        "address": address,
        "total_size": size,
        "allocated_size": held,
        "active_size": held,
        "requested_size": held,
        "stream": 0,
        "segment_type": "large" if size >= allocator.LARGE else "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [frame for block in blocks for frame in block["frames"]],
        "blocks": blocks,
    }


def _described(block: Any) -> dict[str, Any]:
    code, offset = block.place
    frames = (
        [] if code is None else [{"name": code.co_name, "filename": code.co_filename, "line": line_of(code, offset)}]
    )
    sizes = {"size": block.size, "requested_size": block.size}
    return {"address": block.pointer.ptr, **sizes, "state": "active_allocated", "frames": frames}


def _snapshot(device: Any = None) -> dict[str, Any]:
    """Return the segments of `memory_snapshot` in the form that PyTorch's viewer of memory reads."""
    return {
        "segments": memory_snapshot(),
        "device_traces": [[] for _ in range(device_count() if is_initialized() else 0)],
        "allocator_settings": {},
    }


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write `_snapshot()` to a file, as a pickle of plain data; PyTorch's viewer of memory shows it."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
