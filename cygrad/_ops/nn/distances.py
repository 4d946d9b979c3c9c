"""Pairwise distances, cross products, and clipping of norms (renorm)."""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts, in_slices
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import ELSEWHERE, FUNCTION_ONLY, IN0, IN1, INPLACE, LINEAR, OUT0, declare, facts, publish
from cygrad._core.graph.record import apply_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.cpu.nn import distances as kernels
from cygrad._kernels.device.cupy_library import is_meta
from cygrad._ops.base.arguments import broadcast_shape, dim_argument, require, wrap_dim
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.batching.rules import regroup, rule, shifting
from cygrad._ops.base.checks.common import require_broadcast
from cygrad._ops.base.copying import zeros_of
from cygrad._ops.base.pointwise import abs as absolute
from cygrad._ops.base.pointwise import conj_physical, sign
from cygrad._ops.base.products import matmul
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.slicing import narrow
from cygrad._ops.base.views import transpose, unsqueeze
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.elementwise.logic import isfinite
from cygrad._ops.elementwise.selection import where
from cygrad._ops.indexing.gathering import index_add, index_select
from cygrad._ops.indexing.masked_fill import masked_fill
from cygrad._ops.linalg.vector_norms import linalg_vector_norm
from cygrad._ops.shape.diagonals import triu_indices

FEW_DIFFERENCES = 1 << 13  # which are faster than two products of matrices, and more accurate

# -- pairwise distances --


@in_parts()
def cdist_rule(n, g):
    x, y, distance = n.saved(0), n.saved(1), n.saved_result()
    p = n.args[0]
    if p == 0 or not g.numel():
        return zeros_of(x), zeros_of(y)
    if p == 2:
        weight = where(distance == 0, 0.0, div(g, _nonzero(distance)))
        if x.numel() * y.shape[-2] <= FEW_DIFFERENCES:
            pull = mul(unsqueeze(weight, -1), sub(unsqueeze(x, -2), unsqueeze(y, -3)))
            return total(pull, -2) if n.needs(0) else None, neg(total(pull, -3)) if n.needs(1) else None
        center = narrow(x.detach(), -2, 0, 1)  # else points far from 0 and near each other would lose all digits
        center = where(isfinite(center), center, 0.0)
        x, y = sub(x, center), sub(y, center)
        return _pull(weight, x, y) if n.needs(0) else None, _pull(_turned(weight), y, x) if n.needs(1) else None
    pull = _pulls(g, sub(unsqueeze(x, -2), unsqueeze(y, -3)), unsqueeze(distance, -1), p)
    return total(pull, -2) if n.needs(0) else None, neg(total(pull, -3)) if n.needs(1) else None


def _nonzero(t):
    """Replace 0 by 1, so that no derivative there is infinite."""
    return masked_fill(t, t == 0, 1)


def _turned(t):
    return transpose(t, -2, -1)


def _pull(weight, x, y):
    """Return the sum over j of weight[i, j] (x[i] - y[j])."""
    return sub(mul(total(weight, -1, True), x), matmul(weight, y))


def _pulls(g, difference, distance, p):
    """Return g times the derivative of each distance with respect to the coordinates of the first point."""
    size, away = absolute(difference), sign(difference)
    if p == 1:
        share = away
    elif p == float("inf"):
        share = mul(away, size == distance)
    else:
        share = where(difference == 0, 0.0, mul(away, div(_nonzero(size), _nonzero(distance)) ** (p - 1)))
    return mul(unsqueeze(g, -1), share)


CDIST = declare(
    "cdist",
    cdist_rule,
    saves=IN0 | IN1 | OUT0,
    kernel=kernels.cdist,
    inputs="x1 x2",
    attributes="p",
    autocast="float32",
    autocast_gpu="float32",
    in_python=True,
)

