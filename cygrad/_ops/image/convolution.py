"""Convolutions in one to three dimensions, and transposed convolutions, which are each other's gradients.

A convolution relates images, filters, and results by a sum that is linear in each of them. Its three forms, the kernels
of `_kernels/cpu/image/convolution.py`, are one another's gradients, so two rows provide derivatives of any order.
"""

from functools import lru_cache

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IMAGE, IMAGE_GRADIENT, IN0, IN1, PRIVATE, declare, facts, publish
from cygrad._core.graph.record import apply_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._kernels.cpu.image import convolution as kernels
from cygrad._kernels.cpu.image.window_geometry import geometry
from cygrad._kernels.device.gpu_forms import half_as_it_is
from cygrad._ops.base.arguments import integer, integers, is_integer, require
from cygrad._ops.base.batching.rules import regroup, rule
from cygrad._ops.base.pointwise import conjugate
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import squeeze, unsqueeze

# -- the two rows --


@half_as_it_is
def convolution_array(x, w, b, stride, padding, dilation, transposed, output_padding, groups, size, *_):
    """Convolve arrays. `size` is the spatial size of the result, which determines the padding at the end."""
    if transposed:
        where = geometry(size, w.shape[2:], x.shape[2:], stride, dilation, padding)
        return kernels.spread(x, w, b, where, groups)
    where = geometry(x.shape[2:], w.shape[2:], size, stride, dilation, padding)
    return kernels.correlate(x, w, b, where, groups)


@half_as_it_is
def filter_gradient_array(x, g, kernel, stride, padding, dilation, groups, *_):
    where = geometry(x.shape[2:], kernel, g.shape[2:], stride, dilation, padding)
    return kernels.filter_gradient(x, g, where, groups)


def convolution_rule(n, g):
    stride, padding, dilation, transposed, output_padding, groups, _, image, kernel = n.args
    grad_x = grad_w = grad_b = None
    if n.needs(0):
        args = (stride, padding, dilation, not transposed, output_padding, groups, image)
        grad_x = convolve(g, conjugate(n.saved(1)), None, *args)
    if n.needs(1):
        x = conjugate(n.saved(0))
        images, results = (g, x) if transposed else (x, g)
        grad_w = filter_gradient(images, results, kernel, stride, padding, dilation, groups)
    if n.needs(2):
        grad_b = total(g, (0, *range(2, g.dim())))
    return grad_x, grad_w, grad_b


CONVOLUTION = declare(
    "convolution",
    convolution_rule,
    saves=(IN1, IN0, 0),
    flags=FUNCTION_ONLY | IMAGE | IMAGE_GRADIENT,
    kernel=convolution_array,
    inputs="input weight bias",
    attributes="stride padding dilation transposed output_padding groups",
)


def convolve(x, w, b, stride, padding, dilation, transposed, output_padding, groups, size):
    """Apply the row to valid tensors. `size` is the spatial size of the result."""
    args = (stride, padding, dilation, transposed, output_padding, groups, size)
    return apply_n(CONVOLUTION, (x, w, b), (*args, array_of(x).shape[2:], array_of(w).shape[2:]))


def filter_gradient_rule(n, h):
    _, stride, padding, dilation, groups, image, size = n.args
    none = (0,) * len(size)
    grad_x = grad_g = None
    if n.needs(0):
        grad_x = convolve(conjugate(n.saved(1)), h, None, stride, padding, dilation, True, none, groups, image)
    if n.needs(1):
        grad_g = convolve(conjugate(n.saved(0)), h, None, stride, padding, dilation, False, none, groups, size)
    return grad_x, grad_g


FILTER_GRADIENT = declare(
    "filter_gradient",
    filter_gradient_rule,
    saves=(IN1, IN0),
    flags=PRIVATE,
    kernel=filter_gradient_array,
    node="ConvolutionBackwardBackward0",
    inputs="input grad_output",
)


def filter_gradient(x, g, kernel, stride, padding, dilation, groups):
    """Return the gradient of the filters, given images `x` and the gradient `g` of the results. Saves both."""
    args = (kernel, stride, padding, dilation, groups, array_of(x).shape[2:], array_of(g).shape[2:])
    return apply_n(FILTER_GRADIENT, (x, g), args)


