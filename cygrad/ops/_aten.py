"""Functions of `torch.ops.aten` that have no public name, or other arguments than the public function of that name."""

import math
from typing import Any

import cygrad
from cygrad._core.errors import messages
from cygrad._ops.base.products import linear
from cygrad._ops.base.slicing import slice as slice_of
from cygrad._ops.image import average_pooling, folding
from cygrad._ops.loss import classifier_losses, distribution_losses, margin_losses, pointwise_losses
from cygrad._ops.loss.reductions import CODES
from cygrad._ops.nn import activations, embeddings, exponential_units, rectifiers, softmax
from cygrad._ops.nn.multi_head_attention import scaled_dot_product_attention
from cygrad._ops.nn.scaled_dot_product import weights_of
from cygrad._ops.shape.padding import pad
from cygrad._ops.shape.slice_scatter import bounds_of_slice
from cygrad._ops.signal import fourier

_REDUCTIONS = {code: name for name, code in CODES.items()}
_ALL = slice(None)
_own: dict[str, Any] = {}


def _aten(function):
    _own[function.__name__] = function
    return function


# -- copies, views and conversions --


@_aten
def _pin_memory(self, device=None):
    """Return a copy in page-locked memory, or the tensor itself if it is there already."""
    return self.pin_memory()


@_aten
def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    """Return beta * self + alpha * mat1 @ mat2, where mat1 is sparse."""
    return cygrad.sparse.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


@_aten
def _sparse_mm_reduce_impl(self, other, reduce):
    """Return, for each row of a matrix by compressed rows, the reduction of its values times the rows of `other`; and
    for "amax" and "amin", if gradients need it, which of its values that is."""
    result = cygrad.sparse.mm(self, other, reduce)
    if reduce not in ("amax", "amin") or not (self.requires_grad or other.requires_grad):
        return result, result.new_empty(0, dtype=cygrad.int64)
    terms = self.values().unsqueeze(1) * other[self.col_indices().long()]
    rows = cygrad.arange(self.shape[0]).repeat_interleave(self.crow_indices().diff().long())
    places = cygrad.arange(len(terms)).unsqueeze(1).expand(terms.shape)
    chosen = cygrad.where(terms == result[rows], places, len(terms))
    first = cygrad.full(result.shape, len(terms))
    return result, first.scatter_reduce(0, rows.unsqueeze(1).expand(terms.shape), chosen, "amin")


@_aten
def _to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    """Return a copy with another dtype, device or memory format."""
    result = self.to(device=device, dtype=dtype, non_blocking=non_blocking, copy=True)
    return result if memory_format is None else result.contiguous(memory_format=memory_format)


@_aten
def to(self, *args, layout=None, pin_memory=None, **kwargs):
    """Return the tensor with another dtype or device, as `Tensor.to`."""
    kwargs = {name: value for name, value in kwargs.items() if value is not None}
    return self.to(*args, **kwargs)


@_aten
def _local_scalar_dense(self):
    """Return the only element as a Python number."""
    return self.item()


@_aten
def _unsafe_view(self, size):
    """Return `self.view(size)`."""
    return self.view(size)


@_aten
def _reshape_alias(self, size, stride):
    """Return a view with this size and these strides."""
    return self.as_strided(size, stride)


@_aten
def _reshape_copy(self, size):
    """Return a contiguous copy with this size."""
    return self.clone(memory_format=cygrad.contiguous_format).view(size)


@_aten
def alias(self):
    """Return a view of all elements."""
    return self.view_as(self)


@_aten
def lift(self):
    """Return the tensor."""
    return self


@_aten
def lift_fresh(self):
    """Return the tensor."""
    return self


@_aten
def lift_fresh_copy(self):
    """Return a copy."""
    return self.clone()


@_aten
def slice(self, dim=0, start=None, end=None, step=1):
    """Return the view of `start:end:step` along a dimension."""
    d, first, _, stride, count = bounds_of_slice(self, dim, start, end, step, "slice")
    return slice_of(self, d, first, count, stride)


@_aten
def _conj(self):
    """Return the conjugate view."""
    return self.conj()


@_aten
def _conj_physical(self):
    """Return the conjugate numbers, as a copy."""
    return self.conj_physical()


@_aten
def matrix_H(self):
    """Return the conjugate transpose of a matrix."""
    return self.H


@_aten
def numpy_T(self):
    """Return the tensor with its dimensions reversed."""
    return self.permute(*range(self.ndim - 1, -1, -1))


