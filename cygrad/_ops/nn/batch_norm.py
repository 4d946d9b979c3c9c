"""Batch and instance normalization, with running statistics.

The scheme is that of normalization.py. The functions have the signatures of nn.functional; the `_of_package` variants,
those of `cygrad` itself.
"""

import math
from functools import lru_cache

from cygrad._core import graph_errors
from cygrad._core.graph.dual import is_forward
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import facts, named, publish
from cygrad._core.transforms.forward_mode import all_of, has_samples
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._kernels.cpu.nn import normalization as kernels
from cygrad._kernels.cpu.nn.normalization import Frame
from cygrad._kernels.device.cupy_library import is_writable
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, mul
from cygrad._ops.base.batching.rules import regroup, rule
from cygrad._ops.base.checks.common import check_constant, typed
from cygrad._ops.base.copying import clone
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import reshape
from cygrad._ops.nn.normalization import (
    broadcast,
    check_types,
    frame_of_groups,
    in_groups,
    normalized,
    optional,
    row,
    scaled,
)

# -- batch normalization --

BATCH_NORM = row(
    "batch_norm",
    "NativeBatchNormBackward0",
    "running_mean running_var training eps",
    derived={
        "result1": lambda n: tensor_of(n.args[1].reshape(-1)),
        "result2": lambda n: tensor_of(n.args[2].reshape(-1)),
    },
)


def _verify_batch_size(size):
    """Raise ValueError for a single value per channel, which has no variance. Copies of `batch_norm` call this."""
    if math.prod((size[0], *size[2:])) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


