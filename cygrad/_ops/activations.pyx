"""Nonlinearities of neural networks that PyTorch has in nn.functional, dropout, one-hot codes.

All but `one_hot` keep the shape and save their input. With `inplace` they overwrite it, and return it.
"""

import math

import numpy as np

from cygrad._core.dtypes cimport FLOATING
from cygrad._core.opdef cimport (
    ELEMENTWISE, FUNCTION_ONLY, IN0, METHOD_ONLY, NONDIFF, OpDef, OpNode, op, variant)
from cygrad._core.opdef import publish
from cygrad._core.record cimport apply1_args, record1
from cygrad._core.tensor cimport Tensor, dtype_of, wrap
from cygrad._core import messages
from cygrad._kernels import elementwise
from cygrad._kernels import nn
from cygrad._ops.arguments cimport integer, require
from cygrad._ops.arithmetic cimport add, mul, neg, sub
from cygrad._ops.pointwise cimport erf, exp, sigmoid, square, tanh
from cygrad._ops.random cimport keep_mask
from cygrad._ops.selection cimport where

cdef unsigned int ELSEWHERE = FUNCTION_ONLY | METHOD_ONLY    # neither: found in nn.functional
cdef unsigned int FLAGS = ELEMENTWISE | ELSEWHERE
cdef double SQRT_HALF = math.sqrt(0.5)
cdef double INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
cdef double TANH_SCALE = math.sqrt(2 / math.pi)
cdef double TANH_CUBIC = 0.044715


cdef Tensor applied(OpDef op, OpDef inplace_op, object input, tuple args, bint inplace, str kernel):
    """The op on a floating-point tensor; in place it is another row, because PyTorch names its node otherwise."""
    cdef Tensor t = require(input, op.name)
    if dtype_of(t).category != FLOATING:
        raise messages.not_implemented_for(kernel, dtype_of(t))
    if inplace:
        return apply1_args(inplace_op, t, args, t)
    return apply1_args(op, t, args, None)


cdef double real(object value, str function, str name, int position) except? -1:
    if isinstance(value, (int, float)) or isinstance(value, Tensor) and not (<Tensor>value).array.ndim:
        return float(value)
    raise messages.wrong_type(function, name, position, "Number", value)


# -- leaky_relu --------------------------------------------------------------------------------------------

def leaky_relu_array(a, slope):
    """a where positive, else slope * a."""
    with np.errstate(all="ignore"):
        return np.where(a > 0, a, a * a.dtype.type(slope))


cdef object leaky_relu_rule(OpNode n, object g):
    return where(n.saved(0) > 0, g, mul(g, n.args[0]))

cdef OpDef LEAKY_RELU = op("leaky_relu", leaky_relu_rule).row(saves=IN0, flags=FLAGS, kernel=leaky_relu_array,
                           inputs="self", attributes="negative_slope")
cdef OpDef LEAKY_RELU_INPLACE = variant(LEAKY_RELU, "LeakyReluBackward1")

