"""Functions of `torch.ops.aten` that compute gradients: PyTorch's backward functions, with its arguments.

Each recomputes the op and asks the engine for the gradient, unless a formula of the saved result is simpler.
"""

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._ops.image import average_pooling, interpolation
from cygrad._ops.loss import classifier_losses, distribution_losses, pointwise_losses
from cygrad._ops.loss.reductions import CODES
from cygrad._ops.nn import activations, embeddings, rectifiers, softmax
from cygrad._ops.nn.scaled_dot_product import attended
from cygrad._ops.shape.padding import pad

_REDUCTIONS = {code: name for name, code in CODES.items()}


def pulled_back(function, grad, *inputs, mask=None):
    """Return the gradients of `function(*inputs)` for `grad`; one for each input, None where `mask` is False."""
    wanted = [isinstance(value, Tensor) and (mask is None or mask[i]) for i, value in enumerate(inputs)]
    is_recorded = cygrad.is_grad_enabled() and any(
        isinstance(value, Tensor) and value.requires_grad for value in (grad, *inputs)
    )
    leaves = [
        value if not wanted[i] or (is_recorded and value.requires_grad) else value.detach().requires_grad_()
        for i, value in enumerate(inputs)
    ]
    if not any(wanted):
        return [None] * len(inputs)
    with cygrad.enable_grad():
        result = function(*leaves)
        asked = [leaf for leaf, is_wanted in zip(leaves, wanted) if is_wanted]
        found = iter(cygrad.autograd.grad(result, asked, grad, create_graph=is_recorded))
    return [next(found) if is_wanted else None for is_wanted in wanted]


def _reduction(code):
    return _REDUCTIONS.get(code, "none")


# -- elementwise --


def sigmoid_backward(grad_output, output):
    """Return the gradient of `sigmoid`, given its result."""
    return grad_output * (output * (1 - output)).conj()


def tanh_backward(grad_output, output):
    """Return the gradient of `tanh`, given its result."""
    return grad_output * (1 - output * output).conj()


def threshold_backward(grad_output, self, threshold):
    """Return the gradient of `threshold`: `grad_output` where `self` is above the threshold, else 0."""
    return cygrad.where(self <= threshold, 0, grad_output)


def gelu_backward(grad_output, self, *, approximate="none"):
    """Return the gradient of `gelu`."""
    return pulled_back(lambda x: activations.gelu(x, approximate=approximate), grad_output, self)[0]


def silu_backward(grad_output, self):
    """Return the gradient of `silu`."""
    return pulled_back(activations.silu, grad_output, self)[0]


def mish_backward(grad_output, self):
    """Return the gradient of `mish`."""
    return pulled_back(activations.mish, grad_output, self)[0]


def hardtanh_backward(grad_output, self, min_val, max_val):
    """Return the gradient of `hardtanh`."""
    return cygrad.where((self <= min_val) | (self >= max_val), 0, grad_output)


def hardswish_backward(grad_output, self):
    """Return the gradient of `hardswish`."""
    return pulled_back(rectifiers.hardswish, grad_output, self)[0]


def hardsigmoid_backward(grad_output, self):
    """Return the gradient of `hardsigmoid`."""
    return pulled_back(rectifiers.hardsigmoid, grad_output, self)[0]


def hardshrink_backward(grad_out, self, lambd):
    """Return the gradient of `hardshrink`."""
    return pulled_back(lambda x: rectifiers.hardshrink(x, lambd), grad_out, self)[0]


def softshrink_backward(grad_output, self, lambd):
    """Return the gradient of `softshrink`."""
    return pulled_back(lambda x: rectifiers.softshrink(x, lambd), grad_output, self)[0]


def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    """Return the gradient of `leaky_relu`; its result has the signs of its argument."""
    return cygrad.where(self > 0, grad_output, grad_output * negative_slope)


