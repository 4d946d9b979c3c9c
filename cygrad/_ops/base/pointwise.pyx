"""Elementwise functions of one tensor.

All keep the shape and save the tensors that their row declares. Where a formula needs floating-point input, integers are
first converted to the default dtype. Gradients of complex functions follow PyTorch: the conjugate of the derivative.
"""

import math

from cygrad._core.types.dtypes cimport BOOLEAN, COMPLEX, dtype
from cygrad._core.graph.opdef cimport (
    ELEMENTWISE, FLOAT_RESULT, IN0, IN1, INPLACE, LINEAR, ONE_PASS, OUT0, PRIVATE, SELECTS, OpDef, OpNode, op, variant)
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.record cimport apply1, tensor_argument, write_into
from cygrad._core.graph.spent_gradients cimport spend
from cygrad._core.graph.tensor cimport Tensor, dtype_of, wrap
from cygrad._kernels.cpu.base import elementwise as kernels
from cygrad._kernels.array_ops cimport typenum_of, zeros_beside
from cygrad._kernels.cpu.elementwise import numpy_pointwise
from cygrad._kernels.cpu.nn import activations
cimport cygrad._ops.base.arguments as arguments
from cygrad._ops.base.arithmetic cimport add, div, mul, neg, pow, spend_div, spend_mul, sub
from cygrad._ops.base.comparisons cimport where
from cygrad._core.errors import messages

cdef unsigned int SMOOTH = ELEMENTWISE | INPLACE | FLOAT_RESULT     # the flags of most rows here
cdef double LN2 = math.log(2)
cdef double LN10 = math.log(10)


# -- helpers for rules -------------------------------------------------------------------------------------

cpdef Tensor conjugate(Tensor t):
    return t if dtype_of(t).category != COMPLEX else conj_physical(t)


cdef Tensor zeros_like(Tensor t):
    return wrap(zeros_beside(t.array, t.array.shape, typenum_of(t.array)))


cdef object zero_rule(OpNode n, object g):
    """The rule of step functions: the gradient is 0 wherever it exists."""
    return zeros_like(<Tensor>g)


# -- exponential and logarithm -----------------------------------------------------------------------------

cdef object exp_rule(OpNode n, object g):
    return spend_mul(g, conjugate(n.saved_result()))

cdef OpDef EXP = op("exp", exp_rule).row(saves=OUT0, flags=SMOOTH | ONE_PASS, ufunc="exp", inputs="self",
    autocast_gpu="float32", casts_itself=True)

