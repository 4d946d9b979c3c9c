"""Batch, instance, layer, RMS and group normalization.

Each is one node. They share one scheme: the input is reshaped to `view`, in which the statistics are reduced over
`axes` and weight and bias broadcast. An unrecorded backward pass runs fused kernels on the saved statistics; a recorded
one recomputes the statistics with recorded ops, which gives gradients of any order.

The functions have the signatures of nn.functional; the `_of_package` variants, those of `cygrad` itself.
"""

import math
from functools import lru_cache

import numpy as np

from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import is_forward
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import (
    ELSEWHERE,
    IMAGE,
    IMAGE_GRADIENT,
    IN0,
    IN1,
    declare,
    facts,
    named,
    publish,
    registry,
)
from cygrad._core.graph.record import record_n, result_type
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.transforms.forward_mode import all_of, has_samples
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._core.types.dtypes import as_dtype
from cygrad._kernels.cpu.nn import normalization as kernels
from cygrad._kernels.cpu.nn.normalization import Frame
from cygrad._kernels.device.cupy_library import as_array, is_writable
from cygrad._ops.base.arguments import integers, require
from cygrad._ops.base.arithmetic import add, mul, sub
from cygrad._ops.base.batching.rules import regroup, rule
from cygrad._ops.base.checks.common import check_constant, typed
from cygrad._ops.base.copying import clone
from cygrad._ops.base.pointwise import rsqrt, square
from cygrad._ops.base.reductions import mean
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import reshape


def _normalized(op, input, weight, bias, frame, given=None, more=(), running=None):
    """Return (result, mean, mean square) of a normalization; the node's args begin with those that `_rule` needs.

    `given` and `running` are passed to the kernel.
    """
    array = array_of(input)
    if op is not LAYER_NORM and op is not RMS_NORM:
        array = _in_order(array)
    w, b = _broadcast(weight, frame), _broadcast(bias, frame)
    result, middle, factor, squares = kernels.normalized(kernels.wide(array, frame.view), w, b, frame, given, running)
    result = kernels.shaped(result, array.shape)
    if result.dtype is not array.dtype:
        result = result.astype(array.dtype, copy=False)
    # Weight and bias share a shape. It is stored separately because the weight is saved only for the input's gradient.
    one = bias if weight is None else weight
    shape = None if one is None else array_of(one).shape
    args = frame, middle, factor, shape, *more
    inputs = (input, weight, bias)[: len(op.inputs)]
    momentum = None if running is None else running[2]
    return record_n(op, result, inputs, args, momentum), middle, squares


def _in_order(array):
    """Return the array if it is contiguous or a channels-last image, else a contiguous copy."""
    flags = array.flags
    if flags.c_contiguous or (array.ndim > 3 and array.transpose((0, *range(2, array.ndim), 1)).flags.c_contiguous):
        return array
    return array.copy("C")


def _broadcast(parameter, frame):
    return None if parameter is None else kernels.wide(array_of(parameter), frame.parameter)


def _rule(n, g):
    return _fused(n, array_of(g)) if get_modes() & NO_GRAD else _recorded(n, g)


def _fused(n, g):
    frame, middle, factor, shape = n.args[:4]
    input, weight = n.saved(0), n.saved(1)
    x = None if input is None else kernels.wide(array_of(input), frame.view)
    w = _broadcast(weight, frame)
    needs = n.needs(0), n.needs(1), n.needs(2)
    grad, *others = kernels.gradients(kernels.wide(g, frame.view), x, w, middle, factor, frame, needs)
    if grad is not None:
        grad = tensor_of(kernels.shaped(as_array(grad).astype(g.dtype, copy=False), g.shape))
    return grad, *[None if a is None else tensor_of(kernels.shaped(as_array(a), shape)) for a in others]


def _recorded(n, g):
    frame, middle, factor, shape = n.args[:4]
    input, weight = n.saved(0), n.saved(1)
    h = reshape(g, frame.view)
    if input is None:  # Only the gradient of the bias is needed.
        return None, None, reshape(_over_shared(h, frame), shape)
    x = reshape(input, frame.view)
    if frame.fixed:
        center, factor = _given_statistics(n)
        xhat = mul(sub(x, center), factor)
    else:
        d = sub(x, mean(x, frame.axes, True)) if frame.centered else x
        scale = kernels.scale_of_squares(factor)
        if scale is None:
            factor = rsqrt(add(mean(square(d), frame.axes, True), frame.eps))
            xhat = mul(d, factor)
        else:
            xhat, factor = _in_scale(d, tensor_of(scale), frame)
    grad_input = grad_weight = grad_bias = None
    if n.needs(1):
        grad_weight = reshape(_over_shared(mul(h, xhat), frame), shape)
    if n.needs(2):
        grad_bias = reshape(_over_shared(h, frame), shape)
    if n.needs(0):
        if weight is not None:
            h = mul(h, reshape(weight, frame.parameter))
        if not frame.fixed:
            along = mul(xhat, mean(mul(h, xhat), frame.axes, True))
            h = sub(sub(h, mean(h, frame.axes, True)) if frame.centered else h, along)
        grad_input = reshape(mul(h, factor), tuple(input.shape))
    return grad_input, grad_weight, grad_bias


