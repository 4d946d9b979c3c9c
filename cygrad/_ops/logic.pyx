"""Comparisons, truth values, bits. None of these has a derivative; results are boolean unless said otherwise."""

from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT, Py_NE

from cygrad._core.dtypes cimport COMPLEX, INTEGRAL, dtype
from cygrad._core.opdef cimport ELEMENTWISE, INPLACE, NONDIFF, OpDef, op
from cygrad._core.opdef import publish
from cygrad._core.record cimport apply1, apply2, apply_n, result_type, tensor_argument
from cygrad._core.tensor cimport Tensor, dtype_of
from cygrad._kernels import pointwise
cimport cygrad._ops.arguments as arguments
from cygrad._ops.arithmetic cimport operand
from cygrad._core import messages
from cygrad._core.operands import unordered, unsupported_operand

import numpy as np

cdef unsigned int TRUTH = ELEMENTWISE | NONDIFF | INPLACE


# -- comparisons -------------------------------------------------------------------------------------------

cdef Tensor comparison(OpDef op, object input, object other, Tensor out):
    cdef Tensor t = tensor_argument(op, input, "input", 1)
    if not isinstance(other, (Tensor, int, float, complex)):
        raise messages.no_such_call(op.name, (input, other), {}, (
            "Tensor input, Tensor other, *, Tensor out = None", "Tensor input, Number other, *, Tensor out = None"))
    return compared(op, t, other, out)


cdef Tensor compared(OpDef op, Tensor t, object other, Tensor out):
    if op is not EQ and op is not NE:
        check_ordered(op, t, other)
    return apply2(op, t, other, out)


cdef int check_ordered(OpDef op, Tensor t, object other) except -1:
    """Complex numbers have no order."""
    cdef dtype kind = dtype_of(t)
    if kind.category == COMPLEX or isinstance(other, complex) or (
            isinstance(other, Tensor) and dtype_of(<Tensor>other).category == COMPLEX):
        raise messages.not_implemented_for(op.name + "_cpu", result_type((t, other)))
    return 0


cdef OpDef EQ = op("eq").row(flags=TRUTH, ufunc="equal")

