"""Elementwise functions on GPUs that CuPy lacks or defines differently; takes the arguments of elementwise.pyx."""

import math

import numpy as np

from cygrad._kernels.device.cupy_library import as_number, cupy, is_array, name_of
from cygrad._kernels.gpu.launch.elementwise_program import elementwise
from cygrad._kernels.gpu.launch.groups import waits_by

_rsqrt = elementwise("rsqrt", "T a", "T out", "out = T(rsqrt(W(a)));")
_erf = elementwise("erf", "T a", "T out", "out = T(erf(W(a)));")


_square = elementwise("square", "T a", "T out", "out = T(W(a) * W(a))")
_relu = elementwise("relu", "T a", "T out", "out = W(a) <= W(0) ? T(0) : a;")
_chosen = elementwise("where", "bool condition, T a, T b", "T out", "out = condition ? a : b;")
_unsigned_nan = elementwise(
    "unsigned_nan", "T x", "T out", "const W v = x; out = v == v ? x : T(__int_as_float(0x7fffffff));"
)
_clamp = elementwise(
    "clamp",
    "T a, float64 low, float64 high",
    "T out",
    "const W x = a; out = T(x < W(low) ? W(low) : x > W(high) ? W(high) : x);",
)


@waits_by(_relu.waits)
def relu(a):
    """max(a, 0); NaN stays NaN."""
    return _relu(a) if a.dtype.kind in "fV" else cupy().maximum(a, a.dtype.type(0))


def copy_of_real(a):
    """Return the real parts as an array of their own."""
    return a.real.copy()


@waits_by(_rsqrt.waits)
def rsqrt(a):
    """1 / sqrt(a)."""
    return _rsqrt(a) if a.dtype.kind in "fV" else 1 / cupy().sqrt(a)


@waits_by(lambda a, exponent: _square.waits(a) if exponent == 2 else None)
def power(a, exponent):
    """Raise floating-point `a` to a power."""
    if exponent == 1:
        return a.copy()
    if exponent == 2:
        return _square(a) if a.dtype.kind in "fV" else a * a
    return cupy().power(a, a.dtype.type(exponent))


def sign(a):
    """-1, 0 or 1; a / |a| for complex a. NaN gives 0."""
    if a.dtype.kind == "b":
        return a.copy()
    if a.dtype.kind == "c":
        size = cupy().abs(a)
        return cupy().where(size == 0, a.dtype.type(0), a / cupy().where(size == 0, size.dtype.type(1), size))
    found = cupy().sign(a)
    return cupy().where(cupy().isnan(found), a.dtype.type(0), found) if a.dtype.kind == "f" else found


def choose(condition, a, b):
    """CuPy's `where`, except that it preserves bfloat16, which CuPy promotes to float32."""
    dtypes = [x.dtype for x in (a, b) if hasattr(x, "dtype")]
    if not dtypes or any(name_of(dtype) != "bfloat16" for dtype in dtypes):
        return cupy().where(condition, a, b)
    a, b = (x if is_array(x) else dtypes[0].type(x) for x in (a, b))
    if not (is_array(a) or is_array(b)):
        a = cupy().full((), a, dtypes[0])
    return _chosen(condition.astype(bool, copy=False), a, b)


def to_sort(a):
    """Clear the sign of NaN where CuPy sorts by bit pattern: in vectors, -nan would otherwise come first."""
    return _unsigned_nan(a) if a.ndim == 1 and a.dtype.char in "fd" else a


def where(condition, a, b):
    """Return elements of `a` where the condition holds, else of `b`; all broadcast, `a` and `b` have one type."""
    if not is_array(condition):  # a 0-d bool in host memory
        chosen, other = (a, b) if condition else (b, a)
        chosen, other = (value if is_array(value) else cupy().full((), value[()]) for value in (chosen, other))
        return cupy().broadcast_arrays(chosen, other)[0].copy()
    return choose(condition, as_number(a), as_number(b))


@waits_by(_erf.waits)
def erf(a):
    """The error function."""
    return _erf(a)


def _numbers(low, high):
    """Return two bounds as floats, or None for arrays and for bounds in the wrong order."""
    if is_array(low) or is_array(high):
        return None
    low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    return (low, high) if low <= high else None


def _bounded(a, low, high):
    bounds = _numbers(low, high)
    return None if bounds is None else _clamp.waits(a, *bounds)


@waits_by(_bounded)
def clamp(a, low, high):
    """min(max(a, low), high); a bound is an array of the type of `a`, a number, or None. NaN stays NaN."""
    bounds = _numbers(low, high) if a.dtype.kind in "fV" else None
    if bounds is not None:
        return _clamp(a, *bounds)
    out = a
    for function, bound in ((cupy().maximum, low), (cupy().minimum, high)):
        if bound is not None:
            with np.errstate(over="ignore"):
                out = function(out, bound if is_array(bound) else a.dtype.type(bound))
    return a.copy() if out is a else out
