"""Elementwise predicates on values (sign, infinities), and nan_to_num, logit and frexp."""

import math

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import ELEMENTWISE, IN0, INPLACE, LINEAR, NONDIFF, OUT1, declare, publish
from cygrad._core.graph.record import apply1, apply1_args, record_outputs, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types import return_types
from cygrad._core.types.type_info import finfo
from cygrad._kernels.cpu.base import copying
from cygrad._kernels.cpu.base.elementary import log
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.device.cupy_library import as_array
from cygrad._ops.base.arithmetic import div, mul, neg, sub
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import require_real
from cygrad._ops.common.gradients import fused_gradient
from cygrad._ops.common.out_argument import write_several
from cygrad._ops.elementwise.binary import ldexp
from cygrad._ops.elementwise.selection import where

QUESTION = ELEMENTWISE | NONDIFF

# -- predicates --


def signbit_array(x):
    return np.signbit(x) if x.dtype.kind == "f" else x < 0


SIGNBIT = declare("signbit", flags=QUESTION, kernel=signbit_array, inputs="self", out_dtype="truth")


def signbit(input, *, out=None):
    """Whether each element is negative, including -0.0. Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.signbit(cygrad.tensor([1.0, -0.0, -2.0]))
    tensor([False,  True,  True])
    """
    if tensor_argument(SIGNBIT, input, "input", 1).is_complex():
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return apply1(SIGNBIT, input, out)


def infinite(op, input, out):
    if tensor_argument(op, input, "input", 1).is_complex():
        raise RuntimeError(f"{op.name} does not support complex inputs.")
    return apply1(op, input, out)


def is_infinity(infinity):
    return lambda x: x == infinity if x.dtype.kind == "f" else np.zeros(x.shape, bool, like=x)


ISPOSINF = declare("isposinf", flags=QUESTION, kernel=is_infinity(np.inf), inputs="self", out_dtype="truth")


def isposinf(input, *, out=None):
    """Whether each element is inf. Raises RuntimeError for complex tensors.

    >>> import cygrad
    >>> cygrad.isposinf(cygrad.tensor([1.0, float("inf"), -float("inf")]))
    tensor([False,  True, False])
    """
    return infinite(ISPOSINF, input, out)


ISNEGINF = declare("isneginf", flags=QUESTION, kernel=is_infinity(-np.inf), inputs="self", out_dtype="truth")


def isneginf(input, *, out=None):
    """Whether each element is -inf. Raises RuntimeError for complex tensors.

    >>> import cygrad
    >>> cygrad.isneginf(cygrad.tensor([1.0, float("inf"), -float("inf")]))
    tensor([False, False,  True])
    """
    return infinite(ISNEGINF, input, out)


def isreal_array(x):
    return np.equal(x.imag, 0) if x.dtype.kind == "c" else np.full_like(x, True, bool)


ISREAL = declare("isreal", flags=QUESTION, kernel=isreal_array, inputs="self", direct=True)


def isreal(input):
    """Whether each element has a zero imaginary part.

    >>> import cygrad
    >>> cygrad.isreal(cygrad.tensor([1.0, 1j]))
    tensor([ True, False])
    """
    return apply1(ISREAL, input, None)


# -- nan_to_num --


def _numbers_of_finite(nan, posinf, neginf):
    """Return the arguments of the loop, in which NaN stands for the largest and smallest number of the dtype."""
    if posinf != posinf or neginf != neginf:
        return None
    return 0.0 if nan is None else nan, math.nan if posinf is None else posinf, math.nan if neginf is None else neginf


@by_loop("finite", numbers=_numbers_of_finite)
def nan_to_num_array(x, nan, posinf, neginf):
    if x.dtype.kind == "c":
        parts = [nan_to_num_array(as_array(part), nan, posinf, neginf) for part in (x.real, x.imag)]
        return (parts[0] + 1j * parts[1]).astype(x.dtype, copy=False)
    if x.dtype.kind != "f":
        return copying.copy(x)
    limits = np.finfo(x.dtype)
    nan = 0.0 if nan is None else nan
    posinf, neginf = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def nan_to_num_rule(n, g):
    x = n.saved(0)
    found = fused_gradient("where_finite", g, x)
    if found is not None:
        return found
    return where((x != x) | (abs(x) == math.inf), 0.0, g)


