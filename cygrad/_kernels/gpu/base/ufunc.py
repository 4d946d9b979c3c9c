"""NumPy ufuncs on GPUs that CuPy supports for fewer types, or is slow to launch (Note [Launches])."""

from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.base import matmul as blas
from cygrad._kernels.gpu.launch.elementwise_program import Elementwise

_UNARY = {
    "negative": "-W(x)",
    "exp": "exp(W(x))",
    "log": "log(W(x))",
    "sqrt": "sqrt(W(x))",
    "tanh": "tanh(W(x))",
    "reciprocal": "W(1) / W(x)",
    "square": "W(x) * W(x)",
    "sin": "sin(W(x))",
    "cos": "cos(W(x))",
    "log1p": "log1p(W(x))",
    "expm1": "expm1(W(x))",
}
_BINARY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


class _Ufunc:
    """CuPy's ufunc, with fast paths for dense arrays of one floating-point type."""

    def __init__(self, name, of_arrays, with_number=None, after_number=None):
        self.__name__ = name
        self._of_arrays, self._joined = of_arrays.launched, of_arrays
        self._with_number, self._after_number = with_number, after_number

    def __call__(self, *operands, **how):
        """Return the result; takes the arguments of CuPy's ufunc."""
        if not how:
            found = self._of_arrays(operands)
            if found is None and len(operands) == 2 and self._with_number is not None:
                found = self._of_array_and_number(*operands)
            if found is not None:
                return found
        return getattr(cupy(), self.__name__)(*operands, **how)

    def waits(self, *operands):
        """Return (function, operands) by which a call may be joined with others (Note [Groups]), or None."""
        if all(type(a) is cupy_library._found.ndarray for a in operands):
            return self._joined.waits(*operands)
        return self._with(*operands) if len(operands) == 2 and self._with_number is not None else None

    def __getattr__(self, name):
        return getattr(getattr(cupy(), self.__name__), name)

    def _of_array_and_number(self, a, b):
        found = self._with(a, b)
        return None if found is None else found[0].launched(found[1])

    def _with(self, a, b):
        """Return the function for an array and a number, with its operands, or None."""
        ndarray = cupy_library._found.ndarray
        if type(a) is not ndarray:
            return (self._after_number, (b, float(a))) if _is_of(a, b.dtype) else None
        if type(b) is not ndarray:
            return (self._with_number, (a, float(b))) if _is_of(b, a.dtype) else None
        return None


def _is_of(number, dtype):
    """Whether a number has this dtype, which must be floating point."""
    return type(number) is dtype.type and dtype.kind in "fV"


for _name, _formula in _UNARY.items():
    globals()[_name] = _Ufunc(_name, Elementwise(_name, "T x", "T out", f"out = T({_formula})"))
for _name, _sign in _BINARY.items():
    globals()[_name] = _Ufunc(
        _name,
        Elementwise(_name, "T x, T y", "T out", f"out = T(W(x) {_sign} W(y))"),
        Elementwise(f"{_name}_number", "T x, float64 y", "T out", f"out = T(W(x) {_sign} W(y))"),
        Elementwise(f"number_{_name}", "T x, float64 y", "T out", f"out = T(W(y) {_sign} W(x))"),
    )


def matmul(a, b):
    """Matrix product."""
    return blas.matmul(a, b)


def logical_not(a):
    """Whether each element is 0."""
    return a == 0 if a.dtype.kind == "c" else cupy().logical_not(a)
