"""Rounding, and division with a whole quotient."""

from functools import partial

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELEMENTWISE, IN0, IN1, INPLACE, PRIVATE, declare, publish
from cygrad._core.graph.record import apply1, apply1_args, apply2, promoted, recorded, result_type, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import copying, numpy_fallback
from cygrad._kernels.cpu.base.chunks import result_for
from cygrad._kernels.cpu.base.reduce import all_
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.device.cupy_library import is_array
from cygrad._ops.base.arguments import is_integer
from cygrad._ops.base.arithmetic import div, mul, neg
from cygrad._ops.base.checks.common import require_kind
from cygrad._ops.base.copying import zeros_of

SMOOTH = ELEMENTWISE | INPLACE

# -- to whole numbers --


def step_rule(n, g):
    """Flat wherever there is a derivative."""
    return zeros_of(g)


def rounded(op, input, out, refusal=None):
    """Integers are whole already; truth values and complex numbers are refused in PyTorch's words."""
    dtype = tensor_argument(op, input, "input", 1).dtype
    if dtype.name == "bool" or (dtype.is_complex and refusal is None):
        raise messages.not_implemented_for(op.name + "_vml_cpu", dtype)
    if dtype.is_complex:
        raise NotImplementedError(refusal)
    if not dtype.is_floating_point:  # NumPy 2.0 would make floats of them
        return recorded(op, copying.copy(array_of(input)), (input,), None, out)
    return apply1(op, input, out)


FLOOR = declare("floor", step_rule, flags=SMOOTH, ufunc="floor", inputs="self")


