"""Functions of `torch.ops.aten` that compute gradients: PyTorch's backward functions, with its arguments.

Each recomputes the op and asks the engine for the gradient, unless a formula of the saved result is simpler.
"""

import cygrad
from cygrad import Tensor
from cygrad._ops.base.arguments import wrap_dim
from cygrad._ops.loss import classifier_losses, distribution_losses, pointwise_losses
from cygrad._ops.nn import activations, embeddings, rectifiers, softmax
from cygrad._ops.nn.scaled_dot_product import attended
from cygrad.ops._aten.losses import reduction_of
from cygrad.ops._aten.table import aten


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


# -- elementwise --


@aten
def sigmoid_backward(grad_output, output):
    """Return the gradient of `sigmoid`, given its result."""
    return grad_output * (output * (1 - output)).conj()


@aten
def tanh_backward(grad_output, output):
    """Return the gradient of `tanh`, given its result."""
    return grad_output * (1 - output * output).conj()


@aten
def threshold_backward(grad_output, self, threshold):
    """Return the gradient of `threshold`: `grad_output` where `self` is above the threshold, else 0."""
    return pulled_back(lambda x: rectifiers.threshold(x, threshold, 0), grad_output, self)[0]


@aten
def gelu_backward(grad_output, self, *, approximate="none"):
    """Return the gradient of `gelu`."""
    return pulled_back(lambda x: activations.gelu(x, approximate=approximate), grad_output, self)[0]


@aten
def silu_backward(grad_output, self):
    """Return the gradient of `silu`."""
    return pulled_back(activations.silu, grad_output, self)[0]


@aten
def mish_backward(grad_output, self):
    """Return the gradient of `mish`."""
    return pulled_back(activations.mish, grad_output, self)[0]


@aten
def hardtanh_backward(grad_output, self, min_val, max_val):
    """Return the gradient of `hardtanh`."""
    return pulled_back(lambda x: rectifiers.hardtanh(x, min_val, max_val), grad_output, self)[0]


@aten
def hardswish_backward(grad_output, self):
    """Return the gradient of `hardswish`."""
    return pulled_back(rectifiers.hardswish, grad_output, self)[0]


@aten
def hardsigmoid_backward(grad_output, self):
    """Return the gradient of `hardsigmoid`."""
    return pulled_back(rectifiers.hardsigmoid, grad_output, self)[0]


@aten
def hardshrink_backward(grad_out, self, lambd):
    """Return the gradient of `hardshrink`."""
    return pulled_back(lambda x: rectifiers.hardshrink(x, lambd), grad_out, self)[0]


@aten
def softshrink_backward(grad_output, self, lambd):
    """Return the gradient of `softshrink`."""
    return pulled_back(lambda x: rectifiers.softshrink(x, lambd), grad_output, self)[0]


@aten
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    """Return the gradient of `leaky_relu`; its result has the signs of its argument."""
    return pulled_back(lambda x: rectifiers.leaky_relu(x, negative_slope), grad_output, self)[0]


@aten
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    """Return the gradient of `scale * elu(x, alpha)`, whose negative branch is `alpha * (exp(input_scale * x) - 1)`."""
    x = self_or_result
    if is_result:
        below = grad_output * input_scale * (x + alpha * scale)
    else:
        below = grad_output * input_scale * alpha * scale * cygrad.exp(x.clamp(max=0) * input_scale)
    return cygrad.where(x <= 0, below, grad_output * scale)


@aten
def softplus_backward(grad_output, self, beta, threshold):
    """Return the gradient of `softplus`."""
    return pulled_back(lambda x: activations.softplus(x, beta, threshold), grad_output, self)[0]


@aten
def glu_backward(grad_output, self, dim):
    """Return the gradient of `glu`."""
    return pulled_back(lambda x: activations.glu(x, dim), grad_output, self)[0]


@aten
def log_sigmoid_backward(grad_output, self, buffer):
    """Return the gradient of `log_sigmoid`; the buffer is not used."""
    return pulled_back(activations.logsigmoid, grad_output, self)[0]


@aten
def logit_backward(grad_output, self, eps=None):
    """Return the gradient of `logit`."""
    return pulled_back(lambda x: cygrad.logit(x, eps), grad_output, self)[0]


@aten
def native_dropout_backward(grad_output, mask, scale):
    """Return the gradient of dropout: `grad_output * mask * scale`."""
    return grad_output * mask * scale


# -- softmax and losses --


@aten
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """Return the gradient of `softmax`, given its result, in `input_dtype`."""
    return softmax.softmax_backward_data(grad_output, output, wrap_dim(dim, output.ndim)).to(input_dtype)


@aten
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """Return the gradient of `log_softmax`, given its result, in `input_dtype`."""
    return softmax.log_softmax_backward_data(grad_output, output, wrap_dim(dim, output.ndim)).to(input_dtype)


@aten
def mse_loss_backward(grad_output, self, target, reduction):
    """Return the gradient of `mse_loss`; the code of the reduction is 0 for none, 1 for the mean, 2 for the sum."""
    how = reduction_of(reduction)
    return pulled_back(lambda x: pointwise_losses.mse_loss(x, target, reduction=how), grad_output, self)[0]


