"""Calls of public functions as calls of PyTorch's library of ops, `torch.ops.aten`, for exported graphs.

A call becomes that of an op only where the op is the same function, or where the order of arguments is known
(`_FORMS`). All others stay calls of the public function.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import cygrad
from cygrad import fx, ops
from cygrad.export._programs.program import leaves
from cygrad.ops import OpOverload, OpOverloadPacket

__all__ = ["Step", "steps_of"]


class Step(NamedTuple):
    """A call of an op. `PREVIOUS` among the arguments stands for the result of the step before."""

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


PREVIOUS = object()
_LAST = 2**63 - 1  # where a slice ends that goes to the end


def steps_of(target: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Step]:
    """Return what does the same as a call of a public function, whose name in programs is `target`."""
    own = Step(function, args, kwargs)
    if isinstance(function, OpOverload):  # which a program defined
        return [own]
    if target == "Tensor.__getitem__":
        return list(_indexing(args[0], args[1])) or [own]
    if target in _OPERATORS:
        operands = args[::-1] if target == "Tensor.__rpow__" else args
        op = _overload(getattr(ops.aten, _OPERATORS[target]), {i: (each, None) for i, each in enumerate(operands)})
        return [own if op is None else Step(op, operands, {})]
    given = _given(function, args, kwargs)
    if given is None:
        return [own]
    form = _FORMS.get(target)
    if form is not None:
        try:
            return form(given) or [own]
        except KeyError:  # arguments that the op does not take
            return [own]
    if given.pop("args", ((), None))[0]:  # of a function that does not name them
        return [own]
    space, _, name = target.rpartition(".")
    if space in ("linalg", "fft", "special"):
        name = f"{space}_{name}"
    packet = getattr(ops.aten, name, None)
    if not isinstance(packet, OpOverloadPacket) or not _is_same(packet, function):
        return [own]
    if given.pop("inplace", (False,))[0]:
        packet = getattr(ops.aten, f"{name}_", None)
        if packet is None:
            return [own]
    op = _overload(packet, given)
    if op is not None:
        return [Step(op, *_written(name, given))]
    return [_by_schema(packet, function, given) or own]


def _is_same(packet: OpOverloadPacket, function: Any) -> bool:
    try:
        op: Any = packet.op
    except NotImplementedError:
        return False
    forms = [op, getattr(op, "function_form", op)]
    return function in forms or getattr(function, "function_form", function) in forms


def _given(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the arguments by name, without defaults at the end; None for a function that does not state its own."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    bound.apply_defaults()
    parameters = signature.parameters
    found = dict(bound.arguments)
    for name in reversed(parameters):
        kind, default = parameters[name].kind, parameters[name].default
        if kind is inspect.Parameter.VAR_KEYWORD:
            if found.pop(name):
                return None
        elif default is not inspect.Parameter.empty and _equal(found[name], default):
            del found[name]
        elif kind is not inspect.Parameter.KEYWORD_ONLY:
            break
    return {name: (value, parameters[name].kind) for name, value in found.items()}


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def _overload(packet: OpOverloadPacket, given: Mapping[Any, Any]) -> OpOverload | None:
    """Return the overload of an op that takes these arguments; None if it is not clear which one does."""
    known = [name for name in packet.overloads() if "out" not in name]
    values = [value for key, (value, _) in given.items() if key != "alpha"]
    name = packet.__name__
    if "out" in given:
        return None
    if len(known) == 1:
        found = known[0]
    elif name == "floor_divide":
        found = "default"
    elif name.rstrip("_") in ("add", "sub", "mul", "div"):
        found = "Tensor_mode" if "rounding_mode" in given else "Tensor"
    elif {"Scalar", "Tensor"} <= set(known) and len(values) > 1 and isinstance(values[0], fx.Node):
        found = "Tensor" if isinstance(values[-1], fx.Node) else "Scalar"
    elif name in ("pow", "pow_") and len(values) > 1:
        kinds = ["Tensor" if isinstance(value, fx.Node) else "Scalar" for value in values[:2]]
        found = "Scalar" if kinds[0] == "Scalar" else f"Tensor_{kinds[1]}"
    elif name == "where" and len(values) == 3 and all(isinstance(value, fx.Node) for value in values):
        found = "self"
    elif name == "split" and isinstance(values[1], int):
        found = "Tensor"
    elif name == "arange" and len(given) == 1:
        found = "default"
    elif name in ("sum", "count_nonzero"):
        found = "dim_IntList" if "dim" in given else "default"
    elif (
        {"default", "dim"} <= set(known)
        and set(given) <= {"input", "dim", "unbiased", "keepdim", "dtype"}
        and not (isinstance(given.get("dim", (None,))[0], bool))
    ):
        several = "dims" in known and "dim" in given and isinstance(given["dim"][0], (list, tuple))
        found = "dims" if several else "dim" if "dim" in given else "default"
    elif name == "clamp":
        found = "Tensor" if any(isinstance(value, fx.Node) for value in values[1:]) else "default"
    elif name in ("bmm", "mm", "addmm", "baddbmm", "copy_"):
        found = "default"
    elif name == "view" and "dtype" not in map(_kind_of, leaves(values[1:])):
        found = "default"
    else:
        return None
    return getattr(packet, found)


def _by_schema(packet: OpOverloadPacket, function: Any, given: Mapping[str, Any]) -> Step | None:
    """Return a call of the first overload whose schema takes these arguments; None if there is none."""
    parameters = list(inspect.signature(function).parameters.values())
    for name in packet.overloads():
        op = getattr(packet, name)
        arguments = op._schema.arguments
        if op._schema.is_mutable or not arguments:
            continue
        own = [each.name for each in parameters]
        if arguments[0].name not in own:
            own[0] = arguments[0].name
        values = {key: given[each.name][0] for key, each in zip(own, parameters) if each.name in given}
        found = _fitted(arguments, values, {key: each.default for key, each in zip(own, parameters)})
        if found is not None and own[: len(found[0])] == [each.name for each in arguments[: len(found[0])]]:
            return Step(op, *found)
    return None


def _fitted(arguments: list[Any], values: dict[str, Any], defaults: dict[str, Any]) -> Any:
    """Return positional and keyword arguments of a schema for these values; None if it does not take them."""
    if not values.keys() <= {argument.name for argument in arguments}:
        return None
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in arguments:
        value = values.get(argument.name, argument.default_value)
        if argument.name not in values:
            if not argument.has_default_value() or not _equal(defaults.get(argument.name), value):
                return None
        elif not _takes(argument, value):
            return None
        if not argument.kwarg_only:
            args.append(list(value) if isinstance(value, tuple) else value)
        elif argument.name in values:
            kwargs[argument.name] = value
    last = max((i for i, argument in enumerate(arguments[: len(args)]) if argument.name in values), default=-1)
    return tuple(args[: last + 1]), kwargs


def _takes(argument: Any, value: Any) -> bool:
    """Whether a value, in which nodes stand for tensors, is of the type that a schema says."""
    kind = argument.kind.rstrip("?")
    if isinstance(value, fx.Node):
        return kind == "Tensor"
    if isinstance(value, (list, tuple)) and any(isinstance(each, fx.Node) for each in value):
        return kind == "Tensor[]" and all(isinstance(each, fx.Node) for each in value)
    return argument.accepts(value)


def _kind_of(value: Any) -> str:
    return type(value).__name__


_OPERATORS = {
    "Tensor.__rsub__": "rsub",
    "Tensor.__pow__": "pow",
    "Tensor.__rpow__": "pow",
    "Tensor.__eq__": "eq",
    "Tensor.__floordiv__": "floor_divide",
}
_LISTS = {"sum": "dim", "mean": "dim", "amax": "dim", "amin": "dim", "logsumexp": "dim", "max_pool1d": "kernel_size"}
_LISTS |= {"std": "dim", "var": "dim", "avg_pool1d": "kernel_size"}
_POOLS = {f"adaptive_avg_pool{n}d": n for n in (1, 2, 3)}
_LISTS |= dict.fromkeys(_POOLS, "output_size")


def _written(name: str, given: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments as PyTorch's graphs have them: lists for tuples, sizes as one list."""
    args: list[Any] = []
    kwargs = {}
    for key, (value, kind) in given.items():
        if isinstance(value, tuple):
            value = list(value[0]) if len(value) == 1 and isinstance(value[0], (list, tuple)) else list(value)
        elif _LISTS.get(name) == key and isinstance(value, int):
            value = [value] * _POOLS.get(name, 1)
        if kind is inspect.Parameter.KEYWORD_ONLY:
            kwargs[key] = value
        else:
            args.append(value)
    return tuple(args), kwargs


