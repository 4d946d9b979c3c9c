"""Activations, also in place, and softmax with PyTorch's private arguments."""

import math

import cygrad
from cygrad._ops.base.products import linear
from cygrad._ops.nn import activations, embeddings, exponential_units, rectifiers, softmax
from cygrad._ops.nn.multi_head_attention import scaled_dot_product_attention
from cygrad._ops.shape.padding import pad
from cygrad.ops._aten.table import aten, own


@aten
def _softmax(self, dim, half_to_float):
    """Return the softmax; `half_to_float` is for GPUs."""
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
    return softmax.softmax_of_package(self, dim)


@aten
def _log_softmax(self, dim, half_to_float):
    """Return the logarithm of the softmax; `half_to_float` is for GPUs."""
    if half_to_float:
        raise RuntimeError("log_softmax with half to float conversion is not supported on CPU")
    return softmax.log_softmax_of_package(self, dim)


@aten
def _safe_softmax(self, dim, dtype=None):
    """Return the softmax, and 0 where all elements along the dimension are -inf."""
    found = softmax.softmax_of_package(self, dim, dtype)
    return cygrad.where((self == -math.inf).all(dim, keepdim=True), 0, found)


@aten
def elu(self, alpha=1, scale=1, input_scale=1):
    """Return `scale * x` for positive elements, and `scale * alpha * (exp(input_scale * x) - 1)` for others."""
    if scale == 1 and input_scale == 1:
        return exponential_units.elu(self, alpha)
    return cygrad.where(self > 0, self, alpha * cygrad.expm1(self.clamp(max=0) * input_scale)) * scale


@aten
def log_sigmoid_forward(self):
    """Return the logarithm of the sigmoid, and an empty buffer."""
    return activations.logsigmoid(self), self.new_empty(0)


@aten
def _prelu_kernel(self, weight):
    """Return `self` where positive, else `weight * self`; the two broadcast."""
    return cygrad.where(self > 0, self, weight * self)


@aten
def rrelu_with_noise(self, noise, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """Return `rrelu`; in training, its random slopes are written to `noise`."""
    if not training:
        return rectifiers.rrelu(self, lower, upper)
    slopes = cygrad.empty_like(self).uniform_(lower, upper, generator=generator)
    noise.copy_(cygrad.where(self <= 0, slopes, 1))
    return self * noise


own.update(
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
    _embedding_bag=embeddings.functions["embedding_bag"],
    _embedding_bag_forward_only=embeddings.functions["embedding_bag"],
    embedding=embeddings.functions["embedding"],
    linear=linear,
    scaled_dot_product_attention=scaled_dot_product_attention,
)


def _in_place(name):
    function = own[name]

    def form(self, *args, **kwargs):
        return self.copy_(function(self, *args, **kwargs))

    form.__name__ = form.__qualname__ = f"{name}_"
    form.__doc__ = f"In-place form of `{name}`."
    return aten(form)


for _name in ("gelu", "silu", "mish", "hardswish", "hardsigmoid", "relu6", "elu"):
    _in_place(_name)
