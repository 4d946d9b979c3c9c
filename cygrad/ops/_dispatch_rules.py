"""Ops here whose name or arguments differ from those of the ops of PyTorch's library that `__torch_dispatch__` shows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import memory_of, tensor_of
from cygrad._core.graph.opdef import is_in_pass
from cygrad._core.registry import dispatch
from cygrad._core.registry.out_dtypes import name_of as _name_of
from cygrad.ops import OpOverload, aten


def _one_or_all(made: tuple[Tensor, ...]) -> Any:
    return made[0] if len(made) == 1 else made


class Step(NamedTuple):
    """A call of an op. `pack` gives the results here the form in which the op returns them."""

    op: OpOverload
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    pack: Callable[[tuple[Tensor, ...]], Any] = _one_or_all


class Several(NamedTuple):
    """Calls of several ops: `run()` makes them, and returns the last result."""

    run: Callable[[], Any]


def do(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Call an op that modes and classes see."""
    return dispatch.ask(op, args, kwargs, lambda: op(*args, **kwargs))


# Rows without an op of PyTorch's whose kernel takes the arrays of their inputs, and then their arguments.
REPLAYABLE = frozenset(
    """shift fft_c2c fft_r2c fft_c2r diagonal_backward repeat_backward resample lengthened unfold_backward real_part
    linalg_matrix_exp col2im im2col""".split()
)
RULES: dict[str, Callable[[Any, Any], Any]] = {}


def _rule(names: str) -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        for name in names.split():
            RULES[name] = function
        return function

    return note


def _lists(values: Any) -> list[int]:
    return [int(v) for v in ((values,) if isinstance(values, int) else values)]


def _none(done: Any, made: Any) -> None:
    return None


# -- elementwise --


@_rule("add sub mul div rsub rsub.Scalar")
def _binary(done: Any, made: Any) -> Any:
    a, b = done.inputs[:2] if len(done.inputs) > 1 else (done.inputs[0], done.args[-1])
    name, alpha = done.op.name, done.args[0] if done.args and done.args[0] is not None else 1
    if not isinstance(a, Tensor):
        if name == "div":
            return Several(lambda: do(aten.mul.Tensor, do(aten.reciprocal.default, b), a))
        a, b, name = b, a, "rsub" if name == "sub" else name
    is_number = not isinstance(b, Tensor)
    overload = "Scalar" if is_number and (name == "rsub" or is_in_pass()) else "Tensor"
    return Step(getattr(getattr(aten, name), overload), (a, b), {} if alpha == 1 else {"alpha": alpha})


@_rule("div.floor div.trunc")
def _rounded(done: Any, made: Any) -> Step:
    mode = _name_of(done.op).partition(".")[2]
    a, b = done.inputs[:2]
    op = aten.div.Tensor_mode if isinstance(b, Tensor) else aten.div.Scalar_mode
    return Step(op, (a, b), {"rounding_mode": mode})


@_rule("remainder fmod remainder.Tensor fmod.Tensor copysign copysign.Scalar")
def _remainder(done: Any, made: Any) -> Step:
    a, b = done.inputs if len(done.inputs) > 1 else (done.inputs[0], done.args[0])
    packet = getattr(aten, done.op.name)
    return Step(packet.Tensor if isinstance(b, Tensor) else packet.Scalar, (a, b))


@_rule("elu")
def _elu(done: Any, made: Any) -> Step:
    return Step(aten.elu.default, (done.inputs[0], *(done.args if tuple(done.args[1:]) != (1, 1) else done.args[:1])))


@_rule("pow")
def _pow(done: Any, made: Any) -> Step:
    if len(done.inputs) == 2:
        return Step(aten.pow.Tensor_Tensor, done.inputs)
    return Step(aten.pow.Tensor_Scalar, (done.inputs[0], done.args[0]))


@_rule("pow.Scalar")
def _pow_of_number(done: Any, made: Any) -> Step:
    return Step(aten.pow.Scalar, (done.args[0], done.inputs[0]))


@_rule("where")
def _where(done: Any, made: Any) -> Step:
    a, b = done.inputs
    overload = {
        (True, True): "self",
        (False, True): "ScalarSelf",
        (True, False): "ScalarOther",
        (False, False): "Scalar",
    }
    kind = overload[isinstance(a, Tensor), isinstance(b, Tensor)]
    return Step(getattr(aten.where, kind), (done.hint, a, b))


@_rule("clamp clamp.Tensor")
def _clamp(done: Any, made: Any) -> Step:
    given = (*done.inputs[1:], *done.args)
    is_tensor = any(isinstance(value, Tensor) for value in given)
    return Step(aten.clamp.Tensor if is_tensor else aten.clamp.default, (done.inputs[0], *given))