def _given_statistics(n):
    """What `batch_norm` was given in evaluation mode, of each sample in a batch: what is subtracted, and the factor."""
    frame, middle, factor = n.args[:3]
    means, variances = n.args[4:6]
    if not (is_forward() and (has_samples(means) or has_samples(variances))):
        return tensor_of(middle), tensor_of(factor)
    return reshape(means, frame.parameter), rsqrt(add(reshape(variances, frame.parameter), frame.eps))


def _in_scale(d, scale, frame):
    """d * factor, and the factor 1 / sqrt(mean(d^2) + eps), where squares leave the range: `scale` brings d near 1."""
    d = mul(d, scale)
    factor = rsqrt(add(mean(square(d), frame.axes, True), mul(mul(scale, frame.eps), scale)))
    return mul(d, factor), mul(factor, scale)


def _over_shared(t, frame):
    return total(t, frame.shared, True) if frame.shared else t


def _row(name, node, attributes, inputs="input weight bias", rule=_rule, flags=0, **more):
    return declare(
        name,
        rule,
        saves=(IN0 | IN1, IN0, 0),
        flags=ELSEWHERE | flags,
        node=node,
        inputs=inputs,
        attributes=f"_ _ _ _ {attributes}",
        **more,
    )


# -- checks --


def _check_types(input, kernel, *parameters):
    """Raise unless the input is floating point and the parameters share its dtype, or are float32 for 16-bit inputs."""
    kind = input.dtype
    for given in parameters:
        if given is not None:
            break
    else:
        given = input
    differs = given.dtype is not kind
    if not kind.is_floating_point and (kernel == "batch_norm" or not differs):
        raise messages.not_implemented_for(kernel, kind)
    if differs:
        if any(p is not None and p.dtype.name != "float32" for p in parameters):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if kind.itemsize != 2 or not kind.is_floating_point:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
        return
    for other in parameters:
        if other is not None and other.dtype is not kind:
            raise RuntimeError(f"expected scalar type {kind.type_name} but found {other.dtype.type_name}")


def _optional(value, function, name, position):
    return None if value is None else require(value, function, name, position)


# -- over the batch --

BATCH_NORM = _row(
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
    return _scaled(call, found, parameters)


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
    w, b = _optional(weight, name, "weight", 2), _optional(bias, name, "bias", 3)
    means, variances = _optional(running_mean, name, "running_mean", 4), _optional(running_var, name, "running_var", 5)
    shape = array_of(require(input, name)).shape
    if not math.prod(shape) and (len(shape) < 2 or not training and (means is None or variances is None)):
        return _of_nothing(input, w, b)
    channels = shape[1] if len(shape) > 1 else 0
    _check_channels(channels, means, variances, w, b, training)
    if len(shape) < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, 0], but got 1)")
    _check_types(input, name, w, b, means, variances)
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
        kept = _broadcast(means, frame), _broadcast(variances, frame)
    more = means, variances, training, frame.eps, momentum
    return _normalized(BATCH_NORM, input, w, b, frame, kept, more, running)[0]


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


INSTANCE_NORM = _row("instance_norm", "ViewBackward0", "group eps")


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
    w, b = _optional(weight, "batch_norm", "weight", 2), _optional(bias, "batch_norm", "bias", 3)
    _check_channels(channels, running_mean, running_var, w, b, use_input_stats, batch)
    _check_types(input, "batch_norm", w, b, running_mean, running_var)
    if not use_input_stats:
        return reshape(_batch_norm(input, w, b, running_mean, running_var, False, momentum, eps), shape)
    _check_running(input, running_mean, running_var)
    if not channels:
        return _of_nothing(input, w, b)
    frame = _frame_of_groups(shape, channels, float(eps))
    result, middle, squares = _normalized(INSTANCE_NORM, input, w, b, frame, None, (channels, frame.eps))
    if running_mean is not None and math.prod(shape):
        middle, squares = (a.reshape(batch, channels).mean(0) for a in (middle, squares))
        count = math.prod(shape[2:])
        kernels.follow(array_of(running_mean), middle, array_of(running_var), squares, count, momentum)
    return result


# -- over the last dimensions --

