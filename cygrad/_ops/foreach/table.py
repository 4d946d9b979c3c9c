"""The functions of lists of tensors: which there are, and by which signatures each is called."""

from typing import Any, NamedTuple

SELF = "tuple of Tensors self"
_OTHERS = {
    "Scalar": f"{SELF}, Number scalar",
    "ScalarList": f"{SELF}, tuple of Scalars scalars",
    "Tensor": f"{SELF}, Tensor other",
    "List": f"{SELF}, tuple of Tensors other",
}
_ALPHA = ", *, Number alpha = 1"
_TERMS = f"{SELF}, tuple of Tensors tensor1, tuple of Tensors tensor2"
_LIMITS = {overload: _OTHERS[overload] for overload in ("Scalar", "ScalarList", "List")}
_FACTORS = {overload: _OTHERS[overload] for overload in ("ScalarList", "Tensor", "List", "Scalar")}
_WEIGHTED = {
    "ScalarList": f"{_TERMS}, tuple of Scalars scalars",
    "Tensor": f"{_TERMS}, Tensor scalars",
    "Scalar": f"{_TERMS}, Number value = 1",
}
_SUMS = {"Scalar": _OTHERS["Scalar"], "ScalarList": _OTHERS["ScalarList"]}
_NORM = f"{SELF}, Number ord = 2, torch.dtype dtype = None"


class Foreach(NamedTuple):
    """What a function of lists does."""

    signatures: dict[str, str]  # {overload: signature}, in the order in which they are tried
    has_result: bool = True  # whether there is a function that returns new tensors
    in_place: bool = True  # whether there is one that changes the tensors


_UNARY = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round
    rsqrt sigmoid sign sin sinh sqrt tan tanh trunc
"""

TABLE: dict[str, Any] = {name: Foreach({"default": SELF}) for name in _UNARY.split()}
TABLE |= {
    "add": Foreach(_SUMS | {"Tensor": _OTHERS["Tensor"] + _ALPHA, "List": _OTHERS["List"] + _ALPHA}),
    "sub": Foreach(_SUMS | {"List": _OTHERS["List"] + _ALPHA}),
    "mul": Foreach(_FACTORS),
    "div": Foreach(_FACTORS),
    "clamp_max": Foreach(_LIMITS),
    "clamp_min": Foreach(_LIMITS),
    "minimum": Foreach(_LIMITS),
    "maximum": Foreach(_LIMITS),
    "addcdiv": Foreach(_WEIGHTED),
    "addcmul": Foreach(_WEIGHTED),
    "lerp": Foreach(
        {
            "Scalar": f"{SELF}, tuple of Tensors tensors1, Number weight",
            "ScalarList": f"{SELF}, tuple of Tensors tensors1, tuple of Scalars weight",
            "List": f"{SELF}, tuple of Tensors tensors1, tuple of Tensors weights",
        }
    ),
    "pow": Foreach(
        {
            "ScalarAndTensor": "Number self, tuple of Tensors exponent",
            "Scalar": f"{SELF}, Number exponent",
            "ScalarList": f"{SELF}, tuple of Scalars exponent",
            "List": f"{SELF}, tuple of Tensors exponent",
        }
    ),
    "clone": Foreach({"default": f"{SELF}, *, torch.memory_format memory_format = None"}, in_place=False),
    "copy": Foreach({"default": f"{SELF}, tuple of Tensors src, bool non_blocking = False"}, has_result=False),
    "max": Foreach({"default": SELF}, in_place=False),
    "mm": Foreach({"default": f"{SELF}, tuple of Tensors mat2"}, in_place=False),
    "norm": Foreach({"Scalar": _NORM}, in_place=False),
    "powsum": Foreach({"Scalar": _NORM}, in_place=False),
    "zero": Foreach({"default": SELF}, has_result=False),
}