@_aten
def chalf(self, *, memory_format=None):
    """Return the tensor as complex half, a dtype that is not supported: raises as `Tensor.chalf` does."""
    return self.chalf()


@_aten
def copy(self, src, non_blocking=False):
    """Return `src` in the shape and dtype of `self`."""
    return cygrad.empty_like(self).copy_(src, non_blocking)


@_aten
def _resize_output_(self, size, device):
    """Resize the tensor in place."""
    return self.resize_(size)


@_aten
def _dim_arange(like, dim):
    """Return 0, 1, ... for each place of a dimension."""
    return cygrad.arange(like.shape[dim], device=like.device)


@_aten
def _shape_as_tensor(self):
    """Return the shape as a tensor of int64.

    >>> import cygrad as torch
    >>> torch._shape_as_tensor(torch.ones(2, 3))
    tensor([2, 3])
    """
    return cygrad.tensor(tuple(self.shape), dtype=cygrad.int64)


@_aten
def _reshape_from_tensor(self, shape):
    """Return the tensor with the shape that a tensor holds."""
    return self.reshape(shape.tolist())


@_aten
def _convert_indices_from_coo_to_csr(self, size, *, out_int32=False):
    """Return, for ascending numbers of rows of a matrix of `size` rows, where each row begins, and the last one ends.

    >>> import cygrad as torch
    >>> torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    if self.ndim != 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {self.ndim} dimensional tensor.")
    _require_integers("convert_indices_from_coo_to_csr_cpu", self)
    ends = cygrad.arange(size + 1, device=self.device)
    return cygrad.searchsorted(self.contiguous(), ends.to(self.dtype), out_int32=out_int32)


@_aten
def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """Return the rows and columns of elements, given where rows begin; with leading rows of the numbers of batches.

    >>> import cygrad as torch
    >>> torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 2]))
    tensor([[0, 0, 2],
            [0, 1, 2]])
    """
    _require_integers("convert_indices_from_csr_to_coo_cpu", crow_indices)
    batch, count = col_indices.shape[:-1], col_indices.shape[-1]
    begins = crow_indices.reshape(-1, crow_indices.shape[-1]).contiguous()
    places = cygrad.arange(count, device=begins.device, dtype=begins.dtype).expand(len(begins), count).contiguous()
    rows = (cygrad.searchsorted(begins, places, right=True) - 1).flatten()
    found = [col_indices.flatten(), rows] if transpose else [rows, col_indices.flatten()]
    if batch:
        found = [*cygrad.ones(*batch, count).nonzero().t()[:-1], *found]
    return cygrad.stack([one.to(cygrad.int32 if out_int32 else cygrad.int64) for one in found])


def _require_integers(kernel, tensor):
    if tensor.dtype not in (cygrad.int64, cygrad.int32):
        raise messages.not_implemented_for(kernel, tensor.dtype)


def _cast(name, dtype):
    def cast(self, non_blocking=False):
        return self.to(getattr(cygrad, dtype))

    cast.__name__ = cast.__qualname__ = f"_cast_{name}"
    cast.__doc__ = f"Return the tensor as {dtype}."
    return _aten(cast)


for _name, _dtype in {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
}.items():
    _cast(_name, _dtype)


# -- queries and checks --


@_aten
def sym_size(self, dim=None):
    """Return the shape, or the size of one dimension."""
    return list(self.shape) if dim is None else self.size(dim)


@_aten
def sym_stride(self, dim=None):
    """Return the strides, or the stride of one dimension."""
    return list(self.stride()) if dim is None else self.stride(dim)


@_aten
def sym_numel(self):
    """Return the number of elements."""
    return self.numel()


@_aten
def sym_storage_offset(self):
    """Return the place of the first element in the storage."""
    return self.storage_offset()


@_aten
def sym_is_contiguous(self, memory_format=cygrad.contiguous_format):
    """Return whether the tensor is contiguous."""
    return self.is_contiguous(memory_format=memory_format)


@_aten
def is_non_overlapping_and_dense(self):
    """Return whether the elements fill a piece of memory without gaps, each once."""
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(self.stride(), self.shape) if n != 1):
        if stride != expected:
            return self.numel() == 0
        expected *= size
    return True


def _require_bool(name, tensor):
    if tensor.dtype is not cygrad.bool:
        raise RuntimeError(f"Expected self.scalar_type() == at::kBool to be true, but got false. ({name})")


@_aten
def _is_all_true(self):
    """Return whether all elements of a tensor of dtype bool are True, as a tensor."""
    _require_bool("_is_all_true", self)
    return self.all()


@_aten
def _is_any_true(self):
    """Return whether any element of a tensor of dtype bool is True, as a tensor."""
    _require_bool("_is_any_true", self)
    return self.any()


@_aten
def _assert_scalar(self, assert_msg):
    """Raise RuntimeError with this message if a number is 0."""
    if not self:
        raise RuntimeError(assert_msg)


@_aten
def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """Raise RuntimeError unless the tensor has these sizes, strides, dtype, device and layout, where they are given."""
    if dtype is not None and a.dtype != dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {dtype.type_name}, Got: {messages.c_name(a.dtype)}")
    found = {"sizes": list(a.shape), "strides": list(a.stride())}
    for name, wanted in {"sizes": size, "strides": stride}.items():
        wanted = list(wanted) if isinstance(wanted, (tuple, list)) else wanted
        if wanted is not None and found[name] != wanted:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found[name]}")
    if device is not None and a.device != cygrad.device(device):
        raise RuntimeError(f"Tensor device mismatch! Expected: {device}, Got: {a.device}")
    if layout is not None and a.layout != layout:
        raise RuntimeError(f"Tensor layout mismatch! Expected: {layout}, Got: {a.layout}")


# -- indexing --


def _key(indices):
    return tuple([_ALL if index is None else index for index in indices])


@_aten
def index(self, indices):
    """Return `self[indices]`, where None stands for all places of a dimension."""
    return self[_key(indices)]


@_aten
def _unsafe_index(self, indices):
    """Return `self[indices]`, where None stands for all places of a dimension."""
    return self[_key(indices)]


def _put(tensor, indices, values, accumulate):
    if all(one is not None for one in indices):
        return tensor.index_put_(tuple(indices), values, accumulate)
    places = cygrad.arange(tensor.numel(), device=tensor.device).view(tensor.shape)[_key(indices)]
    return tensor.put_(places, values.expand(places.shape), accumulate)


@_aten
def index_put(self, indices, values, accumulate=False):
    """Return a copy with `values` at the indices, where None stands for all places of a dimension."""
    return _put(self.clone(), indices, values, accumulate)


@_aten
def index_put_(self, indices, values, accumulate=False):
    """Write `values` at the indices, where None stands for all places of a dimension."""
    return _put(self, indices, values, accumulate)


@_aten
def _unsafe_index_put(self, indices, values, accumulate=False):
    """Return a copy with `values` at the indices, where None stands for all places of a dimension."""
    return _put(self.clone(), indices, values, accumulate)


def _with_places(found, return_inverse, return_counts):
    """Return three results, of which those not asked for are empty."""
    found = list(found) if isinstance(found, tuple) else [found]
    empty = found[0].new_empty(0, dtype=cygrad.int64)
    inverse = found.pop(1) if return_inverse else empty
    return found[0], inverse, found[1] if return_counts else empty


@_aten
def _unique2(self, sorted=True, return_inverse=False, return_counts=False):
    """Return the distinct elements, their places and their counts; the last two are empty unless asked for."""
    return _with_places(cygrad.unique(self, sorted, return_inverse, return_counts), return_inverse, return_counts)


@_aten
def _unique(self, sorted=True, return_inverse=False):
    """Return the distinct elements and their places, which are empty unless asked for."""
    return _unique2(self, sorted, return_inverse)[:2]


@_aten
def unique_dim(self, dim, sorted=True, return_inverse=False, return_counts=False):
    """Return the distinct slices along a dimension; see `_unique2`."""
    return cygrad.unique(self, sorted, True, True, dim)


@_aten
def unique_dim_consecutive(self, dim, return_inverse=False, return_counts=False):
    """Return the first of each run of equal slices along a dimension; see `_unique2`."""
    found = cygrad.unique_consecutive(self, return_inverse, return_counts, dim)
    return _with_places(found, return_inverse, return_counts)


# -- random numbers: copies that are filled --


def _filled(name):
    def fill(self, *args, **kwargs):
        return getattr(cygrad.empty_like(self), f"{name}_")(*args, **kwargs)

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = f"Return a tensor like `self` filled by `{name}_`."
    return _aten(fill)


for _name in ("uniform", "exponential", "geometric", "log_normal", "cauchy"):
    _filled(_name)


@_aten
def normal_functional(self, mean=0.0, std=1.0, *, generator=None):
    """Return a tensor like `self` filled by `normal_`."""
    return cygrad.empty_like(self).normal_(mean, std, generator=generator)


@_aten
def native_dropout(input, p, train):
    """Return dropout of the elements, and the mask of those that are kept."""
    if train is False or p == 0:
        return input.clone(), cygrad.ones_like(input, dtype=cygrad.bool)
    if p == 1:
        return cygrad.zeros_like(input), cygrad.zeros_like(input, dtype=cygrad.bool)
    mask = cygrad.empty_like(input).bernoulli_(1 - p).bool()
    return input * mask * (1 / (1 - p)), mask


# -- activations --


@_aten
def _softmax(self, dim, half_to_float):
    """Return the softmax; `half_to_float` is for GPUs."""
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
    return softmax.softmax_of_package(self, dim)


@_aten
def _log_softmax(self, dim, half_to_float):
    """Return the logarithm of the softmax; `half_to_float` is for GPUs."""
    if half_to_float:
        raise RuntimeError("log_softmax with half to float conversion is not supported on CPU")
    return softmax.log_softmax_of_package(self, dim)


@_aten
def _safe_softmax(self, dim, dtype=None):
    """Return the softmax, and 0 where all elements along the dimension are -inf."""
    found = softmax.softmax_of_package(self, dim, dtype)
    return cygrad.where((self == -math.inf).all(dim, keepdim=True), 0, found)


@_aten
def elu(self, alpha=1, scale=1, input_scale=1):
    """Return `scale * x` for positive elements, and `scale * alpha * (exp(input_scale * x) - 1)` for others."""
    if scale == 1 and input_scale == 1:
        return exponential_units.elu(self, alpha)
    return cygrad.where(self > 0, self, alpha * cygrad.expm1(self.clamp(max=0) * input_scale)) * scale


@_aten
def log_sigmoid_forward(self):
    """Return the logarithm of the sigmoid, and an empty buffer."""
    return activations.logsigmoid(self), self.new_empty(0)


_own.update(
    gelu=activations.gelu,
    silu=activations.silu,
    mish=activations.mish,
    glu=activations.glu,
    softplus=activations.softplus,
    log_sigmoid=activations.logsigmoid,
    hardtanh=rectifiers.hardtanh,
    hardswish=rectifiers.hardswish,
    hardsigmoid=rectifiers.hardsigmoid,
    relu6=rectifiers.relu6,
    one_hot=embeddings.one_hot,
    pad=pad,
    embedding=embeddings.embedding_of_package,
    linear=linear,
    scaled_dot_product_attention=scaled_dot_product_attention,
)


def _in_place(name):
    function = _own[name]

    def form(self, *args, **kwargs):
        return self.copy_(function(self, *args, **kwargs))

    form.__name__ = form.__qualname__ = f"{name}_"
    form.__doc__ = f"In-place form of `{name}`."
    return _aten(form)


for _name in ("gelu", "silu", "mish", "hardswish", "hardsigmoid", "relu6", "elu"):
    _in_place(_name)


# -- losses: the reduction is a code, 0 for none, 1 for the mean, 2 for the sum --


def _loss(function, name, arguments):
    """Return the form of a loss that takes the code of the reduction, and its arguments in this order."""

    def loss(self, target, *args, **kwargs):
        values = dict(zip(arguments, args)) | kwargs
        code = values.pop("reduction", CODES["mean"])
        return function(self, target, reduction=_REDUCTIONS.get(code, "none"), **values)

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"`{name}` with the arguments (self, target, {', '.join(arguments)})."
    return _aten(loss)


_loss(pointwise_losses.mse_loss, "mse_loss", ("reduction",))
_loss(pointwise_losses.l1_loss, "l1_loss", ("reduction",))
_loss(pointwise_losses.smooth_l1_loss, "smooth_l1_loss", ("reduction", "beta"))
_loss(pointwise_losses.huber_loss, "huber_loss", ("reduction", "delta"))
_loss(distribution_losses.binary_cross_entropy, "binary_cross_entropy", ("weight", "reduction"))
_loss(
    distribution_losses.binary_cross_entropy_with_logits,
    "binary_cross_entropy_with_logits",
    ("weight", "pos_weight", "reduction"),
)
_loss(margin_losses.soft_margin_loss, "soft_margin_loss", ("reduction",))
_loss(margin_losses.multilabel_margin_loss, "multilabel_margin_loss", ("reduction",))
_loss(margin_losses.multi_margin_loss, "multi_margin_loss", ("p", "margin", "weight", "reduction"))
for _name in ("nll_loss", "nll_loss2d", "nll_loss_nd"):
    _loss(classifier_losses.nll_loss, _name, ("weight", "reduction", "ignore_index"))
_loss(classifier_losses.cross_entropy, "cross_entropy_loss", ("weight", "reduction", "ignore_index", "label_smoothing"))


@_aten
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    """Return `nll_loss`, and the total weight of the samples that count; 0 without a reduction."""
    result = _own["nll_loss"](self, target, weight, reduction, ignore_index)
    if reduction == CODES["none"]:
        return result, self.new_zeros(())
    counts = target != ignore_index
    if weight is None:
        return result, counts.sum().to(self.dtype)
    return result, (weight[cygrad.where(counts, target, 0)] * counts).sum()


# -- layers --


@_aten
def _convolution(
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    benchmark=False,
    deterministic=False,
    cudnn_enabled=True,
    allow_tf32=True,
):
    """Return `convolution`; the last arguments are for GPUs."""
    return cygrad.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@_aten
def convolution_overrideable(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Return `convolution`."""
    return cygrad.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@_aten
