"""Errors for operators on a tensor and a value that is not a valid operand."""

import sys
from opcode import opname

from cygrad._core.errors import messages
from cygrad._core.graph.tensor import Tensor

# The methods that `__torch_function__` receives; these have other names than the operators
_METHODS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "** or pow()": "__pow__",
    "@": "matmul",
    "//": "__floordiv__",
    "%": "remainder",
    "&": "__and__",
    "|": "__or__",
    "^": "__xor__",
    "<<": "__lshift__",
    ">>": "__rshift__",
    "+=": "add_",
    "-=": "sub_",
    "*=": "mul_",
    "/=": "div_",
    "**=": "__ipow__",
    "//=": "floor_divide_",
    "%=": "remainder_",
    "&=": "__iand__",
    "|=": "__ior__",
    "^=": "__ixor__",
    "<<=": "__ilshift__",
    ">>=": "__irshift__",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
}
# The same with the tensor on the right, which is their first argument
_REFLECTED = {
    "-": "__rsub__",
    "/": "__rtruediv__",
    "@": "__rmatmul__",
    "** or pow()": "__rpow__",
    "//": "__rfloordiv__",
    "%": "__rmod__",
    "<<": "__rlshift__",
    ">>": "__rrshift__",
}
_FUNCTIONS = {"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor"}  # these keep the order of their arguments
_COMPARISONS = {"<": "__gt__", ">": "__lt__", "<=": "__ge__", ">=": "__le__"}  # with the operands swapped
_SEQUENCES = (str, bytes, bytearray, list, tuple)


def unsupported_operand(symbol, a, b):
    """Return NotImplemented if the other operand might support the operator; else raise PyTorch's TypeError."""
    other = b if isinstance(a, Tensor) else a
    if hasattr(type(other), "__torch_function__"):
        found = _taken_over(symbol, a, b)
        if found is not NotImplemented:
            return found
    if _is_of_others(other) and isinstance(a, Tensor) and _reflects(b, symbol):
        return NotImplemented
    if isinstance(other, _SEQUENCES) and (symbol == "*" or (symbol == "+" and other is a)):
        return NotImplemented  # Python repeats or joins the sequence, or raises
    if _is_called():
        return NotImplemented
    raise TypeError(
        f"unsupported operand type(s) for {symbol}: '{messages.type_name(a)}' and '{messages.type_name(b)}'"
    )


def incomparable(symbol, a, b):
    """Same as `unsupported_operand`, for comparisons."""
    if hasattr(type(b), "__torch_function__"):
        found = _taken_over(symbol, a, b)
        if found is not NotImplemented:
            return found
    reflected = _COMPARISONS.get(symbol)  # None: Python compares the identities in the end
    if reflected is None or _is_of_others(b) and getattr(type(b), reflected) is not getattr(object, reflected):
        return NotImplemented
    if _is_called():
        return NotImplemented
    raise TypeError(
        f"'{symbol}' not supported between instances of '{messages.type_name(a)}' and '{messages.type_name(b)}'"
    )


def _is_called():
    """Whether the program calls the method, as in `t.__add__(x)`, instead of writing the operator.

    The method returns NotImplemented then. For an operator, and for the functions of the module `operator`, which look
    the same from here but for their names, Python would raise the error, but call the class `torch.Tensor`.
    """
    frame = sys._getframe(2)
    code = frame.f_code
    if not opname[code.co_code[frame.f_lasti]].startswith("CALL"):
        return False
    names = code.co_names
    return "operator" not in names and any(name == "getattr" or name.startswith("__") for name in names)


def _is_of_others(value):
    """Whether the class of a value is neither Python's nor ours."""
    return type(value).__module__.partition(".")[0] not in ("builtins", "cygrad")


def _reflects(value, symbol):
    """Whether the class of a value has the operator that Python tries if the one of the tensor on its left refuses."""
    from cygrad._core.registry.torch_function import symbols  # which few programs need

    names = [f"__r{name}__" for name, known in symbols.items() if symbol in (known, f"{known.split()[0]}=")]
    return any(name in vars(kind) for name in names for kind in type(value).__mro__)


def _taken_over(symbol, a, b):
    """Return what `__torch_function__` of a non-tensor operand's class makes of the operator."""
    from cygrad._core.registry.torch_function import ask  # which few programs need

    if isinstance(a, Tensor):
        return ask(getattr(Tensor, _METHODS[symbol]), (a, b), (a, b), {})
    if symbol in _FUNCTIONS:
        return ask(getattr(Tensor, _FUNCTIONS[symbol]), (a, b), (a, b), {})
    return ask(getattr(Tensor, _REFLECTED.get(symbol, _METHODS[symbol])), (b, a), (b, a), {})
