"""`associative_scan`: all partial results of an associative function, in logarithmically many steps."""

from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._prims_common import canonicalize_dim
from cygrad.utils._pytree import tree_flatten, tree_unflatten

_MODES = ("pointwise", "generic")
_TOO_SHORT = "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"


def _check(combine_fn: Any, xs: list[Any], dim: Any, reverse: Any, combine_mode: Any) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in _MODES:
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if not all(isinstance(x, Tensor) for x in xs):
        raise ValueError("xs leaves must be a Tensor")
    if combine_mode == "pointwise" and not all(x.is_cuda for x in xs):
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU\n"
            "  to fix it: pass combine_mode='generic'"
        )
    if any(x.ndim <= dim or not x.shape[dim] for x in xs):
        raise ValueError(_TOO_SHORT)


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """The rows of two tensors in turn; `even`, which comes first, may have one more."""
    both = cygrad.stack((even[: len(odd)], odd), 1).flatten(0, 1)
    return both if len(even) == len(odd) else cygrad.cat((both, even[len(odd) :]))


def _partial_results(combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor]) -> list[Tensor]:
    """The results of combining rows 0 to i, for each i.

    Neighbours are combined first. The partial results of these pairs are those at odd places, from which one more step
    makes those at even places.
    """
    length = len(xs[0])
    if length == 1:
        return xs
    odd = _partial_results(combine, combine([x[:-1:2] for x in xs], [x[1::2] for x in xs]))
    even = [x[:1] for x in xs]
    if length > 2:
        later = combine([x[: (length - 1) // 2] for x in odd], [x[2::2] for x in xs])
        even = [cygrad.cat(parts) for parts in zip(even, later)]
    return [_interleaved(*parts) for parts in zip(even, odd)]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Return, for each place along `dim`, what `combine_fn` makes of all slices up to there.

    `combine_fn(a, b)` must be associative; `torch.add` gives the cumulative sum. It takes and returns what `xs` is: a
    tensor, or nested tuples, lists and dictionaries of tensors. Many slices are combined at a time. With
    `combine_mode="pointwise"`, for tensors on GPUs, `combine_fn` must work elementwise; with "generic" it is called
    through `vmap`, on slices without the dimension `dim`. With `reverse` the slices are combined from the last to the
    first.

    Raises ValueError for leaves that are no tensors, or have no slices along `dim`, and for the mode "pointwise" on the
    CPU; IndexError for a `dim` that the first leaf does not have.

    >>> import cygrad as torch
    >>> from cygrad._higher_order_ops import associative_scan
    >>> associative_scan(torch.mul, torch.tensor([1, 2, 3, 4]), 0, combine_mode="generic")
    tensor([ 1,  2,  6, 24])
    """
    leaves, spec = tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    dim = canonicalize_dim(getattr(leaves[0], "ndim", 0), dim)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    of_rows = combine_fn if combine_mode == "pointwise" else cygrad.vmap(combine_fn)

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        return tree_flatten(of_rows(tree_unflatten(a, spec), tree_unflatten(b, spec)))[0]

    rows = [x.movedim(dim, 0) for x in leaves]
    if reverse:
        rows = [x.flip(0) for x in rows]
    found = _partial_results(combine, rows)
    if reverse:
        found = [x.flip(0) for x in found]
    return tree_unflatten([x.movedim(0, dim) for x in found], spec)
