"""Outer and inner products of vectors; all but `vecdot` are composed of other ops."""

from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN0, IN1, declare, facts, publish
from cygrad._core.graph.record import apply_n
from cygrad._kernels.cpu.nn import distances as kernels
from cygrad._ops.base.arguments import broadcast_shape, dim_argument, require
from cygrad._ops.base.arithmetic import mul
from cygrad._ops.base.batching.rules import shifting
from cygrad._ops.base.pointwise import conjugate
from cygrad._ops.base.products import as_matrix, dot, mm
from cygrad._ops.base.views import expand, reshape, t, unsqueeze
from cygrad._ops.common.out_argument import given
from cygrad._ops.linalg.common import LINALG, check_inexact, check_same_dtype


@facts(spellings={"ger": "ger"})
def outer(input, vec2, *, out=None):
    """Compute all products of an element of `input` (n) and one of `vec2` (m), of shape (n, m).

    out[i, j] = input[i] * vec2[j].

    Raises RuntimeError unless both are vectors.

    >>> import cygrad
    >>> cygrad.outer(cygrad.tensor([1, 2]), cygrad.tensor([3, 4, 5]))
    tensor([[ 3,  4,  5],
            [ 6,  8, 10]])
    """
    require(input, "outer")
    require(vec2, "outer", "vec2", 2)
    for value, name in ((input, "self"), (vec2, "vec2")):
        if value.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {value.ndim}-D")
    return mul(unsqueeze(input, 1), vec2, out=out)


def ger(input, vec2, *, out=None):
    """Old name of `outer`.

    >>> import cygrad
    >>> cygrad.ger(cygrad.tensor([1, 2]), cygrad.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    return outer(input, vec2, out=out)


@facts(out_dtype="output")
def inner(input, other, *, out=None):
    """Sum the products along the last dimension of both, with shape input.shape[:-1] + other.shape[:-1].

    out[..., i, j] = sum over k of input[..., i, k] * other[..., j, k].

    A 0-dim tensor multiplies the other. Raises RuntimeError if the last lengths differ.

    >>> import cygrad
    >>> cygrad.inner(cygrad.tensor([1.0, 2.0]), cygrad.tensor([[3.0, 4.0], [5.0, 6.0]]))
    tensor([11., 17.])
    """
    require(input, "inner")
    require(other, "inner", "other", 2)
    left, right = input.shape, other.shape
    if not left or not right:
        return mul(input, other, out=out)
    if left[-1] != right[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(left)} and {list(right)}"
        )
    result = reshape(mm(as_matrix(input), t(as_matrix(other))), (*left[:-1], *right[:-1]))
    return given("inner", result, out, input, other)


@facts(autocast_gpu="widest", out_dtype="result")
def vdot(input, other, *, out=None):
    """Compute the inner product of two vectors, the first of which is conjugated.

    The result is sum over i of conj(input[i]) * other[i].

    >>> import cygrad
    >>> cygrad.vdot(cygrad.tensor([1j, 2]), cygrad.tensor([1j, 1]))
    tensor(3.+0.j)
    """
    a, b = require(input, "vdot"), require(other, "vdot", "other", 2)
    if a.dim() != 1 or b.dim() != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.dim()}D and {b.dim()}D tensors")
    product = dot(conjugate(a), b)
    return given("vdot", product, out, input, other)


def vecdot_rule(n, g):
    column = unsqueeze(g, n.args[0])
    return mul(conjugate(column), n.saved(1)) if n.needs(0) else None, mul(column, n.saved(0)) if n.needs(1) else None


VECDOT = declare(
    "linalg_vecdot",
    vecdot_rule,
    saves=(IN1, IN0),
    flags=LINALG,
    kernel=kernels.vecdot,
    inputs="x y",
    attributes="dim",
    autocast="lower",
    autocast_gpu="lower",
    out_dtype="linalg.vecdot: Expected out of dtype{result} but found {out}",
    batching=shifting("d"),
)


def linalg_vecdot(x, y, *, dim=-1, out=None):
    """Compute inner products of vectors along a dimension, the first conjugated: sum(conj(x) * y); broadcasts.

    Saves each if the other needs a gradient: conj(g) * y, and g * x. Raises RuntimeError for integers and for
    different dtypes.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cygrad.linalg.vecdot(x, x)
    tensor([ 5., 25.])
    """
    a, b = require(x, "linalg_vecdot", "x"), require(y, "linalg_vecdot", "y", 2)
    check_inexact(a, "linalg.vecdot")
    check_same_dtype(a, b, "linalg.vecdot", "xy")
    shape, other = array_of(a).shape, array_of(b).shape
    shape = shape if shape == other else broadcast_shape(shape, other)
    dim = dim_argument(dim, len(shape), "linalg_vecdot", "dim", 3)
    a, b = (t if array_of(t).shape == shape else expand(t, shape) for t in (a, b))
    if not shape:
        a, b = unsqueeze(a, 0), unsqueeze(b, 0)
    return apply_n(VECDOT, (a, b), (dim,), out)


composite = {"outer": 0, "ger": 0, "inner": 0, "vdot": 0}
functions = publish(globals())