def _indexing(x: Any, index: Any) -> Iterator[Step]:
    """Yield the ops of an index of numbers, slices and None; nothing for others."""
    parts = index if isinstance(index, tuple) else (index,)
    if not all(part is None or type(part) in (int, slice) for part in parts):
        return
    dim = 0
    for part in parts:
        if part is None:
            yield Step(ops.aten.unsqueeze.default, (x, dim), {})
        elif isinstance(part, int):
            yield Step(ops.aten.select.int, (x, dim, part), {})
            x = PREVIOUS
            continue
        elif part != slice(None):
            ends = (part.start or 0, _LAST if part.stop is None else part.stop)
            steps = () if part.step in (None, 1) else (part.step,)
            yield Step(ops.aten.slice.Tensor, (x, dim, *ends, *steps), {})
        else:
            dim += 1
            continue
        x = PREVIOUS
        dim += 1


# -- functions whose ops take their arguments in another order --


def _values(given: dict[str, Any], *names: str, **defaults: Any) -> list[Any]:
    """Return the arguments of these names. Raises KeyError if the first is missing, or there are others."""
    if names[0] not in given or not given.keys() <= {*names}:
        raise KeyError(names)
    return [given[name][0] if name in given else defaults.get(name) for name in names]


def _cut(op: OpOverload, args: list[Any], *defaults: Any) -> list[Step]:
    """Return a call without the arguments at the end that are `defaults`."""
    for default in reversed(defaults):
        if not _equal(args[-1], default):
            break
        args.pop()
    return [Step(op, tuple(args), {})]


