"""Activation functions on GPUs, in one pass each; of complex numbers by CuPy's functions."""

from cygrad._kernels import by_numpy
from cygrad._kernels.gpu.fused import elementwise

# The formulas are those of by_numpy.py.
_FUNCTIONS = """
template <typename W> __device__ W logistic(W x) { return W(1) / (W(1) + exp(-x)); }
template <typename W> __device__ W tanh_of_softplus(W x) {
    W n = exp(x < W(20) ? x : W(20));
    n = n * (n + W(2));
    return n / (n + W(2));
}
template <typename W> __device__ W normal(W x) { return W(0.5) * erfc(-x * W(0.7071067811865476)); }
template <typename W> __device__ W gelu_scale(W x) {
    return logistic<W>(x * W(1.5957691216057308) * (W(1) + W(0.044715) * x * x));
}
"""


def _map(name, formula):
    fused = elementwise(name, "T a", "T out", f"W x = a; out = T({formula});", _FUNCTIONS)

    def function(a):
        return fused(a) if a.dtype.kind in "fV" else getattr(by_numpy, name)(a)

    return function


def _gradient(name, formula):
    fused = elementwise(name, "T grad, T a", "T out", f"W g = grad, x = a; out = T({formula});", _FUNCTIONS)

    def function(grad, a, over=False):
        return fused(grad, a) if a.dtype.kind in "fV" else getattr(by_numpy, name)(grad, a)

    return function


sigmoid = _map("sigmoid", "logistic<W>(x)")
silu = _map("silu", "x * logistic<W>(x)")
mish = _map("mish", "x * tanh_of_softplus<W>(x)")
gelu_exact = _map("gelu", "x * normal<W>(x)")
gelu_tanh = _map("gelu_tanh", "x * gelu_scale<W>(x)")

_S = "logistic<W>(x)"
silu_backward = _gradient("silu_backward", f"g * {_S} * (W(1) + x * (W(1) - {_S}))")
mish_backward = _gradient(
    "mish_backward",
    f"g * (tanh_of_softplus<W>(x) + x * {_S} * (W(1) - tanh_of_softplus<W>(x) * tanh_of_softplus<W>(x)))",
)
gelu_backward = _gradient("gelu_backward", "g * (normal<W>(x) + x * exp(-x * x * W(0.5)) * W(0.3989422804014327))")
# Beyond 30 the scale is 0 or 1, and the square of x could overflow.
gelu_tanh_backward = _gradient(
    "gelu_tanh_backward",
    "(x > W(30) ? g : x < W(-30) ? g * W(0) : g * (gelu_scale<W>(x) + x * gelu_scale<W>(x) * (W(1) - gelu_scale<W>(x))"
    " * W(1.5957691216057308) * (W(1) + W(0.134145) * x * x)))",
)
tanh_backward = _gradient("tanh_backward", "g * (W(1) - x * x)")
sigmoid_backward = _gradient("sigmoid_backward", "g * (W(1) - x) * x")
threshold_backward = _gradient("threshold_backward", "x <= W(0) ? W(0) : g")


def gelu(a, approximate="none"):
    """a times the normal distribution function at a, or, with "tanh", times what approximates it."""
    return gelu_tanh(a) if approximate == "tanh" else gelu_exact(a)
