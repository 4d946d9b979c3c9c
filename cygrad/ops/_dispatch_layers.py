"""Products, layers, losses and new tensors, as `__torch_dispatch__` shows them; see `_dispatch_rules.py`."""

from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import memory_of, tensor_of
from cygrad._core.registry import dispatch
from cygrad.ops import aten
from cygrad.ops._dispatch_rules import Several, Step, _lists, _rule, do, found_by

# -- products --


@_rule("mm bmm mv dot")
def _product(done: Any, made: Any) -> Step:
    return Step(getattr(aten, done.op.name).default, done.inputs[:2])


@_rule("addmm addmv addr addbmm baddbmm")
def _addmm(done: Any, made: Any) -> Step:
    beta, alpha = (*done.args, 1, 1)[:2] if done.args else (1, 1)
    named = {name: value for name, value in (("beta", beta), ("alpha", alpha)) if value != 1}
    return Step(getattr(aten, done.op.name).default, done.inputs[:3], named)


def _shaped(t: Tensor, size: list[int]) -> Tensor:
    """Return `t` with another shape: a view, or else a copy."""
    with dispatch.without_classes():
        try:
            cygrad.empty_strided(t.shape, t.stride(), device="meta").view(size)
        except RuntimeError:
            is_view = False
        else:
            is_view = True
    if is_view:
        return do(aten.view.default, t, size)
    return do(aten._unsafe_view.default, do(aten.clone.default, t, memory_format=cygrad.contiguous_format), size)


def _folded(t: Tensor) -> Tensor:
    return _shaped(t, [t.shape[:-1].numel(), t.shape[-1]])


@_rule("linear")
def _linear(done: Any, made: Any) -> Any:
    bias, x, weight = done.inputs[:3]

    def run() -> Any:
        rows = x if x.ndim == 2 else _folded(x)
        turned = do(aten.t.default, weight)
        if bias is None:
            found = do(aten.mm.default, rows, turned)
        else:
            found = do(aten.addmm.default, bias, rows, turned)
        return found if x.ndim == 2 else do(aten.view.default, found, [*x.shape[:-1], weight.shape[0]])

    return Several(run)


@_rule("matmul")
def _matmul(done: Any, made: Any) -> Any:
    a, b = done.inputs[:2]
    size = list(made[0].shape)
    if a.ndim == 1 and b.ndim == 1:
        return Step(aten.dot.default, (a, b))
    if a.ndim == 2 and b.ndim <= 2:
        return Step((aten.mm if b.ndim == 2 else aten.mv).default, (a, b))

    def run() -> Any:
        if a.ndim == 1 and b.ndim == 2:
            return do(aten.squeeze.dim, do(aten.mm.default, do(aten.unsqueeze.default, a, 0), b), 0)
        if a.ndim > 2 and b.ndim == 2:
            return do(aten._unsafe_view.default, do(aten.mm.default, _folded(a), b), size)
        left = do(aten.unsqueeze.default, a, 0) if a.ndim == 1 else a
        right = do(aten.unsqueeze.default, b, 1) if b.ndim == 1 else b
        batch = list(cygrad.broadcast_shapes(left.shape[:-2], right.shape[:-2]))
        count = cygrad.Size(batch).numel()
        parts = []
        for part in (left, right):
            wide = do(aten.expand.default, part, [*batch, *part.shape[-2:]])
            parts.append(_shaped(wide, [count, *part.shape[-2:]]))
        return do(aten._unsafe_view.default, do(aten.bmm.default, *parts), size)

    return Several(run)