_COMPUTE_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Return p-norm distances of the rows of `x1` (..., n, d) to the rows of `x2` (..., m, d), of shape (..., n, m).

    out[i, j] = (sum over k of |x1[i, k] - x2[j, k]|^p)^(1/p).

    With `compute_mode` "use_mm_for_euclid_dist", and in the default mode above 25 rows, Euclidean distances of long
    rows are computed by a matrix product where that loses no digits, which is faster. Saves both and the result.
    Gradient: g times the direction from one point to the other; 0 where they coincide, and for p = 0. Raises
    RuntimeError for incompatible shapes, integers, and a negative p.

    >>> import cygrad
    >>> cygrad.cdist(cygrad.tensor([[0.0, 0.0]]), cygrad.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    x, y = require(x1, "cdist", "x1", 1), require(x2, "cdist", "x2", 2)
    if compute_mode is None:
        compute_mode = _COMPUTE_MODES[0]
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for value, name in ((x, "X1"), (y, "X2")):
        if value.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {value.ndim}D")
    own, other = array_of(x).shape, array_of(y).shape
    if own[-1] != other[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x.shape[-1]} X2: {y.shape[-1]}")
    for value, name in ((x, "X1"), (y, "X2")):
        if not value.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {value.dtype.type_name}")
    if x.dtype is not y.dtype:
        raise RuntimeError(f"expected scalar type {x.dtype.type_name} but found {y.dtype.type_name}")
    if not p >= 0:  # also refuses nan
        raise RuntimeError("cdist only supports non-negative p values")
    broadcast_shape(own[:-2], other[:-2])
    by_product = compute_mode == _COMPUTE_MODES[1] or (
        compute_mode == _COMPUTE_MODES[0] and max(own[-2], other[-2]) > 25
    )
    mode = _COMPUTE_MODES.index(compute_mode)
    return apply_n(CDIST, (x, y), (float(p), by_product), None, (mode or None,))


@rule("cdist")
def _cdist(call):
    ndim = max(t.ndim for t in call.inputs)
    return apply_n(call.op, tuple(call.aligned(t, ndim) for t in call.inputs), call.args)


def pdist_rule(n, g):
    x, distance = n.saved(0), n.saved_result()
    is_zero = n.args[0] == 0 or not distance.numel()
    if not is_zero and get_modes() & NO_GRAD and isinstance(memory_of(x), np.ndarray):
        return tensor_of(kernels.pdist_gradient(array_of(g), array_of(x), array_of(distance), n.args[0]))
    zeros = zeros_of(x)
    if is_zero:
        return zeros
    first, second = triu_indices(x.shape[0], x.shape[0], 1, device=x.device).unbind()
    difference = sub(index_select(x, 0, first), index_select(x, 0, second))
    pull = _pulls(g, difference, unsqueeze(distance, -1), n.args[0])
    return sub(index_add(zeros, 0, first, pull), index_add(zeros, 0, second, pull))


PDIST = declare(
    "pdist",
    pdist_rule,
    saves=IN0 | OUT0,
    flags=FUNCTION_ONLY,
    kernel=kernels.pdist,
    inputs="self",
    attributes="p",
    autocast_gpu="float32",
)


def pdist(input, p=2):
    """Return the p-norm distances between rows of a matrix (n, d): a vector of length n (n - 1) / 2, row 0 first.

    That of rows i and j is (sum over k of |x[i, k] - x[j, k]|^p)^(1/p).

    Saves input and result. Gradient: g times the direction from one row to the other; 0 where they coincide, and for p
    = 0. Raises RuntimeError for another number of dimensions, integers, and a negative p.

    >>> import cygrad
    >>> cygrad.pdist(cygrad.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    x = require(input, "pdist")
    if x.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    if not x.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return apply_n(PDIST, (x,), (float(p),))


@rule("pdist")
def _pdist(call):
    (x,), (p,) = call.inputs, call.args
    rows = call.samples(x)
    first, second = triu_indices(x.shape[0], x.shape[0], 1, device=x.device).unbind()
    return cdist(rows, rows, p, "donot_use_mm_for_euclid_dist")[:, first, second]


# -- cross products --


def cross_rule(n, g):
    a, b, dim = n.saved(0), n.saved(1), n.args[0]
    return (
        linalg_cross(conj_physical(b), g, dim=dim) if n.needs(0) else None,
        linalg_cross(g, conj_physical(a), dim=dim) if n.needs(1) else None,
    )


CROSS = declare(
    "linalg_cross",
    cross_rule,
    saves=(IN1, IN0),
    flags=LINEAR | ELSEWHERE,
    kernel=kernels.cross,
    attributes="dim",
    out_dtype="same",
    batching=shifting("d"),
)


def linalg_cross(input, other, *, dim=-1, out=None):
    """Return the cross products of 3-element vectors along `dim`; all other dimensions broadcast. Saves both.

    out = (x1 y2 - x2 y1, x2 y0 - x0 y2, x0 y1 - x1 y0) for x = `input`, y = `other`.

    Gradients: other x g and g x input (of the conjugates). Raises RuntimeError for other lengths, or shapes that do not
    broadcast.

    >>> import cygrad
    >>> cygrad.linalg.cross(cygrad.tensor([1, 0, 0]), cygrad.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    a, b = require(input, "linalg_cross"), require(other, "linalg_cross", "other", 2)
    return _cross(a, b, dim, out)


def _cross(a, b, dim, out):
    if a.ndim != b.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = wrap_dim(dim, a.ndim)
    if a.ndim == 0:
        raise messages.no_dimensions(dim)
    lengths = array_of(a).shape[d], array_of(b).shape[d]
    if lengths != (3, 3):
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {lengths[0]} and {lengths[1]}"
        )
    require_broadcast(a, b)
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype.type_name} but found {b.dtype.type_name}")
    if a.dtype.name == "bool":
        raise messages.not_implemented_for("cross", a.dtype)
    return apply_n(CROSS, (a, b), (d,), out)