def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    """Return the gradient of `scale * elu(x, alpha)`, whose negative branch is `alpha * (exp(input_scale * x) - 1)`."""
    x = self_or_result
    if is_result:
        below = grad_output * input_scale * (x + alpha * scale)
    else:
        below = grad_output * input_scale * alpha * scale * cygrad.exp(x.clamp(max=0) * input_scale)
    return cygrad.where(x <= 0, below, grad_output * scale)


def softplus_backward(grad_output, self, beta, threshold):
    """Return the gradient of `softplus`."""
    return pulled_back(lambda x: activations.softplus(x, beta, threshold), grad_output, self)[0]


def glu_backward(grad_output, self, dim):
    """Return the gradient of `glu`."""
    return pulled_back(lambda x: activations.glu(x, dim), grad_output, self)[0]


def log_sigmoid_backward(grad_output, self, buffer):
    """Return the gradient of `log_sigmoid`; the buffer is not used."""
    return pulled_back(activations.logsigmoid, grad_output, self)[0]


def logit_backward(grad_output, self, eps=None):
    """Return the gradient of `logit`."""
    return pulled_back(lambda x: cygrad.logit(x, eps), grad_output, self)[0]


def native_dropout_backward(grad_output, mask, scale):
    """Return the gradient of dropout: `grad_output * mask * scale`."""
    return grad_output * mask * scale


# -- softmax and losses --


def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """Return the gradient of `softmax`, given its result, in `input_dtype`."""
    return softmax.softmax_backward_data(grad_output, output, dim).to(input_dtype)


def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """Return the gradient of `log_softmax`, given its result, in `input_dtype`."""
    return softmax.log_softmax_backward_data(grad_output, output, dim).to(input_dtype)


def mse_loss_backward(grad_output, self, target, reduction):
    """Return the gradient of `mse_loss`; the code of the reduction is 0 for none, 1 for the mean, 2 for the sum."""
    how = _reduction(reduction)
    return pulled_back(lambda x: pointwise_losses.mse_loss(x, target, reduction=how), grad_output, self)[0]


def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    """Return the gradient of `smooth_l1_loss`."""
    how = _reduction(reduction)
    return pulled_back(
        lambda x: pointwise_losses.smooth_l1_loss(x, target, reduction=how, beta=beta), grad_output, self
    )[0]


def huber_loss_backward(grad_output, self, target, reduction, delta):
    """Return the gradient of `huber_loss`."""
    how = _reduction(reduction)
    return pulled_back(lambda x: pointwise_losses.huber_loss(x, target, reduction=how, delta=delta), grad_output, self)[
        0
    ]


def binary_cross_entropy_backward(grad_output, self, target, weight=None, reduction=1):
    """Return the gradient of `binary_cross_entropy`."""
    how = _reduction(reduction)
    return pulled_back(
        lambda x: distribution_losses.binary_cross_entropy(x, target, weight, reduction=how), grad_output, self
    )[0]


def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    """Return the gradient of `nll_loss`, given the total weight that its forward returned."""
    return classifier_losses.nll_loss_backward(
        grad_output, target, weight, ignore_index, reduction, total_weight, tuple(self.shape)
    )


def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    """Return the gradient of the table of `embedding`, of `num_weights` rows."""
    table = grad_output.new_zeros(num_weights, grad_output.shape[-1])
    return pulled_back(
        lambda w: embeddings.embedding_of_package(w, indices, padding_idx, scale_grad_by_freq), grad_output, table
    )[0]


# -- normalization, convolution and attention --


def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    """Return the gradients of input, weight and bias of layer norm with the statistics of its forward."""
    shape, grad = tuple(normalized_shape), grad_out
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    normal = (input - mean) * rstd
    others = tuple(range(input.ndim - len(shape)))
    scaled = grad if weight is None else grad * weight.reshape(shape)
    means = [(scaled * part).mean(axes, keepdim=True) for part in (1, normal)]
    found = (scaled - means[0] - normal * means[1]) * rstd
    of_weight = (grad * normal).sum(others) if others else grad * normal
    results = found, of_weight, grad.sum(others) if others else grad
    return tuple(result if wanted else None for result, wanted in zip(results, output_mask))