def floor(input, *, out=None):
    """The next whole number at or below, elementwise. Saves nothing. Gradient: 0.

    Integers stay as they are. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.floor(cygrad.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    return rounded(FLOOR, input, out, "floor is not supported for complex inputs")


CEIL = declare("ceil", step_rule, flags=SMOOTH, ufunc="ceil", inputs="self")


def ceil(input, *, out=None):
    """The next whole number at or above, elementwise. Saves nothing. Gradient: 0.

    Integers stay as they are. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.ceil(cygrad.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    return rounded(CEIL, input, out, "ceil is not supported for complex inputs")


TRUNC = declare("trunc", step_rule, flags=SMOOTH, ufunc="trunc", inputs="self", aliases="fix")


def trunc(input, *, out=None):
    """The whole part, elementwise: rounds towards 0. Saves nothing. Gradient: 0.

    Integers stay as they are. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.trunc(cygrad.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    return rounded(TRUNC, input, out, "trunc is not supported for complex inputs")


@by_loop("rounded", numbers=lambda decimals: (10.0**decimals, 1.0) if decimals > 0 else (1.0, 10.0**-decimals))
def round_array(a, decimals):
    return numpy_fallback.call(lambda a: np.round(a, decimals), a)


ROUND = declare("round", step_rule, flags=SMOOTH, ufunc="rint", inputs="self")
ROUND_DECIMALS = declare(
    "round.decimals",
    step_rule,
    flags=SMOOTH | PRIVATE,
    kernel=round_array,
    node="RoundBackward1",
    inputs="self",
    attributes="decimals",
)


def round(input, *, decimals=0, out=None):
    """The nearest whole number, elementwise, halves to the even one; or the nearest with so many `decimals`.

    Gradient: 0. Integers stay as they are. Raises NotImplementedError for boolean and complex tensors, and for integers
    with decimals. Saves nothing.

    >>> import cygrad
    >>> cygrad.round(cygrad.tensor([0.5, 1.5, 2.6]))
    tensor([0., 2., 3.])
    >>> cygrad.round(cygrad.tensor([3.14159]), decimals=2)
    tensor([3.1400])
    """
    if not is_integer(decimals) or isinstance(decimals, bool):
        raise messages.fits_none("round")
    if decimals == 0:
        return rounded(ROUND, input, out)
    require_kind("f", "round_cpu", tensor_argument(ROUND, input, "input", 1))
    return apply1_args(ROUND_DECIMALS, input, (decimals,), out)


def pass_on(n, g):
    return g


@by_loop("frac")
def frac_array(a):
    return numpy_fallback.call(lambda a: a - np.trunc(a), a)


FRAC = declare("frac", pass_on, flags=SMOOTH, kernel=frac_array, inputs="self")


def frac(input, *, out=None):
    """`input - trunc(input)`, elementwise: what is behind the point, with the sign. Saves nothing. Gradient: g.

    Raises NotImplementedError for other than floating-point tensors.

    >>> import cygrad
    >>> cygrad.frac(cygrad.tensor([-1.5, 1.25]))
    tensor([-0.5000,  0.2500])
    """
    require_kind("f", "frac_cpu", tensor_argument(FRAC, input, "input", 1))
    return apply1(FRAC, input, out)


# -- division with a whole quotient --

NUMBER = (Tensor, int, float, complex)


def check_division(kernel, a, b):
    """Only real numbers; whole numbers, if there are any, are not divided by 0."""
    dtype = result_type((a, b))
    if dtype.is_floating_point:
        return
    if dtype.is_complex or dtype.name == "bool":
        raise messages.not_implemented_for(kernel, dtype)
    divisor = array_of(b) if isinstance(b, Tensor) else b
    if is_array(divisor):  # a GPU would be waited for
        return
    if not (all_(divisor) if isinstance(b, Tensor) else divisor) and not (isinstance(a, Tensor) and a.numel() == 0):
        raise RuntimeError("ZeroDivisionError")


def divide(op, kernel, input, other, out):
    if not isinstance(other, Tensor):
        tensor_argument(op, input, "input", 1)
    if isinstance(input, NUMBER) and isinstance(other, NUMBER):
        check_division(kernel, input, other)
    return apply2(op, input, other, out)


def divided(ufunc, a, b):
    """A `Ufunc` of two arrays, wherever they are."""
    return numpy_fallback.call(ufunc.numpy, a, b) if is_array(a) or is_array(b) else ufunc(a, b)


def divide_by_number(op, input, other, out):
    """`other` is no input of the node then."""
    t = tensor_argument(op, input, "input", 1)
    if not isinstance(other, NUMBER):
        tensor_argument(op, other, "other", 2)
    check_division(op.name + "_cpu", t, other)
    target = None if out is None else array_of(out)
    array = result_for(target, partial(divided, op.ufunc), *promoted(t, other, 0))
    return recorded(op, array, (t,), (other,), out)


def quotient_rule(mode):
    """The rule for `input - other * q`, where q is the quotient in this mode of rounding."""

    def rule(n, g):
        if not n.needs(1):
            return g, None
        return g, neg(mul(g, div(n.saved(0), n.saved(1), rounding_mode=mode)))

    return rule


def floor_divide_rule(n, g):
    raise RuntimeError(
        "derivative for aten::floor_divide is not implemented\n"
        "  the quotient is a step function: cut it with `.detach()`, or use div(), whose derivative is not 0"
    )


FLOOR_DIVIDE = declare(
    "floor_divide", floor_divide_rule, flags=SMOOTH, ufunc="floor_divide", node="torch::autograd::NotImplemented"
)


def floor_divide(input, other, *, out=None):
    """`floor(input / other)`, elementwise with broadcasting.

    Either operand may be a number. Raises RuntimeError where an integer is divided by 0, and NotImplementedError for
    two boolean and for complex tensors. Has no derivative: backward through it raises RuntimeError, as in PyTorch.
    Saves nothing.

    >>> import cygrad
    >>> cygrad.floor_divide(cygrad.tensor([-3.0, 3.0]), 2)
    tensor([-2.,  1.])
    """
    return divide(FLOOR_DIVIDE, "div_floor_cpu", input, other, out)


REMAINDER = declare("remainder", pass_on, flags=SMOOTH, ufunc="remainder", inputs="self")
REMAINDER_TENSOR = declare(
    "remainder.Tensor",
    quotient_rule("floor"),
    saves=(0, IN0 | IN1),
    flags=ELEMENTWISE | PRIVATE,
    ufunc="remainder",
    node="RemainderBackward1",
)


def remainder(input, other, *, out=None):
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
    return divide_by_number(REMAINDER, input, other, out)


FMOD = declare("fmod", pass_on, flags=SMOOTH, ufunc="fmod", inputs="self")
FMOD_TENSOR = declare(
    "fmod.Tensor",
    quotient_rule("trunc"),
    saves=(0, IN0 | IN1),
    flags=ELEMENTWISE | PRIVATE,
    ufunc="fmod",
    node="FmodBackward1",
)


def fmod(input, other, *, out=None):
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
    return divide_by_number(FMOD, input, other, out)


functions = publish(globals())
