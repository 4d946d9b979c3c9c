"""Classification losses: negative log-likelihood and cross-entropy.

`reduction` and the deprecated arguments it replaces are described in reductions.py. Cross-entropy with class
probabilities or label smoothing is in soft_targets.py.
"""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.dual import keep
from cygrad._core.graph.internals import array_of, operand_of, tensor_of
from cygrad._core.graph.opdef import ELSEWHERE, IN0, OUT1, PRIVATE, declare, facts, note_facts, publish, variant
from cygrad._core.graph.record import record_n, record_outputs
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.base.half_sums import sum_type, widened
from cygrad._kernels.cpu.nn.softmax import cross_entropy as cross_entropy_array
from cygrad._kernels.cpu.nn.softmax import cross_entropy_backward as cross_entropy_backward_array
from cygrad._kernels.cpu.nn.softmax import nll as nll_array
from cygrad._kernels.cpu.nn.softmax import nll_backward as nll_backward_rows
from cygrad._kernels.device.cupy_library import dense, is_array
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import integer, require
from cygrad._ops.base.arithmetic import add, mul, sub
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import check_constant
from cygrad._ops.base.products import linear
from cygrad._ops.base.reductions import sum as sum_of
from cygrad._ops.base.views import reshape
from cygrad._ops.common.saved_lists import keep_tensors, kept_tensors
from cygrad._ops.elementwise.selection import where
from cygrad._ops.loss import checks, soft_targets
from cygrad._ops.loss.reductions import MEAN, NONE, SUM, reduction_of, weights_of_classes
from cygrad._ops.nn.activations import tied
from cygrad._ops.nn.softmax import log_softmax_along, softmax_backward_data

# -- negative log-likelihood of arrays --


def as_rows(array):
    """Reshape (C), (N, C) or (N, C, d1, ...) to (samples, C)."""
    if array.ndim == 2:
        return array
    if array.ndim == 1:
        return array.reshape(1, -1)
    return np.moveaxis(array, 1, -1).reshape(-1, array.shape[1])


