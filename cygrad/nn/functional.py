"""What layers compute, as functions: parameters are arguments here.

>>> import cygrad
>>> import cygrad.nn.functional as F
>>> F.linear(cygrad.ones(1, 2), cygrad.ones(3, 2))
tensor([[2., 2., 2.]])
"""

from cygrad._ops.nnf import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    dropout,
    elu,
    gelu,
    l1_loss,
    leaky_relu,
    linear,
    log_softmax,
    logsigmoid,
    mse_loss,
    nll_loss,
    one_hot,
    relu,
    sigmoid,
    silu,
    smooth_l1_loss,
    softmax,
    softplus,
    tanh,
)

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
