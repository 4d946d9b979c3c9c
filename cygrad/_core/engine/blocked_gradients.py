"""Chunked gradients: elementwise rules on large arrays, and rules on stacks of matrices, run on one chunk at a time.

A rule consists of ops, each of which allocates an array as large as the gradient. In a backward pass that is not
recorded, the rule is run on one chunk after the other instead, so that all arrays except the gradients have the size of
a chunk.
"""

from functools import wraps

import numpy as np

from cygrad._core.graph.dual import is_forward
from cygrad._core.graph.internals import memory_of, tensor_of
from cygrad._core.graph.record import record_n
from cygrad._core.graph.spent_gradients import is_spare
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.cpu.base.matmul import matmul
from cygrad._kernels.cpu.base.reduce import sum_to
from cygrad._kernels.cpu.base.stack_chunks import cut
from cygrad._kernels.tape.tape import is_open, refuse_step

LARGE = 1 << 15  # number of elements from which on reusing memory pays off
THIN = 64  # number of columns from which on separate matrix products pay off
SIZE = 1 << 20  # elements of a chunk: a rule takes some 20 microseconds besides its loops


def gradients(array, node, g, is_spare):
    """Apply the rule of `node` to the gradient `g` chunk by chunk; None if it must be computed as a whole.

    `array` is that of `g`; `is_spare`: nobody else refers to it, so a result may take over its memory
    (Note [Spent gradients] in spent_gradients.pyx).
    """
    saved = node.readable_values() if array.size > 2 * SIZE else None
    if saved is None or not any(value is not None for value in saved):
        return None
    if not all(_broadcasts(value, array.shape) for value in saved):
        return None
    if any(expected is not None and expected[0] != array.shape for expected in node.expected_gradients()):
        refuse_step("computes a gradient in parts")
        return _in_parts(node.run_rule, node, g, (0, 0, (), 0), SIZE)
    if is_open():  # elementwise: as a whole it has the same bits, by loops that the tape knows
        return None
    rule = _Rule(node, saved, is_spare)
    try:
        found = chunks.in_blocks(rule.on_block, [array, *map(_array_of, saved)], array if is_spare else None, SIZE)
    except _OtherShape:
        return None
    return rule.delivered([g if result is array else tensor_of(result) for result in found])


class _OtherShape(Exception):
    """A gradient does not have the shape of the result."""


class _Rule:
    """The rule of a node as a function of arrays that returns only the gradients that are not None."""

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
        """Return the gradients in the form in which the rule returns them."""
        each = iter(grads)
        full = tuple(next(each) if there else None for there in self.there)
        return full if self.is_tuple else full[0]


def _array_of(value):
    return memory_of(value) if isinstance(value, Tensor) else value


def _broadcasts(value, shape):
    """Whether a saved value is None, a number, or a plain tensor that broadcasts to the shape."""
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


# -- memory reuse --


def reused(t):
    """Return `out=` for an op on `t`, a rule's own result: `t` itself if it is large and the pass is not recorded."""
    return t if memory_of(t).size > LARGE and get_modes() & NO_GRAD else None


def owned(t):
    """Return `out=` for an op on `t`, which nobody else sees and no node saves: `t` itself if it is large."""
    return t if memory_of(t).size > LARGE and (t.is_floating_point() or t.is_complex()) else None


def is_own(t):
    """Whether the memory of such a tensor may be reused, and steps that start from it merged into one node.

    This requires that it is large and that no level of differentiation is open.
    """
    array = memory_of(t)
    return type(array) is np.ndarray and array.size > LARGE and not (get_modes() & ~NO_GRAD or is_forward())


def over(op, row, function, t, args=None):
    """Return `op(t)` for a result that nobody else sees and no node saves, computed in its memory if that is large.

    `function(array, out=array)` computes in place what an op of that row returns.
    """
    array = memory_of(t)
    return record_n(row, function(array, out=array), (t,), args) if is_own(t) else op(t)


# -- stacks of matrices --


