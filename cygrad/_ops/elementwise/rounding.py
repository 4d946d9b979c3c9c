"""Rounding, and division with an integral quotient."""

from functools import partial

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELEMENTWISE, IN0, IN1, INPLACE, PRIVATE, declare, publish, registry
from cygrad._core.graph.record import apply1, apply1_args, apply2, promoted, recorded, result_type, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import copying, numpy_fallback
from cygrad._kernels.cpu.base.chunks import result_for
from cygrad._kernels.cpu.base.reduce import all_
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import is_integer
from cygrad._ops.base.arithmetic import div, mul, neg
from cygrad._ops.base.batching.elementwise import with_number
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import require_kind
from cygrad._ops.base.copying import zeros_of

SMOOTH = ELEMENTWISE | INPLACE

# -- to integers --


def step_rule(n, g):
    """The rule of step functions: the gradient is 0 wherever it exists."""
    return zeros_of(g)


def rounded(op, input, out, refusal=None):
    """Apply a rounding op. Integers are copied unchanged; booleans and complex numbers raise PyTorch's errors."""
    dtype = tensor_argument(op, input, "input", 1).dtype
    if dtype.name == "bool" or (dtype.is_complex and refusal is None):
        raise messages.not_implemented_for(op.name + "_vml_cpu", dtype)
    if dtype.is_complex:
        raise NotImplementedError(refusal)
    if not dtype.is_floating_point:  # NumPy 2.0 would convert them to float
        return recorded(op, copying.copy(array_of(input)), (input,), None, out)
    return apply1(op, input, out)


FLOOR = declare("floor", step_rule, flags=SMOOTH, ufunc="floor", inputs="self", out_dtype="found")


