"""Comparisons with tolerance, NaN and infinity tests, logical and bitwise ops. None is differentiable."""

import numpy as np

from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELEMENTWISE, INPLACE, NONDIFF, declare, facts, publish
from cygrad._core.graph.record import apply1, apply2, apply_n, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.elementwise import numpy_pointwise
from cygrad._kernels.device.cupy_library import require_values
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import require
from cygrad._ops.base.checks.common import (
    check_unbatched,
    number_argument,
    require_broadcast,
    require_kind,
    require_tensors,
)

QUESTION = ELEMENTWISE | NONDIFF
TRUTH = QUESTION | INPLACE

# -- nearly equal, equal --

ISCLOSE = declare("isclose", flags=QUESTION, kernel=numpy_pointwise.isclose)


def isclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Test `abs(input - other) <= atol + rtol * abs(other)`, elementwise with broadcasting.

    Infinities are close only to themselves, NaN to NaN if `equal_nan`. Raises RuntimeError for different dtypes and for
    negative tolerances.

    >>> import cygrad
    >>> cygrad.isclose(cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0 + 1e-7, 2.1]))
    tensor([ True, False])
    """
    require_tensors(ISCLOSE, input, other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.type_name} did not match {other.dtype.type_name}")
    rtol, atol = (
        number_argument(value, "isclose", name, position, "float")
        for position, (name, value) in enumerate((("rtol", rtol), ("atol", atol)), 3)
    )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    return apply_n(ISCLOSE, (input, other), (rtol, atol, equal_nan))


def allclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether `|input - other| <= atol + rtol * |other|` for all elements (`isclose`): True or False.

    >>> import cygrad
    >>> cygrad.allclose(cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0, 2.1]))
    False
    """
    check_unbatched("allclose", input, other)
    return bool(array_of(isclose(input, other, rtol, atol, equal_nan)).all())


@facts(devices="together")
def equal(input, other):
    """Whether two tensors have the same shape and the same elements: True or False.

    >>> import cygrad
    >>> cygrad.equal(cygrad.tensor([1, 2]), cygrad.tensor([1, 2]))
    True
    """
    a, b = require(input, "equal"), require(other, "equal", "other", 2)
    check_unbatched("equal", a, b)
    x, y = array_of(a), array_of(b)
    require_values(x, "equal")
    if x is y and x.dtype.kind in "biu":
        return True
    return x.shape == y.shape and _are_equal(x, y)


@noted
def _are_equal(x, y):
    return not np.count_nonzero(x != y)


# -- NaN and infinity --

ISNAN = declare("isnan", flags=QUESTION, ufunc="isnan", direct=True)