@facts(devices="together")
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Compute `(input - mean) / sqrt(variance + eps) * weight + bias` for each channel (dimension 1).

    In training, mean and variance are computed over all other dimensions, and `running_mean` and `running_var` are
    updated in place with weight `momentum`; otherwise the running statistics are used. Saves input, weight and the
    statistics. Raises ValueError for one value per channel in training and for an `eps` that is negative, or 0 in
    training; RuntimeError for mismatched arguments.

    >>> import cygrad
    >>> cygrad.nn.functional.batch_norm(cygrad.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if training:
        shape = array_of(require(input, "batch_norm")).shape
        if math.prod(shape[:1] + shape[2:]) == 1:
            _verify_batch_size(input.shape)
    if eps < 0 or (eps == 0 and training):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@rule("batch_norm")
def _batch_norm_of_samples(call):
    x, *parameters = call.inputs
    mean, variance, training, eps, momentum = call.args[4:9]
    if not training:
        return of_given_statistics(call)
    running = () if mean is None else (mean, variance)
    if not all(map(call.has, running)):
        raise NoBatchingRule("batch_norm")  # each sample would update the statistics of all
    side_by_side = call.full(x).transpose(0, 1).flatten(1, 2)
    updated = [call.samples(t).flatten().clone() for t in running]
    found = batch_norm(side_by_side, *(updated or (None, None)), None, None, True, momentum, eps)
    for t, new in zip(running, updated):
        call.batch.write(t, new.view(call.size, -1))
    found = regroup(found, (x.shape[0], call.size, *x.shape[1:])).transpose(0, 1)
    return scaled(call, found, parameters)


def of_given_statistics(call):
    """`batch_norm` in evaluation mode."""
    x, *parameters = call.inputs
    *statistics, _, eps = call.args[4:8]
    side_by_side = call.full(x).transpose(0, 1).flatten(1, 2)
    mean, variance, weight, bias = (None if t is None else call.full(t).flatten() for t in (*statistics, *parameters))
    found = batch_norm(side_by_side, mean, variance, weight, bias, eps=eps)
    return regroup(found, (x.shape[0], call.size, *x.shape[1:])).transpose(0, 1)


@typed(training=bool, momentum=float, eps=float, cudnn_enabled=bool)
@named("batch_norm")
def batch_norm_of_package(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Compute `(input - mean) / sqrt(variance + eps) * weight + bias` per channel; see nn.functional.batch_norm.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0], [3.0]])
    >>> cygrad.batch_norm(x, None, None, None, None, True, 0.1, 0.0, False)
    tensor([[-1.],
            [ 1.]])
    """
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    name = "batch_norm"
    w, b = optional(weight, name, "weight", 2), optional(bias, name, "bias", 3)
    means, variances = optional(running_mean, name, "running_mean", 4), optional(running_var, name, "running_var", 5)
    shape = array_of(require(input, name)).shape
    if not math.prod(shape) and (len(shape) < 2 or not training and (means is None or variances is None)):
        return _of_nothing(input, w, b)
    channels = shape[1] if len(shape) > 1 else 0
    _check_channels(channels, means, variances, w, b, training)
    if len(shape) < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, 0], but got 1)")
    check_types(input, name, w, b, means, variances)
    frame = _frame_of_batch(shape, not training, float(eps))
    kept = running = None
    if training:
        _check_running(input, means, variances)
        if means is not None and math.prod(shape):
            running = array_of(means), array_of(variances), momentum
    else:
        if is_forward():
            _check_tangents((input, w, b), (means, variances))
            # The gradient needs those of each sample as they are now
            means, variances = (clone(t) if has_samples(t) else t for t in (means, variances))
        kept = broadcast(means, frame), broadcast(variances, frame)
    more = means, variances, training, frame.eps, momentum
    return normalized(BATCH_NORM, input, w, b, frame, kept, more, running)[0]


def _check_tangents(inputs, statistics):
    """Raise if running statistics have tangents, which would be left out of that of the result."""
    has_one = [any(t is not None and all_of(t) for t in tensors) for tensors in (inputs, statistics)]
    if all(has_one):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )


def _of_nothing(input, weight, bias):
    """Return an empty tensor, normalized; weight and bias get gradients of 0."""
    result = clone(input)
    result = result if weight is None else mul(result, total(weight))
    return result if bias is None else add(result, total(bias))


@lru_cache(256)
def _frame_of_batch(shape, fixed, eps):
    others = (0, *range(2, len(shape)))
    return Frame(shape, others, (1, shape[1]) + (1,) * (len(shape) - 2), others, True, fixed, eps)


def _check_channels(channels, means, variances, weight, bias, training, batch=1):
    """Raise unless all have one element per channel; errors state the counts for all samples if each has its own."""
    for word, value in (("running_mean", means), ("running_var", variances), ("weight", weight), ("bias", bias)):
        if value is not None:
            if array_of(value).size != channels:
                raise RuntimeError(
                    f"{word} should contain {batch * channels} elements not {batch * value.numel()}\n  the input has "
                    f"{channels} channels, in dimension 1: the layer needs num_features={channels}"
                )
            if value.requires_grad and (value is means or value is variances):
                check_constant(value, "native_batch_norm", word)
        elif not training and word.startswith("running"):
            raise RuntimeError(f"{word} must be defined in evaluation mode")
    check_both_running(means, variances)


def check_both_running(means, variances):
    """Raise if only one of the running statistics is given."""
    if (means is None) != (variances is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


def _check_running(input, *statistics):
    """Raise unless the running statistics can be updated in place."""
    for value in statistics:
        if value is not None and not is_writable(array_of(value)):
            raise graph_errors.read_only_error(value)
        if value is not None and is_forward():
            _check_samples(input, value)


def _check_samples(input, running):
    """Raise if the samples of a `vmap` batch would update statistics that they share."""
    if has_samples(input) and not has_samples(running):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.\n"
            "If you are using a module and do not need eval mode, please set `track_running_stats` to be False."
        )


# -- instance normalization --

INSTANCE_NORM = row("instance_norm", "ViewBackward0", "group eps")
rule("instance_norm")(in_groups)  # each channel is a group


@facts(devices="together")
def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Run `batch_norm` for each sample separately: mean and variance are over all dimensions but the first two.

    The result is `(input - mean) / sqrt(variance + eps) * weight + bias`.

    Running statistics are updated with the mean of the samples' statistics; without `use_input_stats` they are used
    instead. Saves input, weight and the statistics. Raises ValueError for one spatial element, RuntimeError for
    mismatched arguments.

    >>> import cygrad
    >>> cygrad.nn.functional.instance_norm(cygrad.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    if use_input_stats:
        shape = require(input, "instance_norm").shape
        if math.prod(shape[2:]) == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {shape}")
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


@typed(use_input_stats=bool, momentum=float, eps=float, cudnn_enabled=bool)
@named("instance_norm")
def instance_norm_of_package(
    input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled
):
    """Run `batch_norm` for each sample separately; see nn.functional.instance_norm. Saves the same tensors.

    >>> import cygrad
    >>> x = cygrad.tensor([[[1.0, 3.0]]])
    >>> cygrad.instance_norm(x, None, None, None, None, True, 0.1, 0.0, False)
    tensor([[[-1.,  1.]]])
    """
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


def _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps):
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    shape = tuple(require(input, "instance_norm").shape)
    if len(shape) < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, 0], but got 1)")
    batch, channels = shape[:2]
    w, b = optional(weight, "batch_norm", "weight", 2), optional(bias, "batch_norm", "bias", 3)
    _check_channels(channels, running_mean, running_var, w, b, use_input_stats, batch)
    check_types(input, "batch_norm", w, b, running_mean, running_var)
    if not use_input_stats:
        return reshape(_batch_norm(input, w, b, running_mean, running_var, False, momentum, eps), shape)
    _check_running(input, running_mean, running_var)
    if not channels:
        return _of_nothing(input, w, b)
    frame = frame_of_groups(shape, channels, float(eps))
    result, middle, squares = normalized(INSTANCE_NORM, input, w, b, frame, None, (channels, frame.eps))
    if running_mean is not None and math.prod(shape):
        middle, squares = (a.reshape(batch, channels).mean(0) for a in (middle, squares))
        count = math.prod(shape[2:])
        kernels.follow(array_of(running_mean), middle, array_of(running_var), squares, count, momentum)
    return result


functions = publish(globals(), {"batch_norm": batch_norm_of_package, "instance_norm": instance_norm_of_package})