def floor(input, *, out=None):
    """Round down to an integer, elementwise. Saves nothing. Gradient: 0.

    Integers are returned unchanged. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.floor(cygrad.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    return rounded(FLOOR, input, out, "floor is not supported for complex inputs")


CEIL = declare("ceil", step_rule, flags=SMOOTH, ufunc="ceil", inputs="self", out_dtype="found")


def ceil(input, *, out=None):
    """Round up to an integer, elementwise. Saves nothing. Gradient: 0.

    Integers are returned unchanged. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.ceil(cygrad.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    return rounded(CEIL, input, out, "ceil is not supported for complex inputs")


TRUNC = declare("trunc", step_rule, flags=SMOOTH, ufunc="trunc", inputs="self", aliases="fix", out_dtype="found")


def trunc(input, *, out=None):
    """Round towards 0 to an integer, elementwise. Saves nothing. Gradient: 0.

    Integers are returned unchanged. Raises NotImplementedError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.trunc(cygrad.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    return rounded(TRUNC, input, out, "trunc is not supported for complex inputs")


@rule("ceil floor trunc")
def _whole(call):
    """Use the entry point, which leaves integers unchanged; NumPy 2.0 would convert them to floats."""
    return registry[call.key].entry(call.full(call.inputs[0]))


@by_loop("rounded", numbers=lambda decimals: (10.0**decimals, 1.0) if decimals > 0 else (1.0, 10.0**-decimals))
def round_array(a, decimals):
    return numpy_fallback.call(lambda a: np.round(a, decimals), a)


ROUND = declare("round", step_rule, flags=SMOOTH, ufunc="rint", inputs="self", out_dtype="found", overloads="13")
ROUND_DECIMALS = declare(
    "round.decimals",
    step_rule,
    flags=SMOOTH | PRIVATE,
    kernel=round_array,
    node="RoundBackward1",
    inputs="self",
    attributes="_",
    out_dtype="found",
)


def round(input, *, decimals=0, out=None):
    """Round to the nearest integer, elementwise, halves to even; or to the given number of `decimals`.

    Gradient: 0. Integers are returned unchanged. Raises NotImplementedError for boolean and complex tensors, and for
    integers with decimals. Saves nothing.

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


@rule("round round.decimals")
def _rounded(call):
    decimals = call.args[0] if call.key == "round.decimals" else 0
    return round(call.full(call.inputs[0]), decimals=decimals)


def pass_on(n, g):
    return g


@by_loop("frac")
def frac_array(a):
    return numpy_fallback.call(lambda a: a - np.trunc(a), a)


FRAC = declare("frac", pass_on, flags=SMOOTH, kernel=frac_array, inputs="self", out_dtype="found")


def frac(input, *, out=None):
    """Compute `input - trunc(input)`, the fractional part with the sign of `input`, elementwise. Saves nothing.

    Gradient: g. Raises NotImplementedError unless the tensor is floating-point.

    >>> import cygrad
    >>> cygrad.frac(cygrad.tensor([-1.5, 1.25]))
    tensor([-0.5000,  0.2500])
    """
    require_kind("f", "frac_cpu", tensor_argument(FRAC, input, "input", 1))
    return apply1(FRAC, input, out)


# -- division with an integral quotient --

NUMBER = (Tensor, int, float, complex)


@noted
def _are_divisors(array):
    return bool(all_(array))


def check_division(kernel, a, b):
    """Require real numbers, and if they are integers, a nonzero divisor."""
    dtype = result_type((a, b))
    if dtype.is_floating_point:
        return
    if dtype.is_complex or dtype.name == "bool":
        raise messages.not_implemented_for(kernel, dtype)
    divisor = array_of(b) if isinstance(b, Tensor) else b
    if is_array(divisor):  # the check would wait for the GPU
        return
    is_divisor = _are_divisors(divisor) if isinstance(b, Tensor) else divisor
    if not is_divisor and not (isinstance(a, Tensor) and a.numel() == 0):
        raise RuntimeError("ZeroDivisionError")


def divide(op, kernel, input, other, out):
    if not isinstance(other, Tensor):
        tensor_argument(op, input, "input", 1)
    if isinstance(input, NUMBER) and isinstance(other, NUMBER):
        check_division(kernel, input, other)
    return apply2(op, input, other, out)


def divided(ufunc, a, b):
    """Apply a `Ufunc` to two arrays, on the CPU or a GPU."""
    return numpy_fallback.call(ufunc.numpy, a, b) if is_array(a) or is_array(b) else ufunc(a, b)


def divide_by_number(op, input, other, out):
    """Divide by a number, or by a tensor that is not an input of the node."""
    t = tensor_argument(op, input, "input", 1)
    if not isinstance(other, NUMBER):
        tensor_argument(op, other, "other", 2)
    check_division(op.name + "_cpu", t, other)
    target = None if out is None else array_of(out)
    array = result_for(target, partial(divided, op.ufunc), *promoted(t, other, 0))
    return recorded(op, array, (t,), (other,), out)


def quotient_rule(mode):
    """Return the rule of `input - other * q`, where q is the quotient with this rounding mode."""

    def rule(n, g):
        if not n.needs(1):
            return g, None
        return g, neg(mul(g, div(n.saved(0), n.saved(1), rounding_mode=mode)))

    return rule


def floor_divide_rule(n, g):
    raise RuntimeError(
        "derivative for aten::floor_divide is not implemented\n"
        "  the quotient is a step function: detach it with `.detach()`, or use div(), whose derivative is not 0"
    )


FLOOR_DIVIDE = declare(
    "floor_divide",
    floor_divide_rule,
    flags=SMOOTH,
    ufunc="floor_divide",
    node="torch::autograd::NotImplemented",
    batching=with_number,
    operator="//",
)


def floor_divide(input, other, *, out=None):
    """Compute `floor(input / other)`, elementwise with broadcasting.

    Either operand may be a number. Raises RuntimeError if an integer is divided by 0, NotImplementedError for two
    boolean tensors and for complex ones. Not differentiable: backward through it raises RuntimeError, as in PyTorch.
    Saves nothing.

    >>> import cygrad
    >>> cygrad.floor_divide(cygrad.tensor([-3.0, 3.0]), 2)
    tensor([-2.,  1.])
    """
    return divide(FLOOR_DIVIDE, "div_floor_cpu", input, other, out)


REMAINDER = declare(
    "remainder",
    pass_on,
    flags=SMOOTH,
    ufunc="remainder",
    inputs="self",
    batching=with_number,
    operator="%",
    overloads="",
)
REMAINDER_TENSOR = declare(
    "remainder.Tensor",
    quotient_rule("floor"),
    saves=(0, IN0 | IN1),
    flags=ELEMENTWISE | PRIVATE,
    ufunc="remainder",
    node="RemainderBackward1",
)


def remainder(input, other, *, out=None):
    """Compute `input - other * floor(input / other)`, elementwise; it has the sign of `other`, like Python's %.

    Operands broadcast, and either may be a number. Both are saved if `other` needs a gradient. Gradients: g, and
    -g * floor(input / other). Raises RuntimeError if an integer is divided by 0, NotImplementedError for two boolean
    tensors and for complex ones.

    >>> import cygrad
    >>> cygrad.remainder(cygrad.tensor([-3.0, 3.0]), 2)
    tensor([1., 1.])
    """
    if isinstance(other, Tensor):
        return divide(REMAINDER_TENSOR, "remainder_cpu", input, other, out)
    return divide_by_number(REMAINDER, input, other, out)


FMOD = declare("fmod", pass_on, flags=SMOOTH, ufunc="fmod", inputs="self", batching=with_number, overloads="")
FMOD_TENSOR = declare(
    "fmod.Tensor",
    quotient_rule("trunc"),
    saves=(0, IN0 | IN1),
    flags=ELEMENTWISE | PRIVATE,
    ufunc="fmod",
    node="FmodBackward1",
)


def fmod(input, other, *, out=None):
    """Compute `input - other * trunc(input / other)`, elementwise; it has the sign of `input`, like C's fmod.

    Operands broadcast; `other` may be a number. Both are saved if it needs a gradient. Gradients: g, and -g *
    trunc(input / other). Raises RuntimeError if an integer is divided by 0, NotImplementedError for two boolean tensors
    and for complex ones.

    >>> import cygrad
    >>> cygrad.fmod(cygrad.tensor([-3.0, 3.0]), 2)
    tensor([-1.,  1.])
    """
    if isinstance(other, Tensor):
        tensor_argument(FMOD, input, "input", 1)
        return divide(FMOD_TENSOR, "fmod_cpu", input, other, out)
    return divide_by_number(FMOD, input, other, out)


functions = publish(globals())
