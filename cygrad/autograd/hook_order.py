"""The order in which the hooks of a tensor are called (Note [Order of hooks] in _core/engine/hooks.pyx)."""

from __future__ import annotations

from typing import Any

from cygrad._core.errors import messages
from cygrad._core.graph.tensor import Tensor


def _name(hook):
    code = getattr(hook, "__code__", None)
    name = getattr(hook, "__qualname__", type(hook).__name__)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def hook_order(tensor: Tensor) -> list[tuple[str, Any]]:
    """Return what happens in backward when the gradient of `tensor` arrives: (kind, hook) for each step, in order.

    The kinds are "tensor hook", "retain_grad", "node pre-hook", "node" with the node in place of the hook,
    "node post-hook" and "post-accumulate hook"; the list is empty for a tensor that does not require grad.

    >>> import cygrad
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> handle = y.register_hook(print)
    >>> [kind for kind, hook in cygrad.autograd.graph.hook_order(y)]
    ['tensor hook', 'node']
    """
    if not isinstance(tensor, Tensor):
        raise messages.wrong_type("hook_order", "tensor", 1, "Tensor", tensor)
    if not tensor.requires_grad:
        return []
    node = tensor._accumulate_grad if tensor.grad_fn is None else tensor.grad_fn
    of_tensors, retains, before, after, accumulated = node._hooks
    number = tensor.output_nr
    steps = [("tensor hook", hook) for hook in ((of_tensors or {}).get(number) or {}).values()]
    steps += [("retain_grad", None)] if number in (retains or {}) else []
    steps += [("node pre-hook", hook) for hook in (before or {}).values()]
    steps += [("node", node)]
    # the node of a leaf calls these itself, before its post-hooks
    steps += [("post-accumulate hook", hook) for hook in (accumulated or {}).values()]
    return steps + [("node post-hook", hook) for hook in (after or {}).values()]


def print_hook_order(tensor: Tensor) -> None:
    """Print what happens in backward when the gradient of `tensor` arrives, one line per step.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> cygrad.autograd.graph.print_hook_order(y)
    1. retain_grad
    2. node MulBackward0
    """
    for number, (what, hook) in enumerate(hook_order(tensor), 1):
        named = "" if hook is None else " " + (hook.name() if what == "node" else _name(hook))
        print(f"{number}. {what}{named}")