def _convolution_mode(input, weight, bias, stride, padding, dilation, groups):
    """Return a convolution whose padding is "same" or "valid"."""
    run = getattr(cygrad, f"conv{weight.ndim - 2}d")
    return run(input, weight, bias, tuple(stride), padding, tuple(dilation), groups)


@_aten
def _native_batch_norm_legit(input, weight, bias, *rest):
    """Return `native_batch_norm`: (running_mean, running_var, training, momentum, eps), or the last three alone."""
    statistics = rest[:-3] or (None, None)
    return cygrad.native_batch_norm(input, weight, bias, *statistics, *rest[-3:])


@_aten
def _native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    """Return `native_batch_norm` with the running statistics."""
    return cygrad.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@_aten
def avg_pool2d(
    self,
    kernel_size,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Return `avg_pool2d`; no stride stands for the kernel's size."""
    how = padding, ceil_mode, count_include_pad, divisor_override
    return average_pooling.avg_pool2d(self, kernel_size, stride or None, *how)


@_aten
def avg_pool3d(
    self,
    kernel_size,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Return `avg_pool3d`; no stride stands for the kernel's size."""
    how = padding, ceil_mode, count_include_pad, divisor_override
    return average_pooling.avg_pool3d(self, kernel_size, stride or None, *how)


for _name in ("adaptive_avg_pool2d", "adaptive_avg_pool3d"):
    _own[_name] = _own[f"_{_name}"] = getattr(average_pooling, _name)


@_aten
def im2col(self, kernel_size, dilation, padding, stride):
    """Return the patches of images as columns."""
    return folding.unfold(self, kernel_size, dilation, padding, stride)


@_aten
def col2im(self, output_size, kernel_size, dilation, padding, stride):
    """Return images that are the sums of patches."""
    return folding.fold(self, output_size, kernel_size, dilation, padding, stride)


_PADDING = ("reflect", "replicate", "circular", "constant")


@_aten
def _pad_enum(self, pad, mode, value=None):
    """Pad the last dimensions by the mode with this number."""
    return _pad(self, list(pad), _PADDING[mode], value)


_pad = pad


@_aten
def _addmm_activation(self, mat1, mat2, *, beta=1, alpha=1, use_gelu=False):
    """Return `addmm`, and then `relu` or `gelu`."""
    result = cygrad.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return activations.gelu(result) if use_gelu else result.relu()


@_aten
def mm(self, mat2, out_dtype=None):
    """Return the product of two matrices, computed in `out_dtype`."""
    return cygrad.mm(self, mat2) if out_dtype is None else cygrad.mm(self.to(out_dtype), mat2.to(out_dtype))


@_aten
def bmm(self, mat2, out_dtype=None):
    """Return the products of two batches of matrices, computed in `out_dtype`."""
    return cygrad.bmm(self, mat2) if out_dtype is None else cygrad.bmm(self.to(out_dtype), mat2.to(out_dtype))


@_aten
def norm_except_dim(v, pow=2, dim=0):
    """Return the norms over all dimensions but one; over all if `dim` is -1."""
    axes = [i for i in range(v.ndim) if i != dim] if dim != -1 else list(range(v.ndim))
    return v.norm(pow) if dim == -1 else v.norm(pow, axes, keepdim=True)


@_aten
def _weight_norm(v, g, dim=0):
    """Return `v * (g / norm_except_dim(v, 2, dim))`.

    >>> import cygrad as torch
    >>> torch._weight_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([[10.0]]))
    tensor([[6., 8.]])
    """
    return v * (g / norm_except_dim(v, 2, dim))


@_aten
def _cdist_forward(x1, x2, p, compute_mode=None):
    """Return `cdist`; the compute mode is None, or 0, 1 and 2 for the words of `cdist`."""
    modes = "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"
    return cygrad.cdist(x1, x2, p, modes[compute_mode or 0])


@_aten
def _pdist_forward(self, p=2):
    """Return the distances of all pairs of rows."""
    return cygrad.pdist(self, p)


@_aten
def _euclidean_dist(x1, x2):
    """Return the Euclidean distances of all pairs."""
    return cygrad.cdist(x1, x2)


@_aten
def _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim=1):
    """Return the sum over dimensions of the product of three tensors, each with new dimensions at its `expand`."""
    for dim in expand1:
        i1 = i1.unsqueeze(dim)
    for dim in expand2:
        i2 = i2.unsqueeze(dim)
    for dim in expand3:
        i3 = i3.unsqueeze(dim)
    product = i1 * i2 * i3
    return product.sum(tuple(sumdim)) if sumdim else product


# -- attention --


def _attention(query, key, value, mask, dropout_p, is_causal, scale):
    return scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale)