@rule("filter_gradient")
def _filter_gradient(call):
    x, g = (call.full(t).transpose(0, 1).flatten(1, 2) for t in call.inputs)
    args = (*call.args[:4], call.args[4] * call.size, *call.args[5:])
    return call.shaped(apply_n(call.op, (x, g), args), call.out.shape)


# -- arguments --


def expanded(given, name, dims):
    """Expand a single int to `dims` ints."""
    if len(given) == 1:
        return given * dims
    if len(given) != dims:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the convolution "
            f"dimensions, but got {name}={list(given)}"
        )
    return given


def check_numbers(stride, padding, dilation, output_padding, groups):
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) <= 0:
        raise RuntimeError("non-positive dilation is not supported")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def check_types(x, w, b, transposed):
    """Check that dtypes are equal and not boolean. The bias of a transposed convolution may have any real dtype."""
    if b is not None and x.dtype is not b.dtype and (not transposed or b.is_complex() and x.dtype is w.dtype):
        raise RuntimeError(f"Input type ({messages.c_word(x)}) and bias type ({messages.c_word(b)}) should be the same")
    if x.dtype is not w.dtype and x.dtype.type_name not in ("Float", "BFloat16"):
        raise RuntimeError(f"expected scalar type {x.dtype.type_name} but found {w.dtype.type_name}")
    if x.dtype is not w.dtype:
        raise RuntimeError(
            f"Input type ({x.type()}) and weight type ({w.type()}) should be the same or input should be a MKLDNN "
            "tensor and weight is a dense tensor"
        )
    if x.dtype.type_name == "Bool":
        raise messages.not_implemented_for("slow_conv2d_cpu", x.dtype)


def check_shapes(x_shape, w_shape, b_shape, transposed, groups):
    """Check that the channels of images, filters, and bias match."""
    x_shape, w_shape = list(x_shape), list(w_shape)
    if len(x_shape) != len(w_shape):
        raise RuntimeError(
            f"Expected {len(w_shape)}-dimensional input for {len(w_shape)}-dimensional weight {w_shape}, but got "
            f"{len(x_shape)}-dimensional input of size {x_shape} instead"
        )
    if w_shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{w_shape} instead"
        )
    if w_shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{w_shape}] instead"
        )
    expected = w_shape[0] if transposed else w_shape[1] * groups
    if x_shape[1] != expected:
        given = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {given}, weight of size {w_shape}, expected input{x_shape} to have {expected} channels, but got "
            f"{x_shape[1]} channels instead"
        )
    filters = w_shape[1] * groups if transposed else w_shape[0]
    if b_shape is not None and b_shape != (filters,):
        given = "transposed=1" if transposed else ""
        raise RuntimeError(
            f"Given {given + ', ' if given else ''}weight of size {w_shape}, expected bias to be 1-dimensional with "
            f"{filters} elements, but got bias of size {list(b_shape)} instead"
        )


