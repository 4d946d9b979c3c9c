"""Layers in functional form, with the parameters as arguments.

>>> import cygrad
>>> import cygrad.nn.functional as F
>>> F.linear(cygrad.ones(1, 2), cygrad.ones(3, 2))
tensor([[2., 2., 2.]])
"""

# Each family defines its functions with the signatures they have here.
from cygrad._ops.base.pointwise import sigmoid, tanh
from cygrad._ops.base.products import linear
from cygrad._ops.image.average_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
)
from cygrad._ops.image.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from cygrad._ops.image.folding import fold, pixel_shuffle, pixel_unshuffle, unfold
from cygrad._ops.image.fractional_pooling import (
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from cygrad._ops.image.grid_sampling import affine_grid, grid_sample
from cygrad._ops.image.interpolation import interpolate, upsample, upsample_bilinear, upsample_nearest
from cygrad._ops.image.max_pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)
from cygrad._ops.image.max_unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from cygrad._ops.linalg.grouped_products import ScalingType, SwizzleType, grouped_mm, scaled_mm
from cygrad._ops.loss.classifier_losses import cross_entropy, linear_cross_entropy, nll_loss
from cygrad._ops.loss.ctc import ctc_loss
from cygrad._ops.loss.distribution_losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    kl_div,
    poisson_nll_loss,
)
from cygrad._ops.loss.margin_losses import (
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
)
from cygrad._ops.loss.pointwise_losses import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from cygrad._ops.loss.similarity import (
    cosine_embedding_loss,
    cosine_similarity,
    pairwise_distance,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from cygrad._ops.nn.activations import (
    gelu,
    glu,
    gumbel_softmax,
    logsigmoid,
    mish,
    silu,
    softmin,
    softplus,
    softsign,
    tanhshrink,
)
from cygrad._ops.nn.batch_norm import _verify_batch_size, batch_norm, instance_norm
from cygrad._ops.nn.channels import bilinear, channel_shuffle
from cygrad._ops.nn.distances import pdist
from cygrad._ops.nn.embeddings import embedding, embedding_bag, one_hot
from cygrad._ops.nn.exponential_units import celu, celu_, elu, elu_, selu, selu_
from cygrad._ops.nn.multi_head_attention import (
    _canonical_mask,
    _check_key_padding_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
    multi_head_attention_forward,
    scaled_dot_product_attention,
)
from cygrad._ops.nn.norm_scaling import local_response_norm, normalize
from cygrad._ops.nn.normalization import group_norm, layer_norm, rms_norm
from cygrad._ops.nn.rectifiers import (
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    rrelu_,
    softshrink,
    threshold,
    threshold_,
)
from cygrad._ops.nn.softmax import log_softmax, softmax
from cygrad._ops.random.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from cygrad._ops.shape.padding import pad

__all__ = sorted(name for name in globals() if not name.startswith("_"))

from cygrad.nn import _reduction as _Reduction  # copies of PyTorch's layers import these here
from cygrad.nn import grad  # after `__all__`, which does not contain it

# PyTorch's own functions in Python ask these, and so do copies of them.
_OF_OVERRIDES = (
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"
)  # fmt: skip


def __getattr__(name):
    if name not in _OF_OVERRIDES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from cygrad import overrides  # which few programs need

    return getattr(overrides, name)
