"""NumPy's functions on GPUs, where CuPy has them for fewer types, or takes long to launch them (Note [Launches])."""

from cygrad._kernels.gpu import blas, library
from cygrad._kernels.gpu.fused import Elementwise
from cygrad._kernels.gpu.library import cupy

_UNARY = {
    "negative": "-W(x)",
    "exp": "exp(W(x))",
    "log": "log(W(x))",
    "sqrt": "sqrt(W(x))",
    "tanh": "tanh(W(x))",
}
_BINARY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


class _Ufunc:
    """CuPy's ufunc, with short ways for dense arrays of one floating-point type."""

    def __init__(self, name, *forms):
        self.__name__ = name
        self._forms = forms

    def __call__(self, *operands, **how):
        """The result; arguments are those of CuPy's."""
        if not how and len(operands) <= 2:
            found = self._launched(operands)
            if found is not None:
                return found
        return getattr(cupy(), self.__name__)(*operands, **how)

    def __getattr__(self, name):
        return getattr(getattr(cupy(), self.__name__), name)

    def _launched(self, operands):
        if len(operands) == 1:
            return self._forms[0].launched(operands)
        a, b = operands
        ndarray = library._found.ndarray
        if type(a) is not ndarray:
            return self._forms[2].launched((b, float(a))) if _is_of(a, b.dtype) else None
        if type(b) is not ndarray:
            return self._forms[1].launched((a, float(b))) if _is_of(b, a.dtype) else None
        return self._forms[0].launched(operands)


def _is_of(number, dtype):
    """Is it of this type, which is floating point?"""
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
    """Products of matrices."""
    return blas.matmul(a, b)


def logical_not(a):
    """Whether an element is 0."""
    return a == 0 if a.dtype.kind == "c" else cupy().logical_not(a)