def same_padding(padding, kernel, stride, dilation):
    """Return the padding before the image for 'same' or 'valid'."""
    if padding == "valid":
        return (0,) * len(stride)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if max(stride) > 1:
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    return tuple([d * (k - 1) // 2 for k, d in zip(kernel, dilation)])


def by(values):
    """Format sizes as PyTorch does: (8 x 8)."""
    return f"({' x '.join(map(str, values))})"


def result_size(x_shape, kernel, stride, padding, dilation):
    """Return the spatial size of a convolution's result."""
    image = x_shape[2:]
    padded = [n + 2 * p for n, p in zip(image, padding)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    if any(r > n for r, n in zip(reach, padded)):
        raise RuntimeError(
            f"Calculated padded input size per channel: {by(padded)}. Kernel size: {by(reach)}. Kernel size can't be "
            "greater than actual input size"
        )
    check_places(x_shape, kernel)
    return tuple([(n - r) // s + 1 for n, r, s in zip(padded, reach, stride)])


def check_places(x_shape, kernel):
    if 0 in kernel:
        high = (1, *kernel)[-2:]  # a sequence is an image of height 1, also in `transposed_size`
        text = f": {' x '.join(map(str, kernel))} (TxHxW)" if len(kernel) == 3 else _by_words("kernel", high)
        raise RuntimeError(f"kernel size should be greater than zero, but got{text}")
    if 0 in x_shape[2:]:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x_shape)}"
        )


def _by_words(name, values):
    words = ("depth", "height", "width")[-len(values) :]
    return "".join(f" {name}_{word}: {value}" for word, value in zip(words, values))


def transposed_size(x_shape, kernel, stride, padding, dilation, output_padding):
    """Return the spatial size of a transposed convolution's result."""
    if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation)):
        given = (("output_padding", output_padding, 0), ("stride", stride, 1), ("dilation", dilation, 1))
        rows = [(name, values if len(stride) > 1 else (row, *values)) for name, values, row in given]
        text = "".join(_by_words(name, values) for name, values in rows)
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got{text}")
    check_places(x_shape, kernel)
    size = [
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, d, o in zip(x_shape[2:], kernel, stride, padding, dilation, output_padding)
    ]
    if min(size) < 1:
        raise RuntimeError(
            f"Given input size per channel: {by(x_shape[2:])}. Calculated output size per channel: {by(size)}. Output "
            "size is too small"
        )
    return tuple(size)


