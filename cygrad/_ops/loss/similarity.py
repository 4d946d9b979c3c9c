"""Cosine similarity, pairwise distance, and the losses based on them.

`reduction` and its predecessors are described in reductions.py; the functions in `cygrad` itself take its code.
"""

import math
from functools import partial

import numpy as np

from cygrad._core.engine.blocked_gradients import owned
from cygrad._core.graph.internals import array_of, memory_of
from cygrad._core.graph.opdef import ELSEWHERE, FUNCTION_ONLY, facts, named, publish
from cygrad._core.graph.record import result_type
from cygrad._kernels.cpu.base.reduce import are_in_range
from cygrad._ops.base.arguments import broadcast_shape, require, wrap_dim
from cygrad._ops.base.arithmetic import add, div, mul, sub
from cygrad._ops.base.checks.common import typed
from cygrad._ops.base.pointwise import sqrt, square
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import expand
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.elementwise.selection import clamp_min, minimum, where
from cygrad._ops.elementwise.trigonometry import hypot
from cygrad._ops.linalg.summed_products import sum_of_products
from cygrad._ops.linalg.vector_norms import linalg_vector_norm
from cygrad._ops.loss.reductions import CODES, NONE, reduced, reduction_of
from cygrad._ops.nn.norm_scaling import may_be_unit, unit

COSINE_EPS = 1e-12


# -- pairs of vectors --


def _unit(x, dim, eps):
    """Divide x by max(norm, eps); the gradient ignores the bound."""
    if may_be_unit(x):
        return unit(x, dim, eps, False)
    size = linalg_vector_norm(x, 2, dim, keepdim=True)
    bare = size.detach()
    return div(x, add(size, sub(clamp_min(bare, eps), bare)))


