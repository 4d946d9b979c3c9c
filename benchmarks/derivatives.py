"""Rows for Jacobians and for hooks of every kind."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.layers import leaves
from benchmarks.row import Library, Names, Row

JACOBIAN = "jacobian(function, x)"
JACOBIAN_AT_ONCE = "jacobian(function, x, vectorize=True)"


def map_of_64(torch: Library) -> Names:
    """Set up a map from 64 numbers to 64, with a constant matrix."""
    names = leaves(x=(64,), w=(64, 64))(torch)
    w = names["w"].detach() / 8
    return {
        "x": names["x"].detach(),
        "function": lambda x: torch.tanh(w @ x),
        "jacobian": torch.autograd.functional.jacobian,
    }


HOOKS = """
for _ in range(10):
    handles.append(register(hook))
loss.backward(retain_graph=True)
for handle in handles:
    handle.remove()
handles.clear()
x.grad = None
"""
PACKED = """
with saved_tensors_hooks(pack, pack):
    y = x * x * x
y.backward()
x.grad = None
"""
SEVERAL = """
handle = register_multi_grad_hook((x, y), hook)
loss.backward(retain_graph=True)
handle.remove()
x.grad = None
"""


def hooks(kind: str) -> Callable[[Library], Names]:
    """Return the setup for registering, calling and removing ten hooks of one kind."""

    def setup(torch: Library) -> Names:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        owner = {"tensor": y, "prehook": y.grad_fn, "hook": y.grad_fn, "post_accumulate_grad_hook": x}[kind]
        return {
            "x": x,
            "y": y,
            "loss": (y * y).sum(),
            "handles": [],
            "hook": lambda *gradients: None,
            "register": getattr(owner, f"register_{'hook' if kind == 'tensor' else kind}"),
        }

    return setup


def packing(torch: Library) -> Names:
    """Set up hooks that pack and unpack a tensor as itself."""
    graph = torch.autograd.graph
    x = torch.tensor(2.0, requires_grad=True)
    return {"x": x, "pack": lambda t: t, "saved_tensors_hooks": graph.saved_tensors_hooks}


def several(torch: Library) -> Names:
    """Set up a hook on two tensors."""
    names = hooks("tensor")(torch)
    return {**names, "register_multi_grad_hook": torch.autograd.graph.register_multi_grad_hook}


ROWS = [
    Row("Jacobian of a map of 64 to 64", JACOBIAN, map_of_64, 0.3),
    Row("Jacobian of a map of 64 to 64, at once", JACOBIAN_AT_ONCE, map_of_64, 0.3),
    Row("10 hooks of a tensor", HOOKS, hooks("tensor"), 0.3),
    Row("10 hooks before a node", HOOKS, hooks("prehook"), 0.3),
    Row("10 hooks after a node", HOOKS, hooks("hook"), 0.3),
    Row("10 hooks after accumulation", HOOKS, hooks("post_accumulate_grad_hook"), 0.3),
    Row("hook on two tensors", SEVERAL, several, 0.3),
    Row("hooks on saved tensors", PACKED, packing, 0.3),
]
