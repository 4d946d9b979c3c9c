"""Variance and standard deviation."""

import math
from numbers import Real

import cygrad._kernels.cpu.base.reduce as reduce
from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.opdef import IN0, OUT0, declare, publish
from cygrad._core.graph.record import apply_n
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.cpu.base import chunks, stack_chunks
from cygrad._kernels.device.gpu_forms import half_as_it_is
from cygrad._ops.base.arithmetic import div, mul, sub
from cygrad._ops.base.batching.rules import shifting
from cygrad._ops.base.reductions import axes_argument, flag_argument, mean, restored
from cygrad._ops.elementwise.selection import where


def reduced_count(t, axes):
    """Number of elements that are reduced to one."""
    return t.numel() if axes is None else math.prod(t.shape[i] for i in axes)


# -- variance --


def var_gradient(g, x, axes, correction, keepdim):
    """2 / (count - correction) * g * (x - mean)."""
    freedom = reduced_count(x, axes) - correction
    factor = 2 / freedom if freedom > 0 else math.inf
    apart = sub(x, mean(x, axes, True))
    return mul(apart, mul(restored(g, x.shape, axes, keepdim), factor), out=reused(apart))


def var_rule(n, g):
    return var_gradient(g, n.saved(0), *n.args)


@half_as_it_is
def var_array(a, axes, correction, keepdim):
    return _in_chunks(reduce.var, a, axes, correction, keepdim)


@half_as_it_is
def std_array(a, axes, correction, keepdim):
    return _in_chunks(reduce.std, a, axes, correction, keepdim)


def _in_chunks(function, a, axes, correction, keepdim):
    """Process large arrays chunk by chunk, except rows, for which the kernel keeps no array of differences."""
    if a.size <= chunks.SIZE or stack_chunks.is_of_rows(a, axes):
        return function(a, axes, correction, keepdim)

    def spread(part, axes, keepdim):
        return function(part, axes, correction, keepdim)

    return stack_chunks.reduced(spread, a, axes, keepdim)


VAR = declare(
    "var",
    var_rule,
    saves=IN0,
    kernel=var_array,
    inputs="self",
    attributes="dim correction keepdim",
    batching=shifting("D.."),
    overloads="",
)


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None, out=None):
    """Compute the variance of the elements over `dim`: sum(|x - mean|^2) / (count - correction).

    `correction` defaults to 1 (Bessel's correction); `unbiased=False` is the older spelling of `correction=0` and may
    be passed in place of `dim`. Complex input gives a real result. Saves `input`. Gradient:
    2 / (count - correction) * g * (x - mean). Warns if count <= correction, in which case the result is NaN or inf.
    Raises RuntimeError for integers, IndexError for a dimension out of range.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0, 4.0])
    >>> x.var(), x.var(correction=0)
    (tensor(2.3333), tensor(1.5556))
    """
    args = var_arguments(VAR, input, dim, unbiased, keepdim, correction, axis, keepdims)
    return apply_n(VAR, (input,), args, out)


def var_arguments(op, t, dim, unbiased, keepdim, correction, axis=None, keepdims=None, name=""):
    """Check the arguments and return (axes, correction, keepdim); warnings name the op, or the function `name`."""
    if not isinstance(t, Tensor):
        raise messages.fits_none(op.name)
    if isinstance(dim, bool) and unbiased is None:
        dim, unbiased = None, dim
    if unbiased is not None and (correction is not None or not isinstance(unbiased, bool)):
        raise messages.fits_none(op.name)
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError("std and var only support floating point and complex dtypes")
    axes = axes_argument(op, t, dim, axis)
    keep = flag_argument(op, keepdim, keepdims)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    elif not isinstance(correction, Real) and not (isinstance(correction, Tensor) and correction.ndim == 0):
        raise messages.fits_none(op.name)
    if reduced_count(t, axes) <= correction:
        warn_of_freedom(name or op.name, "the reduction factor (input numel divided by output numel)")
    return axes, correction, keep


def warn_of_freedom(function, count):
    """Warn that there are too few elements or observations to compute a variance."""
    warn(f"{function}(): degrees of freedom is <= 0. Correction should be strictly less than {count}.")


def std_rule(n, g):
    return std_gradient(g, n.saved(0), n.saved_result(), *n.args)


def std_gradient(g, x, std, axes, correction, keepdim):
    """g * (x - mean) / (std * (count - correction)), 0 where std is 0."""
    freedom = reduced_count(x, axes) - correction
    at_zero = std == 0
    g, std = mul(where(at_zero, 0.0, g), 1 / freedom if freedom > 0 else math.inf), where(at_zero, 1.0, std)
    apart = sub(x, mean(x, axes, True))
    if x.dtype.itemsize == 2:  # g / std may be too small for half precision
        apart = div(apart, restored(std, x.shape, axes, keepdim))
    else:
        g = div(g, std)
    return mul(apart, restored(g, x.shape, axes, keepdim), out=reused(apart))


STD = declare(
    "std",
    std_rule,
    saves=IN0 | OUT0,
    kernel=std_array,
    inputs="self",
    attributes="dim correction keepdim",
    batching=shifting("D.."),
    overloads="",
)


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None, out=None):
    """Compute the standard deviation over `dim`: the square root of `var`, with the same arguments.

    The result is sqrt(sum(|x - mean|^2) / (count - correction)).

    Saves `input` and the result r. Gradient: g * (x - mean) / (r * (count - correction)), 0 where r is 0. Warns if
    count <= correction, in which case the result is NaN or inf. Raises RuntimeError for integers, IndexError for a
    dimension out of range.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0, 4.0])
    >>> x.std(), x.std(correction=0)
    (tensor(1.5275), tensor(1.2472))
    """
    args = var_arguments(STD, input, dim, unbiased, keepdim, correction, axis, keepdims)
    return apply_n(STD, (input,), args, out)


functions = publish(globals())