def _batch_norm(given: dict[str, Any]) -> list[Step]:
    args = _values(
        given, "input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps",
        training=False, momentum=0.1, eps=1e-5,
    )  # fmt: skip
    return [Step(ops.aten.batch_norm.default, (*args, False), {})]


def _layer_norm(given: dict[str, Any]) -> list[Step]:
    x, shape, *others = _values(given, "input", "normalized_shape", "weight", "bias", "eps", eps=1e-5)
    return [Step(ops.aten.layer_norm.default, (x, list(shape), *others, False), {})]  # False: not by cuDNN


def _group_norm(given: dict[str, Any]) -> list[Step]:
    args = _values(given, "input", "num_groups", "weight", "bias", "eps", eps=1e-5)
    return [Step(ops.aten.group_norm.default, (*args, False), {})]


def _embedding(given: dict[str, Any]) -> list[Step]:
    weight, indices, padding = _values(given, "weight", "input", "padding_idx")
    if padding is None:
        padding = -1  # what the op takes for none
    elif not isinstance(padding, fx.Node) and padding < 0:
        if not weight.meta.get("is_lifted"):  # the number of rows may vary
            return []
        padding += weight.meta["val"].shape[0]
    return _cut(ops.aten.embedding.default, [weight, indices, padding], -1)


def _dropout(given: dict[str, Any]) -> list[Step]:
    x, p, training, inplace = _values(given, "input", "p", "training", "inplace", p=0.5, training=True, inplace=False)
    return [] if inplace else [Step(ops.aten.dropout.default, (x, p, training), {})]


