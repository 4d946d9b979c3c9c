"""Markers in the timeline of NVIDIA's profilers; no-ops without a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cygrad._kernels.device import cupy_library


def _nvtx() -> Any:
    return cupy_library.cupy().cuda.nvtx if cupy_library.is_available() else None


def range_push(msg: str) -> None:
    """Begin a range.

    >>> import cygrad
    >>> cygrad.cuda.nvtx.range_push("step")
    >>> loss = cygrad.ones(2).sum()
    >>> cygrad.cuda.nvtx.range_pop()
    """
    if (nvtx := _nvtx()) is not None:
        nvtx.RangePush(msg)


def range_pop() -> None:
    """End the innermost range.

    >>> import cygrad
    >>> cygrad.cuda.nvtx.range_push("step")
    >>> cygrad.cuda.nvtx.range_pop()
    """
    if (nvtx := _nvtx()) is not None:
        nvtx.RangePop()


def mark(msg: str) -> None:
    """Mark a point in time.

    >>> import cygrad
    >>> cygrad.cuda.nvtx.mark("epoch 2")
    """
    if (nvtx := _nvtx()) is not None:
        nvtx.Mark(msg)


@contextmanager
def range(msg: str) -> Iterator[None]:
    """Wrap a block in a range.

    >>> import cygrad
    >>> with cygrad.cuda.nvtx.range("step"):
    ...     loss = cygrad.ones(2).sum()
    """
    range_push(msg)
    try:
        yield
    finally:
        range_pop()