# -- entry points --


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Convolve over all dimensions of `weight` beyond the first two, or apply the transposed convolution; see `conv2d`.

    `stride`, `padding`, `dilation`, and `output_padding` are lists of ints. Saves each operand for the other's
    gradient.

    >>> import cygrad
    >>> x, w = cygrad.ones(1, 1, 4), cygrad.ones(1, 1, 3)
    >>> cygrad.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[3., 3.]]])
    """
    require(input, "convolution"), require(weight, "convolution", "weight", 2)
    if bias is not None:
        require(bias, "convolution", "bias", 3)
    for position, (name, value) in enumerate((("stride", stride), ("padding", padding), ("dilation", dilation)), 4):
        integers(value, "convolution", name, position)
    messages.check_flag("convolution", "transposed", 7, transposed)
    integers(output_padding, "convolution", "output_padding", 8)
    groups = integer(groups, "convolution", "groups", 9)
    return convolved(1, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@rule("convolution")
def _convolution(call):
    x, weight, bias = call.inputs
    if x.ndim != call.out.ndim or x.ndim != weight.ndim:
        raise NoBatchingRule("convolution")
    if not any(call.has(t) for t in (weight, bias)):
        found = apply_n(call.op, (call.samples(x).flatten(0, 1), weight, bias), call.args)
        return call.shaped(found, call.out.shape)
    # place samples side by side, as groups of channels
    images, filters = call.full(x).transpose(0, 1).flatten(1, 2), call.full(weight).flatten(0, 1)
    found = apply_n(call.op, (images, filters, None), (*call.args[:5], call.args[5] * call.size, *call.args[6:]))
    n, channels = call.out.shape[:2]
    found = regroup(found, (n, call.size, channels, *call.out.shape[2:])).transpose(0, 1)
    if bias is None:
        return found
    b = call.near(bias)
    return found + b.view(b.shape[0], 1, channels, *(1,) * (call.out.ndim - 2))


def convolved(dims, x, w, b, stride, padding, dilation, transposed, output_padding, groups):
    """Like `convolution`, but an int is also accepted in place of each list."""
    check_types(x, w, b, transposed)
    if b is not None and x.dtype is not b.dtype:
        b = b.to(x.dtype)
    shapes = array_of(x).shape, array_of(w).shape, None if b is None else array_of(b).shape
    stride, padding = plain(stride, "stride", dims), plain(padding, "padding", dims)
    dilation, output_padding = plain(dilation, "dilation", dims), plain(output_padding, "output_padding", dims)
    return convolve(x, w, b, *planned(shapes, stride, padding, dilation, bool(transposed), output_padding, groups))


def plain(value, name, dims):
    """Convert integers of any kind to a tuple of ints, so that cached plans are found; return strings unchanged."""
    if type(value) is int:
        return (value,) * dims
    if isinstance(value, str):
        return value
    if is_integer(value):
        return (integer(value, "convolution", name, 0),) * dims
    return integers(value, "convolution", name, 0)


@lru_cache(256)
def planned(shapes, stride, padding, dilation, transposed, output_padding, groups):
    """Return the non-tensor arguments of `convolve` for tensors of these shapes; raises if they do not fit."""
    x_shape, w_shape, b_shape = shapes
    kernel = w_shape[2:]
    dims = max(len(kernel), 1)
    stride, dilation = expanded(stride, "stride", dims), expanded(dilation, "dilation", dims)
    output_padding = expanded(output_padding, "output_padding", dims)
    word = padding if isinstance(padding, str) else None
    if word:
        padding = same_padding(padding, kernel, stride, dilation)
    padding = expanded(padding, "padding", dims)
    check_numbers(stride, padding, dilation, output_padding, groups)
    check_shapes(x_shape, w_shape, b_shape, transposed, groups)
    if transposed:
        size = transposed_size(x_shape, kernel, stride, padding, dilation, output_padding)
    elif word == "same":
        check_places(x_shape, kernel)
        size = x_shape[2:]
    else:
        size = result_size(x_shape, kernel, stride, padding, dilation)
    checked_lengths((x_shape[0], w_shape[1] * groups if transposed else w_shape[0], *size))
    return stride, padding, dilation, transposed, output_padding, groups, size


def is_numbers(value):
    return type(value) is int or isinstance(value, (list, tuple)) or is_integer(value)


def convolution_of(dims, function, signature, x, w, b, stride, padding, dilation, transposed, output_padding, groups):
    """Implement one of the functions below: check its arguments and add a batch dimension to unbatched input."""
    right = isinstance(x, Tensor) and isinstance(w, Tensor) and (b is None or isinstance(b, Tensor))
    if isinstance(padding, str) and transposed:
        raise TypeError(f"{function}(): argument 'padding' must be tuple of ints, not str")
    right = right and (is_numbers(padding) or isinstance(padding, str)) and is_integer(groups)
    if not (right and is_numbers(stride) and is_numbers(dilation) and is_numbers(output_padding)):
        given = [(x, ()), (w, ()), (b, None), (stride, 1), (padding, 0), (dilation, 1), (groups, 1)]
        while given[-1][0] is given[-1][1]:
            given.pop()  # omitted arguments
        raise messages.no_such_call(function, [value for value, _ in given], {}, [signature])
    if x.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {function}, but got input of size: "
            f"{list(x.shape)}"
        )
    single = x.dim() == dims + 1
    if single:
        x = unsqueeze(x, 0)
    groups = integer(groups, function, "groups", 7)
    result = convolved(dims, x, w, b, stride, padding, dilation, transposed, output_padding, groups)
    return squeeze(result, 0) if single else result


PLAIN = "Tensor input, Tensor weight, Tensor bias = None, stride = 1, padding = 0, dilation = 1, int groups = 1"
TRANSPOSED = (
    "Tensor input, Tensor weight, Tensor bias = None, stride = 1, padding = 0, output_padding = 0, int groups = 1, "
    "dilation = 1"
)


@facts(autocast="lower", autocast_gpu="lower", overloads="")
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolve sequences with filters; the one-dimensional version of `conv2d`.

    `input`: ([n,] channels, length); `weight`: (filters, channels / groups, taps).

    >>> import cygrad
    >>> cygrad.conv1d(cygrad.tensor([[1.0, 2.0, 4.0]]), cygrad.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2.]])
    """
    return convolution_of(1, "conv1d", PLAIN, input, weight, bias, stride, padding, dilation, False, 0, groups)