cpdef Tensor eq(object input, object other, Tensor out=None):
    """`input == other`, elementwise with broadcasting. `other` may be a number.

    >>> import cygrad
    >>> cygrad.eq(cygrad.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return comparison(EQ, input, other, out)


cdef OpDef NE = op("ne").row(flags=TRUTH, ufunc="not_equal", aliases="not_equal")

cpdef Tensor ne(object input, object other, Tensor out=None):
    """`input != other`, elementwise with broadcasting. `other` may be a number.

    >>> import cygrad
    >>> cygrad.ne(cygrad.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return comparison(NE, input, other, out)


cdef OpDef LT = op("lt").row(flags=TRUTH, ufunc="less", aliases="less")

cpdef Tensor lt(object input, object other, Tensor out=None):
    """`input < other`, elementwise with broadcasting. `other` may be a number.

    Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.lt(cygrad.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return comparison(LT, input, other, out)


cdef OpDef LE = op("le").row(flags=TRUTH, ufunc="less_equal", aliases="less_equal")

cpdef Tensor le(object input, object other, Tensor out=None):
    """`input <= other`, elementwise with broadcasting. `other` may be a number.

    Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.le(cygrad.tensor([1, 2]), 2)
    tensor([True, True])
    """
    return comparison(LE, input, other, out)


cdef OpDef GT = op("gt").row(flags=TRUTH, ufunc="greater", aliases="greater")

cpdef Tensor gt(object input, object other, Tensor out=None):
    """`input > other`, elementwise with broadcasting. `other` may be a number.

    Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.gt(cygrad.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    return comparison(GT, input, other, out)


cdef OpDef GE = op("ge").row(flags=TRUTH, ufunc="greater_equal", aliases="greater_equal")

cpdef Tensor ge(object input, object other, Tensor out=None):
    """`input >= other`, elementwise with broadcasting. `other` may be a number.

    Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.ge(cygrad.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return comparison(GE, input, other, out)


cdef object compare(object a, object b, int op):
    """The comparison operators; what is no operand gets Python's own answer."""
    other = b
    b = operand(b)
    if b is NotImplemented:
        if op in (Py_EQ, Py_NE):
            return NotImplemented
        return unordered({Py_LT: "<", Py_LE: "<=", Py_GT: ">", Py_GE: ">="}[op], a, other)
    if op == Py_EQ:
        return compared(EQ, <Tensor>a, b, None)
    if op == Py_NE:
        return compared(NE, <Tensor>a, b, None)
    if op == Py_LT:
        return compared(LT, <Tensor>a, b, None)
    if op == Py_LE:
        return compared(LE, <Tensor>a, b, None)
    return compared(GT if op == Py_GT else GE, <Tensor>a, b, None)


# -- nearly equal, equal -----------------------------------------------------------------------------------

cdef OpDef ISCLOSE = op("isclose").row(flags=ELEMENTWISE | NONDIFF, kernel=pointwise.isclose)

def isclose(input, other, double rtol=1e-5, double atol=1e-8, bint equal_nan=False):
    """`abs(input - other) <= atol + rtol * abs(other)`, elementwise with broadcasting.

    Infinities are close to themselves alone, nan to nan if `equal_nan`. Raises RuntimeError for two dtypes and for
    negative tolerances.

    >>> import cygrad
    >>> cygrad.isclose(cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0 + 1e-7, 2.1]))
    tensor([ True, False])
    """
    cdef Tensor a = tensor_argument(ISCLOSE, input, "input", 1)
    cdef Tensor b = tensor_argument(ISCLOSE, other, "other", 2)
    if dtype_of(a) is not dtype_of(b):
        raise RuntimeError(f"{dtype_of(a).type_name} did not match {dtype_of(b).type_name}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    return apply_n(ISCLOSE, (a, b), (rtol, atol, equal_nan), None)


def allclose(input, other, double rtol=1e-5, double atol=1e-8, bint equal_nan=False):
    """Whether `isclose` holds for all elements: True or False.

    >>> import cygrad
    >>> cygrad.allclose(cygrad.tensor([1.0, 2.0]), cygrad.tensor([1.0, 2.1]))
    False
    """
    return bool((<Tensor>isclose(input, other, rtol, atol, equal_nan)).array.all())


def equal(input, other):
    """Whether two tensors have the same shape and the same elements: True or False.

    >>> import cygrad
    >>> cygrad.equal(cygrad.tensor([1, 2]), cygrad.tensor([1, 2]))
    True
    """
    cdef Tensor a = arguments.require(input, "equal")
    cdef Tensor b = arguments.require(other, "equal", "other", 2)
    return bool(np.array_equal(a.array, b.array))


# -- what kind of number -----------------------------------------------------------------------------------

cdef OpDef ISNAN = op("isnan").row(flags=ELEMENTWISE | NONDIFF, ufunc="isnan")

cpdef Tensor isnan(object input):
    """Whether each element is nan; for complex ones, whether a part is.

    >>> import cygrad
    >>> cygrad.isnan(cygrad.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    return apply1(ISNAN, input, None)


cdef OpDef ISINF = op("isinf").row(flags=ELEMENTWISE | NONDIFF, ufunc="isinf")

cpdef Tensor isinf(object input):
    """Whether each element is inf or -inf; for complex ones, whether a part is.

    >>> import cygrad
    >>> cygrad.isinf(cygrad.tensor([1.0, -float("inf")]))
    tensor([False,  True])
    """
    return apply1(ISINF, input, None)


cdef OpDef ISFINITE = op("isfinite").row(flags=ELEMENTWISE | NONDIFF, ufunc="isfinite")

cpdef Tensor isfinite(object input):
    """Whether each element is neither infinite nor nan.

    >>> import cygrad
    >>> cygrad.isfinite(cygrad.tensor([1.0, float("nan"), float("inf")]))
    tensor([ True, False, False])
    """
    return apply1(ISFINITE, input, None)


# -- truth values ------------------------------------------------------------------------------------------

cdef Tensor logical(OpDef op, object input, object other, Tensor out):
    tensor_argument(op, input, "input", 1)
    tensor_argument(op, other, "other", 2)
    return apply2(op, input, other, out)


cdef OpDef LOGICAL_AND = op("logical_and").row(flags=TRUTH, ufunc="logical_and")

cpdef Tensor logical_and(object input, object other, Tensor out=None):
    """Whether both elements are true (not 0), with broadcasting.

    >>> import cygrad
    >>> cygrad.logical_and(cygrad.tensor([1, 2, 0]), cygrad.tensor([True, False, True]))
    tensor([ True, False, False])
    """
    return logical(LOGICAL_AND, input, other, out)


cdef OpDef LOGICAL_OR = op("logical_or").row(flags=TRUTH, ufunc="logical_or")

cpdef Tensor logical_or(object input, object other, Tensor out=None):
    """Whether at least one of two elements is true (not 0), with broadcasting.

    >>> import cygrad
    >>> cygrad.logical_or(cygrad.tensor([1, 0]), cygrad.tensor([False, False]))
    tensor([ True, False])
    """
    return logical(LOGICAL_OR, input, other, out)


cdef OpDef LOGICAL_XOR = op("logical_xor").row(flags=TRUTH, ufunc="logical_xor")

cpdef Tensor logical_xor(object input, object other, Tensor out=None):
    """Whether just one of two elements is true (not 0), with broadcasting.

    >>> import cygrad
    >>> cygrad.logical_xor(cygrad.tensor([1, 1]), cygrad.tensor([False, True]))
    tensor([ True, False])
    """
    return logical(LOGICAL_XOR, input, other, out)


cdef OpDef LOGICAL_NOT = op("logical_not").row(flags=TRUTH, ufunc="logical_not")

cpdef Tensor logical_not(object input, Tensor out=None):
    """Whether each element is false (0).

    >>> import cygrad
    >>> cygrad.logical_not(cygrad.tensor([0.0, 2.0]))
    tensor([ True, False])
    """
    return apply1(LOGICAL_NOT, input, out)


# -- bits --------------------------------------------------------------------------------------------------

cdef Tensor bitwise(OpDef op, object input, object other, Tensor out):
    cdef dtype kind
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        tensor_argument(op, input, "input", 1)
    if isinstance(input, (Tensor, int, float, complex)) and isinstance(other, (Tensor, int, float, complex)):
        kind = result_type((input, other))
        if kind.category > INTEGRAL:
            raise messages.not_implemented_for(op.name + "_cpu", kind)
    return apply2(op, input, other, out)


cdef OpDef BITWISE_AND = op("bitwise_and").row(flags=TRUTH, ufunc="bitwise_and")

cpdef Tensor bitwise_and(object input, object other, Tensor out=None):
    """The bits set in both operands, with broadcasting; logical `and` for truth values. Keeps the type.

    Either operand may be a number. Raises NotImplementedError for other than integers and truth values.

    >>> import cygrad
    >>> cygrad.bitwise_and(cygrad.tensor([6, 3]), 2)
    tensor([2, 2])
    """
    return bitwise(BITWISE_AND, input, other, out)


cdef OpDef BITWISE_OR = op("bitwise_or").row(flags=TRUTH, ufunc="bitwise_or")

cpdef Tensor bitwise_or(object input, object other, Tensor out=None):
    """The bits set in either operand, with broadcasting; logical `or` for truth values. Keeps the type.

    Either operand may be a number. Raises NotImplementedError for other than integers and truth values.

    >>> import cygrad
    >>> cygrad.bitwise_or(cygrad.tensor([4, 3]), 2)
    tensor([6, 3])
    """
    return bitwise(BITWISE_OR, input, other, out)


cdef OpDef BITWISE_XOR = op("bitwise_xor").row(flags=TRUTH, ufunc="bitwise_xor")

cpdef Tensor bitwise_xor(object input, object other, Tensor out=None):
    """The bits set in just one operand, with broadcasting; exclusive `or` for truth values. Keeps the type.

    Either operand may be a number. Raises NotImplementedError for other than integers and truth values.

    >>> import cygrad
    >>> cygrad.bitwise_xor(cygrad.tensor([6, 3]), 2)
    tensor([4, 1])
    """
    return bitwise(BITWISE_XOR, input, other, out)


cdef OpDef BITWISE_NOT = op("bitwise_not").row(flags=TRUTH, ufunc="invert")

cpdef Tensor bitwise_not(object input, Tensor out=None):
    """All bits turned over; logical `not` for truth values. Keeps the type.

    Raises NotImplementedError for other than integers and truth values.

    >>> import cygrad
    >>> cygrad.bitwise_not(cygrad.tensor([True, False]))
    tensor([False,  True])
    """
    cdef dtype kind = dtype_of(tensor_argument(BITWISE_NOT, input, "input", 1))
    if kind.category > INTEGRAL:
        raise messages.not_implemented_for("bitwise_not_cpu", kind)
    return apply1(BITWISE_NOT, input, out)


# -- operators ---------------------------------------------------------------------------------------------

cdef object operate(OpDef op, str symbol, object a, object b, Tensor out):
    left, right = operand(a), operand(b)
    if left is NotImplemented or right is NotImplemented:
        return unsupported_operand(symbol, a, b)
    return bitwise(op, left, right, out)


cdef object operator_and(object a, object b):
    return operate(BITWISE_AND, "&", a, b, None)


cdef object operator_or(object a, object b):
    return operate(BITWISE_OR, "|", a, b, None)


cdef object operator_xor(object a, object b):
    return operate(BITWISE_XOR, "^", a, b, None)


cdef object operator_iand(Tensor a, object b):
    return operate(BITWISE_AND, "&=", a, b, a)


cdef object operator_ior(Tensor a, object b):
    return operate(BITWISE_OR, "|=", a, b, a)


cdef object operator_ixor(Tensor a, object b):
    return operate(BITWISE_XOR, "^=", a, b, a)


cdef object operator_invert(Tensor a):
    if dtype_of(a).category > INTEGRAL:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(a)


composite = {"allclose": 0, "equal": 0}
functions = publish(globals())
