"""How layers are observed, for models written to be quantized."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

__all__ = ["QConfig", "default_qconfig", "get_default_qat_qconfig", "get_default_qconfig"]

QConfig = namedtuple("QConfig", ("activation", "weight"))
QConfig.__doc__ = """How the results and the weights of a layer are observed: a pair of functions that make modules.

>>> from cygrad.ao.quantization import QConfig
>>> QConfig(activation=None, weight=None)
QConfig(activation=None, weight=None)
"""
default_qconfig = QConfig(None, None)


def get_default_qconfig(backend: str = "x86", version: int = 0) -> Any:
    """Return the pair for a back end: one without functions, as nothing is observed.

    >>> import cygrad
    >>> cygrad.ao.quantization.get_default_qconfig()
    QConfig(activation=None, weight=None)
    """
    return default_qconfig


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> Any:
    """Return the pair for training with quantization in mind: one without functions, as nothing is observed.

    >>> import cygrad
    >>> cygrad.ao.quantization.get_default_qat_qconfig()
    QConfig(activation=None, weight=None)
    """
    return default_qconfig
