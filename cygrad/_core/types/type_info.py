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


# The values that NumPy's finfo would have if it supported bfloat16.
_BFLOAT16 = SimpleNamespace(
    bits=16, eps=2.0**-7, max=(2 - 2.0**-7) * 2.0**127, min=-(2 - 2.0**-7) * 2.0**127, precision=2
)
_BFLOAT16.smallest_normal = 2.0**-126


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
        self._numpy = _BFLOAT16 if self._dtype.name == "bfloat16" else np.finfo(self._dtype.numpy)

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
        self._dtype = type
        self._numpy = np.iinfo(type.numpy)

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
