"""Addition, subtraction, multiplication, division, powers, and the Python operators for them."""

from numpy cimport PyArray_SIZE, PyArray_TYPE, ndarray

from functools import partial

import numpy as np

from cygrad._core.tensor.from_python cimport canonical
from cygrad._core.types.dtypes cimport BOOLEAN, COMPLEX, FLOATING, INTEGRAL, category_of_num, dtype
from cygrad._core.graph.observers cimport mark_start
from cygrad._core.graph.opdef cimport (
    ELEMENTWISE, FLOAT_RESULT, IN0, IN1, INPLACE, LINEAR, ONE_PASS, OUT0, PRIVATE, OpDef, OpNode, lookup, op)
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.record cimport (
    apply1, apply2, as_type, operate2, prepared, promoted, record1, record2, result_type, run2, tensor_argument,
    write_into)
from cygrad._core.graph.spent_gradients cimport is_spare, spend
from cygrad._core.runtime.thread_state cimport IN_RULE, thread_state
from cygrad._core.graph.tensor cimport Tensor, dtype_of, held_array, is_tensor, wrap
from cygrad._core.errors import messages
from cygrad._core import operators
cimport cygrad._kernels.cpu.base.elementwise as kernels
from cygrad._kernels.tape.tape cimport noted_data, refuse
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.array_ops cimport cast
from cygrad._kernels.cpu.base.arrays cimport is_on_cpu
from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import is_meta
from cygrad._kernels.device.unresolved cimport resolved
from cygrad._kernels.cpu.base.copying import element
from cygrad._kernels.cpu.base.elementwise import power
from cygrad._kernels.cpu.elementwise.fused_loops import add_scaled
from cygrad._ops.base.pointwise cimport conjugate, log, real_part, reciprocal
from cygrad._ops.base.comparisons cimport where
from cygrad._library import later

integers = later("cygrad._kernels.cpu.elementwise.integers")            # needed only for powers of integers
rounded_division = later("cygrad._ops.elementwise.rounded_division")  # needed only with a rounding mode

cdef extern from "numpy/arrayobject.h":
    bint PyTypeNum_ISCOMPLEX(int) noexcept


# -- add, sub ----------------------------------------------------------------------------------------------

cdef object add_rule(OpNode n, object g):
    return g, g if n.arguments is None else mul(g, n.arguments[0])

cdef OpDef ADD = op("add", add_rule).row(flags=LINEAR | ELEMENTWISE | INPLACE, ufunc="add", attributes="alpha", operator="+",
                    arguments_first=("other", "tn nn", "alpha"), vmap_write="inplace arithmetic")

cpdef Tensor add(object input, object other, object alpha=1, Tensor out=None):
    """`input + alpha * other`, elementwise with broadcasting.

    Either operand may be a number. Saves nothing. Gradients: g, and alpha * g. Raises RuntimeError for shapes that do not
    broadcast.

    >>> import cygrad
    >>> cygrad.add(cygrad.tensor([1.0, 2.0]), 1, alpha=10)
    tensor([11., 12.])
    """
    if alpha is 1 or (type(alpha) is int and alpha == 1):
        return apply2(ADD, input, other, out)
    return scaled(ADD, input, other, alpha, out)


cdef object sub_rule(OpNode n, object g):
    if n.needs(1):
        of_other = g
        if is_on_cpu((<Tensor>g).array) and PyArray_SIZE(<ndarray>(<Tensor>g).array) > 1 << 18:
            from cygrad._core.engine.blocked_gradients import summed  # needed only for large gradients
            of_other = summed(n, 1, g)
        return g, neg(of_other) if n.arguments is None else mul(of_other, -n.arguments[0])
    return g, None

cdef OpDef SUB = op("sub", sub_rule).row(flags=LINEAR | ELEMENTWISE | INPLACE, ufunc="subtract",
                    attributes="alpha", aliases="subtract", operator="-", overloaded_aliases=True,
                    arguments_first=("other", "tn nn", "alpha"), vmap_write="inplace arithmetic")

