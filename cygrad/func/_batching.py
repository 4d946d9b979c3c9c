"""vmap: applies a function of one sample to all samples of a batch at once."""

from __future__ import annotations

import contextlib
import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from cygrad._core.errors.sites import warn
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import strided
from cygrad._core.transforms import forward_mode
from cygrad._core.transforms.vmap_levels import Batch, NoBatchingRule
from cygrad._ops.base.slicing import cat
from cygrad._ops.random.generator import Draws
from cygrad._ops.shape.stacking import stack
from cygrad.func.trees import flatten, rebuild, spread

_Options = namedtuple("_Options", "name in_dims out_dims randomness")
steps: Any = None  # `cygrad._functorch.vmap` once it is imported, where libraries replace what `vmap` does


def has_other_steps() -> bool:
    """Whether a library has replaced steps of `vmap`, so that it must call those."""
    return steps is not None and steps.are_others()


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that applies `func`, a function of one sample, to each sample of its arguments.

    `in_dims` is the batch dimension of each argument, or None for arguments shared by all samples: an int, or a tuple
    structured like the arguments, in which an entry may stand for a whole tree. `out_dims` likewise sets the batch
    dimension of each result. `randomness`: whether random numbers are an "error", the "same" for all samples, or
    "different". `chunk_size`: how many samples to compute at once.

    The function is called once, on tensors that look like those of one sample; each op runs on the samples of all
    (Note [Batches] in `_core/transforms/vmap_levels.py`). It is called once per sample instead if it uses an op without
    a batching rule (with a warning), or one that cannot draw different random numbers for all samples at once. Raises
    RuntimeError for operations that need a value, such as `item()` or `if` of a batched tensor, for changing an
    unbatched tensor in place by a batched one, and for random numbers; ValueError for dimensions that do not fit and
    for non-tensor results.

    >>> import cygrad
    >>> cygrad.vmap(lambda x: x.sum())(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([3., 7.])
    >>> cygrad.vmap(cygrad.func.grad(lambda x: (x**2).sum()))(cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [6., 8.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    if not all(d is None or isinstance(d, int) for d in flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({getattr(func, '__name__', func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
            "python collection of ints representing where in the outputs the vmapped dimension should appear."
        )
    options = _Options(getattr(func, "__name__", repr(func)), in_dims, out_dims, randomness)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if has_other_steps():
            return steps.vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)
        leaves, dims = _batched_inputs(args, options)
        size = _batch_size(leaves, dims)
        if chunk_size is None or chunk_size >= size:
            return _mapped(func, args, kwargs, leaves, dims, options)
        draws, parts = Draws(), []
        for start in range(0, size, chunk_size):
            part = [
                x if d is None else x.narrow(d, start, min(chunk_size, size - start))
                for x, d in zip(leaves, dims, strict=True)
            ]
            with draws.repeated() if randomness == "same" else contextlib.nullcontext():
                parts.append(_mapped(func, rebuild(args, part), kwargs, part, dims, options))
        return _joined_chunks(parts, options)

    return wrapper


def _joined_chunks(parts, options):
    dims = _dims_of_outputs(parts[0], options)
    columns = zip(*[flatten(part)[0] for part in parts], strict=True)
    return rebuild(parts[0], [c[0] if d is None else cat(c, d) for c, d in zip(columns, dims, strict=True)])


def _mapped(func, args, kwargs, leaves, dims, options):
    """Return the results for all samples: at once, or one after the other if that is impossible."""
    draws = Draws()
    try:
        output, found, is_drawn_for_all = _at_once(func, args, kwargs, leaves, dims, options.randomness)
    except NoBatchingRule as error:
        if options.randomness == "error":
            _check_not_drawn(draws)
        warn(f"{error}\n  {options.name} is called once for each sample instead")
        draws.take_back()
        return _one_by_one(func, args, kwargs, leaves, dims, options)
    if options.randomness == "error":
        _check_not_drawn(draws)
    if options.randomness == "different" and not is_drawn_for_all:
        draws.take_back()
        return _one_by_one(func, args, kwargs, leaves, dims, options)
    size = _batch_size(leaves, dims)
    outputs = zip(flatten(output)[0], found, _dims_of_outputs(output, options), strict=True)
    return rebuild(output, [_placed(*each, size, options) for each in outputs])


def _at_once(func, args, kwargs, leaves, dims, randomness):
    """Return (output for the first sample, samples of each tensor in it or None if all are equal, whether each sample
    had its own random numbers).

    Raises NoBatchingRule.
    """
    if any(d is not None and x.layout is not strided for x, d in zip(leaves, dims, strict=True)):
        raise NoBatchingRule("unbind")  # sparse samples lie together nowhere
    whole = [x if d is None else x.movedim(d, 0) for x, d in zip(leaves, dims, strict=True)]
    batch = Batch(_batch_size(leaves, dims), randomness)
    try:
        forward_mode.open_batch(batch)
        own = [x if d is None else batch.first(x) for x, d in zip(whole, dims, strict=True)]
        output = forward_mode.call_inside(func, *rebuild(args, own), **kwargs)
        found = forward_mode.close_batch(batch, flatten(output)[0])
        return output, found, not batch.draws_for_one
    except NoBatchingRule as error:
        if batch.has_changed_given:
            raise RuntimeError(
                f"{error}\n  without it the function would be called once for each sample, but it has already "
                "changed one of its arguments in place"
            ) from None
        raise
    finally:
        forward_mode.leave(batch)


def _placed(t, samples, dim, size, options):
    """Return a result with its samples along the requested dimension."""
    if dim is None:
        if samples is not None:
            raise ValueError(
                f"vmap({options.name}, ...): `{options.name}` can not return a BatchedTensor when out_dim is None"
            )
        return t
    if not isinstance(t, Tensor):
        raise _no_tensor(t, options)
    if samples is None:
        samples = t.unsqueeze(0).expand(size, *t.shape)
    return samples.movedim(0, dim) if dim else samples


def _no_tensor(value, options):
    return ValueError(
        f"vmap({options.name}, ...): `{options.name}` must only return Tensors, got type {type(value)}. Did you mean "
        "to set out_dims= to None for output?"
    )


def _dims_of_outputs(output, options):
    """Return the batch dimension of each leaf of a result."""
    dims = spread(options.out_dims, output)
    if dims is None and flatten(options.out_dims)[1] == "(*,)" and flatten(output)[1] == "*":
        dims = list(options.out_dims)
    if dims is None:
        raise ValueError(
            f"vmap({options.name}, ..., out_dims={options.out_dims})(<inputs>): out_dims is not compatible with the "
            f"structure of `outputs`. out_dims has structure {flatten(options.out_dims)[1]} but outputs has structure "
            f"{flatten(output)[1]}."
        )
    return dims


def _one_by_one(func, args, kwargs, leaves, dims, options):
    """Return the stacked results of one call per sample."""
    size = _batch_size(leaves, dims)
    outputs, draws = [], Draws()
    for i in range(size) or (None,):
        sample = rebuild(args, [_sample(x, d, i) for x, d in zip(leaves, dims, strict=True)])
        with draws.repeated() if options.randomness == "same" else contextlib.nullcontext():
            outputs.append(forward_mode.call_inside(func, *sample, **kwargs))
    if options.randomness == "error":
        _check_not_drawn(draws)
    return _joined(outputs, size, options)


def _batched_inputs(args, options):
    """Return (the leaves of the arguments, the batch dimension of each, or None)."""
    name, in_dims = options.name, options.in_dims
    here = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{here}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, form = flatten(args)
    dims = spread(in_dims, args)
    if dims is None:
        raise ValueError(
            f"{here}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{flatten(in_dims)[1]} but inputs has structure {form}."
        )
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if d is None:
            continue
        if not isinstance(d, int):
            raise ValueError(
                f"{here}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(x, Tensor):
            raise ValueError(
                f"{here}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -x.dim() <= d < x.dim():
            raise ValueError(
                f"{here}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.dim()} so "
                f"expected in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}."
            )
        dims[i] = d % x.dim()
    return leaves, dims


def _batch_size(leaves, dims):
    sizes = [x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _sample(x, dim, i):
    """Return sample `i` of an argument; zeros of its shape if there are no samples."""
    if dim is None:
        return x
    return x.new_zeros(x.shape[:dim] + x.shape[dim + 1 :]) if i is None else x.select(dim, i)


def _check_not_drawn(draws):
    """Raise if this thread has drawn random numbers."""
    if draws:
        draws.take_back()
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )


def _joined(outputs, size, options):
    """Combine the results of all samples to one tree."""
    columns = [flatten(output)[0] for output in outputs]
    dims = _dims_of_outputs(outputs[0], options)
    joined = []
    for parts, dim in zip(zip(*columns, strict=True), dims, strict=True):
        if dim is None:
            joined.append(_same_for_all(parts, options.name))
            continue
        for part in parts:
            if not isinstance(part, Tensor):
                raise _no_tensor(part, options)
        joined.append(stack(parts, dim) if size else stack(parts, dim).narrow(dim, 0, 0))
    return rebuild(outputs[0], joined)


def _same_for_all(parts, name):
    """Return a result without samples, after checking that it is the same for all."""
    if isinstance(parts[0], Tensor) and not all(part is parts[0] or part.equal(parts[0]) for part in parts):
        raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
    return parts[0]