@facts(autocast_gpu="widest")
def cross(input, other, dim=None, *, out=None):
    """Return the cross products of 3-element vectors along `dim`; see `linalg.cross`.

    Omitting `dim` is deprecated and means the first dimension of length 3.

    >>> import cygrad
    >>> cygrad.cross(cygrad.tensor([1, 0, 0]), cygrad.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1])
    """
    a, b = require(input, "cross"), require(other, "cross", "other", 2)
    if isinstance(dim, bool):
        raise messages.wrong_type("cross", "dim", 3, "int", dim)
    if dim is None:
        warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross "
            "in a future release."
        )
        if 3 not in a.shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = a.shape.index(3)
    return _cross(a, b, dim, out)


# -- renorm --


def renorm_rule(n, g):
    x = n.saved(0)
    if n.may_run_in_parts(g) and kernels.has_renorm_gradient(array_of(x), n.args[0]):
        found = kernels.renorm_gradient(array_of(g), array_of(x), *n.args)
        return g if found is array_of(g) else tensor_of(found)
    return _renorm_gradient(n.opened(x), g)


@in_slices(lambda n, shape: n.args[1])
def _renorm_gradient(n, g):
    p, dim, maxnorm = n.args
    kind = sum_type(g)
    x, g = n.saved(0).to(kind), g.to(kind)
    others = [d for d in range(x.ndim) if d != dim]
    size = absolute(x)
    norms = linalg_vector_norm(x, p, others, True)
    long = norms > maxnorm
    if not is_meta(memory_of(long)) and not values_of(long).any():
        return g
    safe = where(long, norms, 1.0)
    factor = where(long, maxnorm / add(safe, kernels.TINY), 1.0)
    along = total(mul(conj_physical(g), x), others, True)
    along = along.real if along.is_complex() else along
    shrink = where(long, neg(mul(div(along, add(safe, kernels.TINY)), factor)), 0.0)
    if p == float("inf"):
        top = size == norms
        slope = mul(x.sgn(), div(top.to(size.dtype), total(top, others, True)))
    elif p == 2:
        slope = div(x, safe)  # has a derivative at 0, which the product below would lose
    else:
        slope = where(size == 0, 0.0, mul(x.sgn(), div(_nonzero(size), safe) ** (p - 1)))
    return where(long, add(mul(g, factor), mul(slope, shrink)), g)


RENORM = declare(
    "renorm",
    renorm_rule,
    saves=IN0,
    flags=INPLACE,
    kernel=kernels.renorm,
    inputs="self",
    attributes="p dim maxnorm",
    autocast_gpu="float32",
    out_dtype="same",
)


def renorm(input, p, dim, maxnorm, *, out=None):
    """Scale down each slice of `input` along `dim` whose p-norm exceeds `maxnorm` to that norm.

    Such a slice is multiplied by maxnorm / (norm + 1e-7), where norm = (sum of |x|^p)^(1/p).

    Saves `input`. Gradient: that of the scaling; g for slices with norms up to `maxnorm`. Raises RuntimeError for p <=
    0, a negative `maxnorm`, integers, and fewer than two dimensions.

    >>> import cygrad
    >>> cygrad.renorm(cygrad.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    t = require(input, "renorm")
    for value, name, position in ((p, "p", 2), (maxnorm, "maxnorm", 4)):
        if isinstance(value, Tensor) or not isinstance(value, (int, float, complex)):
            raise messages.wrong_type("renorm", name, position, "Number", value)
    if isinstance(p, complex) or not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if t.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {t.ndim} dimensions")
    d = dim_argument(dim, t.ndim, "renorm", "dim", 3)
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {t.dtype.type_name}"
        )
    return apply_n(RENORM, (t,), (float(p), d, float(maxnorm)), out)


@rule("renorm")
def _renorm(call):
    p, dim, bound = call.args
    x = call.full(call.inputs[0]).movedim(dim + 1, 1)
    found = apply_n(call.op, (x.flatten(0, 1).flatten(1),), (p, 0, bound))
    return regroup(found, x.shape).movedim(1, dim + 1)


composite = {"cross": 0}
functions = publish(globals())