cpdef Tensor sub(object input, object other, object alpha=1, Tensor out=None):
    """`input - alpha * other`, elementwise with broadcasting.

    Either operand may be a number. Saves nothing. Gradients: g, and -alpha * g. Raises RuntimeError for shapes that do not
    broadcast and for boolean tensors.

    >>> import cygrad
    >>> cygrad.sub(cygrad.tensor([5.0, 7.0]), 1, alpha=2)
    tensor([3., 5.])
    """
    check_not_bool(input, other)
    if alpha is 1 or (type(alpha) is int and alpha == 1):
        return apply2(SUB, input, other, out)
    return scaled(SUB, input, other, alpha, out)


cdef object rsub_rule(OpNode n, object g):
    return neg(g) if n.arguments[0] == 1 else mul(g, -n.arguments[0])

cdef OpDef RSUB_NUMBER = op("rsub.Scalar", rsub_rule).row(
    flags=LINEAR | ELEMENTWISE | PRIVATE, ufunc="subtract", inputs="self", attributes="alpha", node="RsubBackward1")

cdef object rsub_tensors_rule(OpNode n, object g):
    return rsub_rule(n, g) if n.needs(0) else None, g

cdef OpDef RSUB = op("rsub", rsub_tensors_rule).row(
    flags=LINEAR | ELEMENTWISE, ufunc="subtract", attributes="alpha", overloads="", alpha_by_position=True)

cpdef Tensor rsub(object input, object other, object alpha=1):
    """`other - alpha * input`, elementwise with broadcasting.

    `other` may be a number. Saves nothing. Gradients: -alpha * g, and g. Raises RuntimeError for shapes that do not
    broadcast and for boolean tensors.

    >>> import cygrad
    >>> cygrad.rsub(cygrad.tensor([1.0, 2.0]), 5)
    tensor([4., 3.])
    """
    cdef Tensor t = tensor_argument(RSUB, input, "input", 1)
    if not isinstance(other, Tensor):
        number_argument(RSUB, other, "other", 2)
    check_not_bool(input, other)
    if type(alpha) is not int or alpha != 1:
        check_alpha(RSUB, alpha)
        t = alpha_times(t, alpha, result_type((input, other)))
    array = run2(RSUB, other, t, None)
    if isinstance(other, Tensor):
        return record2(RSUB, array, input, other, (alpha,))
    return record1(RSUB_NUMBER, array, <Tensor>input, (alpha, other))


cdef Py_ssize_t FEW = chunks.FEW


cdef Tensor scaled(OpDef op, object input, object other, object alpha, Tensor out):
    """Apply the op to `input` and `alpha * other` and record it as one node."""
    check_alpha(op, alpha)
    cdef dtype kind = result_type((input, other))
    cdef object a = as_type(input, kind), b = as_type(other, kind), array = None
    cdef object target = None if out is None else held_array(out)
    cdef bint is_large = is_on_cpu(a) and PyArray_SIZE(<ndarray>a) > FEW
    if is_large and kind.category == FLOATING and type(alpha) in (float, int):
        array = add_scaled(a, b, -alpha if op is SUB else alpha, target)
    if array is None and is_large and out is not None:
        array = chunks.result_for(target, partial(with_scaled, op, alpha, kind), a, b)
    elif array is None:
        array = with_scaled(op, alpha, kind, a, b)
    if out is None:
        return record2(op, array, input, other, (alpha,))
    return write_into(op, out, array, (input, other), (alpha,))


def with_scaled(OpDef op, alpha, dtype kind, a, b):
    return run2(op, wrap(a), alpha_times(wrap(b), alpha, kind), None)