@_rule("convolution")
def _convolution(done: Any, made: Any) -> Any:
    stride, padding, dilation, transposed, output_padding, groups = done.args[:6]
    how = _lists(stride), _lists(padding), _lists(dilation), transposed, _lists(output_padding), groups
    x, weight, bias = done.inputs[:3]
    if not transposed:
        usual = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, p, d, k, s in zip(x.shape[2:], how[1], how[2], weight.shape[2:], how[0], strict=True)
        ]
        more = [2 * (wanted - n) for n, wanted in zip(usual, made[0].shape[2:], strict=True)]
        if any(more):  # padding="same" with even lengths, on one side only
            sides = [side for extra in reversed(more) for side in (0, extra // 2)]
            return Several(
                lambda: do(
                    aten.convolution.default, do(aten.constant_pad_nd.default, x, sides, 0.0), weight, bias, *how
                )
            )
    elif list(made[0].shape[2:]) != (sizes := _upsampled(x, weight, *how)):

        def run() -> Any:
            found = do(aten.convolution.default, x, weight, bias, *how)
            for dim, (n, wanted) in enumerate(zip(sizes, made[0].shape[2:], strict=True), 2):
                if n != wanted:
                    found = do(aten.slice.Tensor, found, dim, 0, wanted)
            return found

        return Several(run)
    return Step(aten.convolution.default, (*done.inputs[:3], *how))


def _upsampled(
    x: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, _: Any, more: Any, groups: Any
) -> Any:
    """Return the lengths of the images that a transposed convolution makes."""
    lengths = zip(x.shape[2:], stride, padding, dilation, weight.shape[2:], more, strict=True)
    return [(n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, s, p, d, k, m in lengths]


# -- normalization and losses --


def _with_statistics(done: Any, size: Any = None) -> Callable[[tuple[Tensor, ...]], Any]:
    """Return how to give the result of a normalization the statistics that it was computed with."""

    def pack(made: tuple[Tensor, ...]) -> Any:
        return (made[0], *(tensor_of(array if size is None else array.reshape(size)) for array in done.args[1:3]))

    return pack


def _nothing(like: Tensor) -> Tensor:
    return tensor_of(memory_of(like)[:0].reshape(-1)[:0])


@_rule("layer_norm")
def _layer_norm(done: Any, made: Any) -> Step:
    x, weight, bias = done.inputs[:3]
    args = x, list(done.args[4]), weight, bias, done.args[0].eps
    return Step(aten.native_layer_norm.default, args, {}, _with_statistics(done))


@_rule("rms_norm")
def _rms_norm(done: Any, made: Any) -> Any:
    x, weight = done.inputs[:2]
    dims = list(range(x.ndim - len(done.args[4]), x.ndim))

    def run() -> Any:
        mean = do(aten.mean.dim, do(aten.pow.Tensor_Scalar, x, 2), dims, True)
        found = do(aten.mul.Tensor, x, do(aten.rsqrt.default, do(aten.add_.Scalar, mean, done.args[0].eps)))
        return found if weight is None else do(aten.mul.Tensor, found, weight)

    return Several(run)


@_rule("group_norm")
def _group_norm(done: Any, made: Any) -> Step:
    x, weight, bias = done.inputs[:3]
    group, eps = done.args[4:6]
    args = x, weight, bias, x.shape[0], x.shape[1], x.shape[2:].numel(), group, eps
    return Step(aten.native_group_norm.default, args, {}, _with_statistics(done, (x.shape[0], group)))


@_rule("batch_norm")
def _batch_norm(done: Any, made: Any) -> Step | Several:
    x, weight, bias = done.inputs[:3]
    *running, training, eps = done.args[4:8]
    args = x, weight, bias, *running, training, 0.1 if done.hint is None else done.hint, eps
    pack = _with_statistics(done, (x.shape[1],)) if training else lambda made: (made[0], _nothing(x), _nothing(x))

    def run() -> Any:
        do(aten.empty.memory_format, [0], dtype=cygrad.uint8, layout=cygrad.strided, device=x.device)  # cuDNN's
        return found_by(pack(made), aten.native_batch_norm.default, *args)[0]

    return Several(run)


@_rule("nll_loss")
def _nll(done: Any, made: Any) -> Step | Several:
    ignored, reduction, total = done.args[:3]
    target, weight = done.hint
    x = done.inputs[0]
    how = weight, reduction, ignored
    if x.ndim in (1, 2, 4):
        op = aten.nll_loss2d_forward if x.ndim == 4 else aten.nll_loss_forward
        return Step(op.default, (x, target, *how), {}, lambda made: (made[0], total))

    def run() -> Any:
        images = _shaped(x, [x.shape[0], x.shape[1], 1, -1])
        classes = _shaped(target, [x.shape[0], 1, -1])
        with dispatch.unseen():
            result = (made[0] if reduction else made[0].reshape(classes.shape)), total
        found = found_by(result, aten.nll_loss2d_forward.default, images, classes, *how)[0]
        return found if reduction else do(aten.view.default, found, list(made[0].shape))

    return Several(run)


@_rule("mse_loss")
def _mse(done: Any, made: Any) -> Step:
    return Step(aten.mse_loss.default, (*done.inputs[:2], *([] if done.args[0] == 1 else [done.args[0]])))


@_rule("l1_loss")
def _l1(done: Any, made: Any) -> Any:
    def run() -> Any:
        found = do(aten.abs.default, do(aten.sub.Tensor, *done.inputs[:2]))
        return found if not done.args[0] else do((aten.mean if done.args[0] == 1 else aten.sum).default, found)

    return Several(run)


@_rule("binary_cross_entropy")
def _bce(done: Any, made: Any) -> Step:
    weight, reduction = done.inputs[2] if len(done.inputs) > 2 else done.hint, done.args[0]
    more = [weight, reduction] if reduction != 1 else [] if weight is None else [weight]
    return Step(aten.binary_cross_entropy.default, (*done.inputs[:2], *more))


@_rule("binary_cross_entropy_with_logits")
def _bce_of_logits(done: Any, made: Any) -> Step:
    weight, reduction = done.inputs[2] if len(done.inputs) > 2 else done.hint, done.args[0]
    given: list[Any] = [weight, done.args[2], reduction]
    for default in (1, None, None):
        if given[-1] != default:
            break
        given.pop()
    return Step(aten.binary_cross_entropy_with_logits.default, (*done.inputs[:2], *given))


@_rule("smooth_l1_loss huber_loss")
def _smooth(done: Any, made: Any) -> Step:
    reduction, slope = done.args[0], done.args[2]
    more = [] if reduction == 1 and slope == 1 else [reduction] if slope == 1 else [reduction, slope]
    return Step(getattr(aten, done.op.name).default, (*done.inputs[:2], *more))


# -- new tensors --


def _place(t: Tensor) -> dict[str, Any]:
    named: dict[str, Any] = {} if t.dtype is cygrad.get_default_dtype() else {"dtype": t.dtype}
    return {**named, "device": t.device, "pin_memory": False}


@_rule("linspace logspace randint randperm normal")
def _from_arguments(done: Any, made: Any) -> Any:
    if done.hint is None:
        return None
    op = aten.randint.low if done.op == "randint" else getattr(aten, done.op).default
    return Step(op, tuple(done.hint), _place(made[0]) if done.op != "randint" else {"device": made[0].device})


@_rule("new_full")
def _new_full(done: Any, made: Any) -> Any:
    t = made[0]
    value = 0 if t.is_meta or not t.numel() else memory_of(t).flat[0].item()
    named = {} if t.dtype is done.inputs[0].dtype else {"dtype": t.dtype}
    return Step(aten.new_full.default, (done.inputs[0], list(t.shape), value), {**named, "pin_memory": False})


@_rule("multinomial")
def _multinomial(done: Any, made: Any) -> Step:
    return Step(aten.multinomial.default, (done.inputs[0], *(done.hint or (made[0].shape[-1],))))


@_rule("ones zeros empty rand randn")
def _blank(done: Any, made: Any) -> Step:
    op = aten.empty.memory_format if done.op == "empty" else getattr(aten, done.op).default
    return Step(op, (list(made[0].shape),), _place(made[0]))


@_rule("full")
def _full(done: Any, made: Any) -> Any:
    t = made[0]
    if t.is_meta or not t.numel():
        return Step(aten.empty.memory_format, (list(t.shape),), _place(t))
    return Step(aten.full.default, (list(t.shape), memory_of(t).flat[0].item()), _place(t))


@_rule("arange")
def _arange(done: Any, made: Any) -> Any:
    t = made[0]
    if t.is_meta:
        return None
    values = memory_of(t).tolist()
    start, step = values[0] if values else 0, values[1] - values[0] if len(values) > 1 else 1
    end = start + step * len(values)
    named = {"device": t.device, "pin_memory": False}
    if t.dtype not in (cygrad.int64, cygrad.get_default_dtype()):
        named["dtype"] = t.dtype
    if step != 1:
        return Step(aten.arange.start_step, (start, end, step), named)
    if start:
        return Step(aten.arange.start, (start, end), named)
    return Step(aten.arange.default, (end,), named)


@_rule("eye")
def _eye(done: Any, made: Any) -> Step:
    n, m = made[0].shape
    return Step(aten.eye.default if n == m else aten.eye.m, (n,) if n == m else (n, m), _place(made[0]))


@_rule("ones_like zeros_like empty_like rand_like randn_like")
def _alike(done: Any, made: Any) -> Step:
    named = {} if made[0].dtype is done.inputs[0].dtype else {"dtype": made[0].dtype}
    return Step(getattr(aten, done.op).default, done.inputs[:1], {**named, "pin_memory": False})


@_rule("randint_like")
def _randint_like(done: Any, made: Any) -> Step:
    op = aten.randint_like.default if len(done.hint) == 1 else aten.randint_like.low_dtype
    named = {} if made[0].dtype is done.inputs[0].dtype else {"dtype": made[0].dtype}
    return Step(op, (done.inputs[0], *done.hint), {**named, "pin_memory": False})


@_rule("full_like")
def _full_like(done: Any, made: Any) -> Any:
    t = made[0]
    if t.is_meta or not t.numel():
        return Step(aten.empty_like.default, done.inputs[:1], {"pin_memory": False})
    value = memory_of(t).flat[0].item()
    return Step(aten.full_like.default, (done.inputs[0], value), {"pin_memory": False})


@_rule("new_zeros new_ones new_empty")
def _new(done: Any, made: Any) -> Any:
    named = {} if made[0].dtype is done.inputs[0].dtype else {"dtype": made[0].dtype}
    op = getattr(aten, done.op).default
    return Step(op, (done.inputs[0], list(made[0].shape)), {**named, "pin_memory": False})


@_rule("tensor")
def _tensor(done: Any, made: Any) -> Step:
    return Step(aten.lift_fresh.default, made)


@_rule("uniform normal exponential geometric cauchy log_normal bernoulli random")
def _drawn(done: Any, made: Any) -> Any:
    if not done.writes:
        return Step(_packet_of(done).default, done.inputs[:1])
    name = done.op.name
    given = [value for value in done.args if value is not None and not isinstance(value, cygrad.Generator)]
    defaults = {"uniform": [0, 1], "normal": [0, 1], "exponential": [1]}.get(name)
    if defaults is not None and given == defaults:
        given = []
    overload = "float" if name == "bernoulli" and given and not isinstance(given[0], Tensor) else "default"
    op = getattr(getattr(aten, f"{name}_"), overload, None) or getattr(aten, f"{name}_").default
    return Step(op, (done.inputs[0], *given))


def _packet_of(done: Any) -> Any:
    return getattr(aten, done.op if isinstance(done.op, str) else done.op.name)
