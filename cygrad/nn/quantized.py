"""Quantized layers by an older name of their module."""

from cygrad.ao.nn.quantized import *  # noqa: F403
from cygrad.ao.nn.quantized import dynamic as dynamic