LAYER_NORM = _row(
    "layer_norm",
    "NativeLayerNormBackward0",
    "normalized_shape",
    derived={"result1": lambda n: tensor_of(n.args[1]), "result2": lambda n: tensor_of(n.args[2])},
)
RMS_NORM = _row(
    "rms_norm",
    "MulBackward0",
    "normalized_shape",
    "input weight",
    lambda n, g: _rule(n, g)[:2],
    IMAGE | IMAGE_GRADIENT,
)


def _last_dims(input, normalized_shape, weight, bias, eps, function, centered):
    """Return the frame of a normalization over the last dimensions, whose lengths must be `normalized_shape`."""
    wanted = integers(normalized_shape, function, "normalized_shape", 2)
    shape = array_of(input).shape
    if not wanted:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and array_of(parameter).shape != wanted:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(parameter.shape)} and normalized_shape = {list(wanted)}"
            )
    return _frame_of_last(shape, wanted, centered, float(eps))


@lru_cache(256)
def _frame_of_last(shape, wanted, centered, eps):
    first = len(shape) - len(wanted)
    if first < 0 and not centered:
        raise ValueError(f"Input tensor must have at least {len(wanted)} dimensions, but got {len(shape)}")
    if first < 0 or shape[first:] != wanted:
        stars = "*, " if centered else "*"
        raise RuntimeError(
            f"Given normalized_shape={list(wanted)}, expected input with shape [{stars}{', '.join(map(str, wanted))}], "
            f"but got input of size{list(shape)}"
        )
    dims = tuple(range(len(shape)))
    return Frame(shape, dims[first:], (1,) * first + wanted, dims[:first], centered, False, eps)


