"""PyTorch's words for functions that do not take numbers of 8 bits: the kernel that refuses them there."""

import re

from cygrad._core.graph.tensor import Tensor

# {PyTorch's kernel: functions that end there}
_KERNELS = {
    "GeluKernelImpl": "gelu",
    "GroupNormKernelImpl": "group_norm native_group_norm",
    "LayerNormKernelImpl": "layer_norm native_layer_norm",
    "_segment_reduce_cpu": "segment_reduce",
    "acos_vml_cpu": "acos",
    "acosh_cpu": "acosh",
    "add_stub": "hinge_embedding_loss margin_ranking_loss poisson_nll_loss softsign trapezoid",
    "addcdiv_cpu_out": "addcdiv",
    "addcmul_cpu_out": "addcmul",
    "aminmax_cpu": "aminmax",
    "arange_cpu": "mvlgamma",
    "asin_vml_cpu": "asin",
    "asinh_cpu": "asinh",
    "atan2_cpu": "atan2",
    "atan_vml_cpu": "atan",
    "atanh_cpu": "atanh",
    "avg_pool2d": "avg_pool1d avg_pool2d local_response_norm",
    "avg_pool3d_out_frame": "avg_pool3d",
    "batch_norm": "batch_norm instance_norm native_batch_norm",
    "binary_cross_entropy": "binary_cross_entropy",
    "bmm": "bilinear gru lstm multi_head_attention_forward rnn_relu rnn_tanh",
    "cdist": "cdist",
    "ceil_vml_cpu": "ceil",
    "channel_shuffle": "channel_shuffle",
    "clamp_min_scalar_cpu": "relu",
    "clamp_scalar_cpu": "hardtanh relu6",
    "col2im_out_cpu": "fold",
    "compute_columns3d": "conv3d",
    "compute_indices_weights_nearest": "interpolate",
    "cos_vml_cpu": "cos",
    "cross": "cross linalg_cross",
    "digamma": "digamma polygamma",
    "div_floor_cpu": "floor_divide",
    "elu_cpu": "celu",
    "erf_vml_cpu": "erf",
    "erfc_vml_cpu": "erfc",
    "erfinv_vml_cpu": "erfinv",
    "exp2": "exp2",
    "expm1_vml_cpu": "expm1",
    "flip_cpu": "rot90",
    "ge_cpu": "ge",
    "grid_sampler3d_cpu": "grid_sampler_3d",
    "grid_sampler_2d_cpu_kernel_impl": "grid_sampler grid_sampler_2d",
    "gt_cpu": "gt",
    "huber_cpu": "huber_loss",
    "i0_vml_cpu": "i0",
    "le_cpu": "le",
    "lgamma_vml_cpu": "lgamma",
    "linalg_svd_cpu": "linalg_cond linalg_matrix_rank",
    "linspace_cpu": "affine_grid_generator",
    "log10_vml_cpu": "log10",
    "log1p_vml_cpu": "log1p",
    "log2_vml_cpu": "log2",
    "log_sigmoid_cpu": "binary_cross_entropy_with_logits logsigmoid multilabel_soft_margin_loss",
    "log_softmax_lastdim_kernel_impl": "linear_cross_entropy",
    "log_vml_cpu": "log",
    "logcumsumexp_out_cpu": "logcumsumexp",
    "lt_cpu": "gaussian_nll_loss",
    "lu_cpu": "linalg_solve linalg_solve_ex linalg_tensorsolve",
    "max_pool1d_impl": "max_pool1d",
    "mse_cpu": "mse_loss",
    "mul_cpu_reduced_float": "deg2rad ndtr rad2deg scaled_dot_product_attention",
    "multi_margin_loss_cpu_kernel": "multi_margin_loss",
    "multilabel_margin_loss_forward_out_frame": "multilabel_margin_loss",
    "multinomial": "multinomial",
    "nansum_cpu": "nanmean nansum",
    "neg_cpu": "soft_margin_loss",
    "norm_cpu": "frobenius_norm linalg_matrix_norm linalg_norm",
    "pdist": "pdist",
    "pixel_shuffle": "pixel_shuffle",
    "pixel_unshuffle": "pixel_unshuffle",
    "pow": "lp_pool1d lp_pool2d lp_pool3d",
    "rms_norm": "rms_norm",
    "rrelu_with_noise_out_cpu": "rrelu",
    "scatter_gather_scalar_cpu": "linalg_lu",
    "sigmoid_cpu_reduced_float": "sigmoid",
    "sign_cpu": "sgn",
    "sin_vml_cpu": "sin",
    "slow_conv2d_cpu": "conv1d conv2d",
    "slow_conv_dilated<>": "convolution",
    "slow_conv_transpose2d_out_cpu": "conv_transpose1d conv_transpose2d",
    "slow_conv_transpose3d_out_cpu": "conv_transpose3d",
    "smooth_l1_cpu": "smooth_l1_loss",
    "softshrink_check": "softshrink",
    "sum_cpu": "linalg_matrix_exp linalg_vecdot matrix_exp",
    "tan_vml_cpu": "tan",
    "tanh_vml_cpu": "tanh tanhshrink",
    "tril": "linalg_cholesky linalg_cholesky_ex linalg_ldl_factor linalg_ldl_factor_ex",
    "triu": "lu_unpack",
    "trunc_vml_cpu": "trunc",
    "xlogy_cpu": "kl_div",
}
# {text of a RuntimeError: functions}; {0} is the dtype
_TEXTS = {
    "Expected both inputs to be Half, Float or Double tensors but got {0} and {0}": "complex polar",
    "Promotion for Float8 Types is not supported, attempted to promote Double and {0}": "istft",
    "Promotion for Float8 Types is not supported, attempted to promote {0} and Float": "renorm",
    "Unknown Complex ScalarType for {0}": "linalg_eig linalg_eigvals stft",
    "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
    "{0}": "view_as_complex view_as_complex_copy",
}
_BY_NAME = {name: words for table in (_KERNELS, _TEXTS) for words, names in table.items() for name in names.split()}
_DTYPE = re.compile(r"[Ff]loat8_\w+")