cdef int check_alpha(OpDef op, object alpha) except -1:
    """Raise TypeError for a tensor; one that does not require grad is then passed again, as a number."""
    if isinstance(alpha, Tensor):
        raise messages.wrong_keyword(op.name, "alpha", "Number", alpha)
    return 0


cdef Tensor alpha_times(object value, object alpha, dtype kind):
    """Return `alpha * value` in the dtype of the result, which `alpha` does not affect."""
    if isinstance(alpha, bool) and kind.category != BOOLEAN:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and kind.category < FLOATING:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind.category < COMPLEX:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return wrap(cast(run2(MUL, wrap(as_type(value, kind)), alpha, None), kind.num))


cdef int check_not_bool(object a, object b) except -1:
    """Refuse to subtract booleans, as PyTorch does."""
    if (is_bool(a) or type(a) is bool) and (is_bool(b) or type(b) is bool):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. "
                           "Use the `^` or `logical_xor()` operator instead.")
    if is_bool(a) or is_bool(b) or type(a) is bool or type(b) is bool:
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
                           "to invert a mask, use the `~` or `logical_not()` operator instead.")
    return 0


cdef inline bint is_bool(object value):
    return is_tensor(value) and (<Tensor>value).array.dtype.num == 0


# -- mul, div ----------------------------------------------------------------------------------------------

cdef inline object conj(object value):
    """Conjugate a saved operand. Real operands, by far the most common case, are returned unchanged."""
    if type(value) is float or type(value) is int:
        return value
    if is_tensor(value):
        array = (<Tensor>value).array
        if type(array) is ndarray and not PyTypeNum_ISCOMPLEX(PyArray_TYPE(<ndarray>array)):
            return value
        return conjugate(<Tensor>value)
    return value.conjugate()


cdef OpDef MUL

cdef object mul_rule(OpNode n, object g):
    if not n.needs(1):
        return spend(MUL, g, conj(n.saved(1))) if n.needs(0) else None, None
    return (operate2(MUL, g, conj(n.saved(1))) if n.needs(0) else None,
            spend(MUL, g, conj(n.saved(0))))

MUL = op("mul", mul_rule).row(saves=(IN1, IN0), flags=ELEMENTWISE | INPLACE | ONE_PASS, ufunc="multiply",
                    aliases="multiply", operator="*", overloaded_aliases=True, vmap_write="inplace arithmetic")

