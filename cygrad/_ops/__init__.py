"""The op families: the rule, row, and entry point of each op, side by side (layer L3)."""

from importlib import import_module

# names of `torch._ops`
_OF_OPS = {"ops": "", "OpOverload": "", "OpOverloadPacket": "", "HigherOrderOperator": "._higher_order"}


def __getattr__(name):
    if name not in _OF_OPS:
        raise AttributeError(f"module 'cygrad._ops' has no attribute {name!r}")
    found = import_module(f"cygrad.ops{_OF_OPS[name]}")
    return found if name == "ops" else getattr(found, name)
