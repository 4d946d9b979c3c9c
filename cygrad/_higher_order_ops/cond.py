"""`cond`: one of two functions."""

from collections.abc import Callable, Sequence
from typing import Any

from cygrad import Tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Return `true_fn(*operands)` if `pred`, a number or a tensor of one element, is true, else `false_fn(*operands)`.

    Raises RuntimeError for another `pred`.

    >>> import cygrad as torch
    >>> torch.cond(torch.tensor(False), torch.sin, torch.cos, (torch.tensor(0.0),))
    tensor(1.)
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return true_fn(*operands) if pred else false_fn(*operands)


cond_op = cond  # which PyTorch calls below `cond`
