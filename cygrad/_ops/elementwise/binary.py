"""Elementwise functions of two or three operands beyond arithmetic, with broadcasting.

Shapes that do not broadcast raise RuntimeError. Where a formula needs floating-point input, integers are first
converted to the default float dtype.
"""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import tensor_of
from cygrad._core.graph.opdef import (
    ELEMENTWISE,
    FLOAT_RESULT,
    IN0,
    IN1,
    INPLACE,
    NONDIFF,
    OUT0,
    declare,
    facts,
    publish,
)
from cygrad._core.graph.record import apply1_args, apply2, apply_n, as_type, result_type
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.dispatch import unseen
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.types.dtypes import by_name
from cygrad._kernels.cpu.base import elementary, numpy_fallback
from cygrad._kernels.cpu.elementwise import numpy_pointwise as pointwise_kernels
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.cpu.reduction.scans import log_of_sum
from cygrad._kernels.device.cupy_library import as_array, is_array
from cygrad._ops.base.arithmetic import div, mul, pow, sub
from cygrad._ops.base.checks.common import (
    NUMBERS,
    require_broadcast,
    require_kind,
    require_operands,
    require_real,
    require_tensors,
    write_converted,
)
from cygrad._ops.base.pointwise import conjugate, exp2, log, sgn, sigmoid_of_saved
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.common.gradients import fused_gradient
from cygrad._ops.elementwise.logic import isinf
from cygrad._ops.elementwise.selection import where

SMOOTH = ELEMENTWISE | INPLACE | FLOAT_RESULT
STEP = ELEMENTWISE | INPLACE | NONDIFF
DTYPES = by_name()


# -- magnitude and sign, neighboring numbers --


def copysign_rule(n, g):
    return kept_sign(n, g) if n.needs(0) else None, mul(g, 0.0) if n.needs(1) else None


def kept_sign(n, g):
    """Return g where the sign is unchanged, -g where it changed, and 0 where the input is 0."""
    x = n.saved(0)
    return where(x == 0, 0.0, mul(g, mul(sgn(x), sgn(n.saved_result()))))


COPYSIGN = declare("copysign", copysign_rule, saves=(IN0 | OUT0,), flags=SMOOTH, ufunc="copysign", overloads="")


COPYSIGN_NUMBER = declare(
    "copysign.Scalar",
    kept_sign,
    saves=IN0 | OUT0,
    flags=ELEMENTWISE | FLOAT_RESULT,
    kernel=lambda x, sign: np.copysign(x, x.dtype.type(sign)) if is_array(x) else COPYSIGN.ufunc(x, sign),
    inputs="self",
    node="CopysignBackward1",
)


def copysign(input, other, *, out=None):
    """Return the magnitude of `input` with the sign of `other` (a tensor or a number; -0.0 counts as negative).

    Saves `input` and the result. Gradients: for `input`, g where the sign is unchanged, -g where it changed, and 0 at
    0; for `other`, 0.

    >>> import cygrad
    >>> cygrad.copysign(cygrad.tensor([1.0, 2.0]), cygrad.tensor([-3.0, 0.0]))
    tensor([-1.,  2.])
    """
    if not isinstance(input, Tensor) or not (isinstance(other, (Tensor, *NUMBERS))):
        raise messages.fits_none("copysign")
    require_real(COPYSIGN, input, other)
    if isinstance(other, Tensor):
        return apply2(COPYSIGN, input, other, out)
    return apply1_args(COPYSIGN_NUMBER, in_type_of_result(COPYSIGN_NUMBER, input, other), (other,), out)


def in_type_of_result(op, input, other=0):
    """Convert `input` to the dtype that the row requires: integral input to the default float dtype."""
    dtype = result_type((input, other))
    if op.flags & FLOAT_RESULT and not (dtype.is_floating_point or dtype.is_complex):
        dtype = result_type((input, 1.0))
    return input if input.dtype is dtype else input.to(dtype)


