"""Nodes whose rule PyTorch has as an op: functions of the node and the gradient that call it; see `_dispatch.py`."""

from collections.abc import Callable
from typing import Any

from cygrad._core.graph.internals import tensor_of
from cygrad.ops import aten
from cygrad.ops._dispatch_layers import _nothing
from cygrad.ops._dispatch_rules import _lists, do

GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {}


def _gradient(names: str) -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        for name in names.split():
            GRADIENTS[name] = function
        return function

    return note


@_gradient("mul")
def _mul(n: Any, g: Any) -> Any:
    other = n.saved(1) if n.needs(0) else None
    return (do(aten.mul.Tensor, g, other), None) if isinstance(other, (int, float)) else NotImplemented


@_gradient("div")
def _div(n: Any, g: Any) -> Any:
    other = n.saved(1) if n.needs(0) else None
    return (do(aten.div.Tensor, g, other), None) if isinstance(other, (int, float)) else NotImplemented


@_gradient("mean")
def _mean(n: Any, g: Any) -> Any:
    count, size = n.args
    return do(aten.div.Scalar, do(aten.expand.default, g, list(size)), count)


@_gradient("mean.dim")
def _mean_dim(n: Any, g: Any) -> Any:
    dims, keepdim, count, size = n.args
    dims = list(range(len(size))) if dims is None else [d % len(size) for d in _lists(dims)]
    if not keepdim:
        for dim in sorted(dims):
            g = do(aten.unsqueeze.default, g, dim)
    return do(aten.div.Scalar, do(aten.expand.default, g, list(size)), count)


@_gradient("pow")
def _pow(n: Any, g: Any) -> Any:
    exponent = n.args[0]
    x = n.saved(0)
    if isinstance(exponent, complex) or exponent == 0 or x.is_complex():
        return NotImplemented
    lower = do(aten.pow.Tensor_Scalar, x, exponent - 1.0 if isinstance(exponent, float) else float(exponent - 1))
    return do(aten.mul.Tensor, g, do(aten.mul.Scalar, lower, float(exponent)))


@_gradient("gelu")
def _gelu(n: Any, g: Any) -> Any:
    how = {} if n.args[0] == "none" else {"approximate": n.args[0]}
    return do(aten.gelu_backward.default, g, n.saved(0), **how)


def _unit(name: str) -> None:
    op = getattr(aten, f"{name}_backward").default
    GRADIENTS[name] = lambda n, g: do(op, g, n.saved(0))


for _name in ("silu", "mish", "hardswish", "hardsigmoid"):
    _unit(_name)


@_gradient("leaky_relu")
def _leaky_relu(n: Any, g: Any) -> Any:
    return (
        do(aten.leaky_relu_backward.default, g, n.saved(0), n.args[0], False)
        if n.saved(0) is not None
        else (NotImplemented)
    )


@_gradient("hardtanh")
def _hardtanh(n: Any, g: Any) -> Any:
    x = n.saved(0)
    return NotImplemented if x is None else do(aten.hardtanh_backward.default, g, x, *n.args[:2])


@_gradient("threshold")
def _threshold(n: Any, g: Any) -> Any:
    x = n.saved(0)
    return NotImplemented if x is None else do(aten.threshold_backward.default, g, x, n.args[0])


@_gradient("softshrink")
def _softshrink(n: Any, g: Any) -> Any:
    x = n.saved(0)
    return NotImplemented if x is None else do(aten.softshrink_backward.default, g, x, n.args[0])


@_gradient("hardshrink")
def _hardshrink(n: Any, g: Any) -> Any:
    x = n.saved(0)
    return NotImplemented if x is None else do(aten.hardshrink_backward.default, g, x, n.args[0])


@_gradient("elu")
def _elu(n: Any, g: Any) -> Any:
    x = n.saved(0)
    return NotImplemented if x is None else do(aten.elu_backward.default, g, *n.args[:3], False, x)


@_gradient("softplus")
def _softplus(n: Any, g: Any) -> Any:
    beta, threshold = n.args[:2]
    return do(aten.softplus_backward.default, g, n.saved(0), beta, threshold)


@_gradient("mse_loss")
def _mse(n: Any, g: Any) -> Any:
    reduction = n.args[0]
    x, target = n.saved(0), n.saved(1)
    grad = do(aten.mse_loss_backward.default, g, x, target, reduction) if n.needs(0) else None
    other = do(aten.mse_loss_backward.default, g, target, x, reduction) if n.needs(1) else None
    return grad, other


