"""Layers, losses, and the `Module` that models are made of."""

from cygrad.nn import attention, functional, grad, init, modules, parameter, utils
from cygrad.nn.modules import *  # noqa: F403
from cygrad.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "grad",
    "init",
    "modules",
    "parameter",
    "utils",
]
__all__ += modules.__all__