def nll_of(array, classes, weight, ignore_index, reduction):
    """Return (loss, total weight) for (C), (N, C) or (N, C, d1, ...), converting samples to rows in chunks."""
    if array.ndim <= 2 or array.size <= chunks.SIZE or is_array(array):
        return nll_array(as_rows(array), classes.reshape(-1), weight, ignore_index, reduction)
    step = max(1, chunks.SIZE * len(array) // array.size)
    parts = [
        nll_array(
            as_rows(widened(array[start : start + step])),
            classes[start : start + step].reshape(-1),
            weight,
            ignore_index,
            NONE if reduction == NONE else SUM,
        )
        for start in range(0, len(array), step)
    ]
    losses, totals = zip(*parts)
    total = np.asarray(sum(map(float, totals)), sum_type(array.dtype))
    if reduction == NONE:
        return in_dtype(np.concatenate(losses), array.dtype), total
    with np.errstate(all="ignore"):
        return np.asarray(sum(map(float, losses)) / (total if reduction == MEAN else 1), array.dtype), total


def from_rows(rows, shape):
    """Undo `as_rows`."""
    if len(shape) <= 2:
        return rows.reshape(shape)
    return np.moveaxis(rows.reshape(shape[:1] + shape[2:] + shape[1:2]), -1, 1)


def nll_backward_array(grad, target, weight, ignore_index, reduction, total, shape):
    """Return the gradient with respect to log-probabilities of the given shape."""
    classes = shape[1 if len(shape) > 1 else 0]
    if reduction == NONE:
        grad = dense(grad).reshape(target.shape)
    if len(shape) <= 2 or target.size * classes <= chunks.SIZE or is_array(grad):
        return nll_gradient(grad, target, weight, ignore_index, reduction, total, shape)
    out = np.empty(shape, grad.dtype)  # in this layout, rows are columns
    step = max(1, chunks.SIZE * len(out) // out.size)
    for start in range(0, len(out), step):
        part = slice(start, start + step)
        g = grad[part] if reduction == NONE else grad
        out[part] = nll_gradient(g, target[part], weight, ignore_index, reduction, total, out[part].shape)
    return out


def empty_like_all(shape, dtype):
    """Return an array of which only shape and dtype matter, using little memory."""
    if math.prod(shape) <= chunks.SIZE:
        return np.empty(shape, dtype)
    return np.broadcast_to(np.zeros((), dtype), shape)


def nll_gradient(grad, target, weight, ignore_index, reduction, total, shape):
    rows = target.size, shape[1 if len(shape) > 1 else 0]
    like = empty_like_all(rows, grad.dtype)
    grad = grad.reshape(-1) if reduction == NONE else grad
    return from_rows(nll_backward_rows(grad, like, target.reshape(-1), weight, ignore_index, reduction, total), shape)


_nll_of_places, _noted_nll_backward = noted(nll_of), noted(nll_backward_array)


# -- negative log-likelihood of tensors --


def nll_rule(n, g):
    ignore_index, reduction, total = n.args
    input, target, weight = n.saved(0), n.saved(1), n.saved(2)
    if input.ndim == 2 and reduction != NONE and get_modes() & NO_GRAD:
        arrays = array_of(g), array_of(input), array_of(target), _array(weight)
        return tensor_of(nll_backward_rows(*arrays, ignore_index, reduction, array_of(total)))
    return tied(nll_loss_backward(g, target, weight, ignore_index, reduction, total, tuple(input.shape)), input)


NLL = declare(
    "nll_loss",
    nll_rule,
    saves=IN0,
    flags=ELSEWHERE,
    inputs="self target weight",
    attributes="ignore_index reduction total_weight",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    in_python=True,
    derived={"weight": None},
    float8="nll_loss_out_frame",
)
NLL_2D = variant(NLL, "NllLoss2DBackward0")
note_facts("NllLoss2DBackward0", {"derived": {"weight": None}})


def _array(optional):
    return None if optional is None else array_of(optional)


def _nll(input, target, weight, ignore_index, reduction):
    array, classes = array_of(input), array_of(target)
    loss, total = (nll_of if array.ndim <= 2 else _nll_of_places)(
        array, classes, _array(weight), ignore_index, reduction
    )
    if reduction == NONE:
        loss = loss.reshape(classes.shape if array.ndim > 1 else ())
    args = ignore_index, reduction, tensor_of(total)
    result = record_n(NLL if array.ndim <= 2 else NLL_2D, loss, (input,), args, (target, weight))
    keep(result, 1, target)
    if weight is not None:
        keep(result, 2, weight)
    return result


def nll_backward_rule(n, g):
    # the loss is linear in its input and this op is its transpose, so the derivative of this op is the loss again
    return _nll(g, n.saved(1), n.saved(2), n.args[0], n.args[1])


NLL_BACKWARD = declare(
    "nll_loss_backward",
    nll_backward_rule,
    flags=PRIVATE,
    inputs="grad_output target weight",
    attributes="ignore_index reduction total_weight self_sizes",
)


def nll_loss_backward(grad_output, target, weight, ignore_index, reduction, total_weight, self_sizes):
    """Return the gradient of `nll_loss` with respect to its input, of shape `self_sizes`."""
    g, total = array_of(grad_output), array_of(total_weight)
    array = _noted_nll_backward(g, array_of(target), _array(weight), ignore_index, reduction, total, self_sizes)
    result = record_n(
        NLL_BACKWARD, array, (grad_output,), (ignore_index, reduction, total_weight, self_sizes), (target, weight)
    )
    keep(result, 1, target)
    keep(result, 2, weight)
    return result


@rule("nll_loss_backward")
def _nll_backward(call):
    ignored, reduction, _, shape = call.args
    target, weight = call.kept[1], call.kept.get(2)
    classes = call.full(target)
    classes = classes.reshape(call.size, 1) if len(shape) == 1 else classes
    g = call.full(call.inputs[0])
    weights = weights_of_classes(call, classes, weight, ignored).to(g.dtype)
    if reduction == MEAN:
        g = g / weights.flatten(1).sum(1)
    g = g.view(-1, *(1,) * (classes.ndim - 1)) if reduction != NONE or len(shape) == 1 else g
    found = -(g * weights)
    channel = 2 if len(shape) > 1 else 1
    full = (call.size, *shape)
    places = where(classes == ignored, 0, classes).long()
    if len(shape) == 1:
        return found.new_zeros(full).scatter(1, places, found)
    return found.new_zeros(full).scatter(channel, places.unsqueeze(channel), found.unsqueeze(channel))


# -- negative log-likelihood of a softmax --


def fused_rule(n, grads):
    g, of_softmax = grads
    softmax, (target, weight) = n.saved_output(1), kept_tensors(n, 2)
    ignore_index, reduction, total = n.args
    grad = None
    if g is not None and get_modes() & NO_GRAD:
        arrays = array_of(g), array_of(softmax), array_of(target), _array(weight)
        grad = tensor_of(cross_entropy_backward_array(*arrays, ignore_index, reduction, array_of(total)))
    elif g is not None:
        of_logarithm = nll_loss_backward(g, target, weight, ignore_index, reduction, total, tuple(softmax.shape))
        grad = sub(of_logarithm, mul(softmax, sum_of(of_logarithm, 1, True)))
    if of_softmax is not None:  # only this rule uses the softmax
        through = softmax_backward_data(of_softmax, softmax, 1)
        grad = through if grad is None else add(grad, through)
    return grad


FUSED = declare(
    "cross_entropy_of_softmax",
    fused_rule,
    saves=OUT1,
    node="NllLossBackward0",
    flags=PRIVATE,
    inputs="self",
    outputs="_ _",
    attributes="ignore_index reduction total_weight",
    devices="together",
)
LARGE = 1 << 14  # number of scores from which one pass outweighs having the same graph as PyTorch (two nodes)


def cross_entropy_of_softmax(input, target, weight, ignore_index, reduction):
    """`nll_loss(log_softmax(input, 1), target)` for scores (N, C), as one op that computes and saves the softmax."""
    arrays = array_of(input), array_of(target), _array(weight)
    loss, total, softmax = cross_entropy_array(*arrays, ignore_index, reduction)
    results = record_outputs(FUSED, (loss, softmax), (input,), (ignore_index, reduction, tensor_of(total)), 2)
    keep_tensors(results[0], 2, (target, weight))
    return results


@rule("cross_entropy_of_softmax")
def _cross_entropy(call):
    (target, weight), _ = call.kept[2]
    logs = call.full(call.inputs[0]).log_softmax(2)
    return [_nll_of(call, logs, target, weight), logs.exp()]


def _nll_of(call, rows, target, weight):
    ignored, reduction, _ = call.args
    classes = call.full(target)
    if rows.ndim == 2:
        rows, classes = rows.unsqueeze(1), classes.reshape(call.size, 1)
    rows = rows.movedim(2, -1).flatten(0, -2)
    losses = nll_loss(rows, classes.flatten(), ignore_index=ignored, reduction="none")
    losses, weights = losses.view(classes.shape), weights_of_classes(call, classes, weight, ignored)
    losses = losses if weight is None else losses * weights
    if reduction == NONE:
        return call.shaped(losses, call.out.shape)
    total = losses.flatten(1).sum(1)
    return total / weights.flatten(1).sum(1) if reduction == MEAN else total


# -- nll_loss --


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Negative log-likelihood: minus the log-probability in `input` of each sample's class.

    The loss of a sample is -weight[target] * input[target].

    Shapes: input (C), (N, C) or (N, C, d1, ...), target (), (N) or (N, d1, ...) of int64, weight (C). The result is the
    mean, the sum, or the loss of each sample. Samples of class `ignore_index` do not count; the mean is weighted by the
    class weights. Saves all arguments. Gradient: -g * weight at the target class, divided by the total weight for the
    mean.

    Raises IndexError for an invalid class, ValueError or RuntimeError for incompatible shapes and dtypes.

    >>> import cygrad
    >>> log_probabilities = cygrad.tensor([[0.5, 0.5], [0.9, 0.1]]).log()
    >>> cygrad.nn.functional.nll_loss(log_probabilities, cygrad.tensor([0, 0]))
    tensor(0.3993)
    """
    how = reduction_of(reduction, size_average, reduce)
    input, target = require(input, "nll_loss_nd"), require(target, "nll_loss_nd", "target", 2)
    _check_target(array_of(input), array_of(target), input, target)
    return _checked_nll(input, target, weight, ignore_index, how)


@rule("nll_loss")
def _nll_of_samples(call):
    return _nll_of(call, call.full(call.inputs[0]), call.kept[1], call.kept.get(2))


def _checked_nll(input, target, weight, ignore_index, reduction):
    if not input.dtype.is_floating_point:
        raise messages.not_implemented_for("nll_loss_out_frame", input.dtype)
    _check_weight(input, weight)
    return _nll(input, target, weight, ignore_index, reduction)


def _check_weight(input, weight):
    if weight is not None:
        checks.check_class_weight(weight, input, "nll_loss_nd")
        check_constant(weight, "nll_loss_forward", "weight")


def _check_target(values, classes, input, target):
    """Check shapes and dtype of class indices; the most common ones pass immediately."""
    if not (values.ndim == 2 and classes.shape == values.shape[:1] and classes.dtype == np.int64):
        checks.check_target(input, target)


# -- cross_entropy --


@facts(devices="together", autocast="float32", autocast_gpu="float32", in_python=True)
def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """Cross-entropy `nll_loss(log_softmax(input, 1), target)`, the usual loss of a classifier.

    For a class index y the loss is weight[y] * (log(sum over c of exp(input[c])) - input[y]), for class probabilities
    -sum over c of weight[c] * target[c] * log_softmax(input)[c].

    Shapes: input (C), (N, C) or (N, C, d1, ...), unnormalized scores (logits); target either class indices, (), (N) or
    (N, d1, ...) of int64, or class probabilities of the same shape as input; weight (C). The result is the mean, the
    sum, or the loss of each sample. Samples of class `ignore_index` do not count. `label_smoothing` is the fraction of
    the target that is spread evenly over all classes. Large score matrices with class indices are one node, which saves
    their softmax.

    Raises IndexError for an invalid class, ValueError or RuntimeError for incompatible shapes and dtypes.

    >>> import cygrad
    >>> cygrad.nn.functional.cross_entropy(cygrad.zeros(3, 10), cygrad.tensor([1, 2, 3]))
    tensor(2.3026)
    """
    require(input, "cross_entropy_loss")
    values, classes = operand_of(input), array_of(require(target, "cross_entropy_loss", "target", 2))
    how = reduction_of(reduction, size_average, reduce)
    has_probabilities = values.shape == classes.shape
    if not isinstance(label_smoothing, (int, float, np.number)) and not getattr(label_smoothing, "ndim", 1) == 0:
        raise messages.wrong_type("cross_entropy_loss", "label_smoothing", 6, "float", label_smoothing)
    ignore_index = integer(ignore_index, "cross_entropy_loss", "ignore_index", 5)
    if label_smoothing > 1:
        raise checks.too_much_smoothing(label_smoothing)
    if not input.dtype.is_floating_point:
        raise messages.not_implemented_for("log_softmax_lastdim_kernel_impl", input.dtype)
    if has_probabilities and not values.ndim and target.is_floating_point():
        raise messages.no_dimensions(1)
    if not has_probabilities and values.ndim:
        _check_target(values, classes, input, target)
    if values.ndim == 2 and values.size >= LARGE and not has_probabilities and label_smoothing == 0:
        _check_weight(input, weight)
        return cross_entropy_of_softmax(input, target, weight, ignore_index, how)[0]
    logp = log_softmax_along(input, 1 if values.ndim > 1 else 0)
    if has_probabilities:
        return soft_targets.soft_loss(logp, target, weight, ignore_index, how, label_smoothing)
    if not values.ndim:
        checks.check_target(input, target)
    by_class = _checked_nll(logp, target, weight, ignore_index, how)
    if label_smoothing > 0:
        return soft_targets.smoothed(by_class, logp, target, weight, ignore_index, how, label_smoothing)
    return by_class


@facts(devices="together", autocast="float32", autocast_gpu="float32", in_python=True)
def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`: the last layer of a classifier and its loss.

    With scores s = weight @ input + bias, the loss of a sample is log(sum over classes of exp(s)) - s[target].

    Shapes: input (N, k) or (k), linear_weight (C, k) or (C, d1, ..., k), linear_bias (C) or (C, d1, ...), target as for
    `cross_entropy`. `options`, PyTorch's memory-saving settings, are accepted but have no effect. Raises RuntimeError
    for incompatible shapes.

    >>> import cygrad
    >>> weight = cygrad.zeros(10, 4)
    >>> cygrad.nn.functional.linear_cross_entropy(cygrad.ones(3, 4), weight, cygrad.tensor([1, 2, 3]))
    tensor(2.3026)
    """
    name = "linear_cross_entropy"
    x, w = require(input, name), require(linear_weight, name, "linear_weight", 2)
    y = require(target, name, "target", 3)
    if not 1 <= x.ndim <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {x.ndim}")
    if w.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {w.ndim}")
    classes, features = tuple(w.shape[:-1]), w.shape[-1]
    if x.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{x.shape[-1]} and {features}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != classes:
        raise RuntimeError(f"expected linear_bias shape {classes}, got {tuple(linear_bias.shape)}")
    if len(classes) > 1 and x.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(w.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(x.shape)}"
        )
    if tuple(y.shape) == (*x.shape[:-1], *classes) and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if len(classes) > 1:
        bias = None if linear_bias is None else reshape(linear_bias, -1)
        logits = reshape(linear(x, reshape(w, (-1, features)), bias), (*x.shape[:-1], *classes))
    else:
        logits = linear(x, w, linear_bias)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, y, weight, None, ignored, None, reduction, label_smoothing)


composite = {"linear_cross_entropy": ELSEWHERE}
functions = publish(globals())
