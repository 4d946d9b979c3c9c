"""ONNX forms of elementwise functions: arithmetic, comparisons, rounding, casts."""

import math
from typing import Any

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form

_SAME = {  # functions that ONNX has, too
    "abs": "Abs",
    "absolute": "Abs",
    "neg": "Neg",
    "_neg_view": "Neg",
    "__neg__": "Neg",
    "__abs__": "Abs",
    "negative": "Neg",
    "ceil": "Ceil",
    "floor": "Floor",
    "round": "Round",
    "sign": "Sign",
    "sgn": "Sign",
}
_FLOAT = {  # the same, for floating-point numbers
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "tanh": "Tanh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "arcsin": "Asin",
    "arccos": "Acos",
    "arctan": "Atan",
    "arcsinh": "Asinh",
    "arccosh": "Acosh",
    "arctanh": "Atanh",
    "erf": "Erf",
    "sigmoid": "Sigmoid",
}


def _declare(name: str, kind: str, floats: bool) -> None:
    @form(name)
    def write(g: Graph, input: Value, *, decimals: int = 0, out: Any = None) -> Value:
        if decimals:
            raise Unsupported("`decimals` of round")
        if not floats:
            return input if kind in ("Ceil", "Floor", "Round") and not input.is_float else g.op(kind, input)
        return g.op(kind, g.cast(input, g.results[0].dtype))


for _floats, _table in ((False, _SAME), (True, _FLOAT)):
    for _name, _kind in _table.items():
        _declare(_name, _kind, _floats)


# -- two operands ------------------------------------------------------------------------------------------