def _along(name: str) -> Any:
    def form(given: dict[str, Any]) -> list[Step]:
        x, dim, kind = _values(given, "input", "dim", "dtype")
        return [] if dim is None else _cut(getattr(ops.aten, name).int, [x, dim, kind], None)

    return form


def _convolution(dims: int) -> Any:
    def form(given: dict[str, Any]) -> list[Step]:
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        x, w, b, *sizes, groups = _values(given, *names, stride=1, padding=0, dilation=1, groups=1)
        if any(isinstance(size, str) for size in sizes):
            return []
        stride, padding, dilation = (list(n) if isinstance(n, (list, tuple)) else [n] * dims for n in sizes)
        op = getattr(ops.aten, f"conv{dims}d").default
        return _cut(op, [x, w, b, stride, padding, dilation, groups], None, [1] * dims, [0] * dims, [1] * dims, 1)

    return form


def _transposed_convolution(dims: int) -> Any:
    def form(given: dict[str, Any]) -> list[Step]:
        names = ("input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
        x, w, b, *sizes, groups, dilation = _values(
            given, *names, stride=1, padding=0, output_padding=0, groups=1, dilation=1
        )
        stride, padding, further, dilation = (
            list(n) if isinstance(n, (list, tuple)) else [n] * dims for n in (*sizes, dilation)
        )
        packet = getattr(ops.aten, f"conv_transpose{dims}d")
        return _cut(
            getattr(packet, packet.overloads()[0]), [x, w, b, stride, padding, further, groups, dilation],
            None, [1] * dims, [0] * dims, [0] * dims, 1, [1] * dims,
        )  # fmt: skip

    return form


def _bmm(given: dict[str, Any]) -> list[Step]:
    return [Step(ops.aten.bmm.default, tuple(_values(given, "input", "mat2")), {})]


def _activation(name: str, **parameter: float) -> Any:
    """Return the form of an activation with at most one parameter, given with the default of the op."""
    defaults = {key: float(value) for key, value in parameter.items()}

    def form(given: dict[str, Any]) -> list[Step]:
        x, *numbers, inplace = _values(given, "input", *parameter, "inplace", **defaults)
        packet = getattr(ops.aten, f"{name}_" if inplace else name, None)
        return [] if packet is None else _cut(packet.default, [x, *numbers], *parameter.values())

    return form


def _rsub(given: dict[str, Any]) -> list[Step]:
    x, other, alpha = _values(given, "input", "other", "alpha", alpha=1)
    if isinstance(other, fx.Node):
        return [Step(ops.aten.rsub.Tensor, (x, other), {} if alpha == 1 else {"alpha": alpha})]
    return _cut(ops.aten.rsub.Scalar, [x, other, alpha], 1)


def _converted(kind: Any) -> Any:
    def form(given: dict[str, Any]) -> list[Step]:
        (x, _), *others = given.values()
        return [] if others else [Step(ops.aten.to.dtype, (x, kind), {})]

    return form


def _to(given: dict[str, Any]) -> list[Step]:
    values = [value for value, _ in given.values()]
    values = [*values[:1], *values[1]] if len(values) == 2 and isinstance(values[1], tuple) else values
    fits = len(values) == 2 and isinstance(values[1], cygrad.dtype)
    return [Step(ops.aten.to.dtype, tuple(values), {})] if fits else []


def _of_list(name: str, key: str) -> Callable[[dict[str, Any]], list[Step]]:
    """Return the form of a function of any number of tensors, which the op takes as a list."""

    def form(given: dict[str, Any]) -> list[Step]:
        return [Step(getattr(ops.aten, name).default, (list(given[key][0]),), {})]

    return form


def _einsum(given: dict[str, Any]) -> list[Step]:
    equation, *operands = given["args"][0]
    if not isinstance(equation, str):
        return []
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return [Step(ops.aten.einsum.default, (equation, list(operands)), {})]


def _arange(given: dict[str, Any]) -> list[Step]:
    values = [value for value, _ in given.values()]
    is_length = len(values) == 1 and not (isinstance(values[0], tuple) and len(values[0]) != 1)
    length = values[0][0] if is_length and isinstance(values[0], tuple) else values[0]
    return [Step(ops.aten.arange.default, (length,), {})] if is_length else []


def _extreme(name: str) -> Any:
    def form(given: dict[str, Any]) -> list[Step]:
        packet, values = getattr(ops.aten, name), [value for value, _ in given.values()]
        if "out" in given or len(values) > 3:
            return []
        if len(values) == 1:
            return [Step(packet.default, tuple(values), {})]
        return [Step(packet.other if isinstance(values[1], fx.Node) else packet.dim, tuple(values), {})]

    return form


def _permute(given: dict[str, Any]) -> list[Step]:
    x, dims = (value for value, _ in given.values())
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims
    return [Step(ops.aten.permute.default, (x, list(dims)), {})]


def _reshape(given: dict[str, Any]) -> list[Step]:
    x, shape = (value for value, _ in given.values())
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    return [Step(ops.aten.reshape.default, (x, list(shape)), {})]


def _mse_loss(given: dict[str, Any]) -> list[Step]:
    x, target, reduction = _values(given, "input", "target", "reduction", reduction="mean")
    if reduction not in _REDUCTIONS:
        return []
    return _cut(ops.aten.mse_loss.default, [x, target, _REDUCTIONS.index(reduction)], 1)


_REDUCTIONS = ["none", "mean", "sum"]


def _max_pool2d(given: dict[str, Any]) -> list[Step]:
    names = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    x, *sizes, ceil = _values(given, *names, padding=0, dilation=1, ceil_mode=False)
    kernel, stride, *others = (size if size is None or isinstance(size, list) else _pair(size) for size in sizes)
    args = [x, kernel, stride or [], *others, ceil]
    return _cut(ops.aten.max_pool2d.default, args, [], [0, 0], [1, 1], False)


def _pair(size: Any) -> list[Any]:
    return list(size) if isinstance(size, tuple) else [size, size]


_FORMS: dict[str, Any] = {
    "nn.functional.batch_norm": _batch_norm,
    "nn.functional.layer_norm": _layer_norm,
    "nn.functional.group_norm": _group_norm,
    "nn.functional.embedding": _embedding,
    "nn.functional.dropout": _dropout,
    **{f"{space}conv{n}d": _convolution(n) for n in (1, 2, 3) for space in ("", "nn.functional.")},
    **{f"{space}conv_transpose{n}d": _transposed_convolution(n) for n in (1, 2, 3) for space in ("", "nn.functional.")},
    "nn.functional.elu": _activation("elu", alpha=1),  # an int, so 1.0 is written
    "nn.functional.leaky_relu": _activation("leaky_relu", negative_slope=0.01),
    "nn.functional.relu": _activation("relu"),
    "bmm": _bmm,
    "rsub": _rsub,
    "Tensor.to": _to,
    "to": _to,
    "einsum": _einsum,
    **{name: _of_list(name, "tensors") for name in ("block_diag", "broadcast_tensors", "cartesian_prod")},
    "chain_matmul": _of_list("chain_matmul", "matrices"),
    "arange": _arange,
    "max": _extreme("max"),
    "min": _extreme("min"),
    **{
        f"Tensor.{name}": _converted(getattr(cygrad, name))
        for name in ("float", "double", "half", "long", "int", "bool")
    },
    "nn.functional.softmax": _along("softmax"),
    "nn.functional.log_softmax": _along("log_softmax"),
    "softmax": _along("softmax"),
    "log_softmax": _along("log_softmax"),
    "Tensor.permute": _permute,
    "Tensor.reshape": _reshape,
    "nn.functional.mse_loss": _mse_loss,
    "max_pool2d": _max_pool2d,
    "nn.functional.max_pool2d": _max_pool2d,
}