def of_one_type(op, input, other, out):
    """Apply the op to operands that are first converted to their common dtype."""
    operands = input, other
    dtype = result_type(operands)
    if input.dtype is not dtype or other.dtype is not dtype:
        operands = tuple([t if t.dtype is dtype else t.to(dtype) for t in operands])
    if out is input is not operands[0]:
        return write_converted(out, apply_n(op, operands, None, None))
    return apply_n(op, operands, None, out)


def nextafter_rule(n, g):
    x, y = n.saved(0), n.saved(1)
    return where(x == y, 0.0, g) if n.needs(0) else None, mul(g, 0.0) if n.needs(1) else None


NEXTAFTER = declare("nextafter", nextafter_rule, saves=IN0 | IN1, flags=ELEMENTWISE | INPLACE, ufunc="nextafter")


def nextafter(input, other, *, out=None):
    """Return the next floating-point number after `input` towards `other`; `other` where they are equal.

    Saves both. Gradients: for `input`, g where they differ and 0 where they are equal; for `other`, 0.

    >>> import cygrad
    >>> cygrad.nextafter(cygrad.tensor([1.0]), cygrad.tensor([2.0])) > 1
    tensor([True])
    """
    require_tensors(NEXTAFTER, input, other)
    require_real(NEXTAFTER, input, other, integers=False)
    return apply2(NEXTAFTER, input, other, out)


@by_loop("heaviside", 2)
def heaviside_array(x, values):
    """Compute the step function. NumPy's own returns nan for nan."""
    return np.where(x == 0, values, (x > 0).astype(x.dtype))


def heaviside_rule(n, g):
    raise RuntimeError(
        "derivative for aten::heaviside is not implemented\n  it is a step function: detach it with `.detach()`"
    )


HEAVISIDE = declare(
    "heaviside",
    heaviside_rule,
    flags=ELEMENTWISE | INPLACE,
    kernel=heaviside_array,
    inputs="self values",
    node="torch::autograd::NotImplemented",
    out_dtype="heaviside is not yet implemented for tensors with different dtypes.",
)