def _value(place, name, values, named):
    """Return an argument, or None."""
    return values[place] if len(values) > place else named.get(name)


def _is_tensor(value):
    return isinstance(value, Tensor) and value.ndim > 0


def _of_division(values, named):
    reduced = "" if _is_tensor(_value(1, "other", values, named)) else "_reduced_float"
    rounding = named.get("rounding_mode")
    return f"div_{rounding}_cpu{reduced}" if rounding else f"div_cpu{reduced}"


def _of_clamp(values, named):
    least, most = _value(1, "min", values, named), _value(2, "max", values, named)
    is_tensor = isinstance(least, Tensor) or isinstance(most, Tensor)
    if least is not None and most is not None:
        return "clamp_cpu" if is_tensor else "clamp_scalar_cpu"
    if least is None:
        return "minimum_cpu" if is_tensor else "clamp_max_scalar_cpu"
    return "maximum_cpu" if is_tensor else "clamp_min_scalar_cpu"


def _of_bound(name, bound):
    def words(values, named):
        is_tensor = isinstance(_value(1, bound, values, named), Tensor)
        return {"min": "maximum_cpu", "max": "minimum_cpu"}[bound] if is_tensor else f"{name}_scalar_cpu"

    return words


def _along(name):
    def words(values, named):
        dim, ndim = _value(1, "dim", values, named), max(values[0].ndim if values else 1, 1)
        is_last = not isinstance(dim, int) or dim % ndim == ndim - 1
        return f"{name}_lastdim_kernel_impl" if is_last else f"{name}_kernel_impl"

    return words


def _of_extreme(name):
    def words(values, named):
        return f"{name}_cpu" if isinstance(_value(1, "dim", values, named), int) else None

    return words


def _whole(kernel):
    """Words for a call without `dim`."""

    def words(values, named):
        return kernel if len(values) == 1 and "dim" not in named and "axis" not in named else None

    return words


def _of_lerp(values, named):
    return "lerp_kernel_tensor" if isinstance(_value(2, "weight", values, named), Tensor) else "lerp_kernel_scalar"


def _of_round(values, named):
    return "round_cpu" if named.get("decimals") else "round_vml_cpu"


def _of_images(plain, deep):
    """Words that depend on whether there are dimensions behind that of the classes."""

    def words(values, named):
        return deep if values and isinstance(values[0], Tensor) and values[0].ndim > 2 else plain

    return words


def _of_adaptive_pooling(kernel):
    def words(values, named):
        size = _value(1, "output_size", values, named)
        return "sum_cpu" if all(n == 1 for n in (size if isinstance(size, (tuple, list)) else [size])) else kernel

    return words


_UNSUPPORTED = "std_var_all: Unsupported dtype {0}"
_BY_ARGUMENTS = {
    "div": _of_division,
    "clamp": _of_clamp,
    "clamp_min": _of_bound("clamp_min", "min"),
    "clamp_max": _of_bound("clamp_max", "max"),
    "softmax": _along("softmax"),
    "log_softmax": _along("log_softmax"),
    "max": _of_extreme("max"),
    "min": _of_extreme("min"),
    "var": _whole(_UNSUPPORTED),
    "std": _whole(_UNSUPPORTED),
    "nanmedian": _whole("median_cpu"),
    "lerp": _of_lerp,
    "round": _of_round,
    "pow": lambda values, named: "pow",
    "cross_entropy": _of_images("log_softmax_lastdim_kernel_impl", "log_softmax_kernel_impl"),
    "nll_loss": _of_images("nll_loss_out_frame", "nll_loss2d_forward_out_frame"),
    "adaptive_avg_pool1d": _of_adaptive_pooling("adaptive_avg_pool2d"),
    "adaptive_avg_pool2d": _of_adaptive_pooling("adaptive_avg_pool2d"),
    "adaptive_avg_pool3d": _of_adaptive_pooling("adaptive_avg_pool3d_cpu"),
}
# Errors that stand before a kernel is called, in PyTorch as here, and the functions in which they do not
_BEFORE = {
    "Promotion for": frozenset(("margin_ranking_loss", "soft_margin_loss")),
    "linalg.": frozenset(("linalg_solve", "linalg_solve_ex", "linalg_tensorsolve", "linalg_eig", "linalg_eigvals")),
}


def reworded(name, values, names, error):
    """Return the error that PyTorch's function of this name raises in place of one about numbers of 8 bits, or None.

    The last of the values were passed by the keywords `names`.
    """
    text = str(error)
    found = _DTYPE.search(text)
    if found is None or any(text.startswith(start) and name not in others for start, others in _BEFORE.items()):
        return None
    given = len(values) - len(names or ())
    choice = _BY_ARGUMENTS.get(name)
    words = choice(values[:given], dict(zip(names or (), values[given:]))) if choice else _BY_NAME.get(name)
    if words is None:
        return None
    dtype = found[0].capitalize()
    advice = "\n  numbers of 8 bits are for storage: compute in another type, as in x.float()"
    if " " in words:
        return RuntimeError(words.format(dtype) + advice)
    return NotImplementedError(f"\"{words}\" not implemented for '{dtype}'{advice}")
