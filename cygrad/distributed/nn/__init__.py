"""Collectives that autograd sees."""

from cygrad.distributed.nn import functional as functional
from cygrad.distributed.nn.functional import *

__all__ = functional.__all__