def heaviside(input, values, *, out=None):
    """Step function: 0 where `input` is negative or nan, 1 where it is positive, `values` where it is 0.

    Has no derivative: backward through it raises RuntimeError, as in PyTorch. Saves nothing. Raises RuntimeError for
    operands of different dtypes and for complex ones.

    >>> import cygrad
    >>> cygrad.heaviside(cygrad.tensor([-1.5, 0.0, 2.0]), cygrad.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    require_tensors(HEAVISIDE, input, values, names=("input", "values"))
    if input.is_complex() or values.is_complex():
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    require_broadcast(input, values)
    return apply_n(HEAVISIDE, (input, values), None, out)


# -- powers, exponentials and logarithms of two operands --


def ldexp_rule(n, g):
    return (
        by_power_of_two(g, n.saved(1)) if n.needs(0) else None,
        mul(mul(g, conjugate(n.saved_result())), math.log(2)) if n.needs(1) else None,
    )


def by_power_of_two(g, exponent):
    if exponent.is_floating_point() or exponent.is_complex():
        return mul(g, conjugate(exp2(exponent)))
    return ldexp(g, exponent)  # as a float32, an integer power of 2 might overflow


LDEXP = declare(
    "ldexp",
    ldexp_rule,
    saves=(IN1, OUT0),
    flags=SMOOTH,
    kernel=pointwise_kernels.ldexp,
    out_castable="ldexp can't be cast to the desired output type {out}",
)


def ldexp(input, other, *, out=None):
    """`input * 2 ** other`. Saves `other` and the result r. Gradients: g * 2 ** other, and g * r * ln 2.

    For floating-point `input` and integer `other`, only the result is rounded. Otherwise 2 ** other is first computed
    as a number of the result's dtype. Raises NotImplementedError for floating-point `input` with boolean `other`.

    >>> import cygrad
    >>> cygrad.ldexp(cygrad.tensor([1.0]), cygrad.tensor([4]))
    tensor([16.])
    """
    require_tensors(LDEXP, input, other)
    require_broadcast(input, other)
    if other.is_floating_point() or other.is_complex():
        return of_one_type(LDEXP, input, other, out)
    if not input.is_floating_point():  # multiply by the power as a separate number, as PyTorch does
        return of_one_type(
            LDEXP, input, other.to(DTYPES["float64" if input.dtype.name == "complex128" else "float32"]), out
        )
    require_kind("i", "ldexp_cpu_exp", other)
    return apply_n(LDEXP, (in_type_of_result(LDEXP, input, 1.0), other), None, out)


def logaddexp_rule(n, g):
    return shared(n, g, 1.0)


def shared(n, g, rate):
    """Return g times the shares of both operands; see `share`."""
    x, y = n.saved(0), n.saved(1)
    return share(g, x, y, rate) if n.needs(0) else None, share(g, y, x, rate) if n.needs(1) else None


def share(g, x, y, rate):
    """Return g times exp(rate * x) / (exp(rate * x) + exp(rate * y)); 1/2 for equal infinities."""
    found = fused_gradient("exponential_share", x, y, g, numbers=(rate,))
    if found is not None:
        return found
    same = (x == y) & isinf(x)
    apart = where(same, 0.0, sub(x, y))
    return mul(g, conjugate(sigmoid_of_saved(apart if rate == 1 else mul(apart, rate))))


@by_loop("logaddexp", 2, lambda: (1.0, 1.0))
def logaddexp_array(x, y):
    """Return log(exp(x) + exp(y)), computed without overflow."""
    with np.errstate(all="ignore"):
        if x.dtype.kind != "c" and y.dtype.kind != "c":
            return np.logaddexp(x, y)
        return log_of_sum(x, y)


LOGADDEXP = declare("logaddexp", logaddexp_rule, saves=IN0 | IN1, flags=ELEMENTWISE, kernel=logaddexp_array)


def logaddexp(input, other, *, out=None):
    """`log(exp(input) + exp(other))`, computed without overflow.

    Saves both. Gradients: g * exp(input - r), and g * exp(other - r), where r is the result.

    >>> import cygrad
    >>> cygrad.logaddexp(cygrad.tensor([1000.0]), cygrad.tensor([1000.0]))
    tensor([1000.6932])
    """
    require_tensors(LOGADDEXP, input, other)
    require_kind("fc", "logaddexp_cpu", input, other)
    require_broadcast(input, other)
    return of_one_type(LOGADDEXP, input, other, out)


def logaddexp2_rule(n, g):
    return shared(n, g, math.log(2))


@by_loop("logaddexp", 2, lambda: (math.log(2), 1 / math.log(2)))
def logaddexp2_array(x, y):
    return numpy_fallback.call(np.logaddexp2, x, y)


LOGADDEXP2 = declare(
    "logaddexp2",
    logaddexp2_rule,
    saves=IN0 | IN1,
    flags=ELEMENTWISE,
    kernel=logaddexp2_array,
    numpy="logaddexp2",
)


def logaddexp2(input, other, *, out=None):
    """`log2(2 ** input + 2 ** other)`, computed without overflow.

    Saves both. Gradients: g * 2 ** (input - r), and g * 2 ** (other - r), where r is the result.

    >>> import cygrad
    >>> cygrad.logaddexp2(cygrad.tensor([1.0]), cygrad.tensor([1.0]))
    tensor([2.])
    """
    require_tensors(LOGADDEXP2, input, other)
    require_real(LOGADDEXP2, input, other, integers=False)
    require_broadcast(input, other)
    return of_one_type(LOGADDEXP2, input, other, out)


def xlogy_rule(n, g):
    return logarithm_gradients(n, g, 0, log, lambda y: y)


def logarithm_gradients(n, g, pole, log, shifted):
    """Return the gradients of x * log(y), where `log` has a pole and its derivative is 1 / shifted(y).

    Where x is 0 and y is at the pole or below, the product is 0 by definition, and so are all of its derivatives.
    """
    x, y = n.saved(0), n.saved(1)
    if n.needs(0) or at_some(y, pole):
        is_defined = (x == 0) & (y <= pole)
        y = where(is_defined, pole + 1.0, y)  # neither log(y) nor its derivatives are infinite then
        if not get_modes() & NO_GRAD:
            x = where(is_defined, 0.0, x)
    return mul(g, log(y)) if n.needs(0) else None, div(mul(g, x), shifted(y)) if n.needs(1) else None


def at_some(t, value):
    """Whether a tensor has an element of this value; on a GPU, which would have to be waited for, True."""
    array = values_of(t)
    return is_array(array) or bool((array == value).any())


@numpy_fallback.silent
def xlogy_array(x, y):
    """Return x * log(y), but 0 where x is 0 and y is not nan."""
    found = as_array(x * elementary.log(y))
    if is_array(x) or np.count_nonzero(x) != x.size:
        np.copyto(found, 0, where=(x == 0) & ~np.isnan(y))
    return found


XLOGY = declare("xlogy", xlogy_rule, saves=(IN0 | IN1, IN0 | IN1), flags=SMOOTH, kernel=xlogy_array, overloads="")


def xlogy(input, other, *, out=None):
    """`input * log(other)`, but 0 where `input` is 0 and `other` is not nan. Either operand may be a number.

    Saves both. Gradients: g * log(other), or 0 where both are 0; and g * input / other.

    >>> import cygrad
    >>> cygrad.xlogy(cygrad.tensor([0.0, 2.0]), cygrad.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    require_operands("xlogy", input, other)
    require_real(XLOGY, input, other, kernel="xlogy_cpu")
    input, other = as_tensors(XLOGY, input, other)
    require_broadcast(input, other)
    return apply_n(XLOGY, (input, other), None, out)


def as_tensors(op, *values):
    """Convert tensors and numbers to tensors of the op's result dtype."""
    dtype = result_type(values)
    if op.flags & FLOAT_RESULT and not (dtype.is_floating_point or dtype.is_complex):
        dtype = result_type((*values, 1.0))
    if all(isinstance(value, Tensor) and value.dtype is dtype for value in values):
        return list(values)
    with unseen():
        return [
            tensor_of(as_type(value, dtype))
            if not isinstance(value, Tensor)
            else value
            if value.dtype is dtype
            else value.to(dtype)
            for value in values
        ]


def wide_type(base, exponent):
    """Return float64, or complex128 if either operand is complex."""
    return DTYPES["complex128" if result_type((base, exponent)).is_complex else "float64"]


@facts(overloads="")
def float_power(input, exponent, *, out=None):
    """`input ** exponent`, computed in float64, or in complex128 for complex operands. Either operand may be a number.

    The gradients are those of `pow`.

    >>> import cygrad
    >>> cygrad.float_power(cygrad.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """
    require_operands("float_power", input, exponent)
    dtype = wide_type(input, exponent)
    if isinstance(out, Tensor) and out.dtype is not dtype:
        raise RuntimeError(
            f"the output given to float_power has dtype {out.dtype.type_name} "
            f"but the operation's result requires dtype {dtype.type_name}"
        )
    if out is not None or not (isinstance(input, Tensor) and isinstance(exponent, Tensor)):
        base, power = (v.to(dtype) if isinstance(v, Tensor) else v for v in (input, exponent))
        return pow(base, power, out=out)
    return _wide_power(input, exponent, dtype)


@in_steps(0, 0, node="PowBackward1")
def _wide_power(base, power, dtype):
    return pow(base.to(dtype), power.to(dtype))


def float_power_(self, exponent):
    """In-place version of `float_power`, for float64 and complex128 tensors.

    >>> import cygrad
    >>> cygrad.tensor([2.0], dtype=cygrad.float64).float_power_(3)
    tensor([8.], dtype=torch.float64)
    """
    dtype = wide_type(self, exponent)
    if self.dtype is not dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.type_name} "
            f"but the operation's result requires dtype {dtype.type_name}"
        )
    return self.pow_(exponent.to(dtype) if isinstance(exponent, Tensor) else exponent)


