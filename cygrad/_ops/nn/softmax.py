"""Softmax and log-softmax. Their gradients are fused kernels, too, and therefore ops of their own.

The functions have the signatures of nn.functional; `cygrad` itself and Tensor have `softmax(input, dim, dtype)`.
"""

import cygrad._kernels.cpu.nn.softmax as kernels
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import memory_of, tensor_of
from cygrad._core.graph.opdef import IN0, IN1, OUT0, PRIVATE, declare, named, publish
from cygrad._core.graph.record import apply1_args, apply_n
from cygrad._core.graph.spent_gradients import is_spare
from cygrad._core.types.dtypes import as_dtype
from cygrad._ops.base.arguments import dim_argument, require
from cygrad._ops.base.arithmetic import mul, neg, sub
from cygrad._ops.base.batching.rules import shifting
from cygrad._ops.base.copying import to
from cygrad._ops.base.pointwise import exp
from cygrad._ops.base.reductions import sum as total


def summed(t, dim):
    """Sum along `dim`, which is kept with length 1."""
    return total(t, dim, True) if t.ndim else t


def as_wanted(input, dtype, name, dim):
    """Convert the input to the dtype to compute in."""
    t = input if dtype is None else to(input, as_dtype(dtype))
    if not t.dtype.is_floating_point:
        place = "_lastdim" if dim >= t.ndim - 1 else ""
        raise messages.not_implemented_for(f"{name}{place}_kernel_impl", t.dtype)
    return t


def implicit_dim(t, name):
    """Return the dimension that a call without `dim` implies (deprecated)."""
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if t.ndim in (0, 1, 3) else 1


# -- softmax --


def softmax_rule(n, g):
    found = spent(kernels.softmax_backward, n, g)
    return softmax_backward_data(g, n.saved_result(), *n.args) if found is None else found


def spent(kernel, n, g):
    """Compute the gradient in the memory of the incoming one, or return None if that is still in use."""
    return tensor_of(kernel(memory_of(g), memory_of(n.saved_result()), *n.args, True)) if is_spare(g) else None


SOFTMAX = declare(
    "softmax",
    softmax_rule,
    saves=OUT0,
    kernel=kernels.softmax,
    inputs="self",
    attributes="dim",
    autocast_gpu="float32",
    takes_dtype=True,
    out_dtype="same",
    batching=shifting("d"),
)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Compute `exp(input) / sum(exp(input))` along dimension `dim`: positive numbers whose sum is 1.

    With `dtype` the input is converted first. Without `dim` it warns and uses dimension 0 or 1. Saves the result r.
    Gradient: r * (g - sum(g * r)). Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.softmax(cygrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax_of_package(input, implicit_dim(require(input, "softmax"), "softmax") if dim is None else dim, dtype)


@named("softmax")
def softmax_of_package(input, dim, dtype=None, *, out=None):
    """Compute `exp(input) / sum(exp(input))` along dimension `dim`: positive numbers whose sum is 1.

    With `dtype` the input is converted first. Saves the result r. Gradient: r * (g - sum(g * r)).
    Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.softmax(cygrad.tensor([[1.0, 1.0], [0.0, 2.0]]), 1)
    tensor([[0.5000, 0.5000],
            [0.1192, 0.8808]])
    """
    t = require(input, "softmax")
    along = dim_argument(dim, t.ndim, "softmax", "dim", 2)
    return apply1_args(SOFTMAX, as_wanted(t, dtype, "softmax", along), (along,), out)


def softmax_backward_rule(n, g):
    (dim,) = n.args
    result = n.saved(1)
    grad_incoming = grad_result = None
    if n.needs(0):
        grad_incoming = softmax_backward_data(g, result, dim)
    if n.needs(1):
        incoming = n.saved(0)
        centred = sub(incoming, summed(mul(incoming, result), dim))
        grad_result = sub(mul(g, centred), mul(incoming, summed(mul(g, result), dim)))
    return grad_incoming, grad_result


SOFTMAX_BACKWARD = declare(
    "softmax_backward_data",
    softmax_backward_rule,
    saves=(IN1, IN0 | IN1),
    flags=PRIVATE,
    kernel=kernels.softmax_backward,
    inputs="grad_output output",
    attributes="dim",
    batching=shifting("d"),
)


def softmax_backward_data(grad_output, output, dim):
    """Return output * (grad_output - sum(grad_output * output)), the gradient of softmax, given its result."""
    return apply_n(SOFTMAX_BACKWARD, (grad_output, output), (dim,))


# -- log_softmax --


def log_softmax_rule(n, g):
    found = spent(kernels.log_softmax_backward, n, g)
    return log_softmax_backward_data(g, n.saved_result(), *n.args) if found is None else found


LOG_SOFTMAX = declare(
    "log_softmax",
    log_softmax_rule,
    saves=OUT0,
    kernel=kernels.log_softmax,
    inputs="self",
    attributes="dim",
    autocast_gpu="float32",
    takes_dtype=True,
    out_dtype="same",
    batching=shifting("d"),
)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Compute the logarithm of `softmax(input, dim)` as `input - log(sum(exp(input)))`, which is accurate.

    With `dtype` the input is converted first. Without `dim` it warns and uses dimension 0 or 1. Saves the result r.
    Gradient: g - exp(r) * sum(g). Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.log_softmax(cygrad.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    if dim is None:
        dim = implicit_dim(require(input, "log_softmax"), "log_softmax")
    return log_softmax_of_package(input, dim, dtype)


@named("log_softmax")
def log_softmax_of_package(input, dim, dtype=None, *, out=None):
    """Compute the logarithm of `softmax(input, dim)` as `input - log(sum(exp(input)))`, which is accurate.

    With `dtype` the input is converted first. Saves the result r. Gradient: g - exp(r) * sum(g).
    Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.log_softmax(cygrad.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """
    t = require(input, "log_softmax")
    along = dim_argument(dim, t.ndim, "log_softmax", "dim", 2)
    return log_softmax_along(as_wanted(t, dtype, "log_softmax", along), along, out)


def log_softmax_along(t, dim, out=None):
    return apply1_args(LOG_SOFTMAX, t, (dim,), out)


def log_softmax_backward_rule(n, g):
    (dim,) = n.args
    probabilities = exp(n.saved(1))
    grad_incoming = grad_result = None
    if n.needs(0):
        grad_incoming = sub(g, summed(mul(g, probabilities), dim))
    if n.needs(1):
        grad_result = neg(mul(mul(g, probabilities), summed(n.saved(0), dim)))
    return grad_incoming, grad_result


LOG_SOFTMAX_BACKWARD = declare(
    "log_softmax_backward_data",
    log_softmax_backward_rule,
    saves=(IN1, IN0 | IN1),
    flags=PRIVATE,
    kernel=kernels.log_softmax_backward,
    inputs="grad_output output",
    attributes="dim",
    batching=shifting("d"),
)


def log_softmax_backward_data(grad_output, output, dim):
    """Return grad_output - exp(output) * sum(grad_output), the gradient of log_softmax, given its result."""
    return apply_n(LOG_SOFTMAX_BACKWARD, (grad_output, output), (dim,))


# cygrad's own forms of functions that have other arguments in nn.functional.
methods = {"softmax": softmax_of_package, "log_softmax": log_softmax_of_package}
functions = publish(globals(), methods)