@_gradient("nll_loss")
def _nll(n: Any, g: Any) -> Any:
    ignored, reduction, total = n.args[:3]
    size = n.expected_gradients()[0][0]
    x = do(aten.new_empty.default, g, list(size))  # of which only the shape matters
    if total.is_meta:  # the class has computed it, and not kept
        args = x, n.saved(1), n.saved(2), reduction, ignored
        total = do(aten.nll_loss_forward.default, *args)[1]
    return do(aten.nll_loss_backward.default, g, x, n.saved(1), n.saved(2), reduction, ignored, total)


@_gradient("embedding")
def _embedding(n: Any, g: Any) -> Any:
    padding, by_frequency, sparse, size = n.args
    if sparse:
        return NotImplemented
    return do(aten.embedding_dense_backward.default, g, n.saved(1), size[0], padding, by_frequency)


@_gradient("convolution")
def _convolution(n: Any, g: Any) -> Any:
    stride, padding, dilation, transposed, output_padding, groups = n.args[:6]
    x, weight = n.saved(0), n.saved(1)
    if x is None or weight is None or not transposed and _is_one_sided(n, g, x, weight):
        return NotImplemented
    mask = [n.needs(0), n.needs(1), n.needs(2)]
    bias = [weight.shape[1] * groups if transposed else weight.shape[0]] if mask[2] else None
    how = _lists(stride), _lists(padding), _lists(dilation), transposed, _lists(output_padding), groups, mask
    return tuple(do(aten.convolution_backward.default, g, x, weight, bias, *how))


def _is_one_sided(n: Any, g: Any, x: Any, weight: Any) -> bool:
    """Whether the images have been padded on one side only, as by `padding="same"`."""
    stride, padding, dilation = map(_lists, n.args[:3])
    return any(
        (x.shape[i + 2] + 2 * padding[i] - dilation[i] * (weight.shape[i + 2] - 1) - 1) // stride[i] + 1
        != g.shape[i + 2]
        for i in range(len(stride))
    )


def _statistics(n: Any, forward: Callable[[], Any], size: Any = None) -> list[Any]:
    """Return the mean and the factor of a normalization: those that were saved, or those that a class computes anew."""
    if type(n.args[1]).__module__.startswith("numpy"):
        return [tensor_of(array if size is None else array.reshape(size)) for array in n.args[1:3]]
    return list(forward()[1:3])


@_gradient("layer_norm")
def _layer_norm(n: Any, g: Any) -> Any:
    x, weight, size = n.saved(0), n.saved(1), list(n.args[4])
    if x is None:
        return NotImplemented
    eps = n.args[0].eps
    mean, rstd = _statistics(n, lambda: do(aten.native_layer_norm.default, x, size, weight, None, eps))
    mask = [n.needs(0), n.needs(1), n.needs(2)]
    op = aten.native_layer_norm_backward.default
    return tuple(do(op, g, x, size, mean, rstd, weight, weight if mask[2] else None, mask))


@_gradient("group_norm")
def _group_norm(n: Any, g: Any) -> Any:
    x, weight, (group, eps) = n.saved(0), n.saved(1), n.args[4:6]
    if x is None:
        return NotImplemented
    sizes = x.shape[0], x.shape[1], x.shape[2:].numel(), group
    forward = lambda: do(aten.native_group_norm.default, x, weight, None, *sizes, eps)  # noqa: E731
    mean, rstd = _statistics(n, forward, (x.shape[0], group))
    mask = [n.needs(0), n.needs(1), n.needs(2)]
    return tuple(do(aten.native_group_norm_backward.default, g, x, mean, rstd, weight, *sizes, mask))


@_gradient("batch_norm")
def _batch_norm(n: Any, g: Any) -> Any:
    x, weight = n.saved(0), n.saved(1)
    if x is None or not type(n.args[1]).__module__.startswith("numpy"):
        return NotImplemented
    *running, training, eps = n.args[4:8]
    mean, rstd = _statistics(n, lambda: None, (x.shape[1],)) if training else (_nothing(x), _nothing(x))
    mask = [n.needs(0), n.needs(1), n.needs(2)]
    op = aten.native_batch_norm_backward.default
    return tuple(do(op, g, x, weight, *running, mean, rstd, training, eps, mask))
