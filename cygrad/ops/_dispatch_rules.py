"""Ops here whose name or arguments differ from those of PyTorch's that `__torch_dispatch__` shows: elementwise ones
and reductions, and what the rules of all share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import memory_of
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


def found_by(result: Any, op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Show the op that ends a sequence, with the result that the kernel here has found."""
    return dispatch.ask(op, args, kwargs, lambda: result)


def shortened(values: Any, defaults: Any, least: int = 0) -> list[Any]:
    """Return arguments without those at the end that are the defaults."""
    values = list(values)
    while len(values) > least and _is_default(values[-1], defaults[len(values) - 1]):
        values.pop()
    return values


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (not isinstance(value, Tensor) and type(value) is type(default) and value == default)


# Rows without an op of PyTorch's whose kernel takes the arrays of their inputs, and then their arguments.
REPLAYABLE = frozenset("shift diagonal_backward fft_c2r repeat_backward resample lengthened real_part".split())
RULES: dict[str, Callable[[Any, Any], Any]] = {}


def _rule(names: str) -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        for name in names.split():
            RULES[name] = function
        return function

    return note


def _lists(values: Any) -> list[int]:
    return [int(v) for v in ((values,) if isinstance(values, int) else values)]


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


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
    if not isinstance(a, Tensor) and done.op.name == "remainder":
        return Step(packet.Scalar_Tensor, (a, b))
    return Step(packet.Tensor if isinstance(b, Tensor) else packet.Scalar, (a, b))


@_rule("bitwise_left_shift bitwise_right_shift bitwise_and bitwise_or bitwise_xor")
def _bits(done: Any, made: Any) -> Step:
    a, b = (*done.inputs, *done.args)[:2]
    packet = getattr(aten, done.op.name)
    if not isinstance(a, Tensor):
        return Step(packet.Scalar_Tensor, (a, b))
    if isinstance(b, Tensor):
        return Step(packet.Tensor, (a, b))
    return Step(packet.Tensor_Scalar if "shift" in done.op.name else packet.Scalar, (a, b))


@_rule("floor_divide")
def _floor_divide(done: Any, made: Any) -> Step:
    return Step(aten.floor_divide.default, (*done.inputs, *done.args)[:2])


@_rule("airy_ai scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0")
def _special(done: Any, made: Any) -> Step:
    return Step(getattr(aten, f"special_{done.op.name}").default, done.inputs)


@_rule(
    """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h
    hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w"""
)
def _polynomial(done: Any, made: Any) -> Any:
    if done.hint is None:
        return NotImplemented
    x, n = done.hint
    packet = getattr(aten, f"special_{done.op.name}")
    if not isinstance(n, Tensor):
        return Step(packet.n_scalar, (x, n))
    return Step(packet.default if isinstance(x, Tensor) else packet.x_scalar, (x, n))


@_rule("round.decimals")
def _round(done: Any, made: Any) -> Step:
    return Step(aten.round.decimals, done.inputs, {"decimals": done.args[0]})


@_rule("nan_to_num")
def _nan_to_num(done: Any, made: Any) -> Step:
    return Step(aten.nan_to_num.default, (*done.inputs, *shortened(done.args, (None, None, None))))


@_rule("conj_physical")
def _conj_physical(done: Any, made: Any) -> Step:
    return Step(aten._conj_physical.default, done.inputs)


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
def _where(done: Any, made: Any) -> Step | Several:
    a, b = done.inputs
    overload = {
        (True, True): "self",
        (False, True): "ScalarSelf",
        (True, False): "ScalarOther",
        (False, False): "Scalar",
    }
    kind = overload[isinstance(a, Tensor), isinstance(b, Tensor)]
    if kind == "self" or is_in_pass():
        return Step(getattr(aten.where, kind), (done.hint, a, b))

    def run() -> Any:
        own = {"dtype": made[0].dtype, "device": made[0].device}
        parts = [t if isinstance(t, Tensor) else do(aten.scalar_tensor.default, t, **own) for t in (a, b)]
        return do(aten.where.self, done.hint, *parts)

    return Several(run)


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


@_rule("masked_select trace")
def _of_one(done: Any, made: Any) -> Step:
    more = () if done.hint is None else (done.hint,)
    return Step(getattr(aten, done.op.name).default, (done.inputs[0], *more))
