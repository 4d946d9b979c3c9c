"""The op families: the rule, row, and entry point of each op, side by side (layer L3)."""

from importlib import import_module

_OF_OPS = {"OpOverload": "", "OpOverloadPacket": "", "HigherOrderOperator": "._higher_order"}  # names of `torch._ops`


def __getattr__(name):
    if name not in _OF_OPS:
        raise AttributeError(f"module 'cygrad._ops' has no attribute {name!r}")
    return getattr(import_module(f"cygrad.ops{_OF_OPS[name]}"), name)