cpdef Tensor exp(object input, Tensor out=None):
    """`e ** input`, elementwise. Saves the result r. Gradient: g * r.

    >>> import cygrad
    >>> cygrad.exp(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return apply1(EXP, input, out)


cdef object exp2_rule(OpNode n, object g):
    return mul(spend_mul(g, conjugate(n.saved_result())), LN2)

cdef OpDef EXP2 = op("exp2", exp2_rule).row(saves=OUT0, flags=SMOOTH, kernel=numpy_pointwise.exp2, inputs="self")

cpdef Tensor exp2(object input, Tensor out=None):
    """`2 ** input`, elementwise. Saves the result r. Gradient: g * r * ln 2.

    >>> import cygrad
    >>> cygrad.exp2(cygrad.tensor([0.0, 3.0, 4.0]))
    tensor([ 1.,  8., 16.])
    """
    return apply1(EXP2, input, out)


cdef object expm1_rule(OpNode n, object g):
    return spend_mul(g, add(conjugate(n.saved_result()), 1))

cdef OpDef EXPM1 = op("expm1", expm1_rule).row(saves=OUT0, flags=SMOOTH | ONE_PASS, ufunc="expm1", inputs="self",
    autocast_gpu="float32", casts_itself=True)

cpdef Tensor expm1(object input, Tensor out=None):
    """`e ** input - 1`, elementwise, accurate near 0. Saves the result r. Gradient: g * (r + 1).

    >>> import cygrad
    >>> cygrad.expm1(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """
    return apply1(EXPM1, input, out)


cdef object log_rule(OpNode n, object g):
    return spend_div(g, conjugate(n.saved(0)))

cdef OpDef LOG = op("log", log_rule).row(saves=IN0, flags=SMOOTH | ONE_PASS, ufunc="log", inputs="self",
    autocast_gpu="float32", casts_itself=True)

cpdef Tensor log(object input, Tensor out=None):
    """Natural logarithm, elementwise: -inf at 0, NaN below. Saves `input`. Gradient: g / input.

    >>> import cygrad
    >>> cygrad.log(cygrad.tensor([1.0, 2.0]))
    tensor([0.0000, 0.6931])
    """
    return apply1(LOG, input, out)


cdef object log2_rule(OpNode n, object g):
    return spend_div(g, mul(conjugate(n.saved(0)), LN2))

cdef OpDef LOG2 = op("log2", log2_rule).row(saves=IN0, flags=SMOOTH | ONE_PASS, ufunc="log2", inputs="self",
    autocast_gpu="float32", casts_itself=True)

cpdef Tensor log2(object input, Tensor out=None):
    """Logarithm to base 2, elementwise. Saves `input`. Gradient: g / (input * ln 2).

    >>> import cygrad
    >>> cygrad.log2(cygrad.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    return apply1(LOG2, input, out)


cdef object log10_rule(OpNode n, object g):
    return spend_div(g, mul(conjugate(n.saved(0)), LN10))

cdef OpDef LOG10 = op("log10", log10_rule).row(
    saves=IN0, flags=SMOOTH | ONE_PASS, kernel=numpy_pointwise.log10, inputs="self",
    autocast_gpu="float32", casts_itself=True)

cpdef Tensor log10(object input, Tensor out=None):
    """Logarithm to base 10, elementwise. Saves `input`. Gradient: g / (input * ln 10).

    >>> import cygrad
    >>> cygrad.log10(cygrad.tensor([1.0, 100.0]))
    tensor([0., 2.])
    """
    return apply1(LOG10, input, out)


cdef object log1p_rule(OpNode n, object g):
    return spend_div(g, add(conjugate(n.saved(0)), 1))

cdef OpDef LOG1P = op("log1p", log1p_rule).row(saves=IN0, flags=SMOOTH | ONE_PASS, ufunc="log1p", inputs="self",
    autocast_gpu="float32", casts_itself=True)

cpdef Tensor log1p(object input, Tensor out=None):
    """`log(1 + input)`, elementwise, accurate near 0. Saves `input`. Gradient: g / (input + 1).

    >>> import cygrad
    >>> cygrad.log1p(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """
    return apply1(LOG1P, input, out)


# -- powers and roots --------------------------------------------------------------------------------------

cdef object sqrt_rule(OpNode n, object g):
    return spend_div(g, mul(conjugate(n.saved_result()), 2))

cdef OpDef SQRT = op("sqrt", sqrt_rule).row(saves=OUT0, flags=SMOOTH | ONE_PASS, ufunc="sqrt", inputs="self")

cpdef Tensor sqrt(object input, Tensor out=None):
    """Square root, elementwise: NaN below 0. Saves the result r. Gradient: g / (2 * r), which is inf at 0.

    >>> import cygrad
    >>> cygrad.sqrt(cygrad.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """
    return apply1(SQRT, input, out)


cdef object rsqrt_rule(OpNode n, object g):
    return mul(spend_mul(g, pow(conjugate(n.saved_result()), 3)), -0.5)

cdef OpDef RSQRT = op("rsqrt", rsqrt_rule).row(saves=OUT0, flags=SMOOTH, kernel=kernels.rsqrt, inputs="self",
    autocast_gpu="float32", casts_itself=True)

cpdef Tensor rsqrt(object input, Tensor out=None):
    """`1 / sqrt(input)`, elementwise. Saves the result r. Gradient: -g * r^3 / 2.

    >>> import cygrad
    >>> cygrad.rsqrt(cygrad.tensor([4.0, 0.25]))
    tensor([0.5000, 2.0000])
    """
    return apply1(RSQRT, input, out)


cdef object reciprocal_rule(OpNode n, object g):
    result = conjugate(n.saved_result())
    return neg(spend_mul(g, mul(result, result)))

cdef OpDef RECIPROCAL = op("reciprocal", reciprocal_rule).row(
    saves=OUT0, flags=SMOOTH, ufunc="reciprocal", inputs="self", autocast_gpu="float32", casts_itself=True)

cpdef Tensor reciprocal(object input, Tensor out=None):
    """`1 / input`, elementwise. Saves the result r. Gradient: -g * r^2.

    >>> import cygrad
    >>> cygrad.reciprocal(cygrad.tensor([2.0, -4.0]))
    tensor([ 0.5000, -0.2500])
    """
    return apply1(RECIPROCAL, input, out)


cpdef Tensor square(object input, Tensor out=None):
    """`input ** 2`, elementwise. Saves `input`. Gradient: 2 * g * input.

    >>> import cygrad
    >>> cygrad.square(cygrad.tensor([1.0, -3.0]))
    tensor([1., 9.])
    """
    return pow(input, 2, out)


# -- trigonometric and hyperbolic --------------------------------------------------------------------------

cdef object sin_rule(OpNode n, object g):
    return spend_mul(g, cos(conjugate(n.saved(0))))

cdef OpDef SIN = op("sin", sin_rule).row(saves=IN0, flags=SMOOTH | ONE_PASS, ufunc="sin", inputs="self")

cpdef Tensor sin(object input, Tensor out=None):
    """Sine of `input` in radians, elementwise. Saves `input`. Gradient: g * cos(input).

    >>> import cygrad
    >>> cygrad.sin(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """
    return apply1(SIN, input, out)


cdef object cos_rule(OpNode n, object g):
    return neg(spend_mul(g, sin(conjugate(n.saved(0)))))

cdef OpDef COS = op("cos", cos_rule).row(saves=IN0, flags=SMOOTH, ufunc="cos", inputs="self")

cpdef Tensor cos(object input, Tensor out=None):
    """Cosine of `input` in radians, elementwise. Saves `input`. Gradient: -g * sin(input).

    >>> import cygrad
    >>> cygrad.cos(cygrad.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """
    return apply1(COS, input, out)


cdef object tan_rule(OpNode n, object g):
    return spend_mul(g, add(pow(conjugate(n.saved_result()), 2), 1))

cdef OpDef TAN = op("tan", tan_rule).row(saves=OUT0, flags=SMOOTH, ufunc="tan", inputs="self",
    autocast_gpu="float32", casts_itself=True)

cpdef Tensor tan(object input, Tensor out=None):
    """Tangent of `input` in radians, elementwise. Saves the result r. Gradient: g * (1 + r^2).

    >>> import cygrad
    >>> cygrad.tan(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """
    return apply1(TAN, input, out)


cdef object tanh_rule(OpNode n, object g):
    return tanh_backward(<Tensor>g, n.saved_result())

cdef OpDef TANH = op("tanh", tanh_rule).row(saves=OUT0, flags=SMOOTH | ONE_PASS, ufunc="tanh", inputs="self")

cpdef Tensor tanh(object input, Tensor out=None):
    """Hyperbolic tangent, elementwise. Saves the result r. Gradient: g * (1 - r^2).

    The result is (e^input - e^-input) / (e^input + e^-input).

    >>> import cygrad
    >>> cygrad.tanh(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return apply1(TANH, input, out)


cdef object tanh_backward_rule(OpNode n, object g):
    grad_result = None
    conjugated = conjugate(n.saved(1))
    if n.needs(1):
        grad_result = mul(conjugate(g), mul(mul(n.saved(0), conjugated), -2))
    return tanh_backward(<Tensor>g, conjugated) if n.needs(0) else None, grad_result

cdef OpDef TANH_BACKWARD = op("tanh_backward", tanh_backward_rule).row(
    saves=(IN1, IN0 | IN1), flags=ELEMENTWISE | PRIVATE, kernel=activations.tanh_backward, inputs="grad_output result")

cpdef Tensor tanh_backward(Tensor g, Tensor result):
    """Return g * conj(1 - result^2), the gradient of tanh."""
    return spend(TANH_BACKWARD, g, result)


# -- activations -------------------------------------------------------------------------------------------

cdef object sigmoid_rule(OpNode n, object g):
    return sigmoid_backward(<Tensor>g, n.saved_result())

cdef OpDef SIGMOID = op("sigmoid", sigmoid_rule).row(
    saves=OUT0, flags=SMOOTH | ONE_PASS, kernel=activations.sigmoid, inputs="self",
    spellings={"expit": "special_expit"})

cpdef Tensor sigmoid(object input, Tensor out=None):
    """`1 / (1 + exp(-input))`, elementwise. Saves the result r. Gradient: g * r * (1 - r).

    >>> import cygrad
    >>> cygrad.sigmoid(cygrad.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """
    return apply1(SIGMOID, input, out)


cdef object sigmoid_backward_rule(OpNode n, object g):
    grad_result = None
    conjugated = conjugate(n.saved(1))
    if n.needs(1):
        grad_result = mul(mul(conjugate(g), n.saved(0)), sub(1, mul(conjugated, 2)))
    return sigmoid_backward(<Tensor>g, conjugated) if n.needs(0) else None, grad_result

cdef OpDef SIGMOID_BACKWARD = op("sigmoid_backward", sigmoid_backward_rule).row(
    saves=(IN1, IN0 | IN1), flags=ELEMENTWISE | PRIVATE, kernel=activations.sigmoid_backward,
    inputs="grad_output result")

cpdef Tensor sigmoid_backward(Tensor g, Tensor result):
    """Return g * conj(result * (1 - result)), the gradient of the sigmoid."""
    return spend(SIGMOID_BACKWARD, g, result)


# The functions above save their result, as in PyTorch, and lose their gradient where the result is rounded to 1. Rules
# are built from the forms below, which save the input, so that derivatives of every order have all their digits.

cdef object sigmoid_of_saved_rule(OpNode n, object g):
    x = conjugate(n.saved(0))
    return mul(mul(g, sigmoid_of_saved(x)), sigmoid_of_saved(neg(x)))

cdef OpDef SIGMOID_OF_SAVED = op("sigmoid_of_saved", sigmoid_of_saved_rule).row(
    saves=IN0, flags=ELEMENTWISE | PRIVATE, kernel=activations.sigmoid, inputs="self")

cpdef Tensor sigmoid_of_saved(Tensor t):
    """Return the sigmoid of an input that is saved. Gradient: g * sigmoid(input) * sigmoid(-input)."""
    return apply1(SIGMOID_OF_SAVED, t, None)


cdef object tanh_of_saved_rule(OpNode n, object g):
    twice = mul(conjugate(n.saved(0)), 2)
    return mul(mul(mul(g, 4), sigmoid_of_saved(twice)), sigmoid_of_saved(neg(twice)))

cdef OpDef TANH_OF_SAVED = op("tanh_of_saved", tanh_of_saved_rule).row(
    saves=IN0, flags=ELEMENTWISE | PRIVATE, ufunc="tanh", inputs="self")

cpdef Tensor tanh_of_saved(Tensor t):
    """Return the tanh of an input that is saved. Gradient: 4 * g * sigmoid(2 * input) * sigmoid(-2 * input)."""
    return apply1(TANH_OF_SAVED, t, None)


cdef object relu_rule(OpNode n, object g):
    return threshold_backward(<Tensor>g, n.saved_result())

cdef OpDef RELU = op("relu", relu_rule).row(
    saves=OUT0, flags=ELEMENTWISE | INPLACE | ONE_PASS | SELECTS, kernel=kernels.relu, inputs="self",
    inplace_argument=True)

cpdef Tensor relu(object input, Tensor out=None):
    """`max(input, 0)`, elementwise. Saves the result. Gradient: g where the input is positive, else 0.

    Raises RuntimeError for boolean and complex tensors.

    >>> import cygrad
    >>> cygrad.relu(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    cdef dtype kind = dtype_of(tensor_argument(RELU, input, "input", 1))
    if kind.category == BOOLEAN:
        raise RuntimeError("Boolean inputs not supported for relu")
    if kind.category == COMPLEX:
        raise NotImplementedError("clamp is not supported for complex types")
    return apply1(RELU, input, out)


cdef object threshold_backward_rule(OpNode n, object g):
    return (threshold_backward(<Tensor>g, n.saved(1)) if n.needs(0) else None,
            zeros_like(<Tensor>g) if n.needs(1) else None)     # zeros instead of None: the input was used

cdef OpDef THRESHOLD_BACKWARD = op("threshold_backward", threshold_backward_rule).row(
    saves=(IN1, 0), flags=LINEAR | ELEMENTWISE | PRIVATE, kernel=activations.threshold_backward,
    inputs="grad_output self")

cpdef Tensor threshold_backward(Tensor g, Tensor result):
    """Return g where `result` is positive, else 0: the gradient of relu."""
    return spend(THRESHOLD_BACKWARD, g, result)


cdef object erf_rule(OpNode n, object g):
    return mul(spend_mul(g, exp(neg(pow(n.saved(0), 2)))), 2 / math.sqrt(math.pi))

cdef OpDef ERF = op("erf", erf_rule).row(saves=IN0, flags=SMOOTH, kernel=kernels.erf, inputs="self")

cpdef Tensor erf(object input, Tensor out=None):
    """The error function, elementwise. Saves `input`. Gradient: g * 2 / sqrt(pi) * exp(-input^2).

    It is 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `input`.

    Raises NotImplementedError for complex tensors.

    >>> import cygrad
    >>> cygrad.erf(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    cdef dtype kind = dtype_of(tensor_argument(ERF, input, "input", 1))
    if kind.category == COMPLEX:
        raise messages.not_implemented_for("erf_vml_cpu", kind)
    return apply1(ERF, input, out)


# -- absolute value and sign -------------------------------------------------------------------------------

cdef object abs_rule(OpNode n, object g):
    return spend_mul(g, sgn(n.saved(0)))

cdef OpDef ABS = op("abs", abs_rule).row(
    saves=IN0, flags=ELEMENTWISE | INPLACE | ONE_PASS, ufunc="absolute", inputs="self", aliases="absolute",
    numpy="fabs", out_dtype="found")

cdef OpDef ABS_OF_COMPLEX = variant(ABS, "AbsBackward0", 0, "absolute")

cpdef Tensor abs(object input, Tensor out=None):
    """Absolute value, elementwise; real for complex tensors. Saves `input`. Gradient: g * sgn(input), 0 at 0.

    For complex tensors it is sqrt(real^2 + imag^2).

    Raises NotImplementedError for boolean tensors.

    >>> import cygrad
    >>> cygrad.abs(cygrad.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """
    cdef dtype kind = dtype_of(tensor_argument(ABS, input, "input", 1))
    if kind.category == BOOLEAN:
        raise messages.not_implemented_for("abs_cpu", kind)
    if kind.category == COMPLEX and out is not None:    # `out` may have any dtype that the real result can be cast to
        return write_into(ABS_OF_COMPLEX, out, apply1(ABS, wrap((<Tensor>input).array), None).array, (input,), None)
    return apply1(ABS, input, out)


cdef OpDef SIGN = op("sign", zero_rule).row(flags=ELEMENTWISE | INPLACE, kernel=kernels.sign, inputs="self",
    out_dtype="found")

cpdef Tensor sign(object input, Tensor out=None):
    """-1, 0 or 1 according to the sign, elementwise; 0 for NaN. Saves nothing. Gradient: 0.

    Raises NotImplementedError for complex tensors; use `sgn` for these.

    >>> import cygrad
    >>> cygrad.sign(cygrad.tensor([-3.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """
    if dtype_of(tensor_argument(SIGN, input, "input", 1)).category == COMPLEX:
        raise NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex numbers. "
                                  "Please use torch.sgn instead.")
    return apply1(SIGN, input, out)


cdef object sgn_rule(OpNode n, object g):
    if dtype_of(<Tensor>g).category != COMPLEX:
        return zeros_like(<Tensor>g)
    z, result = n.saved(0), n.saved_result()
    size = abs(z)
    # the component of g along z only changes the magnitude of z
    along = real_part(mul(conj_physical(result), g))
    across = div(sub(g, mul(result, along)), where(size == 0, 1.0, size))
    return where(size == 0, 0.0, across)

cdef OpDef SGN = op("sgn", sgn_rule).row(
    saves=IN0 | OUT0, flags=ELEMENTWISE | INPLACE, kernel=kernels.sign, inputs="self", out_dtype="found")

cpdef Tensor sgn(object input, Tensor out=None):
    """The sign, elementwise; for complex tensors `input / abs(input)`, and 0 at 0.

    Saves `input` and the result r. Gradient: 0 for real tensors, (g - r * Re(conj(r) * g)) / abs(input) for complex
    ones, and 0 at 0.

    >>> import cygrad
    >>> cygrad.sgn(cygrad.tensor([-3.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """
    return apply1(SGN, input, out)


cdef object conj_physical_rule(OpNode n, object g):
    return conj_physical(g)

cdef OpDef CONJ_PHYSICAL = op("conj_physical", conj_physical_rule).row(
    flags=ELEMENTWISE | INPLACE, ufunc="conjugate", inputs="self", out_dtype="found")

cpdef Tensor conj_physical(object input, Tensor out=None):
    """Complex conjugate, elementwise, as a copy; a real tensor is returned as it is.

    Saves nothing. Gradient: the conjugate of g.

    >>> import cygrad
    >>> cygrad.conj_physical(cygrad.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    cdef Tensor t = tensor_argument(CONJ_PHYSICAL, input, "input", 1)
    if dtype_of(t).category != COMPLEX and (out is None or out is t):
        return t
    return apply1(CONJ_PHYSICAL, t, out)


cdef object real_part_rule(OpNode n, object g):
    return g

cdef OpDef REAL_PART = op("real_part", real_part_rule).row(
    flags=ELEMENTWISE | PRIVATE, kernel=kernels.copy_of_real, inputs="self")

cpdef Tensor real_part(Tensor t):
    """Return a copy of the real part; a real tensor is returned as it is. Gradient: g."""
    return apply1(REAL_PART, t, None) if dtype_of(t).category == COMPLEX else t


cpdef object positive(object input):
    """`+input`: the tensor itself. Raises RuntimeError for a boolean tensor.

    >>> import cygrad
    >>> cygrad.positive(cygrad.tensor([1.0, -2.0]))
    tensor([ 1., -2.])
    """
    if dtype_of(arguments.require(input, "positive")).category == BOOLEAN:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def _check_abs_in_place(t):
    """Raise if `abs_` would write real numbers into a complex tensor, which `out=` may do."""
    if t.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors.")


composite = {"square": INPLACE, "positive": 0}
in_place_checks = {"abs": _check_abs_in_place}
functions = publish(globals())