@facts(autocast="lower", autocast_gpu="lower", overloads="")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolve images with filters: each output element is the sum of an image window times a filter, plus `bias`.

    `input`: ([n,] channels, height, width); `weight`: (filters, channels / groups, filter height, filter width);
    `bias`: (filters), all of one dtype. The result has one channel per filter, and floor((height + 2 padding - dilation
    (filter height - 1) - 1) / stride + 1) rows; the number of columns follows in the same way.

    `stride` is the distance between windows. `padding` is the number of zeros added on each side of the image, or
    'valid' for none, or 'same' to preserve the size (if the total is odd, the extra zero goes at the end). `dilation`
    is the distance between the taps of a filter. All three are an int or one int per dimension. `groups` splits
    channels and filters into independent groups.

    Saves `input` and `weight`. Gradients: `conv_transpose2d(g, weight)` for `input`; the sums of g times the windows
    for `weight`; the sums of g for `bias`. Scratch memory does not grow with the number of images.

    Raises RuntimeError for incompatible shapes, different dtypes, non-positive strides, and filters larger than the
    padded image; NotImplementedError for booleans.

    >>> import cygrad
    >>> image = cygrad.arange(9.0).reshape(1, 3, 3)
    >>> cygrad.conv2d(image, cygrad.ones(1, 1, 2, 2))
    tensor([[[ 8., 12.],
             [20., 24.]]])
    """
    return convolution_of(2, "conv2d", PLAIN, input, weight, bias, stride, padding, dilation, False, 0, groups)


@facts(autocast="lower", autocast_gpu="lower", overloads="")
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolve volumes with filters; the three-dimensional version of `conv2d`.

    `input`: ([n,] channels, depth, height, width); `weight`: (filters, channels / groups, depth, height, width).

    >>> import cygrad
    >>> cygrad.conv3d(cygrad.ones(1, 2, 2, 2), cygrad.ones(1, 1, 2, 2, 2))
    tensor([[[[8.]]]])
    """
    return convolution_of(3, "conv3d", PLAIN, input, weight, bias, stride, padding, dilation, False, 0, groups)


@facts(autocast="lower", autocast_gpu="lower")
def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution of sequences, the gradient of `conv1d` in its input; see `conv_transpose2d`.

    `input`: ([n,] filters, length); `weight`: (filters, channels / groups, taps).

    >>> import cygrad
    >>> cygrad.conv_transpose1d(cygrad.tensor([[1.0, 2.0]]), cygrad.ones(1, 1, 2), stride=2)
    tensor([[1., 1., 2., 2.]])
    """
    given = (input, weight, bias, stride, padding, dilation, True, output_padding, groups)
    return convolution_of(1, "conv_transpose1d", TRANSPOSED, *given)


@facts(autocast="lower", autocast_gpu="lower")
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution, the gradient of `conv2d` in its input: each element of `input` adds a scaled filter.

    `input`: ([n,] filters, height, width); `weight`: (filters, channels / groups, filter height, filter width); `bias`:
    (channels), all of one dtype. The result has (height - 1) stride - 2 padding + dilation (filter height - 1) +
    output_padding + 1 rows; the number of columns follows in the same way.

    `stride`, `padding`, `dilation`, and `groups` are those of the `conv2d` whose transpose this is. `output_padding`
    adds rows and columns at the end, because strided convolutions map images of several sizes to results of the same
    size.

    Saves `input` and `weight`. Gradients: `conv2d(g, weight)` for `input`; the sums of `input` times the windows of g
    for `weight`; the sums of g for `bias`.

    Raises RuntimeError for incompatible shapes, different dtypes, non-positive strides, and an output padding that is
    smaller than neither the stride nor the dilation; NotImplementedError for booleans.

    >>> import cygrad
    >>> cygrad.conv_transpose2d(cygrad.ones(1, 2, 2), cygrad.ones(1, 1, 2, 2))
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    given = (input, weight, bias, stride, padding, dilation, True, output_padding, groups)
    return convolution_of(2, "conv_transpose2d", TRANSPOSED, *given)


@facts(autocast="lower", autocast_gpu="lower")
def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution of volumes, the gradient of `conv3d` in its input; see `conv_transpose2d`.

    `input`: ([n,] filters, depth, height, width); `weight`: (filters, channels / groups, depth, height, width).

    >>> import cygrad
    >>> cygrad.conv_transpose3d(cygrad.ones(1, 1, 1, 1), cygrad.ones(1, 1, 1, 2, 2))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    given = (input, weight, bias, stride, padding, dilation, True, output_padding, groups)
    return convolution_of(3, "conv_transpose3d", TRANSPOSED, *given)


composite = dict.fromkeys(
    ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), FUNCTION_ONLY
)
functions = publish(globals())