@facts(autocast_gpu="float32")
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along `dim`: their product divided by both norms, each at least `eps`.

    The result is sum(x1 * x2) / (max(|x1|, eps) * max(|x2|, eps)).

    Raises RuntimeError for integers and for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.cosine_similarity(cygrad.tensor([[1.0, 0.0]]), cygrad.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    a, b = require(x1, "cosine_similarity", "x1"), require(x2, "cosine_similarity", "x2", 2)
    kind = result_type((a, b))
    if not kind.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {kind.type_name}")
    shape = broadcast_shape(array_of(a).shape, array_of(b).shape)
    dim = wrap_dim(dim, len(shape))
    a, b = (expand(t.to(kind), shape) if t.shape != shape or t.dtype is not kind else t for t in (a, b))
    return sum_of_products(_unit(a, dim, eps), _unit(b, dim, eps), dim)


def pairwise_distance(x1, x2, p=2, eps=1e-6, keepdim=False):
    """Compute the p-norm of `x1 - x2 + eps` over the last dimension.

    The result is (sum of |x1 - x2 + eps|^p)^(1/p).

    >>> import cygrad
    >>> cygrad.pairwise_distance(cygrad.tensor([[3.0, 4.0]]), cygrad.tensor([[0.0, 0.0]]))
    tensor([5.0000])
    """
    a, b = require(x1, "pairwise_distance", "x1"), require(x2, "pairwise_distance", "x2", 2)
    apart = sub(a, b)
    return linalg_vector_norm(add(apart, eps, out=owned(apart)), p, -1, keepdim)


# -- losses --


@facts(devices="together", autocast="float32", autocast_gpu="float32")
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """`1 - cos` of pairs whose target is 1, `max(0, cos - margin)` if it is -1; mean, sum, or each pair's loss.

    Shapes: inputs (N, D), target (N); or (D) and (). Raises RuntimeError for other shapes.

    >>> import cygrad
    >>> x, y = cygrad.tensor([[1.0, 0.0]]), cygrad.tensor([[1.0, 0.0]])
    >>> cygrad.nn.functional.cosine_embedding_loss(x, y, cygrad.tensor([-1]))
    tensor(1.)
    """
    return cosine_embedding_of_package(input1, input2, target, margin, reduction_of(reduction, size_average, reduce))


@typed(margin=float, reduction=int)
@named("cosine_embedding_loss")
def cosine_embedding_of_package(input1, input2, target, margin=0.0, reduction=NONE):
    """`1 - cos` of pairs whose target is 1, `max(0, cos - margin)` if it is -1; `reduction` is a code.

    >>> import cygrad
    >>> x, y = cygrad.tensor([[1.0, 0.0]]), cygrad.tensor([[0.0, 1.0]])
    >>> cygrad.cosine_embedding_loss(x, y, cygrad.tensor([1]))
    tensor([1.])
    """
    name = "cosine_embedding_loss"
    a, b = require(input1, name, "input1"), require(input2, name, "input2", 2)
    y = require(target, name, "target", 3)
    if y.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not a.ndim == b.ndim == y.ndim + 1:
        raise RuntimeError(
            f"{y.ndim}D target tensor expects {y.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(a.shape)} and {list(b.shape)}."
        )
    margin = int(margin) if isinstance(margin, bool) else margin
    return reduced(_cosine_losses(a, b, y, margin), reduction)


def _root_with_eps(norm):
    """sqrt(norm^2 + eps)."""
    return hypot(norm, norm.new_full((), math.sqrt(COSINE_EPS)))


@in_steps(1, 1, 0, node="AddBackward0")
def _cosine_losses(a, b, y, margin):
    squares = mul(*(add(total(square(t), -1), COSINE_EPS) for t in (a, b)))
    array = memory_of(squares)
    if isinstance(array, np.ndarray) and array.itemsize > 2 and are_in_range(array):  # on GPUs, looking would wait
        cosine = div(total(mul(a, b), -1), sqrt(squares))
    else:  # divided by the norms before they are multiplied: neither squares nor products need to be in range
        a, b = (div(t, _root_with_eps(linalg_vector_norm(t, 2, -1, True))) for t in (a, b))
        cosine = sum_of_products(a, b, -1)
    alike = where(y == 1, sub(1, cosine), 0.0)
    return add(alike, where(y == -1, clamp_min(sub(cosine, margin), 0), 0.0))


@facts(autocast="float32", autocast_gpu="float32")
def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """`max(0, margin + |anchor - positive| - |anchor - negative|)` in the p-norm; mean, sum, or each triplet's loss.

    With `swap`, the distance between positive and negative replaces the second one if it is smaller. Raises ValueError
    for a margin that is not positive, RuntimeError for different numbers of dimensions.

    >>> import cygrad
    >>> zero, one = cygrad.zeros(1, 1), cygrad.ones(1, 1)
    >>> cygrad.nn.functional.triplet_margin_loss(zero, zero, one, margin=3.0)
    tensor(2.0000)
    """
    how = reduction_of(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return triplet_margin_of_package(anchor, positive, negative, margin, p, eps, swap, how)


@typed(margin=float, p=float, eps=float, swap=bool, reduction=int)
@named("triplet_margin_loss")
def triplet_margin_of_package(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction=NONE):
    """`max(0, margin + |anchor - positive| - |anchor - negative|)` in the p-norm; `reduction` is a code.

    >>> import cygrad
    >>> a, p, n = cygrad.tensor([[0.0], [3.0], [1.0]])
    >>> cygrad.triplet_margin_loss(a, p, n)
    tensor(3.)
    """
    _check_triplet(anchor, positive, negative, "triplet_margin_loss")
    losses = _triplet_by_parts(anchor, positive, negative, partial(pairwise_distance, p=p, eps=eps), margin, swap)
    return reduced(losses, reduction)


@facts(in_python=True)
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """`triplet_margin_loss` with a custom distance function of two tensors, by default `pairwise_distance`.

    The loss of a triplet is max(0, margin + d(anchor, positive) - d(anchor, negative)).

    >>> import cygrad
    >>> zero, one = cygrad.zeros(1, 1), cygrad.ones(1, 1)
    >>> cygrad.nn.functional.triplet_margin_with_distance_loss(zero, zero, one, margin=3.0)
    tensor(2.0000)
    """
    if not isinstance(reduction, str) or reduction not in CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative, "triplet_margin_with_distance_loss")
    if distance_function is None:
        losses = _triplet_by_parts(anchor, positive, negative, pairwise_distance, margin, swap)
    else:
        losses = _triplet(anchor, positive, negative, distance_function, margin, swap)
    return reduced(losses, CODES[reduction])


def _check_triplet(anchor, positive, negative, name):
    ranks = [
        require(t, name, word, position).ndim
        for position, (t, word) in enumerate(((anchor, "anchor"), (positive, "positive"), (negative, "negative")), 1)
    ]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {ranks[0]}D, positive {ranks[1]}D, and negative {ranks[2]}D inputs"
        )


def _triplet(anchor, positive, negative, distance, margin, swap):
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return clamp_min(sub(add(near, margin), far), 0)


_triplet_by_parts = in_steps(1, 1, 1, node="ClampMinBackward0")(_triplet)


composite = {
    "cosine_similarity": FUNCTION_ONLY,
    "pairwise_distance": FUNCTION_ONLY,
    "cosine_embedding_loss": ELSEWHERE,
    "triplet_margin_loss": ELSEWHERE,
    "triplet_margin_with_distance_loss": ELSEWHERE,
}
functions = publish(
    globals(),
    {
        "cosine_embedding_loss": cosine_embedding_of_package,
        "triplet_margin_loss": triplet_margin_of_package,
    },
)