NAN_TO_NUM = declare(
    "nan_to_num",
    nan_to_num_rule,
    saves=IN0,
    flags=ELEMENTWISE | INPLACE,
    kernel=nan_to_num_array,
    inputs="self",
    attributes="_ _ _",
    out_dtype="nan_to_num: dtype of out: {out} should be same as input: {result}",
)


def _check_number(function, name, place, value):
    is_one = isinstance(value, Tensor) and not value.ndim
    if not (value is None or is_one or isinstance(value, (int, float, np.number))):
        raise messages.wrong_type(function, name, place, "float", value)


def nan_to_num(input, nan=None, posinf=None, neginf=None, *, out=None):
    """Replace NaN by `nan` (0 if None), inf by `posinf` and -inf by `neginf`.

    For the latter two, None means the largest and smallest number of the dtype. Saves `input`. Gradient: g, 0 where
    replaced.

    >>> import cygrad
    >>> cygrad.nan_to_num(cygrad.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    t = tensor_argument(NAN_TO_NUM, input, "input", 1)
    for place, (name, value) in enumerate((("nan", nan), ("posinf", posinf), ("neginf", neginf)), 2):
        _check_number("nan_to_num", name, place, value)
    if t.dtype.name in ("bfloat16", "float16"):  # the kernel computes in float32, which has other limits
        limits = finfo(t.dtype)
        posinf, neginf = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    return apply1_args(NAN_TO_NUM, t, (nan, posinf, neginf), out)


# -- logit --


def logit_array(x, eps):
    with np.errstate(all="ignore"):
        if eps is not None:
            x = np.clip(x, x.dtype.type(eps), x.dtype.type(1 - eps))
        return log(x / (1 - x))


def logit_rule(n, g):
    (eps,) = n.args
    x = n.saved(0)
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    inside = (x >= low) & (x <= high)
    outside = math.nan if eps is None else 0.0
    safe = where(inside, x, 0.5)
    return where(inside, div(g, mul(safe, sub(1, safe))), outside)


LOGIT = declare(
    "logit",
    logit_rule,
    saves=IN0,
    flags=ELEMENTWISE | INPLACE,
    kernel=logit_array,
    inputs="self",
    attributes="eps",
)


def logit(input, eps=None, *, out=None):
    """Compute `log(input / (1 - input))`: NaN outside [0, 1], unless `eps` clamps the input to [eps, 1 - eps] first.

    Saves `input`. Gradient: g / (input * (1 - input)); outside, NaN, or 0 with `eps`.

    >>> import cygrad
    >>> cygrad.logit(cygrad.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    t = tensor_argument(LOGIT, input, "input", 1)
    _check_number("logit", "eps", 2, eps)
    require_real(LOGIT, t)
    return apply1_args(LOGIT, t if t.is_floating_point() else t + 0.0, (eps,), out)


# -- frexp --


@in_parts(0, 0, inputs=0)
def frexp_rule(n, g):
    return ldexp(g, neg(n.saved_output(1)))


FREXP = declare(
    "frexp",
    frexp_rule,
    saves=OUT1,
    flags=LINEAR,
    inputs="self",
    outputs="mantissa exponent",
    out_dtype=(
        "torch.frexp() expects mantissa to have dtype {result_c} but got {out_c}",
        "torch.frexp() expects exponent to have int dtype but got {out_c}",
    ),
    float8="frexp_cpu",
)


def frexp(input, *, out=None):
    """Decompose `input` into mantissa * 2 ** exponent, 0.5 <= |mantissa| < 1: a tuple (mantissa, int32 exponent).

    Gradient of the mantissa: g / 2 ** exponent. Raises RuntimeError for dtypes that are not floating-point. Saves the
    exponent.

    >>> import cygrad
    >>> cygrad.frexp(cygrad.tensor([4.0, 0.75]))
    torch.return_types.frexp(
    mantissa=tensor([0.5000, 0.7500]),
    exponent=tensor([3, 0], dtype=torch.int32))
    """
    t = tensor_argument(FREXP, input, "input", 1)
    if not t.is_floating_point():
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    arrays = tuple(map(as_array, np.frexp(array_of(t))))
    if out is not None:
        return return_types.frexp(write_several(FREXP, out, arrays, (t,)))
    return return_types.frexp(record_outputs(FREXP, arrays, (t,), None, 1))


@rule("frexp")
def _mantissa(call):
    return frexp(call.full(call.inputs[0]))


functions = publish(globals())
