"""Activations and losses, as `__torch_dispatch__` shows them; see `_dispatch_rules.py`.

Losses that PyTorch composes of other ops are one op here: they are shown as those ops, and the last one returns what
the kernel here has found.
"""

import math
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import tensor_of
from cygrad._core.registry import dispatch
from cygrad.ops import aten
from cygrad.ops._dispatch_rules import Several, Step, _rule, do, found_by, shortened

# -- activations --


@_rule("tanhshrink")
def _tanhshrink(done: Any, made: Any) -> Any:
    x = done.inputs[0]
    return Several(lambda: found_by(made[0], aten.sub.Tensor, x, do(aten.tanh.default, x)))


@_rule("softsign")
def _softsign(done: Any, made: Any) -> Any:
    x = done.inputs[0]

    def run() -> Any:
        size = do(aten.add.Tensor, do(aten.abs.default, x), 1)
        return found_by(made[0], aten.div.Tensor, x, size)

    return Several(run)


@_rule("logsigmoid")
def _logsigmoid(done: Any, made: Any) -> Step:
    x = done.inputs[0]
    return Step(aten.log_sigmoid_forward.default, (x,), {}, lambda made: (made[0], x.new_empty(0)))


@_rule("threshold")
def _threshold(done: Any, made: Any) -> Step:
    return Step(aten.threshold.default, (done.inputs[0], *done.args))


@_rule("rrelu")
def _rrelu(done: Any, made: Any) -> Any:
    x, (lower, upper, training, noise) = done.inputs[0], done.args
    how = shortened([lower, upper, bool(training)], (0.125, 0.3333333333333333, False))

    def run() -> Any:
        slopes = do(aten.empty_like.default, x, memory_format=cygrad.contiguous_format)
        if isinstance(noise, Tensor):
            with dispatch.unseen():
                slopes.copy_(noise)
        return found_by(made[0], aten.rrelu_with_noise.default, x, slopes, *how)

    return Several(run)


@_rule("prelu")
def _prelu(done: Any, made: Any) -> Any:
    x, weight = done.inputs[:2]
    if weight.ndim == x.ndim or weight.ndim > 1:
        return Step(aten._prelu_kernel.default, (x, weight))

    def run() -> Any:
        size = [1] * x.ndim
        if x.ndim > 1:
            size[1] = weight.numel()
        return found_by(made[0], aten._prelu_kernel.default, x, do(aten.view.default, weight, size))

    return Several(run)


# -- losses that are ops there --


@_rule("multi_margin_loss")
def _multi_margin(done: Any, made: Any) -> Step:
    reduction, _, p, margin = done.args
    target, weight = done.hint
    how = shortened([p, margin, weight, reduction], (None, None, None, 1), 2)
    return Step(aten.multi_margin_loss.default, (done.inputs[0], target, *how))


@_rule("multilabel_margin_loss")
def _multilabel_margin(done: Any, made: Any) -> Step:
    args = done.inputs[0], done.hint[0], done.args[0]
    return Step(aten.multilabel_margin_loss_forward.default, args, {}, lambda made: (made[0], done.args[3]))


@_rule("soft_margin_loss")
def _soft_margin(done: Any, made: Any) -> Step:
    return Step(aten.soft_margin_loss.default, (done.inputs[0], done.hint[0], *shortened(done.args[:1], (1,))))


@_rule("ctc_loss")
def _ctc(done: Any, made: Any) -> Any:
    if done.hint is None:
        return NotImplemented
    how = shortened([done.args[3], bool(done.args[6])], (0, False))
    args = done.inputs[0], *done.hint, *how
    return Step(aten._ctc_loss.default, args, {}, lambda made: (made[0], made[0].new_empty(0)))


@_rule("embedding_bag")
def _embedding_bag(done: Any, made: Any) -> Step:
    indices, offsets, by_frequency, mode, sparse, weights, include_last, padding = done.hint
    more = shortened([include_last, padding], (False, -1))
    op = aten._embedding_bag if done.inputs[0].requires_grad else aten._embedding_bag_forward_only
    return Step(op.default, (done.inputs[0], indices, offsets, by_frequency, mode, sparse, weights, *more))


# -- losses that are several ops there --


def _reduced(losses: Any, reduction: int, made: Any) -> Any:
    if not reduction:
        return losses
    return found_by(made[0], (aten.mean if reduction == 1 else aten.sum).default, losses)


