"""Rounding, and division with a whole quotient."""

import numpy as np

from cygrad._core.dtypes cimport BOOLEAN, COMPLEX, INTEGRAL, dtype
from cygrad._core.opdef cimport ELEMENTWISE, IN0, IN1, INPLACE, PRIVATE, OpDef, OpNode, op
from cygrad._core.opdef import publish
from cygrad._core.record cimport apply1, apply1_args, apply2, record1, result_type, run2, tensor_argument, write_into
from cygrad._core.tensor cimport Tensor, dtype_of, wrap
from cygrad._ops.arithmetic cimport mul, neg, operand
from cygrad._ops.pointwise cimport zeros_like
from cygrad._core import messages
from cygrad._core.operands import unsupported_operand


# -- to whole numbers --------------------------------------------------------------------------------------

cdef object step_rule(OpNode n, object g):
    """Flat wherever there is a derivative."""
    return zeros_like(<Tensor>g)


cdef Tensor rounded(OpDef op, object input, Tensor out, str refusal=None):
    """Integers are whole already; truth values and complex numbers are refused in PyTorch's words."""
    cdef Tensor t = tensor_argument(op, input, "input", 1)
    cdef dtype kind = dtype_of(t)
    if kind.category == BOOLEAN or (kind.category == COMPLEX and refusal is None):
        raise messages.not_implemented_for(op.name + "_vml_cpu", kind)
    if kind.category == COMPLEX:
        raise NotImplementedError(refusal)
    if kind.category == INTEGRAL:       # NumPy 2.0 would make floats of them
        array = t.array.copy()
        return record1(op, array, t, None) if out is None else write_into(op, out, array, (t,), None)
    return apply1(op, t, out)


cdef OpDef FLOOR = op("floor", step_rule).row(flags=ELEMENTWISE | INPLACE, ufunc="floor", inputs="self")

