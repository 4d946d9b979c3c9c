"""Softmax and its logarithm. Their gradients are fused kernels too, and so ops of their own.

Under the signatures of nn.functional; the package and the Tensor have `softmax(input, dim, dtype)`.
"""

from cygrad._core.dtypes cimport FLOATING, as_dtype, dtype
from cygrad._core.events cimport mark_start
from cygrad._core.opdef cimport IN0, IN1, OUT0, PRIVATE, OpDef, OpNode, op
from cygrad._core.opdef import named, publish
from cygrad._core.record cimport record1, record2, write_into
from cygrad._core.tensor cimport Tensor, dtype_of
from cygrad._core import messages
from cygrad._core.sites import warn
cimport cygrad._kernels.nn as nn
from cygrad._kernels.nn import log_softmax as log_softmax_kernel, log_softmax_backward as log_softmax_backward_kernel
from cygrad._kernels.nn import softmax as softmax_kernel, softmax_backward as softmax_backward_kernel
from cygrad._ops.arguments cimport dim_argument, require
from cygrad._ops.arithmetic cimport mul, neg, sub
from cygrad._ops.copying cimport converted
from cygrad._ops.pointwise cimport exp
from cygrad._ops.reductions cimport sum_over


cdef Tensor summed(Tensor t, int dim):
    """The sums along `dim`, which stays, of length 1."""
    return sum_over(t, (dim,), True) if t.array.ndim else t


cdef Tensor as_wanted(Tensor t, object wanted, str name):
    """The input in the type it is to be computed in."""
    if wanted is not None:
        t = converted(t, as_dtype(wanted))
    if dtype_of(t).category != FLOATING:
        raise messages.not_implemented_for(f"{name}_lastdim_kernel_impl", dtype_of(t))
    return t


cdef int implicit_dim(Tensor t, str name) except -1:
    """The dimension that a call without `dim` used to mean."""
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if t.array.ndim in (0, 1, 3) else 1


# -- softmax -----------------------------------------------------------------------------------------------

cdef object softmax_rule(OpNode n, object g):
    return softmax_backward_data(g, n.saved_result(), n.args[0])

cdef OpDef SOFTMAX = op("softmax", softmax_rule).row(saves=OUT0, kernel=softmax_kernel, inputs="self",
                        attributes="dim")