@_rule("threshold_backward")
def _threshold_backward(done: Any, made: Any) -> Step:
    return Step(aten.threshold_backward.default, (*done.inputs, 0))


@_rule("sigmoid_backward tanh_backward")
def _unit_backward(done: Any, made: Any) -> Step:
    return Step(getattr(aten, done.op.name).default, done.inputs)


@_rule("gelu")
def _gelu(done: Any, made: Any) -> Step:
    how = {} if done.args[0] == "none" else {"approximate": done.args[0]}
    return Step(aten.gelu.default, done.inputs, how)


@_rule("lerp lerp.Scalar")
def _lerp(done: Any, made: Any) -> Step:
    if len(done.inputs) == 3:
        return Step(aten.lerp.Tensor, done.inputs)
    return Step(aten.lerp.Scalar, (*done.inputs, done.args[0]))


@_rule("addcmul addcdiv")
def _fused(done: Any, made: Any) -> Step:
    value = done.args[0] if done.args and done.args[0] is not None else 1
    return Step(getattr(aten, done.op.name).default, done.inputs, {} if value == 1 else {"value": value})


@_rule("masked_fill masked_fill.Tensor")
def _masked_fill(done: Any, made: Any) -> Step:
    value = done.args[0]
    op = aten.masked_fill.Tensor if isinstance(value, Tensor) else aten.masked_fill.Scalar
    return Step(op, (done.inputs[0], done.hint, value))


@_rule("to")
def _to(done: Any, made: Any) -> Step:
    t, out = done.inputs[0], made[0]
    how: dict[str, Any] = {} if t.dtype is out.dtype else {"dtype": out.dtype}
    if t.device != out.device and getattr(type(t), "_results_keep_class", True) != "dispatches":
        how["device"] = out.device
    return Step(aten._to_copy.default, (t,), how)


@_rule("clone")
def _clone(done: Any, made: Any) -> Step:
    t, out = done.inputs[0], made[0]
    how = {} if t.stride() == out.stride() else {"memory_format": cygrad.contiguous_format}
    return Step(aten.clone.default, (t,), how)


@_rule("copy")
def _copy(done: Any, made: Any) -> Step:
    return Step(aten.copy.default, done.inputs)


@_rule("fill fill.Tensor")
def _fill(done: Any, made: Any) -> Step:
    value = done.inputs[1] if len(done.inputs) > 1 else done.args[0]
    return Step(aten.fill.Tensor if isinstance(value, Tensor) else aten.fill.Scalar, (done.inputs[0], value))


@_rule("zero")
def _zero(done: Any, made: Any) -> Step:
    return Step(aten.zero.default, done.inputs[:1])


@_rule("softmax log_softmax")
def _softmax(done: Any, made: Any) -> Step:
    return Step(getattr(aten, f"_{done.op.name}").default, (done.inputs[0], done.args[0], False))


@_rule("softmax_backward_data log_softmax_backward_data")
def _softmax_backward(done: Any, made: Any) -> Step:
    op = getattr(aten, f"_{done.op.name}").default
    return Step(op, (*done.inputs, done.args[0], done.inputs[0].dtype))


# -- reductions --


def _cast(done: Any, made: Any) -> dict[str, Any]:
    """Return the dtype of a reduction's result, where it is not the one that its operand gives it."""
    given = done.inputs[0].dtype
    usual = given if given.is_floating_point or given.is_complex else cygrad.int64
    return {} if made[0].dtype is usual else {"dtype": made[0].dtype}


@_rule("sum mean")
def _sum(done: Any, made: Any) -> Step:
    return Step(getattr(aten, done.op.name).default, done.inputs, _cast(done, made))


@_rule("sum.dim mean.dim")
def _sum_dim(done: Any, made: Any) -> Step:
    dims, keepdim = done.args[:2]
    t = done.inputs[0]
    dims = list(range(t.ndim)) if dims is None else _lists(dims)
    op = aten.sum.dim_IntList if done.op.name == "sum" else aten.mean.dim
    return Step(op, (t, dims, *([True] if keepdim else [])), _cast(done, made))


@_rule("sum_to_size")
def _sum_to_size(done: Any, made: Any) -> Any:
    t, size = done.inputs[0], list(made[0].shape)
    before = t.ndim - len(size)
    dims = [d for d in range(t.ndim) if d < before or (size[d - before] == 1 and t.shape[d] != 1)]

    def run() -> Any:
        found = do(aten.sum.dim_IntList, t, dims, True)
        return do(aten.view.default, found, size) if before else found

    return Several(run)


