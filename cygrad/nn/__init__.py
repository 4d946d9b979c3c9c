"""Layers, losses, and the `Module` that models are made of."""

from cygrad.nn import functional, grad, init, modules, parameter, utils
from cygrad.nn.modules import *  # noqa: F403
from cygrad.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "grad",
    "init",
    "modules",
    "parameter",
    "utils",
]
__all__ += modules.__all__
