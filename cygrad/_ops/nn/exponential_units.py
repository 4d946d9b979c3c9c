"""Activation functions that are exponential below zero: `elu`, `selu`, and `celu`.

They save their input. Where the two pieces meet with different slopes, the gradient is that of the negative side, as in
PyTorch. With `inplace`, they overwrite the input and return it.
"""

import numpy as np

from cygrad._core.graph.opdef import IN0, declare, named, publish, shown, variant
from cygrad._kernels.cpu.elementwise.fused_loops import by_loop
from cygrad._kernels.device.cupy_library import as_array
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.checks.common import number_argument
from cygrad._ops.base.pointwise import exp
from cygrad._ops.common.gradients import fused_gradient
from cygrad._ops.elementwise.selection import where
from cygrad._ops.nn.activations import applied
from cygrad._ops.nn.rectifiers import FLAGS


def _numbers_of_elu(alpha, scale=1.0, input_scale=1.0):
    return (alpha * scale, scale, input_scale) if input_scale > 0 else None


@by_loop("elu", numbers=_numbers_of_elu)
def elu_array(a, alpha, scale=1.0, input_scale=1.0):
    """Return scale * a where positive, else scale * alpha * (exp(input_scale * a) - 1)."""
    number = a.dtype.type
    with np.errstate(all="ignore"):
        below = as_array(np.minimum(a, 0))
        if input_scale != 1:
            below *= number(input_scale)
        np.expm1(below, below)
        below *= number(alpha * scale)
        below += np.maximum(a, 0) * number(scale)
        return below


@by_loop("elu", numbers=lambda alpha: _numbers_of_elu(alpha, 1.0, 1 / alpha))
def celu_array(a, alpha):
    """Compute elu with input_scale = 1 / alpha, so that the slope is the same on both sides of 0."""
    return elu_array(a, alpha, 1.0, 1 / alpha)


def _elu_gradient(x, g, alpha, scale, input_scale):
    found = fused_gradient("elu_gradient", g, x, numbers=(alpha * scale, scale, input_scale))
    if found is not None and input_scale > 0:
        return found
    # Avoid exp of large numbers: although masked, its infinity would turn into nan in higher derivatives (0 * inf).
    below = where(x < 0, x, 0.0)
    slope = mul(exp(below if input_scale == 1 else mul(below, input_scale)), alpha * scale * input_scale)
    return where(x <= 0, mul(g, slope), g if scale == 1 else mul(g, scale))


def elu_rule(n, g):
    return _elu_gradient(n.saved(0), g, *n.args)


def celu_rule(n, g):
    return _elu_gradient(n.saved(0), g, n.args[0], 1.0, 1 / n.args[0])


ELU = declare(
    "elu",
    elu_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=elu_array,
    inputs="self",
    attributes="alpha scale input_scale",
    in_python=True,
    inplace_argument=True,
)
ELU_INPLACE = variant(ELU, "EluBackward1")
CELU = declare(
    "celu",
    celu_rule,
    saves=IN0,
    flags=FLAGS,
    kernel=celu_array,
    inputs="self",
    attributes="alpha",
    inplace_argument=True,
)
CELU_INPLACE = variant(CELU, "CeluBackward1")
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def elu(input, alpha=1.0, inplace=False):
    """`input` where positive, else `alpha * (exp(input) - 1)`. Saves `input`. Gradient: g, or g * alpha * exp(input).

    >>> import cygrad
    >>> cygrad.nn.functional.elu(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    args = (number_argument(alpha, "elu", "alpha", 2), 1.0, 1.0)
    return applied(ELU, ELU_INPLACE, input, args, inplace, "elu_cpu")


@shown
def elu_(input, alpha=1.0):
    """In-place version of `elu`; returns `input`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.elu_(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return elu(input, alpha, True)


@shown
def selu(input, inplace=False):
    """`scale * elu(input, alpha)` with scale 1.0507 and alpha 1.6733, for which layers preserve mean 0 and variance 1.

    At 0, the gradient is that of the negative side.

    >>> import cygrad
    >>> cygrad.nn.functional.selu(cygrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    args = (SELU_ALPHA, SELU_SCALE, 1.0)
    return applied(ELU, ELU_INPLACE, require(input, "selu"), args, inplace, "elu_cpu")


@named("selu")
def selu_of_package(input):
    """`scale * elu(input, alpha)` with scale 1.0507 and alpha 1.6733, for which layers preserve mean 0 and variance 1.

    Gradient: g * scale where positive, else g * scale * alpha * exp(input).

    >>> import cygrad
    >>> cygrad.selu(cygrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return selu(input)


@shown
def selu_(input):
    """In-place version of `selu`; returns `input`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.selu_(cygrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return selu(input, True)


def celu(input, alpha=1.0, inplace=False):
    """`input` where positive, else `alpha * (exp(input / alpha) - 1)`.

    Saves `input`. Gradient: g, or g * exp(input / alpha). Raises RuntimeError for an alpha of 0.

    >>> import cygrad
    >>> cygrad.nn.functional.celu(cygrad.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    scale = number_argument(alpha, "celu", "alpha", 2)
    require(input, "celu")
    if scale == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return applied(CELU, CELU_INPLACE, input, (scale,), inplace, "elu_cpu")


@named("celu")
def celu_of_package(input, alpha=1.0):
    """`input` where positive, else `alpha * (exp(input / alpha) - 1)`. Gradient: g, or g * exp(input / alpha).

    >>> import cygrad
    >>> cygrad.celu(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return celu(input, alpha)


@shown
def celu_(input, alpha=1.0):
    """In-place version of `celu`; returns `input`.

    >>> import cygrad
    >>> import cygrad.nn.functional as F
    >>> F.celu_(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return celu(input, alpha, True)


# Forms in the main package of functions that have other arguments in nn.functional.
functions = publish(
    globals(),
    {
        "celu": celu_of_package,
        "celu_": celu_,
        "selu": selu_of_package,
        "selu_": selu_,
    },
)
