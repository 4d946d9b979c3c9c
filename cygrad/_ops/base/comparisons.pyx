"""Comparisons, comparison operators, and `where`. Results of comparisons are boolean and have no derivative."""

from cpython.object cimport Py_EQ, Py_GT, Py_LE, Py_LT, Py_NE

from cygrad._core.types.dtypes cimport BOOLEAN, COMPLEX, FLOATING, INTEGRAL, default_dtype, dtype, promote_types
from cygrad._core.graph.dual cimport keep
from cygrad._core.graph.opdef cimport ELEMENTWISE, IN2, INPLACE, NONDIFF, OpDef, OpNode, lookup, op
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.observers cimport dispatches
from cygrad._core.graph.record cimport apply2, as_type, record2, record_n, result_type, tensor_argument, write_into
from cygrad._core.graph.tensor cimport CUT_NONE, Tensor, cut, dtype_of
from cygrad._ops.base.arithmetic cimport operand
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.registry import device_checks
from cygrad._core import operators
from cygrad._kernels.cpu.elementwise import numpy_pointwise
from cygrad._kernels.cpu.base.copying import element
from cygrad._kernels.device import cupy_library

cdef unsigned int TRUTH = ELEMENTWISE | NONDIFF | INPLACE


# -- comparisons -------------------------------------------------------------------------------------------

cdef Tensor comparison(OpDef op, object input, object other, Tensor out):
    cdef Tensor t = tensor_argument(op, input, "input", 1)
    if not isinstance(other, (Tensor, int, float, complex)):
        raise messages.fits_none(op.name)
    return compared(op, t, other, out)


cdef Tensor compared(OpDef op, Tensor t, object other, Tensor out):
    if op is not EQ and op is not NE:
        check_ordered(op, t, other)
    return apply2(op, t, other, out)


cdef int check_ordered(OpDef op, Tensor t, object other) except -1:
    """Raise for complex numbers, which have no order."""
    cdef dtype kind = dtype_of(t)
    if kind.category == COMPLEX or isinstance(other, complex) or (
            isinstance(other, Tensor) and dtype_of(<Tensor>other).category == COMPLEX):
        raise messages.not_implemented_for(op.name + "_cpu", result_type((t, other)))
    return 0


COMPARED = "a comparison has no gradient: replace it with a smooth function, such as `torch.sigmoid(x)` for `x > 0`"

cdef OpDef EQ = op("eq").row(flags=TRUTH, ufunc="equal", overloads="", advice=COMPARED)