cpdef Tensor mul(object input, object other, Tensor out=None):
    """`input * other`, elementwise with broadcasting.

    Either operand may be a number. Saves each operand if the other needs its gradient. Gradients: g * other, g * input.
    Raises RuntimeError for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.mul(cygrad.tensor([[1.0, 1.0], [2.0, 2.0]]), cygrad.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return apply2(MUL, input, other, out)


cdef Tensor spend_mul(object g, object other):
    return spend(MUL, <Tensor>g, other)


cdef object div_rule(OpNode n, object g):
    other = n.saved(1)
    grad = spend(DIV, g, conj(other))
    return grad, neg(mul(grad, conj(div(n.saved(0), other)))) if n.needs(1) else None

cdef OpDef DIV = op("div", div_rule).row(saves=(IN1, IN0 | IN1), flags=ELEMENTWISE | INPLACE | FLOAT_RESULT,
                    ufunc="true_divide", aliases="divide true_divide", operator="/", overloads="24",
                    overloaded_aliases=True, vmap_write="inplace arithmetic")

cpdef Tensor div(object input, object other, Tensor out=None, object rounding_mode=None):
    """`input / other`, elementwise with broadcasting. Integer operands give the default float dtype.

    With `rounding_mode` 'floor' or 'trunc' the quotient is rounded down or towards 0, and integers stay integers. Either
    operand may be a number. Saves `other`, and `input` if `other` needs its gradient. Gradients: g / other, and -g * input /
    other^2; both are 0 if rounded. Raises RuntimeError for shapes that do not broadcast and for rounded division of integers
    by 0.

    >>> import cygrad
    >>> cygrad.div(cygrad.tensor([1.0, 2.0]), 4)
    tensor([0.2500, 0.5000])
    """
    if rounding_mode is not None:
        return rounded_quotient(input, other, rounding_mode, out)
    return apply2(DIV, input, other, out)


cdef Tensor spend_div(object g, object other):
    return spend(DIV, <Tensor>g, other)


cdef object rounded_quotient(object input, object other, object mode, Tensor out):
    return rounded_division.divided(input, other, mode, out)


# -- pow, neg ----------------------------------------------------------------------------------------------

cdef object pow_rule(OpNode n, object g):
    exponent = n.arguments[0]
    if exponent == 0:
        return mul(g, 0)
    if exponent == 1 and type(exponent) is not complex and thread_state().modes & IN_RULE:
        return g
    base = n.saved(0)
    lowered = base
    if exponent != 2 or type(exponent) is complex or not thread_state().modes & IN_RULE:  # base^1 for 2nd derivatives
        lowered = pow(base, exponent - 1)
    return spend(MUL, g, conj(mul(lowered, exponent)))

cdef OpDef POW = op("pow", pow_rule).row(
    saves=IN0, flags=ELEMENTWISE | INPLACE | ONE_PASS, ufunc="power", inputs="self", attributes="exponent",
    autocast_gpu="float32", casts_itself=True, operator="**", overloads="")

cdef object pow_tensors_rule(OpNode n, object g):
    base, exponent = n.saved(0), n.saved(1)
    at_zero = base == 0
    grad_base = grad_exponent = None
    # Both gradients at base 0 are defined by continuity. There, base^-1 and log(base) would be multiplied by 0, so they
    # are replaced before they are computed; neither they nor their derivatives can then produce NaN.
    if n.needs(0):
        lowered = sub(where(at_zero & (exponent == 0), 1.0, exponent), 1)
        grad_base = mul(g, conj(mul(exponent, pow(base, lowered))))
    if n.needs(1):
        result = n.saved_result()
        if base.dtype is not result.dtype:      # the logarithm in a lower precision is too inaccurate
            base = base.to(result.dtype)
        safe = where(at_zero & not_negative(exponent), 1.0, base)
        grad_exponent = mul(g, conj(mul(result, log(safe))))
    return grad_base, grad_exponent

cdef OpDef POW_TENSORS = op("pow.Tensor_Tensor", pow_tensors_rule).row(
    saves=(IN0 | IN1, IN0 | IN1 | OUT0), flags=ELEMENTWISE | PRIVATE, ufunc="power", inputs="self exponent",
    node="PowBackward1")

cdef object pow_of_number_rule(OpNode n, object g):
    base, result = n.arguments[0], n.saved_result()
    if base == 0:
        return mul(g, where(not_negative(n.saved(0)), 0.0, float("-inf")))
    return mul(g, conj(mul(result, log(wrap(noted_data(np.asarray(base, result.array.dtype)))))))

cdef OpDef POW_OF_NUMBER = op("pow.Scalar", pow_of_number_rule).row(
    saves=IN0 | OUT0, flags=ELEMENTWISE | PRIVATE, ufunc="power", inputs="exponent", attributes="self",
    node="PowBackward2")

cdef object not_negative(Tensor exponent):
    return real_part(exponent) >= 0

cpdef Tensor pow(object input, object exponent, Tensor out=None):
    """`input ** exponent`, elementwise with broadcasting.

    At most one operand may be a number. Saves both operands as needed, and the result if `exponent` needs its gradient.
    Gradients: g * exponent * input^(exponent - 1), and g * result * log(input); where `input` is 0 both are defined by
    continuity. Raises RuntimeError for integers raised to negative integer powers.

    >>> import cygrad
    >>> cygrad.pow(cygrad.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """
    cdef Tensor t
    mark_start()
    if out is None and isinstance(input, Tensor):
        input = prepared("pow", <Tensor>input)
    if isinstance(exponent, Tensor):
        exponent = prepared("pow", <Tensor>exponent) if out is None else exponent
        if is_bool(exponent) and (is_bool(input) or type(input) is bool):
            raise NotImplementedError("\"pow\" not implemented for 'Bool'\n  convert one of the two first, as in x.int()")
        if isinstance(input, Tensor):
            if not is_whole_inverse(input, <Tensor>exponent):
                return apply2(POW_TENSORS, input, exponent, out)
            array = integers.whole_power(POW_TENSORS.ufunc, *promoted(input, exponent, 0))
            return record2(POW_TENSORS, array, input, exponent, None) if out is None else write_into(
                POW_TENSORS, out, array, (input, exponent), None)
        t = <Tensor>exponent
        if is_whole_inverse(number_argument(POW, input, "input", 1), t):
            array = integers.whole_power(POW.ufunc, *promoted(input, t, 0))
        else:
            array = run2(POW_OF_NUMBER, input, t, None)
        return record1(POW_OF_NUMBER, array, t, (input,)) if out is None else write_into(
            POW_OF_NUMBER, out, array, (t,), (input,))
    t = tensor_argument(POW, input, "input", 1)
    if not isinstance(exponent, (int, float, complex)):
        raise messages.fits_none("pow")
    if type(exponent) is int:
        check_whole_exponent(t, exponent)
    if type(exponent) is bool and is_bool(t):
        array = t.array | (not exponent)
    elif category_of_num(t.array.dtype.num) == FLOATING and not isinstance(exponent, complex):
        base = resolved(t.array)
        if is_on_cpu(base) and out is None:
            array = kernels.power(<ndarray>base, exponent)
        else:
            array = chunks.result_for(None if out is None else held_array(out), power, base, exponent)
    else:
        array = run2(POW, t, exponent, None)
    return record1(POW, array, t, (exponent,)) if out is None else write_into(POW, out, array, (t,), (exponent,))


cdef object number_argument(OpDef op, object value, str name, int position):
    if not isinstance(value, (int, float, complex)):
        tensor_argument(op, value, name, position)
    return value


cdef int check_whole_exponent(Tensor base, exponent) except -1:
    """Check that an integer's exponent is nonnegative and fits into its dtype."""
    cdef dtype kind = result_type((base, exponent))
    if kind.category == INTEGRAL:
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if exponent > 127:
            element(exponent, kind.numpy)
    return 0


cdef bint is_whole_inverse(object base, Tensor exponent) except -1:
    """Whether integers are raised to negative powers, which NumPy refuses."""
    if category_of_num(exponent.array.dtype.num) != INTEGRAL or is_meta(exponent.array):
        return False
    refuse("looks at the signs of integers", "pow")
    if not np.any(exponent.array < 0):
        return False
    return result_type((base, exponent)).category == INTEGRAL


cdef object neg_rule(OpNode n, object g):
    return spend(MUL, <Tensor>g, -1) if is_spare(g) else neg(g)

cdef OpDef NEG = op("neg", neg_rule).row(flags=LINEAR | ELEMENTWISE | INPLACE, ufunc="negative", inputs="self",
                    aliases="negative", out_dtype="found")

cpdef Tensor neg(object input, Tensor out=None):
    """`-input`, elementwise. Saves nothing. Gradient: -g. Raises RuntimeError for a boolean tensor.

    >>> import cygrad
    >>> cygrad.neg(cygrad.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    if is_bool(input):
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
                           "invert a mask, use the `~` or `logical_not()` operator instead.")
    return apply1(NEG, input, out)


# -- operators ---------------------------------------------------------------------------------------------

cdef object operand(object value):
    """Convert a value for an operator: a tensor or a Python number; NotImplemented for anything else.

    A sparse tensor takes the operator over, as an object of another library does.
    """
    if type(value) is Tensor or isinstance(value, (float, int, complex)):
        return value
    if isinstance(value, Tensor):
        return NotImplemented if is_sparse(<Tensor>value) else value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return wrap(canonical(value))
    return NotImplemented


cdef inline bint is_operand(object value) noexcept:
    return type(value) is float or type(value) is int or type(value) is Tensor or (
        isinstance(value, Tensor) and not is_sparse(<Tensor>value))


cdef inline bint is_sparse(Tensor t) noexcept:
    """Whether a tensor, of a subclass, is sparse."""
    return not is_on_cpu(t.array) and cupy_library.is_sparse(t.array)


cdef inline object tensor_first(OpDef op, str symbol, object a, object b):
    """Apply a binary operator with the tensor as first operand, since PyTorch records `2 * x` as `x * 2`."""
    if not (is_operand(a) and is_operand(b)):
        left, right = operand(a), operand(b)
        if left is NotImplemented or right is NotImplemented:
            return operators.unsupported_operand(symbol, a, b)
        a, b = left, right
    return operate2(op, a, b) if is_tensor(a) else operate2(op, b, a)


cdef object operator_add(object a, object b):
    return tensor_first(ADD, "+", a, b)


cdef object operator_sub(object a, object b):
    if not (is_operand(a) and is_operand(b)):
        left, right = operand(a), operand(b)
        if left is NotImplemented or right is NotImplemented:
            return operators.unsupported_operand("-", a, b)
        a, b = left, right
    return sub(a, b) if is_tensor(a) else rsub(b, a)


cdef object operator_mul(object a, object b):
    return tensor_first(MUL, "*", a, b)


cdef object operator_div(object a, object b):
    return tensor_first(DIV, "/", a, b)


cdef object operator_pow(object a, object b):
    if not (is_operand(a) and is_operand(b)):
        left, right = operand(a), operand(b)
        if left is NotImplemented or right is NotImplemented:
            return operators.unsupported_operand("** or pow()", a, b)
        a, b = left, right
    return pow(a, b)


cdef object operator_rdiv(Tensor a, object b):
    """b / a, recorded as PyTorch does: as a reciprocal and a product."""
    number = operand(b)
    if number is NotImplemented:
        return operators.unsupported_operand("/", b, a)
    return div(number, a) if isinstance(number, Tensor) else mul(reciprocal(a), number)


cdef object operator_iadd(Tensor a, object b):
    other = operand(b)
    return operators.unsupported_operand("+=", a, b) if other is NotImplemented else apply2(ADD, a, other, a)


cdef object operator_isub(Tensor a, object b):
    other = operand(b)
    return operators.unsupported_operand("-=", a, b) if other is NotImplemented else sub(a, other, 1, a)


cdef object operator_imul(Tensor a, object b):
    other = operand(b)
    return operators.unsupported_operand("*=", a, b) if other is NotImplemented else apply2(MUL, a, other, a)


cdef object operator_idiv(Tensor a, object b):
    other = operand(b)
    return operators.unsupported_operand("/=", a, b) if other is NotImplemented else apply2(DIV, a, other, a)


cdef object operator_ipow(Tensor a, object b):
    other = operand(b)
    return operators.unsupported_operand("**=", a, b) if other is NotImplemented else pow(a, other, a)


cdef object operator_named(str name, str symbol, object a, object b, Tensor out):
    left, right = operand(a), operand(b)
    if left is NotImplemented or right is NotImplemented:
        return operators.unsupported_operand(symbol, a, b)
    entry = lookup(name).entry
    return entry(left, right) if out is None else entry(left, right, out=out)


cdef object operator_invert(Tensor a):
    if dtype_of(a).category > INTEGRAL:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return lookup("bitwise_not").entry(a)


methods = {         # Python 2 names
    "__div__": Tensor.__truediv__,
    "__rdiv__": Tensor.__rtruediv__,
    "__idiv__": Tensor.__itruediv__,
}
functions = publish(globals())