@form("add", "__add__", "__radd__", "__iadd__")
def add(g: Graph, input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    if a.dtype is cygrad.bool:
        return g.op("Or", a, b)
    return g.op("Add", a, g.scaled(b, alpha))


@form("sub", "subtract", "__sub__", "__isub__")
def sub(g: Graph, input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    return g.op("Sub", a, g.scaled(b, alpha))


@form("rsub", "__rsub__")
def rsub(g: Graph, input: Value, other: Any, *, alpha: Any = 1) -> Value:
    a, b = g.promoted(input, other)
    return g.op("Sub", b, g.scaled(a, alpha))


@form("mul", "multiply", "__mul__", "__rmul__", "__imul__")
def mul(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    return g.op("And", a, b) if a.dtype is cygrad.bool else g.op("Mul", a, b)


@form("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def div(g: Graph, input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Value:
    if rounding_mode == "floor":
        return floor_divide(g, input, other)
    a, b = g.promoted(input, other)
    if rounding_mode == "trunc":
        return g.op("Div", a, b) if not a.is_float else trunc(g, g.op("Div", a, b))
    return _quotient(g, a, b)


def _quotient(g: Graph, a: Value, b: Value) -> Value:
    if not a.is_float:
        a, b = g.cast(a, cygrad.get_default_dtype()), g.cast(b, cygrad.get_default_dtype())
    return g.op("Div", a, b)


@form("__rtruediv__")
def rdiv(g: Graph, input: Value, other: Any) -> Value:
    a, b = g.promoted(input, other)
    return _quotient(g, b, a)


@form("floor_divide", "__floordiv__", "__ifloordiv__")
def floor_divide(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    if a.is_float:
        return g.op("Floor", g.op("Div", a, b))
    quotient = g.op("Div", a, b)  # which rounds to zero
    rest = g.op("Sub", a, g.op("Mul", quotient, b))
    zero = g.constant(0, a.dtype)
    less = g.op("Xor", g.op("Less", rest, zero, dtype=cygrad.bool), g.op("Less", b, zero, dtype=cygrad.bool))
    one_less = g.op("And", less, g.op("Not", g.op("Equal", rest, zero, dtype=cygrad.bool)))
    return g.op("Sub", quotient, g.cast(one_less, a.dtype))


@form("__rfloordiv__")
def rfloor_divide(g: Graph, input: Value, other: Any) -> Value:
    return floor_divide(g, other, input)


@form("remainder", "__mod__", "__imod__")
def remainder(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    if not a.is_float:
        return g.op("Mod", a, b)
    return g.op("Sub", a, g.op("Mul", g.op("Floor", g.op("Div", a, b)), b))


@form("__rmod__")
def rremainder(g: Graph, input: Value, other: Any) -> Value:
    return remainder(g, other, input)


@form("fmod")
def fmod(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    return g.op("Mod", a, b, fmod=1)


@form("pow", "float_power", "__pow__", "__ipow__")
def power(g: Graph, input: Any, exponent: Any, *, out: Any = None) -> Value:
    a, b = (g.value(each, g.results[0].dtype) for each in (input, exponent))
    return g.op("Mul", a, a) if type(exponent) in (int, float) and exponent == 2 else g.op("Pow", a, b)


@form("__rpow__")
def rpower(g: Graph, input: Value, other: Any) -> Value:
    return power(g, other, input)


@form("maximum", "fmax")
def maximum(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    return g.op("Max", *g.promoted(input, other))


@form("minimum", "fmin")
def minimum(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    return g.op("Min", *g.promoted(input, other))


@form("atan2", "arctan2")
def atan2(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    y, x = (g.value(each, g.results[0].dtype) for each in (input, other))
    zero, pi = g.constant(0, y.dtype), g.constant(math.pi, y.dtype)
    is_left = g.op("Less", x, zero, dtype=cygrad.bool)
    half = g.where(g.op("Less", y, zero, dtype=cygrad.bool), g.op("Neg", pi), pi)
    angle = g.op("Add", g.op("Atan", g.op("Div", y, x)), g.where(is_left, half, zero))
    at_origin = g.op(
        "And",
        g.op("Equal", x, zero, dtype=cygrad.bool),
        g.op("Equal", y, zero, dtype=cygrad.bool),
    )
    return g.where(at_origin, zero, angle)


@form("hypot")
def hypot(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    return g.op("Sqrt", g.op("Add", g.op("Mul", a, a), g.op("Mul", b, b)))


@form("xlogy")
def xlogy(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = (g.value(each, g.results[0].dtype) for each in (input, other))
    zero = g.constant(0, a.dtype)
    product = g.op("Mul", a, g.op("Log", b))
    return g.where(g.op("Equal", a, zero, dtype=cygrad.bool), g.op("Mul", zero, b), product)


@form("logaddexp2")
def logaddexp2(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = (g.scaled(each, math.log(2)) for each in g.promoted(input, other))
    return g.scaled(logaddexp(g, a, b), 1 / math.log(2))


@form("heaviside")
def heaviside(g: Graph, input: Value, values: Value, *, out: Any = None) -> Value:
    zero = g.constant(0, input.dtype)
    step = g.cast(g.op("Greater", input, zero, dtype=cygrad.bool), input.dtype)
    return g.where(g.op("Equal", input, zero, dtype=cygrad.bool), values, step)


@form("logaddexp")
def logaddexp(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    gap = g.op("Neg", g.op("Abs", g.op("Sub", a, b)))
    return g.op("Add", g.op("Max", a, b), log1p(g, g.op("Exp", gap)))


@form("copysign")
def copysign(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = (g.value(each, g.results[0].dtype) for each in (input, other))
    size = g.op("Abs", a)
    return g.where(_has_sign(g, b), g.op("Neg", size), size)


def _has_sign(g: Graph, value: Value) -> Value:
    """Whether a number is negative or -0.0, whose reciprocal is negative."""
    zero = g.constant(0, value.dtype)
    negative = g.op("Less", value, zero, dtype=cygrad.bool)
    if not value.is_float:
        return negative
    return g.op("Or", negative, g.op("Less", g.op("Reciprocal", value), zero, dtype=cygrad.bool))


@form("signbit")
def signbit(g: Graph, input: Value, *, out: Any = None) -> Value:
    return _has_sign(g, input)


@form("ldexp")
def ldexp(g: Graph, input: Value, other: Value, *, out: Any = None) -> Value:
    a, b = (g.value(each, g.results[0].dtype) for each in (input, other))
    return g.op("Mul", a, g.op("Pow", g.constant(2, a.dtype), b))


def _power_of_two(g: Graph, exponent: Value) -> Value:
    return g.op("Pow", g.constant(2, exponent.dtype), exponent)


@form("bitwise_left_shift", "__lshift__", "__ilshift__")
def left_shift(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    return g.op("Mul", a, _power_of_two(g, b))


@form("bitwise_right_shift", "__rshift__", "__irshift__")
def right_shift(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    return floor_divide(g, a, _power_of_two(g, b))


@form("__rlshift__")
def rleft_shift(g: Graph, input: Value, other: Any) -> Value:
    return left_shift(g, other, input)


@form("__rrshift__")
def rright_shift(g: Graph, input: Value, other: Any) -> Value:
    return right_shift(g, other, input)


@form("isreal")
def isreal(g: Graph, input: Value) -> Value:
    return g.op("Expand", g.constant(True, cygrad.bool), g.sizes(input))


@form("special.xlog1py")
def xlog1py(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
    a, b = (g.value(each, g.results[0].dtype) for each in (input, other))
    zero = g.constant(0, a.dtype)
    return g.where(g.op("Equal", a, zero, dtype=cygrad.bool), g.op("Mul", zero, b), g.op("Mul", a, log1p(g, b)))


@form("special.entr")
def entr(g: Graph, input: Value, *, out: Any = None) -> Value:
    x = _as_result(g, input)
    zero = g.constant(0, x.dtype)
    below = g.op("Less", x, zero, dtype=cygrad.bool)
    return g.where(below, g.constant(-math.inf, x.dtype), g.op("Neg", xlogy(g, x, x)))


@form("special.ndtr")
def ndtr(g: Graph, input: Value, *, out: Any = None) -> Value:
    x = g.scaled(_as_result(g, input), math.sqrt(0.5))
    return g.scaled(g.op("Add", g.constant(1, x.dtype), g.op("Erf", x)), 0.5)


# -- comparisons and logic ---------------------------------------------------------------------------------


def _comparison(names: str, kind: str, negated: bool = False) -> None:
    @form(*names.split())
    def write(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
        a, b = g.promoted(input, other)
        if a.dtype is cygrad.bool and kind != "Equal":
            a, b = g.cast(a, cygrad.int32), g.cast(b, cygrad.int32)
        found = g.op(kind, a, b, dtype=cygrad.bool)
        return g.op("Not", found) if negated else found


for _names, _kind in {
    "eq __eq__": "Equal",
    "lt less __lt__": "Less",
    "le less_equal __le__": "LessOrEqual",
    "gt greater __gt__": "Greater",
    "ge greater_equal __ge__": "GreaterOrEqual",
}.items():
    _comparison(_names, _kind)
_comparison("ne not_equal __ne__", "Equal", negated=True)


def _truth(g: Graph, value: Any) -> Value:
    if not isinstance(value, Value):
        return g.constant(bool(value), cygrad.bool)
    if value.dtype is cygrad.bool:
        return value
    return g.op("Not", g.op("Equal", value, g.constant(0, value.dtype), dtype=cygrad.bool))


def _logic(names: str, kind: str) -> None:
    bitwise = {"And": "BitwiseAnd", "Or": "BitwiseOr", "Xor": "BitwiseXor"}[kind]

    @form(f"logical_{kind.lower()}")
    def logical(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
        return g.op(kind, _truth(g, input), _truth(g, other))

    @form(f"bitwise_{kind.lower()}", *names.split())
    def bits(g: Graph, input: Any, other: Any, *, out: Any = None) -> Value:
        a, b = g.promoted(input, other)
        return g.op(kind if a.dtype is cygrad.bool else bitwise, a, b)


_logic("__and__ __rand__ __iand__", "And")
_logic("__or__ __ror__ __ior__", "Or")
_logic("__xor__ __rxor__ __ixor__", "Xor")


@form("logical_not")
def logical_not(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.op("Not", _truth(g, input))


@form("bitwise_not", "__invert__")
def bitwise_not(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.op("Not" if input.dtype is cygrad.bool else "BitwiseNot", input)


@form("isnan")
def isnan(g: Graph, input: Value) -> Value:
    return g.op("IsNaN", g.cast(input, _float_of(input)), dtype=cygrad.bool)


def _float_of(value: Value) -> Any:
    return value.dtype if value.is_float else cygrad.float32


@form("isinf")
def isinf(g: Graph, input: Value) -> Value:
    return g.op("IsInf", g.cast(input, _float_of(input)), dtype=cygrad.bool)


@form("isposinf", "isneginf")
def is_signed_inf(g: Graph, input: Value, *, out: Any = None) -> Value:
    positive = int(g.target == "isposinf")
    value = g.cast(input, _float_of(input))
    return g.op("IsInf", value, dtype=cygrad.bool, detect_positive=positive, detect_negative=1 - positive)


@form("isclose")
def isclose(
    g: Graph, input: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:
    if equal_nan or not input.is_float:
        raise Unsupported("`equal_nan=True` and integers")
    gap = g.op("Abs", g.op("Sub", input, other))
    limit = g.op("Add", g.scaled(g.op("Abs", other), rtol), g.constant(atol, input.dtype))
    near = g.op("LessOrEqual", gap, limit, dtype=cygrad.bool)
    return g.op("Or", g.op("And", near, isfinite(g, gap)), g.op("Equal", input, other, dtype=cygrad.bool))


@form("isfinite")
def isfinite(g: Graph, input: Value) -> Value:
    return g.op("Not", g.op("Or", isnan(g, input), isinf(g, input)))


@form("where")
def where(g: Graph, condition: Value, input: Any = None, other: Any = None, *, out: Any = None) -> Value:
    if input is None:
        raise Unsupported("`where` of a condition alone")
    a, b = g.promoted(input, other)
    return g.where(_truth(g, condition), a, b)


@form("masked_fill")
def masked_fill(g: Graph, input: Value, mask: Value, value: Any) -> Value:
    return g.where(mask, g.value(value, input.dtype), input)


@form("clamp", "clip")
def clamp(g: Graph, input: Value, min: Any = None, max: Any = None, *, out: Any = None) -> Value:
    dtype = g.results[0].dtype
    found = g.cast(input, dtype)
    if min is not None:
        found = g.op("Max", found, g.value(min, dtype))
    return found if max is None else g.op("Min", found, g.value(max, dtype))


@form("clamp_min")
def clamp_min(g: Graph, input: Value, min: Any, *, out: Any = None) -> Value:
    return clamp(g, input, min)


@form("clamp_max")
def clamp_max(g: Graph, input: Value, max: Any, *, out: Any = None) -> Value:
    return clamp(g, input, None, max)


@form("lerp")
def lerp(g: Graph, input: Value, end: Value, weight: Any, *, out: Any = None) -> Value:
    a, b = g.promoted(input, end)
    return g.op("Add", a, g.op("Mul", g.op("Sub", b, a), g.value(weight, a.dtype)))


@form("addcmul")
def addcmul(g: Graph, input: Value, tensor1: Value, tensor2: Value, *, value: Any = 1, out: Any = None) -> Value:
    a, b, c = g.promoted(input, tensor1, tensor2)
    return g.op("Add", a, g.scaled(g.op("Mul", b, c), value))


@form("addcdiv")
def addcdiv(g: Graph, input: Value, tensor1: Value, tensor2: Value, *, value: Any = 1, out: Any = None) -> Value:
    a, b, c = g.promoted(input, tensor1, tensor2)
    return g.op("Add", a, g.scaled(g.op("Div", b, c), value))


# -- one operand -------------------------------------------------------------------------------------------


def _as_result(g: Graph, value: Value) -> Value:
    return g.cast(value, g.results[0].dtype) if g.results else value


@form("sinc")
def sinc(g: Graph, input: Value, *, out: Any = None) -> Value:
    x = g.scaled(_as_result(g, input), math.pi)
    zero, one = g.constant(0, x.dtype), g.constant(1, x.dtype)
    at_zero = g.op("Equal", x, zero, dtype=cygrad.bool)
    divisor = g.where(at_zero, one, x)
    return g.where(at_zero, one, g.op("Div", g.op("Sin", divisor), divisor))


@form("rsqrt")
def rsqrt(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.op("Reciprocal", g.op("Sqrt", _as_result(g, input)))


@form("square")
def square(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.op("Mul", input, input)


@form("log2")
def log2(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.scaled(g.op("Log", _as_result(g, input)), 1 / math.log(2))


@form("log10")
def log10(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.scaled(g.op("Log", _as_result(g, input)), 1 / math.log(10))


@form("log1p")
def log1p(g: Graph, input: Value, *, out: Any = None) -> Value:
    # log(1 + x) * x / ((1 + x) - 1), which mends what rounding 1 + x loses (Higham, Accuracy and Stability, 1.14.1)
    x = input if input.is_float else _as_result(g, input)
    one = g.constant(1, x.dtype)
    u = g.op("Add", one, x)
    exact = g.op("Equal", u, one, dtype=cygrad.bool)
    gap = g.where(exact, one, g.op("Sub", u, one))
    far = g.op("IsInf", u, dtype=cygrad.bool)
    return g.where(exact, x, g.where(far, u, g.op("Mul", g.op("Log", u), g.op("Div", x, gap))))


@form("expm1")
def expm1(g: Graph, input: Value, *, out: Any = None) -> Value:
    # exp(x) - 1 = 2 sinh(x/2) exp(x/2) loses nothing near 0
    x = _as_result(g, input)
    half = g.op("Mul", x, g.constant(0.5, x.dtype))
    return g.op("Mul", g.scaled(g.op("Sinh", half), 2), g.op("Exp", half))


@form("exp2")
def exp2(g: Graph, input: Value, *, out: Any = None) -> Value:
    x = _as_result(g, input)
    return g.op("Pow", g.constant(2, x.dtype), x)


@form("trunc", "fix")
def trunc(g: Graph, input: Value, *, out: Any = None) -> Value:
    if not input.is_float:
        return input
    return g.op("Mul", g.op("Sign", input), g.op("Floor", g.op("Abs", input)))


@form("frac")
def frac(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.op("Sub", input, trunc(g, input))


@form("erfc")
def erfc(g: Graph, input: Value, *, out: Any = None) -> Value:
    x = _as_result(g, input)
    return g.op("Sub", g.constant(1, x.dtype), g.op("Erf", x))


@form("logit")
def logit(g: Graph, input: Value, eps: float | None = None, *, out: Any = None) -> Value:
    x = _as_result(g, input)
    if eps is not None:
        x = g.op("Min", g.op("Max", x, g.constant(eps, x.dtype)), g.constant(1 - eps, x.dtype))
    return g.op("Log", g.op("Div", x, g.op("Sub", g.constant(1, x.dtype), x)))


@form("deg2rad")
def deg2rad(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.scaled(_as_result(g, input), math.pi / 180)


@form("rad2deg")
def rad2deg(g: Graph, input: Value, *, out: Any = None) -> Value:
    return g.scaled(_as_result(g, input), 180 / math.pi)


@form("nan_to_num")
def nan_to_num(
    g: Graph, input: Value, nan: Any = 0.0, posinf: Any = None, neginf: Any = None, *, out: Any = None
) -> Value:
    if not input.is_float:
        return input
    limits = cygrad.finfo(input.dtype)
    numbers = (nan or 0.0, limits.max if posinf is None else posinf, limits.min if neginf is None else neginf)
    found = g.where(isnan(g, input), g.constant(numbers[0], input.dtype), input)
    for sign, number in ((1, numbers[1]), (0, numbers[2])):
        at = g.op("IsInf", found, dtype=cygrad.bool, detect_positive=sign, detect_negative=1 - sign)
        found = g.where(at, g.constant(number, input.dtype), found)
    return found


@form("clone", "detach", "contiguous", "positive", "__pos__", "conj", "resolve_conj", "resolve_neg", "alias_copy",
      "detach_copy", "cuda", "cpu", "real", "to_dense", "conj_physical", "requires_grad")  # fmt: skip
def same(g: Graph, input: Value, *args: Any, **kwargs: Any) -> Value:
    return input


@form("to", "type", "type_as", "float", "half", "double", "int", "long", "short", "bool", "byte", "char", "bfloat16")
def to(g: Graph, input: Value, *args: Any, **kwargs: Any) -> Value:
    return g.cast(input, g.results[0].dtype)


@form("fill")
def fill(g: Graph, input: Value, value: Any) -> Value:
    return g.op("Expand", g.value(value, input.dtype), g.sizes(input))


@form("zero")
def zero(g: Graph, input: Value) -> Value:
    return fill(g, input, 0)


@form("copy")
def copy(g: Graph, input: Value, src: Any, non_blocking: bool = False) -> Value:
    return fill(g, input, src)
