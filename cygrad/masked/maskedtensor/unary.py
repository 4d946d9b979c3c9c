"""Elementwise ops of one masked tensor: they compute with the data, and keep the mask."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.masked.maskedtensor.core import masked, with_values
from cygrad.ops import aten

__all__: list[str] = []

UNARY_NAMES = """
    abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil
    clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10
    log1p log2 logit i0 isnan nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn
    signbit sin sinc sinh sqrt square tan tanh trunc
""".split()
INPLACE_UNARY_NAMES = [f"{name}_" for name in UNARY_NAMES if name not in ("angle", "positive", "signbit", "isnan")]
MORE_NAMES = ["isfinite", "isinf"]  # which PyTorch composes of others
UNARY_NAMES_UNSUPPORTED = """
    atan2 arctan2 bitwise_left_shift bitwise_right_shift copysign float_power fmod frexp gradient imag ldexp lerp
    logical_not hypot igamma igammac mvlgamma nextafter polygamma real remainder true_divide xlogy
""".split()

NATIVE_UNARY_FNS = [getattr(aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(aten, name) for name in INPLACE_UNARY_NAMES]


def computed(func: Any, args: Any, kwargs: Any) -> Any:
    """Return what an op makes of the data of its first argument.

    Raises ValueError for keywords, TypeError for further tensors.
    """
    if kwargs:
        raise ValueError(
            "MaskedTensor unary ops require that len(kwargs) == 0. If you need support for this, please open an issue "
            "on Github."
        )
    if any(isinstance(value, Tensor) for value in args[1:]):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    data = args[0]._masked_data
    if args[0].is_sparse:
        return with_values(data, func(data.values(), *args[1:]))
    return func(data, *args[1:])


def unary(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Answer an op."""
    return masked(computed(func, args, kwargs), args[0]._masked_mask)


def unary_(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Answer an op that writes to its argument: its data are replaced by others."""
    plain = getattr(aten, func.__name__.removesuffix("_"))
    args[0]._set_data_mask(computed(plain, args, kwargs).to(args[0].dtype), args[0]._masked_mask)
    return args[0]


def _is_native_unary(fn: Any) -> bool:
    """Whether this is one of these ops."""
    return fn in NATIVE_UNARY_FNS or fn in NATIVE_INPLACE_UNARY_FNS


def _apply_native_unary(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Run one of these ops; NotImplemented for others."""
    return fn(*args, **kwargs) if _is_native_unary(fn) else NotImplemented