@_rule("kl_divergence")
def _kl(done: Any, made: Any) -> Any:
    x, y = done.inputs[:2]

    def run() -> Any:
        product = do(aten.mul.Tensor, y, x)
        return found_by(made[0], aten.sub.Tensor, do(aten.xlogy.Tensor, y, y), product)

    return Several(run)


@_rule("poisson_nll_loss")
def _poisson(done: Any, made: Any) -> Any:
    x, y = done.inputs[:2]
    reduction, _, log_input, full, eps = done.args

    def run() -> Any:
        if log_input:
            product = do(aten.mul.Tensor, y, x)
            losses = do(aten.sub.Tensor, do(aten.exp.default, x), product)
        else:
            logarithm = do(aten.log.default, do(aten.add.Scalar, x, eps))
            losses = do(aten.sub.Tensor, x, do(aten.mul.Tensor, y, logarithm))
        if full:
            losses = do(aten.add_.Tensor, losses, _of_factorial(y))
        return _reduced(losses, reduction, made)

    return Several(run)


def _of_factorial(y: Any) -> Any:
    """Return Stirling's approximation of the logarithm of y!, and 0 up to 1."""
    half = do(aten.mul.Scalar, do(aten.log.default, do(aten.mul.Scalar, y, 2 * math.pi)), 0.5)
    found = do(aten.sub.Tensor, do(aten.mul.Tensor, y, do(aten.log.default, y)), y)
    found = do(aten.add.Tensor, found, half)
    return do(aten.masked_fill.Scalar, found, do(aten.le.Scalar, y, 1), 0)


@_rule("margin_ranking_loss")
def _margin_ranking(done: Any, made: Any) -> Any:
    a, b, y = done.inputs[:3]
    reduction, _, margin = done.args

    def run() -> Any:
        gap = do(aten.neg.default, do(aten.sub.Tensor, a, b))
        losses = do(aten.add.Scalar, do(aten.mul.Tensor, gap, y), margin)
        return _reduced(do(aten.clamp_min_.default, losses, 0), reduction, made)

    return Several(run)


@_rule("gaussian_nll_loss")
def _gaussian(done: Any, made: Any) -> Any:
    x, y, variance = done.inputs[:3]
    reduction, _, constant = done.args
    (eps,) = done.hint

    def run() -> Any:
        do(aten._local_scalar_dense.default, do(aten.any.default, do(aten.lt.Scalar, variance, 0)))
        known = do(aten.clamp_.default, do(aten.clone.default, variance), eps)
        logarithm = do(aten.log.default, known)
        squares = do(aten.pow.Tensor_Scalar, do(aten.sub.Tensor, x, y), 2)
        losses = do(aten.add.Tensor, logarithm, do(aten.div.Tensor, squares, known))
        losses = do(aten.mul.Tensor, losses, 0.5)
        if constant:
            losses = do(aten.add_.Tensor, losses, constant)
        return _reduced(losses, reduction, made)

    return Several(run)


@_rule("hinge_embedding_loss")
def _hinge(done: Any, made: Any) -> Any:
    x, (y,) = done.inputs[0], done.hint
    reduction, _, margin = done.args

    def run() -> Any:
        zeros = do(aten.zeros_like.default, x, memory_format=cygrad.contiguous_format)
        gap = do(aten.empty_like.default, x, memory_format=cygrad.preserve_format)
        gap = do(aten.sub_.Tensor, do(aten.fill_.Scalar, gap, margin), x)
        gap = do(aten.clamp_min_.default, gap, 0)
        of_others = do(aten.where.self, do(aten.ne.Scalar, y, 1), gap, zeros)
        of_same = do(aten.where.self, do(aten.ne.Scalar, y, -1), x, zeros)
        return _reduced(do(aten.add.Tensor, of_others, of_same), reduction, made)

    return Several(run)


# -- normalization --


@_rule("instance_norm")
def _instance_norm(done: Any, made: Any) -> Any:
    x, weight, bias = done.inputs[:3]
    eps = done.args[5]
    n, channels = x.shape[:2]

    def run() -> Any:
        factors = [None if t is None else do(aten.repeat.default, t, [n]) for t in (weight, bias)]
        images = do(aten.view.default, x, [1, n * channels, *x.shape[2:]])
        do(aten.empty.memory_format, [0], dtype=cygrad.uint8, layout=cygrad.strided, device=x.device)
        with dispatch.unseen():
            result = made[0].view(images.shape), *(tensor_of(array.reshape(-1)) for array in done.args[1:3])
        args = images, *factors, None, None, True, 0.1, eps
        found = found_by(result, aten.native_batch_norm.default, *args)[0]
        return do(aten.view.default, found, list(x.shape))

    return Several(run)
