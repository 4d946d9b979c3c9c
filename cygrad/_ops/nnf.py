"""What cygrad.nn.functional offers: the functions of this layer under the signatures they have there."""

from cygrad._core.sites import warn
from cygrad._ops.activations import dropped, elu, gelu, leaky_relu, logsigmoid, one_hot, silu, softplus
from cygrad._ops.arguments import require
from cygrad._ops.losses import cross_entropy, l1_loss, mse_loss, nll_loss
from cygrad._ops.pointwise import relu as _relu
from cygrad._ops.pointwise import sigmoid, tanh
from cygrad._ops.pointwise_losses import binary_cross_entropy, binary_cross_entropy_with_logits, smooth_l1_loss
from cygrad._ops.products import linear
from cygrad._ops.softmax import log_softmax as _log_softmax
from cygrad._ops.softmax import softmax as _softmax

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "dropout",
    "elu",
    "gelu",
    "l1_loss",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "relu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "tanh",
]


def _implicit_dim(input, name):
    """The dimension that a call without `dim` used to mean."""
    ndim = require(input, name).ndim
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """`exp(input) / sum(exp(input))` along dimension `dim`: positive numbers whose sum is 1.

    With `dtype` the input is converted first. Without `dim` it warns, and takes 0 or 1. With r the result, gradient:
    r * (g - sum(g * r)). Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.softmax(cygrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _softmax(input, _implicit_dim(input, "softmax") if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of `softmax(input, dim)`, which stays exact where the softmax is tiny.

    With `dtype` the input is converted first. Without `dim` it warns, and takes 0 or 1. With r the result, gradient:
    g - exp(r) * sum(g). Raises NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.nn.functional.log_softmax(cygrad.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    return _log_softmax(input, _implicit_dim(input, "log_softmax") if dim is None else dim, dtype)


def relu(input, inplace=False):
    """`max(input, 0)`, elementwise; with `inplace` it overwrites `input`. Gradient: g where the result is positive.

    >>> import cygrad
    >>> cygrad.nn.functional.relu(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _relu(input, require(input, "relu")) if inplace else _relu(input)


def dropout(input, p=0.5, training=True, inplace=False):
    """In training, sets each element to zero with probability p and divides the others by 1 - p; else does nothing.

    So the expected value stays. Gradient: g times what the element was multiplied by. Raises ValueError for a p outside
    [0, 1].

    >>> import cygrad
    >>> cygrad.nn.functional.dropout(cygrad.ones(2), p=1.0)
    tensor([0., 0.])
    >>> cygrad.nn.functional.dropout(cygrad.ones(2), training=False)
    tensor([1., 1.])
    """
    return dropped(require(input, "dropout"), p, training, inplace)
