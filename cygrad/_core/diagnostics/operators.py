"""Errors for operators on a tensor and a value that is not a valid operand."""

from cygrad._core.errors import messages
from cygrad._core.graph.tensor import Tensor

_FUNCTIONS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "** or pow()": "pow",
    "@": "matmul",
    "+=": "add_",
    "-=": "sub_",
    "*=": "mul_",
    "/=": "div_",
    "**=": "pow_",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "//": "floor_divide",
    "%": "remainder",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
}
# What PyTorch calls the operators with the tensor on the right, which is their first argument, and some others
_REFLECTED = {
    "-": "__rsub__",
    "/": "__rtruediv__",
    "@": "__rmatmul__",
    "** or pow()": "__rpow__",
    "//": "__rfloordiv__",
    "%": "__rmod__",
    "&": "__rand__",
    "|": "__ror__",
    "^": "__rxor__",
}
_METHODS = {"** or pow()": "__pow__", "//": "__floordiv__", "&": "__and__", "|": "__or__", "^": "__xor__"}
_SEQUENCES = (str, bytes, bytearray, list, tuple)


def unsupported_operand(symbol, a, b):
    """Return NotImplemented if the other operand might support the operator; else raise PyTorch's TypeError."""
    other = b if isinstance(a, Tensor) else a
    if hasattr(type(other), "__torch_function__"):
        found = _taken_over(symbol, a, b)
        if found is not NotImplemented:
            return found
    if type(other).__module__.partition(".")[0] not in ("builtins", "cygrad"):
        return NotImplemented
    if isinstance(other, _SEQUENCES) and (symbol == "*" or (symbol == "+" and other is a)):
        return NotImplemented  # Python repeats or joins the sequence, or raises
    raise TypeError(
        f"unsupported operand type(s) for {symbol}: '{messages.type_name(a)}' and '{messages.type_name(b)}'"
    )


def unordered(symbol, a, b):
    """Same as `unsupported_operand`, for comparisons."""
    if hasattr(type(b), "__torch_function__"):
        return _taken_over(symbol, a, b)
    if type(b).__module__.partition(".")[0] not in ("builtins", "cygrad"):
        return NotImplemented
    raise TypeError(
        f"'{symbol}' not supported between instances of '{messages.type_name(a)}' and '{messages.type_name(b)}'"
    )


def _taken_over(symbol, a, b):
    """Return what `__torch_function__` of a non-tensor operand's class makes of the operator."""
    from cygrad._core.registry.torch_function import ask  # which few programs need

    if symbol not in _FUNCTIONS:
        return NotImplemented
    name = _METHODS.get(symbol, _FUNCTIONS[symbol])
    if not isinstance(a, Tensor):
        a, b, name = b, a, _REFLECTED.get(symbol, name)
    return ask(getattr(Tensor, name), (a, b), (a, b), {})