def native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    """Return the gradients of input, weight and bias of group norm with the statistics of its forward."""
    shape = (N, group, C // group, HxW)
    grad, x = grad_out.reshape(shape), input.reshape(shape)
    mean, rstd = (each.reshape(N, group, 1, 1) for each in (mean, rstd))
    normal = (x - mean) * rstd
    scaled = grad if weight is None else grad * weight.reshape(1, group, C // group, 1)
    means = [(scaled * part).mean((2, 3), keepdim=True) for part in (1, normal)]
    found = ((scaled - means[0] - normal * means[1]) * rstd).reshape(input.shape)
    results = found, (grad * normal).sum((0, 3)).reshape(C), grad.sum((0, 3)).reshape(C)
    return tuple(result if wanted else None for result, wanted in zip(results, output_mask))


def native_batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    """Return the gradients of input, weight and bias of batch norm; without `train` the statistics are constants."""
    shape = (1, -1, *(1,) * (input.ndim - 2))
    axes = (0, *range(2, input.ndim))
    mean, rstd = (save_mean, save_invstd) if train else (running_mean, (running_var + eps).rsqrt())
    mean, rstd = mean.reshape(shape), rstd.reshape(shape)
    normal = (input - mean) * rstd
    scaled = grad_out if weight is None else grad_out * weight.reshape(shape)
    if train:
        means = [(scaled * part).mean(axes, keepdim=True) for part in (1, normal)]
        scaled = scaled - means[0] - normal * means[1]
    results = scaled * rstd, (grad_out * normal).sum(axes), grad_out.sum(axes)
    return tuple(result if wanted else None for result, wanted in zip(results, output_mask))


def convolution_backward(
    grad_output,
    input,
    weight,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    """Return the gradients of input, weight and bias of `convolution`; None where `output_mask` is False."""

    def run(x, w):
        return cygrad.convolution(x, w, None, stride, padding, dilation, transposed, output_padding, groups)

    found = pulled_back(run, grad_output, input, weight, mask=output_mask[:2])
    axes = (0, *range(2, grad_output.ndim))
    return *found, grad_output.sum(axes) if output_mask[2] else None


def _scaled_dot_product_flash_attention_for_cpu_backward(
    grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None
):
    """Return the gradients of query, key and value of attention."""
    return tuple(
        pulled_back(lambda q, k, v: attended(q, k, v, attn_mask, scale, is_causal), grad_out, query, key, value)
    )


# -- pooling, resizing and padding --


def max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    """Return the gradient of `max_pool2d_with_indices`: each element of `grad_output` goes to its index."""
    flat = self.new_zeros(*self.shape[:-2], self.shape[-2] * self.shape[-1])
    return flat.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).reshape(self.shape)


def avg_pool2d_backward(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    """Return the gradient of `avg_pool2d`."""
    how = kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override
    return pulled_back(lambda x: average_pooling.avg_pool2d(x, *how), grad_output, self)[0]


def avg_pool3d_backward(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    """Return the gradient of `avg_pool3d`."""
    how = kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override
    return pulled_back(lambda x: average_pooling.avg_pool3d(x, *how), grad_output, self)[0]


def _adaptive_avg_pool2d_backward(grad_output, self):
    """Return the gradient of `adaptive_avg_pool2d`."""
    size = grad_output.shape[-2:]
    return pulled_back(lambda x: average_pooling.adaptive_avg_pool2d(x, size), grad_output, self)[0]


def _adaptive_avg_pool3d_backward(grad_output, self):
    """Return the gradient of `adaptive_avg_pool3d`."""
    size = grad_output.shape[-3:]
    return pulled_back(lambda x: average_pooling.adaptive_avg_pool3d(x, size), grad_output, self)[0]


def _upsampling(name: str, mode: str, is_linear: bool) -> dict[str, Any]:
    """Return the function that resizes images, and the one of its gradient, by their names."""

    def resized(x, size, how):
        align_corners, factors = (how[0], how[1:]) if is_linear else (None, how)
        if len(factors) == 1 and isinstance(factors[0], (list, tuple)):  # of the overload `vec`
            factors = factors[0]
        factors = list(factors) if factors and None not in factors else None
        if size is None or (factors and [int(n * f) for n, f in zip(x.shape[2:], factors)] == list(size)):
            return interpolation.interpolate(x, None, factors, mode, align_corners)
        return interpolation.interpolate(x, list(size), None, mode, align_corners)

    def forward(self, output_size, *how, **named):
        return resized(self, output_size, (*how, *named.values()))

    def backward(grad_output, output_size, input_size, *how, **named):
        x, how = grad_output.new_zeros(input_size), (*how, *named.values())
        return pulled_back(lambda x: resized(x, output_size, how), grad_output, x)[0]

    arguments = "output_size, align_corners, *scales" if is_linear else "output_size, *scales"
    forward.__doc__ = f"Resize images to `output_size` by the mode {mode!r}; the arguments are ({arguments})."
    backward.__doc__ = f"Return the gradient of `{name}` for images of `input_size`."
    for function, title in ((forward, name), (backward, f"{name}_backward")):
        function.__name__ = function.__qualname__ = title
    return {name: forward, f"{name}_backward": backward}


for _name, _mode in {
    "upsample_nearest1d": "nearest",
    "upsample_nearest2d": "nearest",
    "upsample_nearest3d": "nearest",
    "_upsample_nearest_exact1d": "nearest-exact",
    "_upsample_nearest_exact2d": "nearest-exact",
    "_upsample_nearest_exact3d": "nearest-exact",
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "bilinear",
    "upsample_bicubic2d": "bicubic",
    "upsample_trilinear3d": "trilinear",
}.items():
    globals().update(_upsampling(_name, _mode, "nearest" not in _mode))


def _padding(name: str, mode: str) -> dict[str, Any]:
    def forward(self, padding):
        return pad(self, list(padding), mode)

    def backward(grad_output, self, padding):
        return pulled_back(lambda x: pad(x, list(padding), mode), grad_output, self)[0]

    forward.__doc__ = f"Pad the last dimensions by the mode {mode!r}."
    backward.__doc__ = f"Return the gradient of `{name}`."
    for function, title in ((forward, name), (backward, f"{name}_backward")):
        function.__name__ = function.__qualname__ = title
    return {name: forward, f"{name}_backward": backward}


for _mode, _word in (("reflect", "reflection"), ("replicate", "replication")):
    for _dims in (1, 2, 3):
        globals().update(_padding(f"{_word}_pad{_dims}d", _mode))


# -- views --


def slice_backward(grad_output, input_sizes, dim, start, end, step):
    """Return zeros of `input_sizes` with `grad_output` in the slice `start:end:step` of a dimension."""
    return cygrad.slice_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, start, end, step)


def select_backward(grad_output, input_sizes, dim, index):
    """Return zeros of `input_sizes` with `grad_output` at an index of a dimension."""
    return cygrad.select_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, index)


def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    """Return zeros of `input_sizes` with `grad_output` on a diagonal."""
    return cygrad.diagonal_scatter(grad_output.new_zeros(input_sizes), grad_output, offset, dim1, dim2)


def unfold_backward(grad_in, input_sizes, dim, size, step):
    """Return the gradient of `unfold`: the sums of what came from each element."""
    return pulled_back(lambda x: x.unfold(dim, size, step), grad_in, grad_in.new_zeros(input_sizes))[0]


def trace_backward(grad, sizes):
    """Return the gradient of `trace`: `grad` on the diagonal of a matrix of these sizes."""
    return cygrad.eye(*sizes, dtype=grad.dtype, device=grad.device) * grad


def index_select_backward(grad, self_sizes, dim, index):
    """Return the gradient of `index_select`: the sums of what came from each place."""
    return grad.new_zeros(self_sizes).index_add(dim, index, grad)


_HELPERS = ("_padding", "_reduction", "_upsampling")
functions = {
    name: function
    for name, function in globals().items()
    if getattr(function, "__module__", None) == __name__ and name not in (*_HELPERS, "pulled_back")
}