def in_parts(grads=2, saved=2, args=(), inputs=2, smaller=1):
    """Decorator that runs a rule chunk by chunk along its batch ("stack") dimensions.

    `grads`, `saved`, `args` and `inputs` are the numbers of trailing core dimensions that follow the batch dimensions.
    Each is one number for all values, a tuple with one per value, or a function of the node. `saved` covers inputs 0 to
    2 and the result; `args` has a number for each argument that is chunked as well, and None for others. Elementwise
    losses have 0 core dimensions throughout. Rules that allocate many temporaries divide the chunk size by `smaller`.
    """

    def decorated(rule):
        @wraps(rule)
        def by_parts(n, g):
            dims = grads, saved, args, inputs
            found = _in_parts(rule, n, g, dims, SIZE // smaller) if n.may_run_in_parts(g) else None
            return rule(n, g) if found is None else found

        return by_parts

    return decorated


def in_slices(axis_of):
    """Decorator that runs a rule with one gradient chunk by chunk along an axis on which slices are independent.

    The axis is `axis_of(node, shape)`, or None. The gradient and all saved values have the same length along it as the
    incoming gradient.
    """

    def decorated(rule):
        @wraps(rule)
        def by_parts(n, g):
            found = _in_slices(rule, n, g, axis_of) if n.may_run_in_parts(g) else None
            return rule(n, g) if found is None else found

        return by_parts

    return decorated


def beside(node, shape):
    """Return the longest axis other than the one in the first argument, along which the op works."""
    return max((d for d in range(len(shape)) if d != node.args[0]), key=shape.__getitem__, default=None)


def _in_slices(rule, node, g, axis_of):
    array, saved = memory_of(g), node.readable_values()
    axis = axis_of(node, array.shape)
    if saved is None or axis is None or array.size <= 2 * SIZE or type(array) is not np.ndarray:
        return None
    (shape, is_complex), *_ = node.expected_gradients()
    out, step = array if is_spare(g) and array.shape == shape else None, max(1, array.shape[axis] * SIZE // array.size)
    for start in range(0, array.shape[axis], step):
        part = (slice(None),) * axis + (slice(start, start + step),)
        here = [None if value is None else tensor_of(memory_of(value)[part]) for value in saved]
        found = memory_of(rule(node.part(here, node.args), tensor_of(array[part])))
        found = found if is_complex else found.real
        if out is None or out.dtype != found.dtype:
            out = np.empty(shape, found.dtype)
        out[part] = found
        del here, found  # free them before the next are allocated
    return tensor_of(out)


def _in_parts(rule, node, g, dims, block):
    saved = node.readable_values()
    if saved is None:
        return None
    dims = [d(node) if callable(d) else d for d in dims]
    given = g if type(g) is tuple else (g,)
    args = node.args or ()
    cutting = args[: len(dims[2])]
    values = [*given, *saved, *cutting]
    own = [*_each(dims[0], len(given)), *_each(dims[1], 4), *dims[2]]
    arrays = [None if k is None else _plain_array(value) for value, k in zip(values, own)]
    found = [(a, k) for a, k in zip(arrays, own) if a is not None]
    stack = np.broadcast_shapes(*(a.shape[: a.ndim - k] for a, k in found))
    size = max(a.size for a, _ in found)
    if size <= 2 * block or max(stack, default=1) == 1:
        return None
    axis = chunks.axis_to_cut(stack, size // block)
    length = stack[axis]
    step = -(-length * block // size)
    total = Gradients(node, len(stack) - axis, length, dims[3])
    for start in range(0, length, step):
        part = slice(start, start + step)
        here = [
            value if a is None else _like(value, cut(a, part, a.ndim - k - len(stack) + axis))
            for value, a, k in zip(values, arrays, own)
        ]
        n = node.part(here[len(given) : len(given) + 4], (*here[len(given) + 4 :], *args[len(cutting) :]))
        total.add(rule(n, tuple(here[: len(given)]) if type(g) is tuple else here[0]), part)
    return total.delivered()


def of_common_factor(node, g, b):
    """Return the gradient of a single matrix multiplied by a stack of matrices `b`, chunk by chunk.

    Return None if the matrix has batch dimensions as well, or if the stack cannot be flattened without copying.
    """
    shape, _ = node.expected_gradients()[0]
    x, y = memory_of(g), memory_of(b)
    if len(shape) != 2 or x.shape[:-2] != y.shape[:-2] or x.dtype != y.dtype or not node.may_run_in_parts(g):
        return None
    if not (x.size and y.size and x.flags.c_contiguous and y.flags.c_contiguous and type(y) is np.ndarray):
        return None
    x, y = (a.reshape(-1, *a.shape[-2:]) for a in (x, y))
    step = max(1, len(x) * chunks.SIZE // max(x.size, y.size))
    total = np.zeros(shape, x.dtype)
    is_thin = x.shape[2] < THIN <= total.size
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        other = y[part].conj() if y.dtype.kind == "c" else y[part]
        if is_thin:
            rows, columns = (a.swapaxes(0, 1).reshape(a.shape[1], -1) for a in (x[part], other))
            total += matmul(rows, columns.T)
        else:
            total += sum_to(matmul(x[part], other.swapaxes(1, 2)), shape)
    return tensor_of(total)


def summed(node, i, g):
    """Return a gradient to be scaled for input `i`, summed first if that was broadcast and nothing is recorded."""
    expected, array = node.expected_gradients()[i], memory_of(g)
    if expected is None or expected[0] == array.shape or not node.may_run_in_parts(g):
        return g
    return tensor_of(sum_to(array, expected[0]))


def _each(dims, count):
    return dims if type(dims) is tuple else (dims,) * count


def _plain_array(value):
    return memory_of(value) if isinstance(value, Tensor) else value if isinstance(value, np.ndarray) else None


def _like(value, array):
    return tensor_of(array) if isinstance(value, Tensor) else array


class Gradients:
    """The gradients of a node, assembled from chunks."""

    def __init__(self, node, axis, length, dims):
        self.axis, self.length, self.is_tuple = axis, length, False  # axis: from the end of the batch dimensions
        self.expected = node.expected_gradients()
        self.dims = _each(dims, len(self.expected))
        self.totals = [None] * len(self.expected)

    def add(self, grads, part):
        self.is_tuple = type(grads) is tuple
        for i, grad in enumerate(grads if self.is_tuple else (grads,)):
            if grad is not None and self.expected[i] is not None:
                self._add_one(i, memory_of(grad), part)

    def _add_one(self, i, array, part):
        (whole, is_complex), total = self.expected[i], self.totals[i]
        shape = list(whole)
        axis = len(shape) - self.dims[i] - self.axis
        along = axis >= 0 and shape[axis] != 1
        if along:
            shape[axis] = len(range(*part.indices(self.length)))
        array = sum_to(array if is_complex else array.real, tuple(shape))
        if along:
            if total is None:
                total = self.totals[i] = new_array(whole, array.dtype.num)
            total[(slice(None),) * axis + (part,)] = array
        elif total is None:
            self.totals[i] = array.copy()
        else:
            total += array

    def delivered(self):
        found = [None if total is None else tensor_of(total) for total in self.totals]
        return tuple(found) if self.is_tuple else found[0]