def leaky_relu(input, negative_slope=0.01, inplace=False):
    """`input` where positive, else `negative_slope * input`. Gradient: g, or g * negative_slope.

    >>> import cygrad
    >>> cygrad.nn.functional.leaky_relu(cygrad.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    slope = real(negative_slope, "leaky_relu", "negative_slope", 2)
    return applied(LEAKY_RELU, LEAKY_RELU_INPLACE, input, (slope,), inplace, "leaky_relu_cpu")


# -- elu ---------------------------------------------------------------------------------------------------

def elu_array(a, alpha):
    """a where positive, else alpha * (exp(a) - 1)."""
    with np.errstate(all="ignore"):
        return np.where(a <= 0, np.expm1(a) * a.dtype.type(alpha), a)


cdef object elu_rule(OpNode n, object g):
    x = n.saved(0)
    # no exp of large numbers, whose infinity would turn the zero it is masked by into nan in higher gradients
    below = where(x <= 0, x, 0.0)
    return where(x <= 0, mul(g, mul(exp(below), n.args[0])), g)

cdef OpDef ELU = op("elu", elu_rule).row(saves=IN0, flags=FLAGS, kernel=elu_array, inputs="self", attributes="alpha")
cdef OpDef ELU_INPLACE = variant(ELU, "EluBackward1")

def elu(input, alpha=1.0, inplace=False):
    """`input` where positive, else `alpha * (exp(input) - 1)`. Gradient: g, or g * alpha * exp(input).

    >>> import cygrad
    >>> cygrad.nn.functional.elu(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return applied(ELU, ELU_INPLACE, input, (real(alpha, "elu", "alpha", 2),), inplace, "elu_cpu")


# -- gelu --------------------------------------------------------------------------------------------------

def gelu_array(a, approximate):
    """a times the normal distribution function at a."""
    with np.errstate(all="ignore"):
        if approximate == "tanh":
            inner = a * a.dtype.type(TANH_SCALE) * (1 + a.dtype.type(TANH_CUBIC) * a * a)
            return np.asarray(0.5 * a * (1 + np.tanh(inner)), a.dtype)
        return np.asarray(0.5 * a * (1 + elementwise.erf(np.asarray(a * a.dtype.type(SQRT_HALF)))), a.dtype)


cdef object gelu_rule(OpNode n, object g):
    x = n.saved(0)
    if n.args[0] == "tanh":
        t = tanh(mul(x, mul(add(mul(square(x), TANH_CUBIC), 1), TANH_SCALE)))
        slope = mul(add(mul(square(x), 3 * TANH_CUBIC), 1), TANH_SCALE)
        return mul(g, mul(add(add(t, 1), mul(mul(x, slope), sub(1, square(t)))), 0.5))
    density = mul(exp(mul(square(x), -0.5)), INV_SQRT_2PI)
    return mul(g, add(mul(add(erf(mul(x, SQRT_HALF)), 1), 0.5), mul(x, density)))

cdef OpDef GELU = op("gelu", gelu_rule).row(saves=IN0, flags=FLAGS, kernel=gelu_array, inputs="self",
                     attributes="approximate")

def gelu(input, *, approximate="none"):
    """`input` times the probability that a standard normal number is smaller.

    `approximate="tanh"` computes that probability by a formula with tanh. Gradient: g * (P(x) + x * p(x)).
    Raises RuntimeError for another `approximate`.

    >>> import cygrad
    >>> cygrad.nn.functional.gelu(cygrad.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return applied(GELU, GELU, input, (approximate,), False, "GeluKernelImpl")


# -- silu --------------------------------------------------------------------------------------------------

def silu_array(a):
    """a times its logistic function."""
    with np.errstate(all="ignore"):
        return np.asarray(a * nn.sigmoid(a))


cdef object silu_rule(OpNode n, object g):
    x = n.saved(0)
    s = sigmoid(x)
    return mul(g, mul(s, add(mul(x, sub(1, s)), 1)))

cdef OpDef SILU = op("silu", silu_rule).row(saves=IN0, flags=FLAGS, kernel=silu_array, inputs="self")

def silu(input, inplace=False):
    """`input * sigmoid(input)`. With s = sigmoid(input), gradient: g * s * (1 + input * (1 - s)).

    >>> import cygrad
    >>> cygrad.nn.functional.silu(cygrad.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return applied(SILU, SILU, input, (), inplace, "silu_cpu")


# -- softplus, logsigmoid ----------------------------------------------------------------------------------

def softplus_array(a, beta, threshold):
    """log(1 + exp(beta * a)) / beta, where beta * a is not so large that it is a."""
    with np.errstate(all="ignore"):
        scaled = np.asarray(a * a.dtype.type(beta))
        return np.where(scaled > threshold, a, np.log1p(np.exp(scaled)) / a.dtype.type(beta))


cdef object softplus_rule(OpNode n, object g):
    beta, threshold = n.args
    scaled = mul(n.saved(0), beta)
    return where(scaled > threshold, g, mul(g, sigmoid(scaled)))

cdef OpDef SOFTPLUS = op("softplus", softplus_rule).row(saves=IN0, flags=FLAGS, kernel=softplus_array, inputs="self",
                         attributes="beta threshold")

def softplus(input, beta=1, threshold=20):
    """`log(1 + exp(beta * input)) / beta`, or `input` where beta * input exceeds `threshold`.

    Gradient: g * sigmoid(beta * input), or g.

    >>> import cygrad
    >>> cygrad.nn.functional.softplus(cygrad.tensor([-1.0, 0.0, 100.0]))
    tensor([  0.3133,   0.6931, 100.0000])
    """
    args = real(beta, "softplus", "beta", 2), real(threshold, "softplus", "threshold", 3)
    return applied(SOFTPLUS, SOFTPLUS, input, args, False, "softplus_cpu")


def logsigmoid_array(a):
    """log(1 / (1 + exp(-a))), exact for large negative a as well."""
    with np.errstate(all="ignore"):
        return np.asarray(np.minimum(a, 0) - np.log1p(np.exp(-np.abs(a))))


cdef object logsigmoid_rule(OpNode n, object g):
    return mul(g, sigmoid(neg(n.saved(0))))

cdef OpDef LOGSIGMOID = op("logsigmoid", logsigmoid_rule).row(saves=IN0, flags=FLAGS, kernel=logsigmoid_array,
                           node="LogSigmoidBackward0", inputs="self")

cpdef Tensor logsigmoid(object input):
    """The logarithm of `sigmoid(input)`. Gradient: g * sigmoid(-input).

    >>> import cygrad
    >>> cygrad.nn.functional.logsigmoid(cygrad.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    return applied(LOGSIGMOID, LOGSIGMOID, input, (), False, "log_sigmoid_cpu")


# -- dropout -----------------------------------------------------------------------------------------------

def dropout(input, p, train):
    """In training, sets each element to zero with probability p and divides the others by 1 - p; else does nothing.

    Gradient: g times what the element was multiplied by. Raises ValueError for a p outside [0, 1].
    """
    if not isinstance(train, bool):
        raise messages.wrong_type("dropout", "train", 3, "bool", train)
    return dropped(require(input, "dropout"), p, train, False)


def dropout_(input, p, train):
    """`dropout`, which overwrites `input` and returns it."""
    return dropped(require(input, "dropout"), p, train, True)


cpdef Tensor dropped(Tensor t, object p, bint training, bint inplace):
    cdef double probability = float(p)
    if not 0 <= probability <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or probability == 0:
        return t
    if dtype_of(t).category < FLOATING:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype_of(t).type_name}\n"
                           "  dropout scales what it keeps: convert integers with .float() first")
    if probability == 1:
        factors = np.zeros((), t.array.dtype)
    else:
        factors = keep_mask(t.array.shape, 1 - probability, None) * t.array.dtype.type(1 / (1 - probability))
    return mul(t, wrap(np.asarray(factors)), t if inplace else None)


# -- one_hot -----------------------------------------------------------------------------------------------

def one_hot_array(a, num_classes):
    """int64, of one dimension more: 1 at the class, 0 elsewhere."""
    return np.asarray(a[..., None] == np.arange(num_classes)).astype(np.int64)


cdef OpDef ONE_HOT = op("one_hot").row(flags=NONDIFF | ELSEWHERE, kernel=one_hot_array, inputs="self")

def one_hot(tensor, num_classes=-1):
    """For each class index in `tensor` (int64) a row of zeros with a one at that place; one dimension more.

    There are as many classes as the largest index says, unless `num_classes` does.
    Raises RuntimeError for negative indices, for those beyond `num_classes`, and for other types.

    >>> import cygrad
    >>> cygrad.nn.functional.one_hot(cygrad.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    cdef Tensor t = require(tensor, "one_hot")
    cdef Py_ssize_t classes = integer(num_classes, "one_hot", "num_classes", 2)
    if dtype_of(t).name != "int64":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.\n"
                           f"  this one is {dtype_of(t)}: convert it with .long()")
    if t.array.size == 0:
        if classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    else:
        if t.array.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if classes == -1:
            classes = t.array.max() + 1
        elif t.array.max() >= classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    return record1(ONE_HOT, one_hot_array(t.array, classes), t, (classes,))


functions = publish(globals()) | {"dropout": dropout, "dropout_": dropout_}