# -- integers --

GCD = declare("gcd", flags=STEP, ufunc="gcd")


def gcd(input, other, *, out=None):
    """Return the greatest common divisor of integers; 0 for two zeros.

    >>> import cygrad
    >>> cygrad.gcd(cygrad.tensor([12, 0]), cygrad.tensor([18, 5]))
    tensor([6, 5])
    """
    require_tensors(GCD, input, other)
    require_broadcast(input, other)
    require_kind("i", "gcd_cpu", input, other)
    return apply2(GCD, input, other, out)


LCM = declare("lcm", flags=STEP, ufunc="lcm")


def lcm(input, other, *, out=None):
    """Return the least common multiple of integers; 0 if either is 0.

    >>> import cygrad
    >>> cygrad.lcm(cygrad.tensor([4]), cygrad.tensor([6]))
    tensor([12])
    """
    require_tensors(LCM, input, other)
    require_broadcast(input, other)
    require_kind("i", "lcm_cpu", input, other)
    return apply2(LCM, input, other, out)


def places_inside(bits, count):
    """Return a mask of the valid shift counts in `bits`, for integers with `count` bits; None if all are valid."""
    if is_array(bits):
        return (bits >= 0) & (bits < count)
    if bits.size == 1 and 0 <= bits.item() < count:
        return None
    inside = (bits >= 0) & (bits < count)
    return None if np.count_nonzero(inside) == inside.size else inside