@_rule("max min median nanmedian")
def _whole(done: Any, made: Any) -> Step:
    return Step(getattr(aten, done.op.name).default, done.inputs)


@_rule("prod")
def _prod(done: Any, made: Any) -> Step:
    return Step(aten.prod.default, done.inputs, _cast(done, made))


@_rule("prod.dim_int")
def _prod_dim(done: Any, made: Any) -> Step:
    dim, keepdim = done.args[:2]
    return Step(aten.prod.dim_int, (done.inputs[0], dim, *([True] if keepdim else [])), _cast(done, made))


@_rule("max.dim min.dim median.dim nanmedian.dim mode")
def _along(done: Any, made: Any) -> Step:
    _, dim, keepdim = done.args[:3]
    packet = getattr(aten, done.op.name)
    op = packet.default if done.op.name == "mode" else packet.dim
    return Step(op, (done.inputs[0], dim, *([True] if keepdim else [])))


@_rule("var std")
def _var(done: Any, made: Any) -> Step:
    dims, correction, keepdim = done.args[:3]
    named: dict[str, Any] = {} if dims is None and correction == 1 else {"correction": correction}
    if keepdim:
        named["keepdim"] = True
    given = () if dims is None else (_lists(dims),)
    return Step(getattr(aten, done.op.name).correction, (*done.inputs, *given), named)


@_rule("logsumexp amax amin")
def _over(done: Any, made: Any) -> Step:
    dims, keepdim = done.args[:2]
    given = () if dims is None else (_lists(dims),)
    return Step(getattr(aten, done.op.name).default, (*done.inputs, *given, *([True] if keepdim and given else [])))


@_rule("any all")
def _any(done: Any, made: Any) -> Step:
    dims, keepdim = done.args[:2]
    packet = getattr(aten, done.op.name)
    if dims is None:
        return Step(packet.default, done.inputs)
    dims = _lists(dims)
    more = [True] if keepdim else []
    return (
        Step(packet.dim, (*done.inputs, dims[0], *more))
        if len(dims) == 1
        else (Step(packet.dims, (*done.inputs, dims, *more)))
    )


@_rule("argmax argmin")
def _argmax(done: Any, made: Any) -> Step:
    dim, keepdim = done.args[:2]
    given = () if dim is None else (dim, *([True] if keepdim else []))
    return Step(getattr(aten, done.op.name).default, (*done.inputs, *given))


@_rule("cumsum cumprod")
def _cumsum(done: Any, made: Any) -> Any:
    t, dim = done.inputs[0], done.args[0]
    if len(done.args) > 1 and done.args[1] is True:  # from the end, in the gradient
        flipped = lambda x: do(aten.flip.default, x, [dim])  # noqa: E731
        return Several(lambda: flipped(do(getattr(aten, done.op.name).default, flipped(t), dim)))
    return Step(getattr(aten, done.op.name).default, (t, dim))


@_rule("linalg_vector_norm")
def _vector_norm(done: Any, made: Any) -> Step:
    order, dims, keepdim = done.args[:3]
    given: list[Any] = [done.inputs[0], order, None if dims is None else _lists(dims), bool(keepdim)]
    for default in (False, None, 2.0):
        if given[-1] != default or given[-1] is None and default is not None:
            break
        given.pop()
    return Step(aten.linalg_vector_norm.default, tuple(given))


@_rule("topk")
def _topk(done: Any, made: Any) -> Step:
    _, dim, _, k, largest, in_order = done.args
    t = done.inputs[0]
    more: tuple[Any, ...] = () if dim == t.ndim - 1 and largest and in_order else (dim, largest, in_order)
    return Step(aten.topk.default, (t, k, *more))


@_rule("sort sort.stable")
def _sort(done: Any, made: Any) -> Step:
    _, dim, _, descending = done.args[:4]
    if _name_of(done.op) == "sort.stable":
        return Step(aten.sort.stable, done.inputs[:1], {"stable": True, "dim": dim, "descending": bool(descending)})
    return Step(aten.sort.default, (done.inputs[0], dim, *([True] if descending else [])))


@_rule("value_selecting_reduction_backward")
def _reduction_back(done: Any, made: Any) -> Any:
    (g, index), (size, dim, keepdim) = done.inputs, done.args[:3]

    def run() -> Any:
        if keepdim or not size:
            parts = g, index
        else:
            parts = do(aten.unsqueeze.default, g, dim), do(aten.unsqueeze.default, index, dim)
        zeros = do(aten.new_zeros.default, parts[0], list(size))
        return do(aten.scatter.src, zeros, dim, parts[1], parts[0])

    return Several(run)


