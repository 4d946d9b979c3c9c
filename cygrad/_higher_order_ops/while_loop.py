"""`while_loop`: a function again and again."""

from collections.abc import Callable, Sequence
from typing import Any

from cygrad import Tensor


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]) -> Any:
    """Replace the values by `body_fn(*values)` as long as `cond_fn(*values)` is true, and return the last ones.

    Raises RuntimeError unless both are functions, and the values a tuple.

    >>> import cygrad as torch
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, 2 * x), (torch.tensor(0), torch.tensor(1.0)))
    (tensor(3), tensor(8.))
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple, but got {type(carried_inputs)}.")
    values: Any = tuple(carried_inputs)
    while cond_fn(*values):
        found = body_fn(*values)
        if not isinstance(found, (tuple, list)) or len(found) != len(values):
            if len(values) == 1 and isinstance(found, Tensor):
                found = (found,)
            else:
                raise RuntimeError(f"body_fn should return as many values as it takes, {len(values)}, but got {found}.")
        values = tuple(found)
    return values
