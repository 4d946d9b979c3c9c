"""The gradients of elementwise ops on large arrays, block by block.

A rule is made of ops, each of which makes an array as large as the gradient. In a backward pass that is not recorded,
the rule is run on one block after the other instead, so that all but the gradients is as large as a block.
"""

import numpy as np

from cygrad._core.access import memory_of, tensor_of
from cygrad._core.hooks import Packed
from cygrad._core.tensor import Tensor
from cygrad._kernels import blocks

SIZE = 1 << 20  # elements of a block: a rule takes some 20 microseconds beside its loops


def gradients(array, node, g, is_spare):
    """What the rule of `node` makes of the gradient `g`, or None if it has to be computed as a whole.

    `array` is that of `g`; `is_spare` tells whether nobody else has it, so that a result may take its memory.
    """
    saved = _saved_values(node) if array.size > 2 * SIZE else None
    if saved is None or not all(_broadcasts(value, array.shape) for value in saved):
        return None
    rule = _Rule(node, saved, is_spare)
    try:
        found = blocks.in_blocks(rule.on_block, [array, *map(_array_of, saved)], array if is_spare else None, SIZE)
    except _OtherShape:
        return None
    return rule.delivered([g if result is array else tensor_of(result) for result in found])


class _OtherShape(Exception):
    """A gradient is not of the shape of the result."""


class _Rule:
    """The rule of a node as a function of arrays that gives those gradients that there are."""

    def __init__(self, node, saved, is_spare):
        self.node, self.is_spare = node, is_spare
        self.are_tensors = [isinstance(value, Tensor) for value in saved]
        self.is_tuple, self.there = False, []

    def on_block(self, g, *saved):
        values = [tensor_of(value) if is_tensor else value for value, is_tensor in zip(saved, self.are_tensors)]
        found = self.node.on_block(self.is_spare, tensor_of(g), *values)
        self.is_tuple = type(found) is tuple
        found = found if self.is_tuple else (found,)
        self.there = [grad is not None for grad in found]
        arrays = tuple(memory_of(grad) for grad in found if grad is not None)
        if not arrays or any(array.shape != g.shape for array in arrays):
            raise _OtherShape
        return arrays

    def delivered(self, grads):
        """The gradients as the rule gives them."""
        each = iter(grads)
        full = tuple(next(each) if there else None for there in self.there)
        return full if self.is_tuple else full[0]


def _saved_values(node):
    """Inputs 0 to 2 and the result, as far as they are saved; None if to read them may call hooks, or fail."""
    raw = [node._place(i) for i in range(4)]
    if any(freed or type(value) is Packed for value, _, freed in raw) or all(value is None for value, _, _ in raw):
        return None
    read = [node.saved(i) if raw[i][0] is not None else None for i in range(3)]
    return [*read, node.saved_result() if raw[3][0] is not None else None]


def _array_of(value):
    return memory_of(value) if isinstance(value, Tensor) else value


def _broadcasts(value, shape):
    """Whether a saved value is none, a number, or a plain tensor that broadcasts to the shape."""
    if not isinstance(value, Tensor):
        return True
    array = memory_of(value)
    pairs = zip(reversed(array.shape), reversed(shape))
    return (
        type(value) is Tensor
        and type(array) is np.ndarray
        and array.ndim <= len(shape)
        and all(n in (1, m) for n, m in pairs)
    )
