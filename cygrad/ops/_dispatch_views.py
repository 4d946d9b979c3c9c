"""Views, shapes and indices, as `__torch_dispatch__` shows them; see `_dispatch_rules.py`."""

from typing import Any

import cygrad
from cygrad.ops import aten
from cygrad.ops._dispatch_rules import RULES, Several, Step, _lists, _number, _rule, do

# -- views and shapes --


@_rule("view reshape.alias _unsafe_view")
def _view(done: Any, made: Any) -> Step:
    return Step(aten.view.default, (done.inputs[0], list(made[0].shape)))


@_rule("reshape.copy")
def _reshaped(done: Any, made: Any) -> Step:
    return Step(aten._unsafe_view.default, (done.inputs[0], list(made[0].shape)))  # the input is the copy


@_rule("expand")
def _expand(done: Any, made: Any) -> Step:
    return Step(aten.expand.default, (done.inputs[0], list(made[0].shape)))


@_rule("permute flip")
def _permute(done: Any, made: Any) -> Step:
    return Step(getattr(aten, done.op.name).default, (done.inputs[0], _lists(done.args[0])))


@_rule("transpose")
def _transpose(done: Any, made: Any) -> Step:
    return Step(aten.transpose.int, (done.inputs[0], *done.args[:2]))


@_rule("select")
def _select(done: Any, made: Any) -> Step:
    return Step(aten.select.int, (done.inputs[0], *done.args[1:3]))


@_rule("slice")
def _slice(done: Any, made: Any) -> Step:
    _, dim, start, stop, step = done.args
    return Step(aten.slice.Tensor, (done.inputs[0], dim, start, stop, *([step] if step != 1 else [])))


@_rule("select_backward")
def _select_backward(done: Any, made: Any) -> Step:
    size, dim, index = done.args
    return Step(aten.select_backward.default, (done.inputs[0], list(size), dim, index))


@_rule("slice_backward")
def _slice_backward(done: Any, made: Any) -> Step:
    size, dim, start, step = done.args[:4]
    count = done.inputs[0].shape[dim]
    stop = start + (count - 1) * step + 1 if count else start
    return Step(aten.slice_backward.default, (done.inputs[0], list(size), dim, start, stop, step))


@_rule("squeeze")
def _squeeze(done: Any, made: Any) -> Step:
    return Step(aten.squeeze.default, done.inputs)


@_rule("squeeze.dim squeeze.dims")
def _squeeze_dim(done: Any, made: Any) -> Step:
    dims = done.args[1]
    if isinstance(dims, int):
        return Step(aten.squeeze.dim, (done.inputs[0], dims))
    return Step(aten.squeeze.dims, (done.inputs[0], _lists(dims)))


@_rule("split split_with_sizes")
def _split(done: Any, made: Any) -> Step:
    _, sizes, dim = done.args
    t, sizes = done.inputs[0], _lists(sizes)
    even = len(set(sizes[:-1])) <= 1 and (len(sizes) == 1 or sizes[-1] <= sizes[0])
    if even and done.op.name == "split":
        return Step(aten.split.Tensor, (t, sizes[0], *([dim] if dim else [])), {}, list)
    return Step(aten.split_with_sizes.default, (t, sizes, *([dim] if dim else [])), {}, list)


@_rule("unbind")
def _unbind(done: Any, made: Any) -> Step:
    return Step(aten.unbind.int, (done.inputs[0], *([done.args[1]] if done.args[1] else [])), {}, list)


@_rule("conj")
def _conj(done: Any, made: Any) -> Step:
    return Step(aten._conj.default, done.inputs)


@_rule("neg_view")
def _neg_view(done: Any, made: Any) -> Step:
    return Step(aten._neg_view.default, done.inputs)


@_rule("diagonal")
def _diagonal(done: Any, made: Any) -> Step:
    _, offset, dim1, dim2 = done.args
    more = () if (offset, dim1, dim2) == (0, 0, 1) else (offset, dim1, dim2)
    return Step(aten.diagonal.default, (done.inputs[0], *more))


@_rule("cat stack")
def _joined(done: Any, made: Any) -> Step:
    dim = done.args[0]
    return Step(getattr(aten, done.op.name).default, (list(done.inputs), *([dim] if dim else [])))


@_rule("repeat")
def _repeat(done: Any, made: Any) -> Step:
    return Step(aten.repeat.default, (done.inputs[0], _lists(done.args[0])))


@_rule("roll")
def _roll(done: Any, made: Any) -> Step:
    shifts, dims = done.args[:2]
    return Step(aten.roll.default, (done.inputs[0], _lists(shifts), *([_lists(dims)] if dims else [])))


def _pads(kind: str, name: str) -> None:
    def pad(done: Any, made: Any) -> Any:
        op = getattr(aten, name).default
        return Step(op, (done.inputs[0], _lists(done.args[1])))

    RULES[kind] = pad


for _n in (1, 2, 3):
    _pads(f"pad.reflect{_n}", f"reflection_pad{_n}d")
    _pads(f"pad.replicate{_n}", f"replication_pad{_n}d")