def isnan(input):
    """Whether each element is NaN; for complex elements, whether either part is.

    >>> import cygrad
    >>> cygrad.isnan(cygrad.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    return apply1(ISNAN, input, None)


ISINF = declare("isinf", flags=QUESTION, ufunc="isinf", direct=True)


def isinf(input):
    """Whether each element is inf or -inf; for complex elements, whether either part is.

    >>> import cygrad
    >>> cygrad.isinf(cygrad.tensor([1.0, -float("inf")]))
    tensor([False,  True])
    """
    return apply1(ISINF, input, None)


ISFINITE = declare("isfinite", flags=QUESTION, ufunc="isfinite", direct=True)


def isfinite(input):
    """Whether each element is neither infinite nor NaN.

    >>> import cygrad
    >>> cygrad.isfinite(cygrad.tensor([1.0, float("nan"), float("inf")]))
    tensor([ True, False, False])
    """
    return apply1(ISFINITE, input, None)


# -- logical --


def logical(op, input, other, out):
    require_tensors(op, input, other)
    return apply2(op, input, other, out)


LOGICAL_AND = declare("logical_and", flags=TRUTH, ufunc="logical_and")


def logical_and(input, other, *, out=None):
    """Whether both elements are true (not 0), with broadcasting.

    >>> import cygrad
    >>> cygrad.logical_and(cygrad.tensor([1, 2, 0]), cygrad.tensor([True, False, True]))
    tensor([ True, False, False])
    """
    return logical(LOGICAL_AND, input, other, out)


LOGICAL_OR = declare("logical_or", flags=TRUTH, ufunc="logical_or")


def logical_or(input, other, *, out=None):
    """Whether at least one of two elements is true (not 0), with broadcasting.

    >>> import cygrad
    >>> cygrad.logical_or(cygrad.tensor([1, 0]), cygrad.tensor([False, False]))
    tensor([ True, False])
    """
    return logical(LOGICAL_OR, input, other, out)


LOGICAL_XOR = declare("logical_xor", flags=TRUTH, ufunc="logical_xor")


def logical_xor(input, other, *, out=None):
    """Whether exactly one of two elements is true (not 0), with broadcasting.

    >>> import cygrad
    >>> cygrad.logical_xor(cygrad.tensor([1, 1]), cygrad.tensor([False, True]))
    tensor([ True, False])
    """
    return logical(LOGICAL_XOR, input, other, out)


LOGICAL_NOT = declare("logical_not", flags=TRUTH, ufunc="logical_not", direct=True)


def logical_not(input, *, out=None):
    """Whether each element is false (0).

    >>> import cygrad
    >>> cygrad.logical_not(cygrad.tensor([0, 2]))
    tensor([ True, False])
    """
    return apply1(LOGICAL_NOT, input, out)


# -- bits --

NUMBER = (Tensor, int, float, complex)


def bitwise(op, input, other, out):
    if not isinstance(other, Tensor):
        tensor_argument(op, input, "input", 1)
    if isinstance(input, Tensor) and isinstance(other, Tensor):
        require_broadcast(input, other)
    if isinstance(input, NUMBER) and isinstance(other, NUMBER):
        require_kind("bi", op.name + "_cpu", input, other)
    return apply2(op, input, other, out)


BITWISE_AND = declare("bitwise_and", flags=TRUTH, ufunc="bitwise_and", overloads="")


def bitwise_and(input, other, *, out=None):
    """Bitwise AND of both operands, with broadcasting; logical AND for booleans. Keeps the dtype.

    Either operand may be a number. Raises NotImplementedError unless both are integers or booleans.

    >>> import cygrad
    >>> cygrad.bitwise_and(cygrad.tensor([6, 3]), 2)
    tensor([2, 2])
    """
    return bitwise(BITWISE_AND, input, other, out)


BITWISE_OR = declare("bitwise_or", flags=TRUTH, ufunc="bitwise_or", overloads="")


def bitwise_or(input, other, *, out=None):
    """Bitwise OR of both operands, with broadcasting; logical OR for booleans. Keeps the dtype.

    Either operand may be a number. Raises NotImplementedError unless both are integers or booleans.

    >>> import cygrad
    >>> cygrad.bitwise_or(cygrad.tensor([4, 3]), 2)
    tensor([6, 3])
    """
    return bitwise(BITWISE_OR, input, other, out)


BITWISE_XOR = declare("bitwise_xor", flags=TRUTH, ufunc="bitwise_xor", overloads="")


def bitwise_xor(input, other, *, out=None):
    """Bitwise XOR of both operands, with broadcasting; logical XOR for booleans. Keeps the dtype.

    Either operand may be a number. Raises NotImplementedError unless both are integers or booleans.

    >>> import cygrad
    >>> cygrad.bitwise_xor(cygrad.tensor([6, 3]), 2)
    tensor([4, 1])
    """
    return bitwise(BITWISE_XOR, input, other, out)


BITWISE_NOT = declare("bitwise_not", flags=TRUTH, ufunc="invert", out_dtype="found")


def bitwise_not(input, *, out=None):
    """Invert all bits; logical NOT for booleans. Keeps the dtype.

    Raises NotImplementedError for dtypes other than integers and booleans.

    >>> import cygrad
    >>> cygrad.bitwise_not(cygrad.tensor([True, False]))
    tensor([False,  True])
    """
    require_kind("bi", "bitwise_not_cpu", tensor_argument(BITWISE_NOT, input, "input", 1))
    return apply1(BITWISE_NOT, input, out)


in_place_results = {
    "logical_and": "tensor([1, 0, 0])",
    "logical_not": "tensor([1, 0])",
    "logical_or": "tensor([1, 0])",
    "logical_xor": "tensor([1, 0])",
}
composite = {"allclose": 0, "equal": 0}
functions = publish(globals())
