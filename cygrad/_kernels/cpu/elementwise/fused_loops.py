"""Elementwise functions and gradients that one compiled loop computes in a single pass (fused_loops.h)."""

import math
from functools import partial, update_wrapper

import numpy as np

import cygrad._kernels.cpu.base.loop_table as loop_table
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array
from cygrad._kernels.cpu.base.loop_table import FUSED_NUMBERS, LOOPS
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.device.cupy_library import is_array, is_meta
from cygrad._kernels.platform.thresholds import PIECE
from cygrad._kernels.tape.calls import noted

GATED = LOOPS.GATED
RUN = 1024  # elements per work item of GATED


def fused(name, *operands, numbers=(), out=None):
    """Apply a function to arrays of one type that broadcast to one of them; None if there is no loop for them.

    Operands that are not dense must have equal shapes or one element. The result has the memory layout of the largest
    operand, if that is dense, or is written to `out`: an operand, or an array that overlaps none.
    """
    found = loop_table.fused(FUSED_NUMBERS[name], operands, numbers, out)
    if found is not None:
        return found
    if any(map(is_meta, operands)):
        return None
    if any(map(is_array, operands)):
        return gpu_forms.loops.fused(name, *operands, numbers=numbers) if out is None else None
    largest = max(operands, key=np.size)
    if not has_loop(*operands) or any(operand.shape != largest.shape and operand.size != 1 for operand in operands):
        return None
    order = None  # also if strides of 0 leave it undetermined, as in PyTorch
    if not largest.flags.c_contiguous and all(largest.strides):
        order = np.argsort([-abs(n) for n in largest.strides], kind="stable")
    given = tuple(_dense(operand, order, operand is largest) for operand in operands)
    made = loop_table.fused(FUSED_NUMBERS[name], given, numbers)
    if made is None:
        return None
    if order is not None:
        made = made.transpose(np.argsort(order))
    if out is None:
        return made
    np.copyto(out, made)
    return out


def add_scaled(a, b, factor, target=None):
    """`a + factor * b` in one pass, or a deferred result for `blocks.write`; None if there is no loop for it."""
    if not (type(b) is np.ndarray and loop_table.has_loops(a)):
        return None
    function = partial(_add_scaled, np.ones((), a.dtype), factor)
    result = chunks.result_into(target, function, a, b)
    return function(a, b) if result is None else result


def _add_scaled(one, factor, a, b, out=None):
    found = fused("addcmul", a, b, one, numbers=(factor,), out=out)
    return np.add(a, b * a.dtype.type(factor), out=out) if found is None else found


def has_loop(*operands):
    """Whether `fused` has loops for such operands."""
    first = operands[0]
    if type(first) is not np.ndarray or not loop_table.has_loops(first):
        return False
    return all(type(a) is np.ndarray and a.dtype == first.dtype for a in operands)


def _dense(operand, order, is_largest):
    """Make an operand dense, with its dimensions in the given order.

    A single element expanded by strides of 0 becomes one element again, unless it is the largest operand.
    """
    if operand.size > 1 and not any(operand.strides) and not is_largest:
        operand = operand[(slice(0, 1),) * operand.ndim]
    elif operand.size > 1 and order is not None:
        operand = operand.transpose(order)
    return dense(operand)


def gated(a, dim):
    """Gated linear unit: the first half along a dimension times the sigmoid of the second; None if there is no loop."""
    return _run_gated(a, None, dim) if _has_gated(a) else None


def gated_gradient(g, a, dim):
    """Gradient of `gated` with respect to `a`; None if there is no loop."""
    if not _has_gated(a) or type(g) is not np.ndarray or g.dtype != a.dtype:
        return None
    return _run_gated(a, g, dim)


def _has_gated(a):
    return type(a) is np.ndarray and loop_table.has_loops(a) and a.size > 0


@noted
def _run_gated(a, g, dim):
    half = (*a.shape[:dim], a.shape[dim] // 2, *a.shape[dim + 1 :])
    if g is not None and g.shape != half:
        raise ValueError(f"a gradient of shape {g.shape} for a result of shape {half}")
    width = math.prod(half[dim:])
    out = new_array(half if g is None else a.shape, a.dtype.num)
    items = a.size // (2 * width) * -(-width // RUN)
    loop_table.run(
        GATED,
        (*(dense(x) for x in (a, g) if x is not None), out),
        (width, g is not None),
        0,
        items,
        max(1, PIECE // min(width, RUN)),
    )
    return out


class by_loop:
    """Decorator for functions of `count` arrays and of numbers that replaces them by a loop of fused_loops.h where
    possible.

    `numbers` maps the function's numbers to those of the loop, or to None if the loop does not support them;
    `are_operands` means that they are operands of the loop. Without a loop, the function itself processes large arrays
    chunk by chunk. `out` works as for `fused`, if the function supports it.
    """

    def __init__(self, name, count=1, numbers=lambda *given: given, are_operands=False):
        self.name, self.number, self.count = name, FUSED_NUMBERS[name], count
        self.numbers, self.are_operands = numbers, are_operands

    def __call__(self, function):
        return update_wrapper(_ByLoop(self, function), function)


class _ByLoop:
    def __init__(self, loop, function):
        self.loop, self.function = loop, silent(function)

    def __call__(self, *args, out=None):
        loop, count = self.loop, self.loop.count
        arrays, numbers = args[:count], loop.numbers(*args[count:])
        if numbers is not None:
            if loop.are_operands:
                arrays, numbers = (*arrays, *[np.asarray(n, arrays[0].dtype) for n in numbers]), ()
            found = loop_table.fused(loop.number, arrays, numbers, out)
            if found is None:
                found = fused(loop.name, *arrays, numbers=numbers, out=out)
            if found is not None:
                return found
        if out is not None:
            return self.function(*args, out=out)
        if max((a.size for a in args if isinstance(a, np.ndarray)), default=0) <= chunks.SIZE:
            return self.function(*args)
        return chunks.in_blocks(self.function, args)