@_rule("pad.circular")
def _circular(done: Any, made: Any) -> Any:
    x, pad, out = done.inputs[0], list(done.args[1]), made[0]
    sides = [pad[i : i + 2] for i in range(0, len(pad), 2)]
    dims = [x.ndim - len(sides) + i for i in range(len(sides))]  # in PyTorch's order
    by_dim = {x.ndim - 1 - i: side for i, side in enumerate(sides)}

    def run() -> Any:
        own = {"dtype": x.dtype, "layout": cygrad.strided, "device": x.device}
        whole = do(aten.new_empty.default, x, list(out.shape), **own)
        target, source = whole, x
        for dim in dims:
            before, after = by_dim[dim]
            n = out.shape[dim]
            target = do(aten.slice.Tensor, target, dim, max(before, 0), n - max(after, 0))
            source = do(aten.slice.Tensor, source, dim, max(-before, 0), x.shape[dim] - max(-after, 0))
        do(aten.copy_.default, target, source)
        for dim in reversed(dims):
            before, after = by_dim[dim]
            n = out.shape[dim]
            if before > 0:
                target = do(aten.slice.Tensor, whole, dim, 0, before)
                source = do(aten.slice.Tensor, whole, dim, n - before - max(after, 0), n - max(after, 0))
                do(aten.copy_.default, target, source)
            if after > 0:
                target = do(aten.slice.Tensor, whole, dim, n - after, n)
                do(
                    aten.copy_.default,
                    target,
                    do(aten.slice.Tensor, whole, dim, max(before, 0), max(before, 0) + after),
                )
        return whole

    return Several(run)


@_rule("constant_pad_nd")
def _pad(done: Any, made: Any) -> Step:
    pad, value = done.args[:2]
    return Step(aten.constant_pad_nd.default, (done.inputs[0], _lists(pad), value))


@_rule("as_strided")
def _as_strided(done: Any, made: Any) -> Step:
    out = made[0]
    offset = (out.storage_offset(),) if out.storage_offset() else ()
    return Step(aten.as_strided.default, (done.inputs[0], list(out.shape), list(out.stride()), *offset))


@_rule("unfold")
def _unfold(done: Any, made: Any) -> Step:
    return Step(aten.unfold.default, (done.inputs[0], *done.args[1:4]))


# -- indices --


@_rule("gather index_select")
def _gather(done: Any, made: Any) -> Step:
    return Step(getattr(aten, done.op.name).default, (done.inputs[0], done.args[0], done.hint))


@_rule("scatter_add")
def _scatter_add(done: Any, made: Any) -> Step:
    return Step(aten.scatter_add.default, (done.inputs[0], done.args[0], done.hint, done.inputs[1]))


@_rule("scatter scatter.value")
def _scatter(done: Any, made: Any) -> Step:
    if len(done.inputs) > 1:
        return Step(aten.scatter.src, (done.inputs[0], done.args[0], done.hint, done.inputs[1]))
    return Step(aten.scatter.value, (done.inputs[0], done.args[0], done.hint, done.args[1]))


@_rule("put_back")
def _put_back(done: Any, made: Any) -> Any:
    g, (dim, size) = done.inputs[0], done.args[:2]
    return Several(lambda: do(aten.scatter_add.default, do(aten.new_zeros.default, g, list(size)), dim, done.hint, g))


@_rule("index_add index_copy")
def _index_add(done: Any, made: Any) -> Step:
    dim, alpha = done.args[0], done.args[1] if done.op.name == "index_add" else 1
    named = {} if alpha == 1 else {"alpha": alpha}
    return Step(getattr(aten, done.op.name).default, (done.inputs[0], dim, done.hint, done.inputs[1]), named)


@_rule("index")
def _index(done: Any, made: Any) -> Step:
    return Step(aten.index.Tensor, (done.inputs[0], list(done.hint)))


@_rule("index_backward")
def _index_backward(done: Any, made: Any) -> Any:
    g, size = done.inputs[0], list(done.args[0])
    zeros = aten.new_zeros.default
    return Several(lambda: do(aten.index_put.default, do(zeros, g, size), list(done.hint), g, True))


@_rule("index_put")
def _index_put(done: Any, made: Any) -> Step:
    more = (True,) if done.args[0] else ()
    return Step(aten.index_put.default, (done.inputs[0], list(done.hint), done.inputs[1], *more))


@_rule("embedding")
def _embedding(done: Any, made: Any) -> Step:
    padding = done.args[0]
    return Step(aten.embedding.default, (done.inputs[0], done.hint, *([padding] if padding >= 0 else [])))


@_rule("index_fill")
def _index_fill(done: Any, made: Any) -> Step:
    dim, value = done.args
    return Step(aten.index_fill.int_Scalar, (done.inputs[0], dim, done.hint, _number(value)))


@_rule("scatter_reduce scatter_reduce.sum")
def _scatter_reduce(done: Any, made: Any) -> Step:
    dim, reduce, include_self = done.args[:3]
    named = {} if include_self else {"include_self": False}
    return Step(aten.scatter_reduce.two, (done.inputs[0], dim, done.hint, done.inputs[1], reduce), named)


@_rule("masked_scatter")
def _masked_scatter(done: Any, made: Any) -> Step:
    return Step(aten.masked_scatter.default, (done.inputs[0], done.hint, done.inputs[1]))


@_rule("select_scatter")
def _select_scatter(done: Any, made: Any) -> Step:
    return Step(aten.select_scatter.default, (*done.inputs[:2], *done.args[:2]))


@_rule("slice_scatter")
def _slice_scatter(done: Any, made: Any) -> Step:
    return Step(aten.slice_scatter.default, (*done.inputs[:2], *done.args[:4]))


@_rule("count_nonzero")
def _count_nonzero(done: Any, made: Any) -> Step:
    dims = done.args[0]
    op = aten.count_nonzero.default if dims is None else aten.count_nonzero.dim_IntList
    return Step(op, (done.inputs[0], *([] if dims is None else [_lists(dims)])))


@_rule("one_hot")
def _one_hot(done: Any, made: Any) -> Step:
    return Step(aten.one_hot.default, (done.inputs[0], *done.args[:1]))


@_rule("isclose")
def _isclose(done: Any, made: Any) -> Step:
    return Step(aten.isclose.default, (*done.inputs[:2], *done.args))
