"""The ops and functions that masked tensors answer, by name: see Note [Masked tensors] in `core.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.autograd import Function
from cygrad.masked.maskedtensor import binary, passthrough, reductions, unary
from cygrad.masked.maskedtensor.core import _masks_match, data_of, is_masked_tensor, mask_of, masked

__all__ = ["FUNCTIONS", "OPS"]

# Functions as `__torch_function__` receives them
FUNCTIONS: dict[Any, Callable[..., Any]] = {**reductions.TORCH_REDUCE_MAP, **reductions.TENSOR_REDUCE_MAP}
OPS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(reductions.REDUCE_NAMES, reductions.answer),
    **dict.fromkeys(passthrough.NAMES, passthrough.passed_through),
    **dict.fromkeys((*unary.UNARY_NAMES, *unary.MORE_NAMES), unary.unary),
    **dict.fromkeys(unary.INPLACE_UNARY_NAMES, unary.unary_),
    **dict.fromkeys((*binary.BINARY_NAMES, *binary.MORE_NAMES), binary.binary),
    **dict.fromkeys(binary.INPLACE_BINARY_NAMES, binary.binary_),
}


def _answers(names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function to answer the ops of these names."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        OPS.update(dict.fromkeys(names.split(), function))
        return function

    return decorate


def _refuse(func: Any, given: int, wanted: int, named: Any = ()) -> None:
    """Raise ValueError for another number of arguments."""
    if given != wanted:
        raise ValueError(f"__torch_dispatch__, {func}: len(args) must be {wanted} but got {given}")
    if named:
        raise ValueError(f"__torch_dispatch__, {func}: len(kwargs) must be 0 but got {len(named)}")


# -- layouts --

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda t: t.contiguous(),
    "to_dense": lambda t: t.to_dense(),
    "to_sparse": lambda t: t.to_sparse().coalesce(),
    "to_sparse_csr": lambda t: t.to_sparse_csr(),
}
_RESULTS = {"to_dense": cygrad.strided, "to_sparse": cygrad.sparse_coo, "to_sparse_csr": cygrad.sparse_csr}
_BACK = {cygrad.strided: "to_dense", cygrad.sparse_coo: "to_sparse", cygrad.sparse_csr: "to_sparse_csr"}


def _converted(name: str, input: Any) -> Any:
    """Return a masked tensor in another layout: sparse data have an entry for each True of the mask."""
    if not is_masked_tensor(input):
        raise ValueError(f"{name}: input must be a MaskedTensor.")
    data, mask = input._masked_data, input._masked_mask
    if name == "to_sparse_csr" and data.ndim != 2:
        raise ValueError(f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {data.size()}")
    converted = _CONVERSIONS[name](mask)
    if not name.startswith("to_sparse"):
        return masked(_CONVERSIONS[name](data), converted)
    return masked((data if data.layout == cygrad.strided else data.to_dense()).sparse_mask(converted), converted)


class _Converted(Function):
    """The same with a gradient, which has the layout of the input."""

    @staticmethod
    def forward(ctx: Any, input: Any, name: Any) -> Any:
        ctx.layout = input.layout
        return _converted(name, input)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        return grad if grad.layout == ctx.layout else _converted(_BACK[ctx.layout], grad), None


def _conversion(name: str) -> Callable[..., Any]:
    def convert(input: Any, *args: Any, **kwargs: Any) -> Any:
        is_there = input.is_contiguous() if name == "contiguous" else input.layout == _RESULTS[name]
        return input if is_there else _Converted.apply(input, name)

    return convert


FUNCTIONS |= {getattr(Tensor, name): _conversion(name) for name in _CONVERSIONS}


@_answers("_to_dense _to_sparse _to_sparse_csr")
def _to_layout(func: Any, *args: Any, **kwargs: Any) -> Any:
    return _converted(func.__name__.removeprefix("_"), args[0])


@_answers("contiguous")
def _contiguous(func: Any, *args: Any, **kwargs: Any) -> Any:
    if args[0].is_sparse:
        raise ValueError("MaskedTensors with sparse data do not have contiguous")
    return _converted("contiguous", args[0])


# -- copies --


@_answers("detach clone")
def _copy(func: Any, *args: Any, **kwargs: Any) -> Any:
    return masked(func(data_of(args[0]).clone()), mask_of(args[0]).clone())


@_answers("_to_copy")
def _to_copy(func: Any, *args: Any, **kwargs: Any) -> Any:
    data, mask = func(data_of(args[0]), *args[1:], **kwargs), mask_of(args[0])
    return masked(data, func(mask, *args[1:], **{**kwargs, "dtype": cygrad.bool}))


@_answers("copy_")
def _copy_(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 2)
    if not _masks_match(*args):
        raise ValueError("args[0] mask and args[1] mask must match but do not")
    func(data_of(args[0]), data_of(args[1]))
    return args[0]


@_answers("ones_like")
def _ones_like(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 1)
    return masked(func(data_of(args[0]), **kwargs), mask_of(args[0]))


@_answers("new_ones")
def _new_ones(func: Any, *args: Any, **kwargs: Any) -> Any:
    found, mask = func(data_of(args[0]), *args[1:], **kwargs), mask_of(args[0])
    return masked(found, mask if mask.shape == found.shape else cygrad.ones_like(found, dtype=cygrad.bool))


@_answers("new_empty_strided")
def _new_empty_strided(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 3)
    data = data_of(args[0])
    for place, wanted in ((1, "size"), (2, "stride")):
        if tuple(args[place]) != tuple(getattr(data, wanted)()):
            raise ValueError(f"__torch_dispatch__, {func}: args[{place}] expected to be the same as data.{wanted}()")
    return masked(func(data, *args[1:], **kwargs), mask_of(args[0]))


# -- values --


@_answers("_local_scalar_dense")
def _item(func: Any, *args: Any, **kwargs: Any) -> Any:
    if not mask_of(args[0]):
        raise ValueError(f"__torch_dispatch__, {func}: expected a mask tensor")
    return data_of(args[0]).item()


@_answers("is_same_size")
def _is_same_size(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 2)
    return data_of(args[0]).is_same_size(data_of(args[1]))


@_answers("_is_any_true")
def _is_any_true(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 1, kwargs)
    data = data_of(args[0])
    if data.dtype != cygrad.bool:
        raise ValueError(f"__torch_dispatch__, {func}: expected a boolean tensor")
    if data.is_sparse:
        raise ValueError(f"MaskedTensors with sparse data do not have {func}")
    return masked((data & mask_of(args[0])).any(), cygrad.tensor(True))


@_answers("_indices _values")
def _part(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 1, kwargs)
    data = data_of(args[0])
    found = data.indices() if func.__name__ == "_indices" else data.values()
    return masked(found, cygrad.ones_like(found, dtype=cygrad.bool))


# -- where --


def _all_kept(value: Any) -> Any:
    return value if is_masked_tensor(value) else masked(value, cygrad.ones_like(value, dtype=cygrad.bool))


def _masked_where(condition: Any, first: Any, second: Any) -> Any:
    """Return `where`; a number is kept where the other operand is."""
    condition = data_of(condition)
    masks = [mask_of(_all_kept(each)) if isinstance(each, Tensor) else None for each in (first, second)]
    kept = [mask if mask is not None else next(m for m in masks if m is not None) for mask in masks]
    return masked(cygrad.where(condition, data_of(first), data_of(second)), cygrad.where(condition, *kept))


@_answers("where")
def _where(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 3, kwargs)
    return _masked_where(*args)


class _Where(Function):
    """`where`, whose gradients are missing, not 0, where the other operand was taken."""

    @staticmethod
    def forward(ctx: Any, condition: Any, first: Any, second: Any) -> Any:
        ctx.condition = data_of(condition)
        values = (value if isinstance(value, Tensor) else cygrad.tensor(value) for value in (first, second))
        return _masked_where(condition, *values)  # which keeps a number that is a tensor everywhere

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = map(_all_kept, grads)
        data, mask, condition = grad._masked_data, grad._masked_mask, ctx.condition
        return None, masked(data, mask & condition), masked(data, mask & ~condition)


def _where_function(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 3 or kwargs:
        what = f"args) must be 3 but got {len(args)}" if len(args) != 3 else f"kwargs) must be 0 but got {len(kwargs)}"
        raise ValueError(f"__torch_function__, torch.where: len({what}")
    return _Where.apply(*args)


FUNCTIONS[cygrad.where] = _where_function
FUNCTIONS[Tensor.where] = lambda input, condition, other, **kwargs: _where_function(condition, input, other, **kwargs)


# -- softmax --


@_answers("_softmax")
def _softmax(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 3, kwargs)
    mask = mask_of(args[0])
    return masked(cygrad.masked.softmax(data_of(args[0]), args[1], mask=mask), mask)


@_answers("_softmax_backward_data")
def _softmax_backward_data(func: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(func, len(args), 4)
    grad, output, dim, _ = args
    if not (is_masked_tensor(grad) and is_masked_tensor(output)):
        raise ValueError(f"__torch_dispatch__, {func}: grad and output must both be MaskedTensors")
    if not _masks_match(grad, output):
        raise ValueError(f"__torch_dispatch__, {func}: expected the masks of grad and output to match")
    mask = output._masked_mask
    incoming, result = (t._masked_data.masked_fill(~mask, 0) for t in (grad, output))
    return masked(result * (incoming - (incoming * result).sum(dim, True)), mask)
