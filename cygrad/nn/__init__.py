"""Layers, losses, and `Module`, the base class of models."""

from cygrad.nn import attention, functional, grad, init, modules, parallel, parameter, utils
from cygrad.nn.modules import *  # noqa: F403
from cygrad.nn.parallel import DataParallel
from cygrad.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
]
__all__ += modules.__all__