@_rule("nonzero")
def _nonzero(done: Any, made: Any) -> Any:
    if len(made) > 1 or made[0].ndim == 1:
        return Several(lambda: _column(do(aten.unbind.int, do(aten.nonzero.default, done.inputs[0]), 1), made[0]))
    return Step(aten.nonzero.default, done.inputs[:1])


def _column(columns: Any, wanted: Tensor) -> Tensor:
    """Return the column of indices that is recorded; each is recorded by itself."""
    values = memory_of(wanted)
    return next((one for one in columns if (memory_of(one) == values).all()), columns[0])


@_rule("unique unique_consecutive searchsorted bucketize isin histc histogram histogramdd kthvalue bincount prelu")
def _unknown(done: Any, made: Any) -> Any:
    return NotImplemented  # the arguments are not all recorded


@_rule("masked_select trace")
def _of_one(done: Any, made: Any) -> Step:
    more = () if done.hint is None else (done.hint,)
    return Step(getattr(aten, done.op.name).default, (done.inputs[0], *more))


# -- views and shapes --


@_rule("view reshape.alias _unsafe_view")
def _view(done: Any, made: Any) -> Step:
    return Step(aten.view.default, (done.inputs[0], list(made[0].shape)))


@_rule("reshape.copy")
def _reshaped(done: Any, made: Any) -> Any:
    t, size = done.inputs[0], list(made[0].shape)

    def run() -> Any:
        copy = do(aten.clone.default, t, memory_format=cygrad.contiguous_format)
        return do(aten._unsafe_view.default, copy, size)

    return Several(run)


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
        op = getattr(getattr(aten, name), "default", None)
        return Step(op, (done.inputs[0], _lists(done.args[1])))

    RULES[kind] = pad


for _n in (1, 2, 3):
    _pads(f"pad.reflect{_n}", f"reflection_pad{_n}d")
    _pads(f"pad.replicate{_n}", f"replication_pad{_n}d")


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


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


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


@_rule("argsort")
def _argsort(done: Any, made: Any) -> Step:
    return Step(aten.argsort.default, (done.inputs[0], *done.args[:2]))


@_rule("one_hot")
def _one_hot(done: Any, made: Any) -> Step:
    return Step(aten.one_hot.default, (done.inputs[0], *done.args[:1]))


@_rule("isclose")
def _isclose(done: Any, made: Any) -> Step:
    return Step(aten.isclose.default, (*done.inputs[:2], *done.args))


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


@_rule("linalg_solve_ex")
def _solve(done: Any, made: Any) -> Step:
    op = aten.linalg_solve_ex.default if len(made) > 1 else aten.linalg_solve.default
    return Step(op, done.inputs[:2], {} if done.args[0] else {"left": False})


@_rule("convolution")
def _convolution(done: Any, made: Any) -> Step:
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


@_rule("max_pool2d_with_indices")
def _max_pool(done: Any, made: Any) -> Step:
    kernel, stride, padding, dilation, ceil_mode = done.args[2]
    given: list[Any] = [_lists(kernel), _lists(stride), _lists(padding), _lists(dilation), ceil_mode]
    for default in (False, [1, 1], [0, 0], given[0]):
        if given[-1] != default:
            break
        given.pop()
    return Step(aten.max_pool2d_with_indices.default, (done.inputs[0], *given))


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
        found = do(aten.mul.Tensor, x, do(aten.rsqrt.default, do(aten.add.Scalar, mean, done.args[0].eps)))
        return found if weight is None else do(aten.mul.Tensor, found, weight)

    return Several(run)


@_rule("group_norm")
def _group_norm(done: Any, made: Any) -> Step:
    x, weight, bias = done.inputs[:3]
    group, eps = done.args[4:6]
    args = x, weight, bias, x.shape[0], x.shape[1], x.shape[2:].numel(), group, eps
    return Step(aten.native_group_norm.default, args, {}, _with_statistics(done, (x.shape[0], group)))


@_rule("batch_norm")
def _batch_norm(done: Any, made: Any) -> Step:
    x, weight, bias = done.inputs[:3]
    *running, training, eps = done.args[4:8]
    args = x, weight, bias, *running, training, 0.1 if done.hint is None else done.hint, eps
    if not training:
        return Step(aten.native_batch_norm.default, args, {}, lambda made: (made[0], _nothing(x), _nothing(x)))
    return Step(aten.native_batch_norm.default, args, {}, _with_statistics(done, (x.shape[1],)))


@_rule("nll_loss")
def _nll(done: Any, made: Any) -> Step:
    ignored, reduction, total = done.args[:3]
    target, weight = done.hint
    args = done.inputs[0], target, weight, reduction, ignored
    return Step(aten.nll_loss_forward.default, args, {}, lambda made: (made[0], total))


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
