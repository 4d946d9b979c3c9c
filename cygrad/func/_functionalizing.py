"""functionalize: functions whose in-place changes do not affect backward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.forward_mode import call_inside
from cygrad.autograd.graph import copies_of_saved
from cygrad.func.trees import flatten, mapped


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function with the results of `func`, whose in-place changes do not affect backward.

    Tensors that backward needs are copied before `func` changes them, so that no gradient fails because of a changed
    tensor. The function still changes its arguments as `func` does. Results are separate tensors. `remove`,
    'mutations' or 'mutations_and_views', is for tracing in PyTorch, and makes no difference here; other values raise
    RuntimeError.

    >>> import cygrad
    >>> def normalized(x):
    ...     y = x.exp()
    ...     return y.div_(y.sum())
    >>> x = cygrad.tensor([0.0, 0.0], requires_grad=True)
    >>> cygrad.func.functionalize(normalized)(x)[0].backward()
    >>> x.grad
    tensor([ 0.2500, -0.2500])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "  'mutations', 'mutations_and_views'"
        )

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        with copies_of_saved():
            output = call_inside(func, *args, **kwargs)
        given = {id(leaf) for leaf in flatten((args, kwargs))[0]}
        return mapped(lambda x: x.view_as(x) if isinstance(x, Tensor) and id(x) in given else x, output)

    return wrapper
