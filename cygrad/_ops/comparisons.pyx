"""Comparisons, and the comparison operators. None has a derivative; results are boolean."""

from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT, Py_NE

from cygrad._core.dtypes cimport COMPLEX, dtype
from cygrad._core.opdef cimport ELEMENTWISE, INPLACE, NONDIFF, OpDef, op
from cygrad._core.opdef import publish
from cygrad._core.record cimport apply2, result_type, tensor_argument
from cygrad._core.tensor cimport Tensor, dtype_of
from cygrad._ops.arithmetic cimport operand
from cygrad._core import messages
from cygrad._core.operands import unordered

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

    Raises NotImplementedError for complex tensors. Saves nothing.

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


functions = publish(globals())
