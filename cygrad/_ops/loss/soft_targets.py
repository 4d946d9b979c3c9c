"""Cross-entropy with class probabilities or label smoothing."""

import math

from cygrad._core.engine.blocked_gradients import owned
from cygrad._core.graph.dual import values_of
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.tape.conditions import any_true
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import reshape
from cygrad._ops.common.gradients import sum_type
from cygrad._ops.indexing.gathering import index_select
from cygrad._ops.indexing.masked_fill import masked_fill
from cygrad._ops.linalg.summed_products import sum_of_products
from cygrad._ops.loss import checks
from cygrad._ops.loss.reductions import MEAN, NONE, SUM, reduced


def _class_dim(logp):
    return 1 if logp.ndim > 1 else 0


def _per_class(weight, logp):
    """Reshape the weights to broadcast along the class dimension."""
    return weight if logp.ndim <= 2 else reshape(weight, (weight.numel(),) + (1,) * (logp.ndim - 2))


def soft_loss(logp, target, weight, ignore_index, reduction, smoothing):
    """Cross-entropy with class probabilities. Raises RuntimeError for an integer target or an `ignore_index`."""
    classes = logp.shape[_class_dim(logp)] if logp.ndim else 1
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.type_name}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if smoothing > 0 and classes:
        target = add(mul(target, 1 - smoothing), smoothing / classes)
    dim = _class_dim(logp) if reduction == NONE else None
    if weight is not None:
        checks.check_class_weight(weight, logp, "cross_entropy_loss", "cross_entropy: ")
        losses = neg(total(mul(mul(logp, target), _per_class(weight, logp)), dim))
    else:
        losses = neg(sum_of_products(logp, target, dim))
    if reduction == NONE:
        return losses
    if reduction == SUM:
        return losses
    return div(losses, logp.numel() / classes if classes else 0.0)


def _number(ignored, classes, weight, kind):
    """Return the sum of the weights of the classes that are not ignored."""
    if weight is None:
        return sub(ignored.numel(), total(ignored)).to(kind)
    places = reshape(masked_fill(classes, ignored, 0), (-1,))
    taken = index_select(weight.detach(), 0, places)
    return total(masked_fill(taken, reshape(ignored, (-1,)), 0), dtype=kind)


def smoothed(by_class, logp, target, weight, ignore_index, reduction, smoothing):
    """Cross-entropy with class indices and label smoothing; `by_class` is the loss without smoothing."""
    dim = _class_dim(logp)
    even = logp if weight is None else mul(logp, _per_class(weight, logp))
    even = total(even, dim)
    even = neg(even, out=owned(even))
    ignored = target == ignore_index
    values = values_of(ignored)
    if is_array(values) or any_true(values):
        even = masked_fill(even, reshape(ignored, even.shape), 0.0)
    if reduction == MEAN:
        kind = sum_type(even)  # in float16 the sums may be infinite where the mean is not
        even = div(total(even, dtype=kind), _number(ignored, target, weight, kind)).to(even.dtype)
    else:
        even = reduced(even, reduction)
    classes = logp.shape[dim]
    return add(mul(by_class, 1 - smoothing), mul(even, smoothing / classes if classes else math.nan))