@aten
def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    """Return the gradient of `smooth_l1_loss`."""
    how = reduction_of(reduction)
    return pulled_back(
        lambda x: pointwise_losses.smooth_l1_loss(x, target, reduction=how, beta=beta), grad_output, self
    )[0]


@aten
def huber_loss_backward(grad_output, self, target, reduction, delta):
    """Return the gradient of `huber_loss`."""
    how = reduction_of(reduction)
    return pulled_back(lambda x: pointwise_losses.huber_loss(x, target, reduction=how, delta=delta), grad_output, self)[
        0
    ]


@aten
def binary_cross_entropy_backward(grad_output, self, target, weight=None, reduction=1):
    """Return the gradient of `binary_cross_entropy`."""
    how = reduction_of(reduction)
    return pulled_back(
        lambda x: distribution_losses.binary_cross_entropy(x, target, weight, reduction=how), grad_output, self
    )[0]


@aten
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    """Return the gradient of `nll_loss`, given the total weight that its forward returned."""
    return classifier_losses.nll_loss_backward(
        grad_output, target, weight, ignore_index, reduction, total_weight, tuple(self.shape)
    )


@aten
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    """Return the gradient of the table of `embedding`, of `num_weights` rows."""
    table = grad_output.new_zeros(num_weights, grad_output.shape[-1])
    return pulled_back(
        lambda w: embeddings.embedding_of_package(w, indices, padding_idx, scale_grad_by_freq), grad_output, table
    )[0]


# -- normalization, convolution and attention --


def _normalization_gradients(grad, input, mean, rstd, weight, axes, shared, mask, is_fixed=False):
    """Return the gradients of input, weight and bias of a normalization over `axes` with these statistics.

    weight and bias are shared over the dimensions `shared`. `mask` tells which are wanted; others are None.
    """
    normal = (input - mean) * rstd
    scaled = grad if weight is None else grad * weight
    if not is_fixed:
        scaled = scaled - scaled.mean(axes, keepdim=True) - normal * (scaled * normal).mean(axes, keepdim=True)
    results = scaled * rstd, grad * normal, grad
    if shared:
        results = results[0], *[each.sum(shared) for each in results[1:]]
    return tuple(result if wanted else None for result, wanted in zip(results, mask))


@aten
def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    """Return the gradients of input, weight and bias of layer norm with the statistics of its forward."""
    count = input.ndim - len(normalized_shape)
    weight = None if weight is None else weight.reshape(tuple(normalized_shape))
    axes, shared = tuple(range(count, input.ndim)), tuple(range(count))
    return _normalization_gradients(grad_out, input, mean, rstd, weight, axes, shared, output_mask)


@aten
def native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    """Return the gradients of input, weight and bias of group norm with the statistics of its forward."""
    shape, by_group = (N, group, C // group, HxW), (N, group, 1, 1)
    weight = None if weight is None else weight.reshape(1, group, C // group, 1)
    found = _normalization_gradients(
        *(grad_out.reshape(shape), input.reshape(shape), mean.reshape(by_group), rstd.reshape(by_group), weight),
        *((2, 3), (0, 3), output_mask),
    )
    shapes = input.shape, (C,), (C,)
    return tuple(None if each is None else each.reshape(shape) for each, shape in zip(found, shapes))


@aten
def native_batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    """Return the gradients of input, weight and bias of batch norm; without `train` the statistics are constants."""
    shape = (1, -1, *(1,) * (input.ndim - 2))
    axes = (0, *range(2, input.ndim))
    mean, rstd = (save_mean, save_invstd) if train else (running_mean, (running_var + eps).rsqrt())
    weight = None if weight is None else weight.reshape(shape)
    statistics = mean.reshape(shape), rstd.reshape(shape), weight
    return _normalization_gradients(grad_out, input, *statistics, axes, axes, output_mask, not train)


@aten
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


@aten
def _scaled_dot_product_flash_attention_for_cpu_backward(
    grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None
):
    """Return the gradients of query, key and value of attention."""
    return tuple(
        pulled_back(lambda q, k, v: attended(q, k, v, attn_mask, scale, is_causal), grad_out, query, key, value)
    )


# -- views --


@aten
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    """Return zeros of `input_sizes` with `grad_output` in the slice `start:end:step` of a dimension."""
    return cygrad.slice_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, start, end, step)


@aten
def select_backward(grad_output, input_sizes, dim, index):
    """Return zeros of `input_sizes` with `grad_output` at an index of a dimension."""
    return cygrad.select_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, index)


@aten
def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    """Return zeros of `input_sizes` with `grad_output` on a diagonal."""
    return cygrad.diagonal_scatter(grad_output.new_zeros(input_sizes), grad_output, offset, dim1, dim2)


@aten
def unfold_backward(grad_in, input_sizes, dim, size, step):
    """Return the gradient of `unfold`: the sums of what came from each element."""
    return pulled_back(lambda x: x.unfold(dim, size, step), grad_in, grad_in.new_zeros(input_sizes))[0]


@aten
def trace_backward(grad, sizes):
    """Return the gradient of `trace`: `grad` on the diagonal of a matrix of these sizes."""
    return cygrad.eye(*sizes, dtype=grad.dtype, device=grad.device) * grad


@aten
def index_select_backward(grad, self_sizes, dim, index):
    """Return the gradient of `index_select`: the sums of what came from each place."""
    return grad.new_zeros(self_sizes).index_add(dim, index, grad)