@_aten
def _scaled_dot_product_flash_attention_for_cpu(
    query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None
):
    """Return attention, and the logarithms of the sums of the exponentials of its scores, of shape (..., length)."""
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        hidden = cygrad.ones(scores.shape[-2:], dtype=cygrad.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    if attn_mask is not None:
        is_bool = attn_mask.dtype is cygrad.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if is_bool else scores + attn_mask
    return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale), scores.logsumexp(-1)


@_aten
def _scaled_dot_product_attention_math(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    dropout_mask=None,
    *,
    scale=None,
    enable_gqa=False,
):
    """Return attention, and its weights."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    mask = attn_mask
    if mask is not None and mask.dtype is cygrad.bool:
        mask = cygrad.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, -math.inf)
    weights = weights_of(query, key, mask, scale, is_causal)
    if dropout_mask is not None:
        return weights.masked_fill(~dropout_mask, 0) * (1 / (1 - dropout_p)) @ value, weights
    return cygrad.dropout(weights, dropout_p, True) @ value, weights


def _of_gpus(name):
    """Return a function that only GPUs have; it raises as PyTorch does on a machine without one."""

    def function(*args, **kwargs):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend. This could be because the operator "
            "doesn't exist for this backend\n  to fix it: call nn.functional.scaled_dot_product_attention"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Attention by a kernel of PyTorch for GPUs: raises NotImplementedError."
    return _aten(function)


for _kernel in ("flash", "efficient", "cudnn"):
    for _end in ("", "_backward"):
        _of_gpus(f"_scaled_dot_product_{_kernel}_attention{_end}")


# -- Fourier transforms --


def _scaling(code, forward):
    """Return NumPy's name for the scaling of a transform: 0 for none, 1 for 1 / sqrt(n), 2 for 1 / n."""
    return "ortho" if code == 1 else "backward" if (code == 0) == forward else "forward"


@_aten
def _fft_c2c(self, dim, normalization, forward):
    """Transform complex numbers over dimensions, scaled by 1, 1 / sqrt(n) or 1 / n for the codes 0, 1 and 2."""
    return fourier.fft_c2c(self, tuple(d % self.ndim for d in dim), _scaling(normalization, forward), forward)


@_aten
def _fft_r2c(self, dim, normalization, onesided):
    """Transform real numbers over dimensions; with `onesided` the last one keeps its first half."""
    return fourier.fft_r2c(self, tuple(d % self.ndim for d in dim), _scaling(normalization, True), onesided)


@_aten
def _fft_c2r(self, dim, normalization, last_dim_size):
    """Transform the first half of the last dimension back to `last_dim_size` real numbers."""
    return fourier.fft_c2r(self, tuple(d % self.ndim for d in dim), _scaling(normalization, False), last_dim_size)


functions = _own
