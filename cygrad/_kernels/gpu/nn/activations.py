"""Activation functions on GPUs, one kernel each; complex numbers use CuPy functions."""

from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.gpu.launch.elementwise_program import LOGISTIC, elementwise
from cygrad._kernels.gpu.launch.groups import waits_by

# The formulas are those of numpy_fallback.py.
_FUNCTIONS = (
    LOGISTIC
    + """
template <typename W> __device__ W tanh_of_softplus(W x) {
    W n = exp(x < W(20) ? x : W(20));
    n = n * (n + W(2));
    return n / (n + W(2));
}
// The normal distribution function. erfc takes twice as long as to read and write the number, so that for floats it is
// exp(-x^2 / 2) times a polynomial of 1 / (1 + .26 |x|), within a millionth of itself on both sides.
__device__ inline double normal(double x) { return 0.5 * erfc(-x * 0.7071067811865476); }
__device__ inline float normal(float x) {
    const float t = fminf(fabsf(x), 15.0f), square = t * t, q = reciprocal(fmaf(0.26f, t, 1.0f));
    const float factors[] = {0.0302303005f, -0.151494443f, 0.248733208f, -0.147789344f, 0.158758759f, 0.0519648194f,
                             0.102788679f, 0.103050977f, 0.103757024f};
    float sum = 0.0f;
    #pragma unroll
    for (int i = 0; i < 9; i++) sum = fmaf(sum, q, factors[i]);
    const float e = exp(-0.5f * square);
    const float above = sum * q * fmaf(-0.5f * e, fmaf(t, t, -square), e);  // with what the square has lost
    return x < 0.0f ? above : 1.0f - above;
}
template <typename W> __device__ W gelu_scale(W x) {
    return logistic<W>(x * W(1.5957691216057308) * (W(1) + W(0.044715) * x * x));
}
"""
)


def _map(name, formula):
    fused = elementwise(name, "T a", "T out", f"W x = a; out = T({formula});", _FUNCTIONS)
    launched = fused.launched

    @waits_by(fused.waits)
    def function(a):
        found = launched((a,))
        if found is not None:
            return found
        return fused(a) if a.dtype.kind in "fV" else getattr(numpy_fallback, name)(a)

    return function


def _gradient(name, formula):
    fused = elementwise(name, "T grad, T a", "T out", f"W g = grad, x = a; out = T({formula});", _FUNCTIONS)
    launched = fused.launched

    @waits_by(lambda grad, a, over=False: fused.waits(grad, a))
    def function(grad, a, over=False):
        found = launched((grad, a))
        if found is not None:
            return found
        return fused(grad, a) if a.dtype.kind in "fV" else getattr(numpy_fallback, name)(grad, a)

    return function


sigmoid = _map("sigmoid", "logistic<W>(x)")
silu = _map("silu", "x * logistic<W>(x)")
mish = _map("mish", "x * tanh_of_softplus<W>(x)")
gelu_exact = _map("gelu", "x * normal(x)")
gelu_tanh = _map("gelu_tanh", "x * gelu_scale<W>(x)")

_S = "logistic<W>(x)"
silu_backward = _gradient("silu_backward", f"g * {_S} * (W(1) + x * (W(1) - {_S}))")
mish_backward = _gradient(
    "mish_backward",
    f"g * (tanh_of_softplus<W>(x) + x * {_S} * (W(1) - tanh_of_softplus<W>(x) * tanh_of_softplus<W>(x)))",
)
gelu_backward = _gradient("gelu_backward", "g * (normal(x) + x * exp(-x * x * W(0.5)) * W(0.3989422804014327))")
# Beyond 30 the scale is 0 or 1, and the square of x could overflow.
gelu_tanh_backward = _gradient(
    "gelu_tanh_backward",
    "(x > W(30) ? g : x < W(-30) ? g * W(0) : g * (gelu_scale<W>(x) + x * gelu_scale<W>(x) * (W(1) - gelu_scale<W>(x))"
    " * W(1.5957691216057308) * (W(1) + W(0.134145) * x * x)))",
)
tanh_backward = _gradient("tanh_backward", "g * (W(1) - x * x)")
sigmoid_backward = _gradient("sigmoid_backward", "g * (W(1) - x) * x")
threshold_backward = _gradient("threshold_backward", "x <= W(0) ? W(0) : g")


@waits_by(lambda a, approximate="none": (gelu_tanh if approximate == "tanh" else gelu_exact).waits(a))
def gelu(a, approximate="none"):
    """Return a * Phi(a) with the normal distribution function Phi, or its approximation with "tanh"."""
    return (gelu_tanh if approximate == "tanh" else gelu_exact)(a)
