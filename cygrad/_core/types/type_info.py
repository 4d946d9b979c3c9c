"""Numeric limits of dtypes: `finfo` and `iinfo`."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.types.dtypes import dtype, get_default_dtype


class _Info:
    """Limits of a dtype; instances are equal if their dtype is the same."""

    __slots__ = ("_dtype", "_numpy")
    _dtype: Any
    _numpy: Any

    @property
    def dtype(self):
        """The name of the dtype."""
        return self._dtype.name

    @property
    def bits(self):
        """The number of bits per number."""
        return self._numpy.bits

    def __eq__(self, other):
        return type(other) is type(self) and other._dtype is self._dtype

    def __hash__(self):
        return hash((type(self), self._dtype))

    def __reduce__(self):
        return type(self), (self._dtype,)


def _limits(largest, eps, smallest_normal, precision=0, bits=8, least=None):
    least = -largest if least is None else least
    return SimpleNamespace(
        bits=bits, eps=eps, max=largest, min=least, precision=precision, smallest_normal=smallest_normal
    )


# The values that NumPy's finfo would have for floating-point types that it does not support. PyTorch has the eps of
# float8_e5m2fnuz so, although the next number after 1 is 1.25.
_BEYOND_NUMPY = {
    "bfloat16": _limits((2 - 2.0**-7) * 2.0**127, 2.0**-7, 2.0**-126, precision=2, bits=16),
    "float8_e4m3fn": _limits(448.0, 0.125, 2.0**-6),
    "float8_e4m3fnuz": _limits(240.0, 0.125, 2.0**-7),
    "float8_e5m2": _limits(57344.0, 0.25, 2.0**-14),
    "float8_e5m2fnuz": _limits(57344.0, 0.125, 2.0**-15),
    "float8_e8m0fnu": _limits(2.0**127, 1.0, 2.0**-127, least=2.0**-127),
}
_QUANTIZED = {"qint8": np.int8, "qint32": np.int32, "quint8": np.uint8, "quint4x2": np.uint8, "quint2x4": np.uint8}


class finfo(_Info):
    """Limits of a floating-point dtype; the default dtype if omitted.

    For a complex dtype, the limits of its parts. Raises TypeError for other dtypes.

    >>> import cygrad
    >>> cygrad.finfo(cygrad.float32).eps
    1.1920928955078125e-07
    """

    __module__ = "cygrad"
    __slots__ = ()

    def __init__(self, type=None):
        kind = get_default_dtype() if type is None else type
        if not isinstance(kind, dtype):
            raise messages.wrong_type("finfo", "type", 1, "torch.dtype", kind)
        if not (kind.is_floating_point or kind.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        self._dtype = kind.to_real()
        name = self._dtype.name
        if name == "float4_e2m1fn_x2":
            raise NotImplementedError("\"epsilon\" not implemented for 'Float4_e2m1fn_x2'")
        self._numpy = _BEYOND_NUMPY.get(name) or np.finfo(self._dtype.numpy)

    @property
    def eps(self):
        """The difference between 1 and the next larger number."""
        return float(self._numpy.eps)

    @property
    def max(self):
        """The largest number."""
        return float(self._numpy.max)

    @property
    def min(self):
        """The smallest number, -max."""
        return float(self._numpy.min)

    @property
    def tiny(self):
        """The smallest positive normal number."""
        return float(self._numpy.smallest_normal)

    smallest_normal = tiny

    @property
    def resolution(self):
        """The decimal precision: 1e-6 for float32."""
        return 10.0**-self._numpy.precision

    def __repr__(self):
        fields = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return "finfo(" + "".join(f"{name}={getattr(self, name):g}, " for name in fields) + f"dtype={self.dtype})"


class iinfo(_Info):
    """Limits of an integer dtype. Raises TypeError for other dtypes.

    >>> import cygrad
    >>> cygrad.iinfo(cygrad.int8).min, cygrad.iinfo(cygrad.int8).max
    (-128, 127)
    """

    __module__ = "cygrad"
    __slots__ = ()

    def __init__(self, type):
        if not isinstance(type, dtype):
            raise messages.wrong_type("iinfo", "type", 1, "torch.dtype", type)
        if type.is_floating_point or type.is_complex:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type.name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        integers = type.numpy or _QUANTIZED.get(type.name)
        if integers is None:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        self._dtype = type
        self._numpy = np.iinfo(integers)

    @property
    def max(self):
        """The largest number."""
        return int(self._numpy.max)

    @property
    def min(self):
        """The smallest number."""
        return int(self._numpy.min)

    def __repr__(self):
        return f"iinfo(min={float(self.min):g}, max={float(self.max):g}, dtype={self.dtype})"