def shift_left_array(x, bits):
    shifted = np.left_shift(x, bits)
    inside = places_inside(bits, 8 * x.itemsize)
    return shifted if inside is None else np.where(inside, shifted, x.dtype.type(0))


BITWISE_LEFT_SHIFT = declare(
    "bitwise_left_shift", flags=STEP, kernel=shift_left_array, numpy="left_shift", overloads=""
)


def bitwise_left_shift(input, other, *, out=None):
    """Shift the bits of `input` (integers) left by `other`; either may be a number. Shifting out all bits gives 0.

    >>> import cygrad
    >>> cygrad.bitwise_left_shift(cygrad.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """
    return shifted(BITWISE_LEFT_SHIFT, "lshift_cpu", input, other, out)


def shift_right_array(x, bits):
    shifted = np.right_shift(x, bits)
    inside = places_inside(bits, 8 * x.itemsize - (x.dtype.kind == "i"))
    return shifted if inside is None else np.where(inside, shifted, -(x < 0).astype(x.dtype))


BITWISE_RIGHT_SHIFT = declare(
    "bitwise_right_shift", flags=STEP, kernel=shift_right_array, numpy="right_shift", overloads=""
)


def bitwise_right_shift(input, other, *, out=None):
    """Shift the bits of `input` (integers) right by `other`, preserving the sign; either may be a number.

    >>> import cygrad
    >>> cygrad.bitwise_right_shift(cygrad.tensor([8, -8]), 2)
    tensor([ 2, -2])
    """
    return shifted(BITWISE_RIGHT_SHIFT, "rshift_cpu", input, other, out)


def shifted(op, kernel, input, other, out):
    require_operands(op.name, input, other)
    if isinstance(input, Tensor) and isinstance(other, Tensor):
        require_broadcast(input, other)
    require_kind("i", kernel, input, other)
    input, other = as_tensors(op, input, other)
    return apply_n(op, (input, other), None, out)


composite = {"float_power": 0}
methods = {"float_power_": float_power_}
functions = publish(globals())
