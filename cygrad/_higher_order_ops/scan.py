"""`scan`: a loop over slices that carries values along."""

from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._prims_common import canonicalize_dim
from cygrad.utils._pytree import tree_flatten, tree_map, tree_unflatten

_TOO_SHORT = "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"


def _check(combine_fn: Any, init: list[Any], xs: list[Any], dim: Any, reverse: Any) -> None:
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not init:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, leaves in (("init", init), ("xs", xs)):
        for each in leaves:
            if not isinstance(each, Tensor):
                raise RuntimeError(f"All {name} leaves must be a Tensor but got {each}")
    if any(x.ndim <= dim or not x.shape[dim] for x in xs):
        raise RuntimeError(_TOO_SHORT)


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """Call `carry, y = combine_fn(carry, x)` for the slices `x` of `xs` along `dim`; return the last carry and all `y`.

    `init`, `xs`, the carry and `y` are tensors, or nested tuples, lists and dictionaries of them. The results `y` are
    stacked along `dim`. With `reverse` the loop runs from the last slice to the first.

    Raises RuntimeError unless all leaves are tensors with slices along `dim`, and IndexError for a `dim` that the first
    of them does not have.

    >>> import cygrad as torch
    >>> from cygrad._higher_order_ops import scan
    >>> scan(lambda total, x: (total + x, total * x), torch.tensor(0.0), torch.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    leaves, spec = tree_flatten(xs)
    if not leaves:
        return init, []
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    dim = canonicalize_dim(leaves[0].ndim, dim)
    _check(combine_fn, tree_flatten(init)[0], leaves, dim, reverse)
    carry, results = init, []
    steps = range(leaves[0].shape[dim])
    for step in reversed(steps) if reverse else steps:
        carry, result = combine_fn(carry, tree_unflatten([x.select(dim, step) for x in leaves], spec))
        results.append(result)
    if reverse:
        results.reverse()

    def stacked(*parts: Any) -> Any:
        return cygrad.stack(parts, min(dim, parts[0].ndim)) if isinstance(parts[0], Tensor) else parts[0]

    return carry, tree_map(stacked, *results)
