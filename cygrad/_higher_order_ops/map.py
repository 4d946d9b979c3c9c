"""`map`: a function of each slice."""

from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.utils._pytree import tree_flatten, tree_map, tree_unflatten


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return the results of `f(x, *args)` for the slices `x` of `xs` along dimension 0, stacked.

    `xs` and the results are tensors, or nested tuples, lists and dictionaries of them.

    Raises RuntimeError unless all leaves of `xs` are tensors of one length, which is not 0.

    >>> import cygrad as torch
    >>> from cygrad._higher_order_ops import map
    >>> map(lambda x, c: x.sum() * c, torch.ones(2, 3), 10)
    tensor([30., 30.])
    """
    leaves, spec = tree_flatten(xs)
    if not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [x.shape for x in leaves]
    if shapes[0][0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    results = [f(tree_unflatten(list(slices), spec), *args) for slices in zip(*leaves)]

    def stacked(*parts: Any) -> Any:
        return cygrad.stack(parts) if isinstance(parts[0], Tensor) else parts[0]

    return tree_map(stacked, *results)
