"""Elementwise functions, and gradients of such, that are one pass in a compiled loop (fused.h)."""

import math
from functools import update_wrapper

import numpy as np

import cygrad._kernels.native as native
from cygrad._kernels import blocks
from cygrad._kernels.arrays import dense, new_array
from cygrad._kernels.gpu import loops
from cygrad._kernels.gpu.library import is_array

FUSED, GATED = 23, 26  # as in native.h
PIECE = 1 << 14  # elements that one thread works on
RUN = 1024  # elements of an item of GATED

# In the order of fused.h, which says what operands and numbers mean.
_FUNCTIONS = (
    "leaky_relu threshold hardtanh hardsigmoid hardswish hardshrink softshrink softplus logsigmoid erfc elu "
    "leaky_relu_gradient negative_products above inside hardsigmoid_gradient hardswish_gradient outside "
    "softplus_gradient logsigmoid_gradient elu_gradient squared_error smooth_l1 huber binary_cross_entropy_with_logits "
    "soft_margin logaddexp squared_error_gradient bounded_difference binary_cross_entropy_with_logits_gradient "
    "exponential_share soft_margin_gradient"
).split()
_NUMBERS = {name: i for i, name in enumerate(_FUNCTIONS)}


def fused(name, *operands, numbers=()):
    """The function of arrays of one type and shape, or of one element; None if that has no loop.

    The result lies in memory as the largest operand does, if that is dense.
    """
    if any(map(is_array, operands)):
        return loops.fused(name, *operands, numbers=numbers)
    largest = max(operands, key=np.size)
    if type(largest) is not np.ndarray or not native.has_loops(largest):
        return None
    if not all(_fits(operand, largest) for operand in operands):
        return None
    order = None if largest.flags.c_contiguous else np.argsort([-abs(n) for n in largest.strides], kind="stable")
    given = [_dense(operand, order) for operand in operands]
    out = new_array(largest.shape if order is None else largest.transpose(order).shape, largest.dtype.num)
    steps = [operand.size == largest.size for operand in given]
    missing = 3 - len(given)
    arrays = (out, *given, *[None] * missing, np.array([*numbers, 0.0, 0.0, 0.0][:3], float))
    native.run(FUSED, arrays, (_NUMBERS[name], *steps, *[False] * missing), 0, largest.size, PIECE)
    return out if order is None else out.transpose(np.argsort(order))


def _fits(operand, largest):
    return (
        type(operand) is np.ndarray
        and operand.dtype == largest.dtype
        and (operand.shape == largest.shape or (operand.size == 1 and operand.ndim <= largest.ndim))
    )


def _dense(operand, order):
    """An operand as loops take it, its dimensions in that order; one element where it is an expanded one."""
    if operand.size > 1 and not any(operand.strides):
        operand = operand[(slice(0, 1),) * operand.ndim]
    elif operand.size > 1 and order is not None:
        operand = operand.transpose(order)
    return dense(operand)


def gated(a, dim):
    """The first half along a dimension times the logistic function of the second; None if that has no loop."""
    return _run_gated(a, None, dim) if _has_gated(a) else None


def gated_gradient(g, a, dim):
    """The gradient of `gated` for `a`; None if that has no loop."""
    if not _has_gated(a) or type(g) is not np.ndarray or g.dtype != a.dtype:
        return None
    return _run_gated(a, g, dim)


def _has_gated(a):
    return type(a) is np.ndarray and native.has_loops(a) and a.size > 0


def _run_gated(a, g, dim):
    half = (*a.shape[:dim], a.shape[dim] // 2, *a.shape[dim + 1 :])
    if g is not None and g.shape != half:
        raise ValueError(f"a gradient of shape {g.shape} for a result of shape {half}")
    width = math.prod(half[dim:])
    out = new_array(half if g is None else a.shape, a.dtype.num)
    items = a.size // (2 * width) * -(-width // RUN)
    native.run(
        GATED,
        (*(dense(x) for x in (a, g) if x is not None), out),
        (width, g is not None),
        0,
        items,
        max(1, PIECE // min(width, RUN)),
    )
    return out


class by_loop:
    """A decorator of functions of `count` arrays and of numbers: they are a loop of fused.h where that can be.

    `numbers` makes those of the loop of the function's, or None if there is no loop for these; `are_operands` tells
    that they are operands of the loop. Large arrays are given to the function itself block by block.
    """

    def __init__(self, name, count=1, numbers=lambda *given: given, are_operands=False):
        self.name, self.count, self.numbers, self.are_operands = name, count, numbers, are_operands

    def __call__(self, function):
        return update_wrapper(_ByLoop(self, function), function)


class _ByLoop:
    def __init__(self, loop, function):
        self.loop, self.function = loop, function

    def __call__(self, *args):
        loop, count = self.loop, self.loop.count
        arrays, numbers = args[:count], loop.numbers(*args[count:])
        found = None
        if numbers is not None and loop.are_operands:
            found = fused(loop.name, *arrays, *(np.asarray(n, arrays[0].dtype) for n in numbers))
        elif numbers is not None:
            found = fused(loop.name, *arrays, numbers=numbers)
        if found is not None:
            return found
        if max((a.size for a in args if isinstance(a, np.ndarray)), default=0) <= blocks.SIZE:
            return self.function(*args)
        return blocks.in_blocks(self.function, args)
