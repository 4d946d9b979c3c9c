"""Operators on a tensor and something that is no operand."""

from cygrad._core.messages import type_name
from cygrad._core.tensor import Tensor

_SEQUENCES = (str, bytes, bytearray, list, tuple)


def unsupported_operand(symbol, a, b):
    """NotImplemented if the other operand may know what to do; else TypeError in PyTorch's words."""
    other = b if isinstance(a, Tensor) else a
    if type(other).__module__.partition(".")[0] not in ("builtins", "cygrad"):
        return NotImplemented
    if isinstance(other, _SEQUENCES) and (symbol == "*" or (symbol == "+" and other is a)):
        return NotImplemented  # Python repeats or joins the sequence, or says why not
    raise TypeError(f"unsupported operand type(s) for {symbol}: '{type_name(a)}' and '{type_name(b)}'")


def unordered(symbol, a, b):
    """The same for `<` and its kind."""
    if type(b).__module__.partition(".")[0] not in ("builtins", "cygrad"):
        return NotImplemented
    raise TypeError(f"'{symbol}' not supported between instances of '{type_name(a)}' and '{type_name(b)}'")
