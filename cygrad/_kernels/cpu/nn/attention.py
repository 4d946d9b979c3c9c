"""Multi-head attention computed block by block, without the full score matrix (`attention.h`).

`query` is (..., L, E), `key` (..., S, E), `value` (..., S, V), with equal leading dimensions; `mask`, which may be
None, is added to the scores and broadcasts to (..., L, S). All are float32 or float64, and none is empty.
"""

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.platform.thresholds import PIECE, SMALL_PRODUCT

ATTENTION, ATTENTION_GRADIENT = LOOPS.ATTENTION, LOOPS.ATTENTION_GRADIENT
QUERIES = LOOP_SIZES.QUERIES  # per block
FEWEST_KEYS, MOST_KEYS = 64, 256  # per block


def takes(query, value):
    """Whether there is a loop for arrays of this type."""
    return loop_table.has_loops(query)


def attend(query, key, value, mask, scale, is_causal):
    """Return (softmax(query @ key^T * scale + mask) @ value, logarithms of the sums of the rows' exponentials).

    With `is_causal`, queries do not attend to later keys. The result is stored as (..., L, heads, V).
    """
    leading, (length, _), width = query.shape[:-2], query.shape[-2:], value.shape[-1]
    if query.ndim == 4:
        batch, heads = leading
        out = new_array((batch, length, heads, width), query.dtype.num).swapaxes(1, 2)
    else:
        out = new_array((*leading, length, width), query.dtype.num)
    logs = np.empty((*leading, length), query.dtype)
    call = _Call((query, key, value, mask, out, None), is_causal)
    blocks = -(-length // QUERIES)
    piece = max(1, PIECE // (QUERIES * key.shape[-2]))
    call.run(ATTENTION, (logs, call.places), scale, call.heads * blocks, piece)
    return out, logs


def attend_backward(grad, query, key, value, mask, scale, is_causal, out, logs):
    """Gradients of query, key and value, from the incoming gradient and the results of `attend`."""
    call = _Call((query, key, value, mask, out, grad), is_causal)
    if logs.shape != query.shape[:-1] or logs.dtype != query.dtype or not logs.flags.c_contiguous:
        raise ValueError(f"logarithms of shape {logs.shape}")
    grads = tuple(new_array(a.shape, a.dtype.num) for a in (query, key, value))
    piece = max(1, PIECE // (query.shape[-2] * key.shape[-2]))
    call.run(ATTENTION_GRADIENT, (logs, call.places, *grads), scale, call.heads, piece)
    return grads


class _Call:
    """Addresses of the arrays of each head, and the integer arguments of a call."""

    def __init__(self, arrays, is_causal):
        query, key, value, mask, out, grad = arrays
        leading, (length, size), (keys, width) = query.shape[:-2], query.shape[-2:], value.shape[-2:]
        shapes = (length, size), (keys, size), (keys, width), (length, keys), (length, width), (length, width)
        if mask is not None:
            if mask.strides[-1] != mask.itemsize or not mask.flags.aligned:
                mask = np.require(mask, None, ["C", "A"])
            mask = np.broadcast_to(mask, (*leading, length, keys))
        # keep references: the loop only gets addresses
        self.arrays = [_in_rows(a) for a in (query, key, value)] + [mask, out, None if grad is None else _in_rows(grad)]
        for array, shape in zip(self.arrays, shapes):
            if array is not None and (array.shape != (*leading, *shape) or array.dtype != query.dtype):
                raise ValueError(f"an array of shape {array.shape} and type {array.dtype} instead of {leading + shape}")
        places = [0 if array is None else _places(array) for array in self.arrays]
        self.heads = query.size // (length * size)
        self.places = np.stack([np.broadcast_to(np.asarray(place, np.int64), self.heads) for place in places], 1)
        rows = [0 if array is None else array.strides[-2] // array.itemsize for array in self.arrays]
        column = 0 if mask is None else mask.strides[-1] // mask.itemsize
        block = min(MOST_KEYS, max(FEWEST_KEYS, SMALL_PRODUCT // (QUERIES * max(size, width))))
        self.numbers = length, keys, size, width, block, is_causal, *rows[:4], column, *rows[4:]

    def run(self, loop, arrays, scale, items, piece):
        """Run a loop; raises MemoryError if its scratch buffers cannot be allocated."""
        if loop_table.run(loop, arrays, self.numbers, scale, items, piece):
            raise MemoryError


def _in_rows(array):
    """Return the array, or a copy that BLAS can read: rows of adjacent elements that do not overlap."""
    size, (row, column) = array.itemsize, array.strides[-2:]
    is_readable = column == size and row % size == 0 and row >= array.shape[-1] * size and array.flags.aligned
    return array if is_readable else np.require(array, None, ["C", "A"])


def _places(array):
    """The address of each matrix of the array."""
    places = np.array([array.__array_interface__["data"][0]])
    for length, step in zip(array.shape[:-2], array.strides[:-2]):
        places = (places[:, None] + np.arange(length) * step).ravel()
    return places


dispatching(globals(), "takes attend attend_backward")