@facts(devices="together", autocast_gpu="float32")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Compute `(input - mean) / sqrt(variance + eps) * weight + bias`, with statistics over the last dimensions.

    `normalized_shape` gives the lengths of these dimensions, which is also the shape of weight and bias. Saves input,
    weight and the statistics. Raises RuntimeError for mismatched shapes and dtypes.

    >>> import cygrad
    >>> cygrad.nn.functional.layer_norm(cygrad.tensor([[1.0, 3.0], [0.0, 0.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [ 0.0000,  0.0000]])
    """
    name = "layer_norm"
    x, w, b = require(input, name), _optional(weight, name, "weight", 3), _optional(bias, name, "bias", 4)
    frame = _last_dims(x, normalized_shape, w, b, eps, name, True)
    _check_types(x, "LayerNormKernelImpl", w, b)
    return _normalized(LAYER_NORM, x, w, b, frame, None, (frame.view[frame.axes[0] :],))[0]


@named("layer_norm")
def layer_norm_of_package(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """Compute `(input - mean) / sqrt(variance + eps) * weight + bias`, with statistics over the last dimensions.

    >>> import cygrad
    >>> cygrad.layer_norm(cygrad.tensor([1.0, 3.0]), [2], eps=0.0)
    tensor([-1.,  1.])
    """
    return layer_norm(input, normalized_shape, weight, bias, eps)


@facts(devices="together", autocast_gpu="float32")
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Compute `input / sqrt(mean(input^2) + eps) * weight`, with the mean over the last dimensions.

    `normalized_shape` gives the lengths of these dimensions, which is also the shape of weight; `eps` defaults to the
    machine epsilon of the dtype. Saves input, weight and the root. Raises RuntimeError for mismatched shapes.

    >>> import cygrad
    >>> cygrad.rms_norm(cygrad.tensor([[3.0, 3.0], [0.0, 2.0]]), (2,))
    tensor([[1.0000, 1.0000],
            [0.0000, 1.4142]])
    """
    x, w = require(input, "rms_norm"), _optional(weight, "rms_norm", "weight", 3)
    if x.is_complex():
        return _rms_norm_by_ops(x, normalized_shape, w, eps)
    if not x.dtype.is_floating_point:
        raise messages.not_implemented_for("rms_norm", x.dtype)
    kind = np.dtype(np.float32) if x.dtype.itemsize == 2 else array_of(x).dtype
    eps = float(np.finfo(kind).eps) if eps is None else eps
    frame = _last_dims(x, normalized_shape, w, None, eps, "rms_norm", False)
    if w is not None and w.dtype is not x.dtype:
        warn(
            f"Mismatch dtype between input and weight: input dtype = {messages.c_word(x)}, weight dtype = "
            f"{messages.c_word(w)}, Cannot dispatch to fused implementation."
        )
    wide = as_dtype(kind) if w is None else result_type((x, w, tensor_of(np.empty(1, kind))))
    if wide is not x.dtype or (w is not None and w.dtype is not wide):
        return rms_norm(x.to(wide), normalized_shape, w if w is None else w.to(wide), eps).to(x.dtype)
    return _normalized(RMS_NORM, x, w, None, frame, None, (frame.view[frame.axes[0] :],))[0]


@rule("layer_norm rms_norm")
def _layer_norm(call):
    x, *parameters = call.inputs
    eps, shape = call.args[0].eps, call.args[4]
    entry = registry[call.key].entry
    if not any(call.has(p) for p in parameters):
        return entry(call.samples(x), shape, *parameters, eps)
    found = entry(call.full(x), shape, eps=eps)
    weight, bias = (*parameters, None)[:2]
    found = found if weight is None else found * call.aligned(weight, x.ndim)
    return found if bias is None else found + call.aligned(bias, x.ndim)


# -- over groups of channels --

GROUP_NORM = _row(
    "group_norm",
    "NativeGroupNormBackward0",
    "group eps",
    flags=IMAGE | IMAGE_GRADIENT,
    derived={
        "N": lambda n: n._input_metadata[0].shape[0],
        "C": lambda n: n._input_metadata[0].shape[1],
        "HxW": lambda n: math.prod(n._input_metadata[0].shape[2:]),
    },
)


@facts(devices="together", autocast_gpu="float32")
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Compute `(input - mean) / sqrt(variance + eps) * weight + bias`, with statistics over groups of channels.

    The channels (dimension 1) of each sample are divided into `num_groups` groups with a mean and variance each; weight
    and bias have one element per channel. Saves input, weight and the statistics. Raises RuntimeError for mismatched
    arguments.

    >>> import cygrad
    >>> cygrad.nn.functional.group_norm(cygrad.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    name = "group_norm"
    shape = array_of(require(input, name)).shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if math.prod((shape[0] * shape[1] // num_groups, *shape[2:])) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(shape)}")
    return group_norm_of_package(input, num_groups, weight, bias, eps)


@rule("group_norm instance_norm")
def _group_norm(call):
    x, *parameters = call.inputs
    groups, eps = call.args[4:6]
    found = group_norm(call.full(x).flatten(0, 1), groups, eps=eps)
    return _scaled(call, call.shaped(found, x.shape), parameters)


def _scaled(call, found, parameters):
    for p, combine in zip(parameters, (Tensor.mul, Tensor.add), strict=True):
        if p is not None:
            values = call.near(p)
            found = combine(found, values.view(values.shape[0], 1, -1, *(1,) * (found.ndim - 3)))
    return found


@typed(num_groups=int, eps=float)
@named("group_norm")
def group_norm_of_package(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """Compute `(input - mean) / sqrt(variance + eps) * weight + bias`, with statistics over groups of channels.

    >>> import cygrad
    >>> cygrad.group_norm(cygrad.tensor([[1.0, 3.0, 5.0, 9.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    name = "group_norm"
    x, w, b = require(input, name), _optional(weight, name, "weight", 3), _optional(bias, name, "bias", 4)
    shape = array_of(x).shape
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if len(shape) < 2 or shape[1] % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(shape)} "
            f"and num_groups={num_groups}"
        )
    for parameter, word in ((w, "weight"), (b, "bias")):
        if parameter is not None and array_of(parameter).shape != shape[1:2]:
            raise RuntimeError(
                f"Expected {word} to be a vector of size equal to the number of channels in input, but got {word} of "
                f"shape {list(w.shape if w is not None else parameter.shape)} and input of shape {list(shape)}"
            )
    _check_types(x, "GroupNormKernelImpl", w, b)
    frame = _frame_of_groups(shape, int(num_groups), float(eps))
    return _normalized(GROUP_NORM, x, w, b, frame, None, (num_groups, frame.eps))[0]


def _rms_norm_by_ops(x, normalized_shape, w, eps):
    """`rms_norm` of complex elements, composed of ops."""
    eps = float(np.finfo(array_of(x).dtype).eps) if eps is None else eps
    frame = _last_dims(x, normalized_shape, w, None, eps, "rms_norm", False)
    result = mul(x, rsqrt(add(mean(square(x), frame.axes, True), eps)))
    return (result if w is None else mul(result, w)).to(x.dtype)


@lru_cache(256)
def _frame_of_groups(shape, num_groups, eps):
    inner = (num_groups, shape[1] // num_groups)
    ndim = len(shape) + 1
    parameter = (1, *inner) + (1,) * (ndim - 3)
    return Frame(
        shape[:1] + inner + shape[2:], tuple(range(2, ndim)), parameter, (0, *range(3, ndim)), True, False, eps
    )


functions = publish(
    globals(),
    {
        "batch_norm": batch_norm_of_package,
        "group_norm": group_norm_of_package,
        "instance_norm": instance_norm_of_package,
        "layer_norm": layer_norm_of_package,
        "rms_norm": rms_norm,
    },
)