def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """`exp(input) / sum(exp(input))` along dimension `dim`: positive numbers whose sum is 1.

    With `dtype` the input is converted first. Without `dim` it warns, and takes 0 or 1. Saves the result r. Gradient:
    r * (g - sum(g * r)). Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.softmax(cygrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax_of_package(input, implicit_dim(require(input, "softmax"), "softmax") if dim is None else dim, dtype)


@named("softmax")
def softmax_of_package(input, dim, dtype=None, *, Tensor out=None):
    """`exp(input) / sum(exp(input))` along dimension `dim`: positive numbers whose sum is 1.

    With `dtype` the input is converted first. Saves the result r. Gradient: r * (g - sum(g * r)).
    Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.softmax(cygrad.tensor([[1.0, 1.0], [0.0, 2.0]]), 1)
    tensor([[0.5000, 0.5000],
            [0.1192, 0.8808]])
    """
    cdef Tensor t = require(input, "softmax")
    cdef int along = dim_argument(dim, t.array.ndim, "softmax", "dim", 2)
    t = as_wanted(t, dtype, "softmax")
    if out is None:
        return softmax_along(t, along)
    return write_into(SOFTMAX, out, nn.softmax(t.array, along), (t,), (along,))


cdef Tensor softmax_along(Tensor t, int dim):
    return record1(SOFTMAX, nn.softmax(t.array, dim), t, (dim,))


cdef object softmax_backward_rule(OpNode n, object g):
    cdef int dim = n.args[0]
    cdef Tensor result = n.saved(1), incoming
    grad_incoming = grad_result = None
    if n.needs(0):
        grad_incoming = softmax_backward_data(g, result, dim)
    if n.needs(1):
        incoming = n.saved(0)
        grad_result = sub(mul(g, sub(incoming, summed(mul(incoming, result), dim))),
                          mul(incoming, summed(mul(g, result), dim)))
    return grad_incoming, grad_result

cdef OpDef SOFTMAX_BACKWARD = op("softmax_backward_data", softmax_backward_rule).row(
    saves=(IN1, IN0 | IN1), flags=PRIVATE, kernel=softmax_backward_kernel, inputs="grad_output output",
    attributes="dim")

cpdef Tensor softmax_backward_data(Tensor grad_output, Tensor output, int dim):
    """output * (grad_output - sum(grad_output * output)): the gradient of softmax, from its result."""
    mark_start()
    return record2(SOFTMAX_BACKWARD, nn.softmax_backward(grad_output.array, output.array, dim), grad_output, output,
                   (dim,))


# -- log_softmax -------------------------------------------------------------------------------------------

cdef object log_softmax_rule(OpNode n, object g):
    return log_softmax_backward_data(g, n.saved_result(), n.args[0])

cdef OpDef LOG_SOFTMAX = op("log_softmax", log_softmax_rule).row(saves=OUT0, kernel=log_softmax_kernel, inputs="self",
                            attributes="dim")

def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of `softmax(input, dim)`, computed as `input - log(sum(exp(input)))`, which stays exact.

    With `dtype` the input is converted first. Without `dim` it warns, and takes 0 or 1. Saves the result r. Gradient:
    g - exp(r) * sum(g). Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.log_softmax(cygrad.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    if dim is None:
        dim = implicit_dim(require(input, "log_softmax"), "log_softmax")
    return log_softmax_of_package(input, dim, dtype)


@named("log_softmax")
def log_softmax_of_package(input, dim, dtype=None, *, Tensor out=None):
    """The logarithm of `softmax(input, dim)`, computed as `input - log(sum(exp(input)))`, which stays exact.

    With `dtype` the input is converted first. Saves the result r. Gradient: g - exp(r) * sum(g).
    Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.log_softmax(cygrad.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """
    cdef Tensor t = require(input, "log_softmax")
    cdef int along = dim_argument(dim, t.array.ndim, "log_softmax", "dim", 2)
    t = as_wanted(t, dtype, "log_softmax")
    if out is None:
        return log_softmax_along(t, along)
    return write_into(LOG_SOFTMAX, out, nn.log_softmax(t.array, along), (t,), (along,))


cpdef Tensor log_softmax_along(Tensor t, int dim):
    return record1(LOG_SOFTMAX, nn.log_softmax(t.array, dim), t, (dim,))


cdef object log_softmax_backward_rule(OpNode n, object g):
    cdef int dim = n.args[0]
    cdef Tensor probabilities = exp(n.saved(1))
    grad_incoming = grad_result = None
    if n.needs(0):
        grad_incoming = sub(g, summed(mul(g, probabilities), dim))
    if n.needs(1):
        grad_result = neg(mul(mul(g, probabilities), summed(n.saved(0), dim)))
    return grad_incoming, grad_result

cdef OpDef LOG_SOFTMAX_BACKWARD = op("log_softmax_backward_data", log_softmax_backward_rule).row(
    saves=(IN1, IN0 | IN1), flags=PRIVATE, kernel=log_softmax_backward_kernel, inputs="grad_output output",
    attributes="dim")

cpdef Tensor log_softmax_backward_data(Tensor grad_output, Tensor output, int dim):
    """grad_output - exp(output) * sum(grad_output): the gradient of log_softmax, from its result."""
    mark_start()
    return record2(LOG_SOFTMAX_BACKWARD, nn.log_softmax_backward(grad_output.array, output.array, dim), grad_output,
                   output, (dim,))


# The package's forms of functions that nn.functional has with other arguments.
methods = {"softmax": softmax_of_package, "log_softmax": log_softmax_of_package}
functions = publish(globals()) | methods