cpdef Tensor floor(object input, Tensor out=None):
    """The next whole number at or below, elementwise. Gradient: 0.

    Integers stay as they are. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.floor(cygrad.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    return rounded(FLOOR, input, out, "floor is not supported for complex inputs")


cdef OpDef CEIL = op("ceil", step_rule).row(flags=ELEMENTWISE | INPLACE, ufunc="ceil", inputs="self")

cpdef Tensor ceil(object input, Tensor out=None):
    """The next whole number at or above, elementwise. Gradient: 0.

    Integers stay as they are. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.ceil(cygrad.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    return rounded(CEIL, input, out, "ceil is not supported for complex inputs")


cdef OpDef TRUNC = op("trunc", step_rule).row(
    flags=ELEMENTWISE | INPLACE, ufunc="trunc", inputs="self", aliases="fix")

cpdef Tensor trunc(object input, Tensor out=None):
    """The whole part, elementwise: rounds towards 0. Gradient: 0.

    Integers stay as they are. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.trunc(cygrad.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    return rounded(TRUNC, input, out, "trunc is not supported for complex inputs")


cdef OpDef ROUND = op("round", step_rule).row(flags=ELEMENTWISE | INPLACE, ufunc="rint", inputs="self")

def round_decimals(a, int decimals):
    """Kernel of `round` with decimals."""
    with np.errstate(all="ignore"):
        return np.asarray(np.round(a, decimals))

cdef OpDef ROUND_DECIMALS = op("round.decimals", step_rule).row(
    flags=ELEMENTWISE | INPLACE | PRIVATE, kernel=round_decimals, node="RoundBackward1", inputs="self",
    attributes="decimals")

def round(input, *, decimals=0, Tensor out=None):
    """The nearest whole number, elementwise, halves to the even one; or the nearest with so many `decimals`.

    Gradient: 0. Integers stay as they are. Raises NotImplementedError for boolean and complex tensors, and for
    integers with decimals.

    >>> import cygrad
    >>> cygrad.round(cygrad.tensor([0.5, 1.5, 2.6]))
    tensor([0., 2., 3.])
    >>> cygrad.round(cygrad.tensor([3.14159]), decimals=2)
    tensor([3.1400])
    """
    cdef dtype kind
    if decimals == 0:
        return rounded(ROUND, input, out)
    kind = dtype_of(tensor_argument(ROUND, input, "input", 1))
    if kind.category <= INTEGRAL or kind.category == COMPLEX:
        raise messages.not_implemented_for("round_cpu", kind)
    return apply1_args(ROUND_DECIMALS, input, (decimals,), out)


cdef object frac_rule(OpNode n, object g):
    return g

def fractional_part(a):
    """Kernel of `frac`."""
    with np.errstate(all="ignore"):
        return np.asarray(a - np.trunc(a))

cdef OpDef FRAC = op("frac", frac_rule).row(flags=ELEMENTWISE | INPLACE, kernel=fractional_part, inputs="self")

cpdef Tensor frac(object input, Tensor out=None):
    """`input - trunc(input)`, elementwise: what is behind the point, with the sign. Gradient: g.

    Raises NotImplementedError for other than floating-point tensors.

    >>> import cygrad
    >>> cygrad.frac(cygrad.tensor([-1.5, 1.25]))
    tensor([-0.5000,  0.2500])
    """
    cdef dtype kind = dtype_of(tensor_argument(FRAC, input, "input", 1))
    if kind.category <= INTEGRAL or kind.category == COMPLEX:
        raise messages.not_implemented_for("frac_cpu", kind)
    return apply1(FRAC, input, out)


# -- division with a whole quotient ------------------------------------------------------------------------

cdef int check_division(str kernel, object a, object b) except -1:
    """Only real numbers; whole numbers are not divided by 0."""
    cdef dtype kind = result_type((a, b))
    if kind.category in (BOOLEAN, COMPLEX):
        raise messages.not_implemented_for(kernel, kind)
    if kind.category == INTEGRAL and not np.all((<Tensor>b).array if isinstance(b, Tensor) else b):
        raise RuntimeError("ZeroDivisionError")
    return 0


cdef Tensor divide(OpDef op, str kernel, object input, object other, Tensor out):
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        tensor_argument(op, input, "input", 1)
    if isinstance(input, (Tensor, int, float, complex)) and isinstance(other, (Tensor, int, float, complex)):
        check_division(kernel, input, other)
    return apply2(op, input, other, out)


cdef Tensor divide_by_number(OpDef op, str kernel, object input, object other, Tensor out):
    """`other` is no input of the node then."""
    cdef Tensor t = tensor_argument(op, input, "input", 1)
    if not isinstance(other, (int, float, complex)):
        tensor_argument(op, other, "other", 2)
    check_division(kernel, t, other)
    array = run2(op, t, other, None)
    return record1(op, array, t, None) if out is None else write_into(op, out, array, (t,), None)


cdef object floor_divide_rule(OpNode n, object g):
    raise RuntimeError(
        "derivative for aten::floor_divide is not implemented\n"
        "  the quotient is a step function: cut it with `.detach()`, or use div(), whose derivative is not 0")

cdef OpDef FLOOR_DIVIDE = op("floor_divide", floor_divide_rule).row(
    flags=ELEMENTWISE | INPLACE, ufunc="floor_divide", node="torch::autograd::NotImplemented")

cpdef Tensor floor_divide(object input, object other, Tensor out=None):
    """`floor(input / other)`, elementwise with broadcasting.

    Either operand may be a number. Raises RuntimeError where an integer is divided by 0, and NotImplementedError for
    two boolean and for complex tensors. Has no derivative: backward through it raises RuntimeError, as in PyTorch.

    >>> import cygrad
    >>> cygrad.floor_divide(cygrad.tensor([-3.0, 3.0]), 2)
    tensor([-2.,  1.])
    """
    return divide(FLOOR_DIVIDE, "div_floor_cpu", input, other, out)


cdef object remainder_rule(OpNode n, object g):
    return g

cdef OpDef REMAINDER = op("remainder", remainder_rule).row(
    flags=ELEMENTWISE | INPLACE, ufunc="remainder", inputs="self")

cdef object remainder_tensor_rule(OpNode n, object g):
    grad_other = None
    if n.needs(1):
        grad_other = neg(mul(g, wrap(run2(FLOOR_DIVIDE, n.saved(0), n.saved(1), None))))
    return g, grad_other

cdef OpDef REMAINDER_TENSOR = op("remainder.Tensor", remainder_tensor_rule).row(
    saves=(0, IN0 | IN1), flags=ELEMENTWISE | PRIVATE, ufunc="remainder", node="RemainderBackward1")

cpdef Tensor remainder(object input, object other, Tensor out=None):
    """`input - other * floor(input / other)`, elementwise with broadcasting: has the sign of `other`, as Python's %.

    Either operand may be a number. If `other` needs its gradient both are saved. Gradients: g, and
    -g * floor(input / other). Raises RuntimeError where an integer is divided by 0, and NotImplementedError for two
    boolean and for complex tensors.

    >>> import cygrad
    >>> cygrad.remainder(cygrad.tensor([-3.0, 3.0]), 2)
    tensor([1., 1.])
    """
    if isinstance(other, Tensor):
        return divide(REMAINDER_TENSOR, "remainder_cpu", input, other, out)
    return divide_by_number(REMAINDER, "remainder_cpu", input, other, out)


cdef OpDef FMOD = op("fmod", remainder_rule).row(flags=ELEMENTWISE | INPLACE, ufunc="fmod", inputs="self")

cdef object fmod_tensor_rule(OpNode n, object g):
    cdef object a, b
    if not n.needs(1):
        return g, None
    a, b = n.saved(0), n.saved(1)
    with np.errstate(all="ignore"):
        quotient = np.trunc((<Tensor>a).array / (<Tensor>b).array)
    return g, neg(mul(g, wrap(np.asarray(quotient))))

cdef OpDef FMOD_TENSOR = op("fmod.Tensor", fmod_tensor_rule).row(
    saves=(0, IN0 | IN1), flags=ELEMENTWISE | PRIVATE, ufunc="fmod", node="FmodBackward1")

cpdef Tensor fmod(object input, object other, Tensor out=None):
    """`input - other * trunc(input / other)`, elementwise with broadcasting: has the sign of `input`, as C's fmod.

    `other` may be a number. If it needs its gradient both are saved. Gradients: g, and -g * trunc(input / other).
    Raises RuntimeError where an integer is divided by 0, and NotImplementedError for two boolean and for complex
    tensors.

    >>> import cygrad
    >>> cygrad.fmod(cygrad.tensor([-3.0, 3.0]), 2)
    tensor([-1.,  1.])
    """
    if isinstance(other, Tensor):
        tensor_argument(FMOD, input, "input", 1)
        return divide(FMOD_TENSOR, "fmod_cpu", input, other, out)
    return divide_by_number(FMOD, "fmod_cpu", input, other, out)


# -- operators ---------------------------------------------------------------------------------------------

cdef object operator_floordiv(object a, object b):
    left, right = operand(a), operand(b)
    if left is NotImplemented or right is NotImplemented:
        return unsupported_operand("//", a, b)
    return floor_divide(left, right)


cdef object operator_mod(object a, object b):
    left, right = operand(a), operand(b)
    if left is NotImplemented or right is NotImplemented:
        return unsupported_operand("%", a, b)
    return remainder(left, right)


cdef object operator_ifloordiv(Tensor a, object b):
    other = operand(b)
    return unsupported_operand("//=", a, b) if other is NotImplemented else floor_divide(a, other, a)


cdef object operator_imod(Tensor a, object b):
    other = operand(b)
    return unsupported_operand("%=", a, b) if other is NotImplemented else remainder(a, other, a)


functions = publish(globals())