cpdef Tensor eq(object input, object other, Tensor out=None):
    """`input == other`, elementwise with broadcasting. `other` may be a number.

    >>> import cygrad
    >>> cygrad.eq(cygrad.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return comparison(EQ, input, other, out)


cdef OpDef NE = op("ne").row(flags=TRUTH, ufunc="not_equal", aliases="not_equal", overloads="", advice=COMPARED)

cpdef Tensor ne(object input, object other, Tensor out=None):
    """`input != other`, elementwise with broadcasting. `other` may be a number.

    >>> import cygrad
    >>> cygrad.ne(cygrad.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return comparison(NE, input, other, out)


cdef OpDef LT = op("lt").row(flags=TRUTH, ufunc="less", aliases="less", overloads="", advice=COMPARED)

cpdef Tensor lt(object input, object other, Tensor out=None):
    """`input < other`, elementwise with broadcasting. `other` may be a number.

    Saves nothing. Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.lt(cygrad.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return comparison(LT, input, other, out)


cdef OpDef LE = op("le").row(flags=TRUTH, ufunc="less_equal", aliases="less_equal", overloads="", advice=COMPARED)

cpdef Tensor le(object input, object other, Tensor out=None):
    """`input <= other`, elementwise with broadcasting. `other` may be a number.

    Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.le(cygrad.tensor([1, 2]), 2)
    tensor([True, True])
    """
    return comparison(LE, input, other, out)


cdef OpDef GT = op("gt").row(flags=TRUTH, ufunc="greater", aliases="greater", overloads="", advice=COMPARED)

cpdef Tensor gt(object input, object other, Tensor out=None):
    """`input > other`, elementwise with broadcasting. `other` may be a number.

    Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.gt(cygrad.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    return comparison(GT, input, other, out)


cdef OpDef GE = op("ge").row(flags=TRUTH, ufunc="greater_equal", aliases="greater_equal", overloads="", advice=COMPARED)

cpdef Tensor ge(object input, object other, Tensor out=None):
    """`input >= other`, elementwise with broadcasting. `other` may be a number.

    Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.ge(cygrad.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return comparison(GE, input, other, out)


cdef object compare(object a, object b, int op):
    """Apply a comparison operator; non-operands give the same result as in plain Python."""
    other = b
    b = operand(b)
    if b is NotImplemented:
        return operators.incomparable(("<", "<=", "==", "!=", ">", ">=")[op], a, other)
    if op == Py_EQ:
        return compared(EQ, <Tensor>a, b, None)
    if op == Py_NE:
        return compared(NE, <Tensor>a, b, None)
    if op == Py_LT:
        return compared(LT, <Tensor>a, b, None)
    if op == Py_LE:
        return compared(LE, <Tensor>a, b, None)
    return compared(GT if op == Py_GT else GE, <Tensor>a, b, None)


# -- where -------------------------------------------------------------------------------------------------

cpdef int check_fits(object number, dtype kind) except -1:
    """Raise if a number (rather than a tensor or None) is too large for the dtype to which it is converted."""
    if isinstance(number, (int, float)) and (kind.category == INTEGRAL or not -6e4 < number < 6e4):
        element(number, kind.numpy)
    return 0


cdef object where_rule(OpNode n, object g):
    condition = n.saved(2)
    return (where(condition, g, 0.0) if n.needs(0) else None,
            where(condition, 0.0, g) if n.needs(1) else None)

cdef OpDef WHERE = op("where", where_rule).row(
    saves=(0, 0, IN2), flags=ELEMENTWISE, inputs="self other condition", devices=(1, 2, "input", "other"),
    casts_itself=True)

cpdef object where(object condition, object input=None, object other=None, Tensor out=None):
    """Select elements of `input` where `condition` is True and elements of `other` elsewhere; all three broadcast.

    `input` and `other` may be numbers; dtypes are promoted. Saves `condition`. Gradients: g where an operand was selected, 0
    elsewhere. With only `condition`, returns the indices of the nonzero elements, like `nonzero(condition, as_tuple=True)`.

    Raises RuntimeError for a condition that is not boolean and for shapes that do not broadcast.

    >>> import cygrad
    >>> x = cygrad.tensor([-1.0, 2.0])
    >>> cygrad.where(x > 0, x, 0.0)
    tensor([0., 2.])
    >>> cygrad.where(x > 0)
    (tensor([1]),)
    """
    cdef Tensor result
    cdef dtype kind, widest
    if input is None and other is None and isinstance(condition, Tensor):
        return lookup("nonzero").entry(condition, as_tuple=True)
    if not (isinstance(condition, Tensor) and isinstance(input, (Tensor, int, float, complex))
            and isinstance(other, (Tensor, int, float, complex))):
        raise messages.fits_none("where")
    check_condition(<Tensor>condition)
    if cupy_library.is_elsewhere():
        (condition, input, other), _ = device_checks.check("where", (condition, input, other), {})
    kind = result_type((input, other))
    widest = promote_types(kind, default_dtype()) if kind.category == FLOATING and kind.itemsize > 1 else kind
    check_fits(input, widest)
    check_fits(other, widest)
    array = numpy_pointwise.where((<Tensor>condition).array, as_type(input, kind), as_type(other, kind))
    if out is not None:
        if dtype_of(out) is not kind:
            raise RuntimeError(f"Expected out type to be {kind.type_name} but got {dtype_of(out).type_name}")
        return write_into(WHERE, out, array, (input, other), None)
    if dispatches:
        result = record_n(WHERE, array, (input, other), None, condition)
    else:
        result = record2(WHERE, array, input, other, None)
    keep(result, 2, condition)
    if result.grad_fn_ is None and result.origin_kind == CUT_NONE:
        cut(result, condition, CUT_NONE, None)      # the history ends at the comparison
    return result


cdef int check_condition(Tensor condition) except -1:
    cdef dtype kind = dtype_of(condition)
    if kind.category == BOOLEAN:
        return 0
    if kind.name != "uint8":
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype "
                           f"{kind.type_name}\n  compare it with something first: `condition != 0`")
    warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
         "future version of PyTorch. Use a boolean condition instead.")
    return 0


def where_method(self, condition, other):
    """Select elements of this tensor where `condition` is True and elements of `other` elsewhere; see `cygrad.where`.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, -2.0])
    >>> x.where(x > 0, 0.0)
    tensor([1., 0.])
    """
    return where(condition, self, other)


where_method.__name__ = where_method.__qualname__ = "where"

methods = {"where": where_method}
in_place_results = {
    "eq": "tensor([0, 1])",
    "ge": "tensor([0, 1])",
    "gt": "tensor([0, 1])",
    "le": "tensor([1, 1])",
    "lt": "tensor([1, 0])",
    "ne": "tensor([1, 0])",
}
functions = publish(globals())
