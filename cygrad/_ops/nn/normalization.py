"""Layer, RMS and group normalization.

Each is one node. They and those of batch_norm.py share one scheme: the input is reshaped to `view`, in which the
statistics are reduced over `axes` and weight and bias broadcast. An unrecorded backward pass runs fused kernels on the
saved statistics; a recorded one recomputes the statistics with recorded ops, which gives gradients of any order.

The functions have the signatures of nn.functional; the `_of_package` variants, those of `cygrad` itself.
"""

import math
from functools import lru_cache

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.dual import is_forward
from cygrad._core.graph.internals import array_of, operand_of, tensor_of
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
from cygrad._core.transforms.forward_mode import has_samples
from cygrad._core.types.dtypes import as_dtype
from cygrad._kernels.cpu.base.copying import contiguous, in_dtype
from cygrad._kernels.cpu.nn import normalization as kernels
from cygrad._kernels.cpu.nn.normalization import Frame
from cygrad._kernels.device.cupy_library import as_array
from cygrad._kernels.device.gpu_forms import passed_on
from cygrad._ops.base.arguments import integers, require
from cygrad._ops.base.arithmetic import add, mul, sub
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import typed
from cygrad._ops.base.pointwise import rsqrt, square
from cygrad._ops.base.reductions import mean
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import reshape


def normalized(op, input, weight, bias, frame, given=None, more=(), running=None):
    """Return (result, mean, mean square) of a normalization; the node's args begin with those that `_rule` needs.

    `given` and `running` are passed to the kernel.
    """
    are_rows = op is LAYER_NORM or op is RMS_NORM
    array = operand_of(input) if are_rows else _in_order(array_of(input))
    w, b = broadcast(weight, frame), broadcast(bias, frame)
    result, middle, factor, squares = passed_on(
        kernels.normalized, kernels.wide(array, frame.view), w, b, frame, given, running
    )
    result = kernels.shaped(result, array.shape)
    if result.dtype is not array.dtype:
        result = in_dtype(result, array.dtype)
    # Weight and bias share a shape. It is stored separately because the weight is saved only for the input's gradient.
    one = bias if weight is None else weight
    shape = None if one is None else operand_of(one).shape
    args = frame, middle, factor, shape, *more
    inputs = (input, weight, bias)[: len(op.inputs)]
    momentum = None if running is None else running[2]
    return record_n(op, result, inputs, args, momentum), middle, squares


def _in_order(array):
    """Return the array if it is contiguous or a channels-last image, else a contiguous copy."""
    flags = array.flags
    if flags.c_contiguous or (array.ndim > 3 and array.transpose((0, *range(2, array.ndim), 1)).flags.c_contiguous):
        return array
    return contiguous(array)


def broadcast(parameter, frame):
    return None if parameter is None else kernels.wide(operand_of(parameter), frame.parameter)


def _rule(n, g):
    return _fused(n, operand_of(g)) if get_modes() & NO_GRAD else _recorded(n, g)


def _fused(n, g):
    frame, middle, factor, shape = n.args[:4]
    input, weight = n.saved(0), n.saved(1)
    x = None if input is None else kernels.wide(operand_of(input), frame.view)
    w = broadcast(weight, frame)
    needs = n.needs(0), n.needs(1), n.needs(2)
    grad, *others = passed_on(kernels.gradients, kernels.wide(g, frame.view), x, w, middle, factor, frame, needs)
    if grad is not None:
        grad = tensor_of(kernels.shaped(in_dtype(as_array(grad), g.dtype), g.shape))
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


def row(name, node, attributes, inputs="input weight bias", rule=_rule, flags=0, **more):
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


def check_types(input, kernel, *parameters):
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


def optional(value, function, name, position):
    return None if value is None else require(value, function, name, position)


# -- over the last dimensions --

LAYER_NORM = row(
    "layer_norm",
    "NativeLayerNormBackward0",
    "normalized_shape",
    derived={"result1": lambda n: tensor_of(n.args[1]), "result2": lambda n: tensor_of(n.args[2])},
)
RMS_NORM = row(
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
    shape = operand_of(input).shape
    if not wanted:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and operand_of(parameter).shape != wanted:
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
    x, w, b = require(input, name), optional(weight, name, "weight", 3), optional(bias, name, "bias", 4)
    frame = _last_dims(x, normalized_shape, w, b, eps, name, True)
    check_types(x, "LayerNormKernelImpl", w, b)
    return normalized(LAYER_NORM, x, w, b, frame, None, (frame.view[frame.axes[0] :],))[0]


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
    x, w = require(input, "rms_norm"), optional(weight, "rms_norm", "weight", 3)
    if x.is_complex():
        return _rms_norm_by_ops(x, normalized_shape, w, eps)
    if not x.dtype.is_floating_point:
        raise messages.not_implemented_for("rms_norm", x.dtype)
    kind = np.dtype(np.float32) if x.dtype.itemsize == 2 else operand_of(x).dtype
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
    return normalized(RMS_NORM, x, w, None, frame, None, (frame.view[frame.axes[0] :],))[0]


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

GROUP_NORM = row(
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


@rule("group_norm")
def in_groups(call):
    x, *parameters = call.inputs
    groups, eps = call.args[4:6]
    found = group_norm(call.full(x).flatten(0, 1), groups, eps=eps)
    return scaled(call, call.shaped(found, x.shape), parameters)


def scaled(call, found, parameters):
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
    x, w, b = require(input, name), optional(weight, name, "weight", 3), optional(bias, name, "bias", 4)
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
    check_types(x, "GroupNormKernelImpl", w, b)
    frame = frame_of_groups(shape, int(num_groups), float(eps))
    return normalized(GROUP_NORM, x, w, b, frame, None, (num_groups, frame.eps))[0]


def _rms_norm_by_ops(x, normalized_shape, w, eps):
    """`rms_norm` of complex elements, composed of ops."""
    eps = float(np.finfo(array_of(x).dtype).eps) if eps is None else eps
    frame = _last_dims(x, normalized_shape, w, None, eps, "rms_norm", False)
    result = mul(x, rsqrt(add(mean(square(x), frame.axes, True), eps)))
    return (result if w is None else mul(result, w)).to(x.dtype)


@lru_cache(256)
def frame_of_groups(shape, num_groups, eps):
    inner = (num_groups, shape[1] // num_groups)
    ndim = len(shape) + 1
    parameter = (1, *inner) + (1,) * (ndim - 3)
    return Frame(
        shape[:1] + inner + shape[2:], tuple(range(2, ndim)), parameter, (0, *range(3, ndim)), True, False, eps
    )


functions = publish(
    globals(),
    {
        "group_norm": group_norm_of_package,
        "layer_norm": layer_norm_of_package,
        "rms_norm": rms_norm,
    },
)
