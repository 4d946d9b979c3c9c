"""The graph: nodes and edges, saved-tensor hooks, multi-gradient hooks, and mutable saved tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from cygrad._core.engine.arguments import GradientEdge
from cygrad._core.engine.backward import notes_of_run, will_run
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, count_change, tensor_of
from cygrad._core.graph.node import Node, nodes_alive
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.interrupt_safe import Block
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes, leave_hooks, set_modes
from cygrad._core.saved import saved_tensor_hooks
from cygrad._core.types.hook_handles import RemovableHandle
from cygrad._kernels.gpu.runtime.pinned_memory import pinned
from cygrad.autograd.hook_order import hook_order, print_hook_order

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "hook_order",
    "increment_version",
    "live_nodes",
    "print_hook_order",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return where the gradient of `tensor` arrives, for `backward` and `grad` in place of the tensor itself.

    Raises RuntimeError if the tensor does not require grad.

    >>> import cygrad
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> edge = cygrad.autograd.graph.get_gradient_edge(y)
    >>> cygrad.autograd.grad(y * 5, edge)
    (tensor(5.),)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(tensor._accumulate_grad if tensor.grad_fn is None else tensor.grad_fn, tensor.output_nr)


def live_nodes() -> Any:
    """Return the number of live graph nodes in this process; walks all objects that the garbage collector tracks.

    >>> import cygrad, gc
    >>> _ = gc.collect()
    >>> before = cygrad.autograd.graph.live_nodes()
    >>> y = cygrad.ones(2, requires_grad=True) * 3
    >>> cygrad.autograd.graph.live_nodes() - before
    1
    """
    return len(nodes_alive())


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count an in-place change that autograd did not see; `tensor` may be an iterable of tensors.

    >>> import cygrad
    >>> t = cygrad.zeros(2)
    >>> cygrad.autograd.graph.increment_version(t)
    >>> t._version
    1
    """
    try:
        tensors = (tensor,) if isinstance(tensor, Tensor) else tuple(tensor)
    except TypeError:
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input") from None
    for value in tensors:
        if not isinstance(value, Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
    for value in tensors:
        count_change(value, "increment_version")


# -- hooks on saved tensors --


class saved_tensors_hooks(Block):
    """For a block, store `pack_hook(tensor)` in place of each tensor that this thread saves for backward.

    When the tensor is needed, `unpack_hook` restores it: a tensor with the same values, shape and dtype. The pack hook
    is called without recording. If blocks are nested, the inner one applies. The end of a block ends the innermost
    hooks of the thread. Those that a backward pass enters end with it, and those that it ends come back.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> with cygrad.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), cygrad.from_numpy):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def _plan(self):
        return saved_tensor_hooks.plan_of_hooks(self.pack_hook, self.unpack_hook)

    if not TYPE_CHECKING:
        __exit__ = leave_hooks


class save_on_cpu(saved_tensors_hooks):
    """For a block, keep tensors saved for backward in CPU memory, as copies.

    Tensors from a GPU are moved back to it when needed. For tensors on the CPU, the copy protects the saved values from
    in-place changes. With `pin_memory`, copies of GPU tensors are in page-locked memory, and are moved back
    asynchronously. `device_type` is accepted for compatibility.

    >>> import cygrad
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> with cygrad.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor(6.)
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        pin_memory = bool(pin_memory)

        def pack(tensor):
            device, tensor = tensor.device, tensor.detach()
            if device.type == "cpu":
                return device, tensor.clone()
            return device, tensor_of(pinned(array_of(tensor))) if pin_memory else tensor.cpu()

        def unpack(packed):
            device, copy = packed
            return copy.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks(Block, contextlib.ContextDecorator):
    """For a block, make `saved_tensors_hooks` raise RuntimeError with this message; TypeError if it is not a string.

    >>> import cygrad
    >>> from cygrad.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
    >>> with disable_saved_tensors_hooks("hooks are not supported here"):
    ...     with saved_tensors_hooks(lambda x: x, lambda x: x):
    ...         pass
    Traceback (most recent call last):
        ...
    RuntimeError: hooks are not supported here
    """

    def __init__(self, error_message: str) -> None:
        if not isinstance(error_message, str):
            raise TypeError(
                "_saved_tensors_hooks_disable(): incompatible function arguments. The following argument types are "
                f"supported:\n  a str, not {type(error_message).__name__}"
            )
        self._message = error_message

    def _plan(self):
        return saved_tensor_hooks.plan_of_disabling(self._message)


# -- hooks on several gradients --


class _MultiHandle(RemovableHandle):
    """Removes the hooks of several tensors."""

    __slots__ = ("_handles",)

    def __init__(self, handles: Any) -> None:
        self._handles = tuple(handles)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` in each backward pass once the gradients of all of `tensors`, or of the first one, are computed.

    With `mode="all"`, `fn(grads)` receives a gradient for each tensor, None for those that the pass does not reach;
    with "any", `fn(grad)` receives the first gradient that is computed. Returns a handle with `remove()`. Raises
    ValueError for other modes, and AssertionError if a tensor does not require grad with "all".

    >>> import cygrad
    >>> a, b = cygrad.ones(2, requires_grad=True), cygrad.ones(2, requires_grad=True)
    >>> handle = cygrad.autograd.graph.register_multi_grad_hook((a, b), print)
    >>> (a * 2 + b).sum().backward()
    [tensor([2., 2.]), tensor([1., 1.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    if mode == "any":
        called = object()  # a key in the notes of each pass

        def take_first(grad):
            notes = notes_of_run()
            if called not in notes:
                notes[called] = True
                fn(grad)

        return _MultiHandle([tensor.register_hook(take_first) for tensor in tensors if tensor.requires_grad])

    for tensor in tensors:
        if not tensor.requires_grad:
            raise AssertionError("Expected gradient function to be set")
    edges = [get_gradient_edge(tensor) for tensor in tensors]
    collected = object()

    def collect(index, grad):
        notes = notes_of_run()
        if collected not in notes:
            notes[collected] = [None] * len(edges), [will_run(edge.node) for edge in edges]
        grads, waiting = notes[collected]
        grads[index], waiting[index] = grad, False
        if not any(waiting):
            del notes[collected]
            fn(grads)

    return _MultiHandle([tensor.register_hook(partial(collect, i)) for i, tensor in enumerate(tensors)])


# -- mutable saved tensors --


class _Saved:
    """Packed form of a tensor that may be changed: the tensor itself, or a copy once it is changed."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor):
        self.tensor = tensor.detach()


class _MutationContext:
    """The values saved inside one `allow_mutation_on_saved_tensors` block."""

    def __init__(self):
        self.saved: WeakSet = WeakSet()
        self.unchanged: dict[Any, Any] = {}  # by memory: values saved from it and not yet copied
        self.open = True
        self.outer = None  # the write hook of the enclosing block, called first

    def plan(self):
        """Return the plan of a block that uses these hooks."""
        return saved_tensor_hooks.plan_of_hooks(self.pack, self.unpack, self.before_write)

    def clear(self):
        """Free everything that is saved: what was recorded so far can no longer be differentiated."""
        for saved in self.saved:
            saved.tensor = None
        self.saved.clear()
        self.unchanged.clear()

    def pack(self, tensor):
        """The pack hook."""
        saved = _Saved(tensor)
        self.saved.add(saved)
        self.unchanged.setdefault(saved_tensor_hooks.memory_of(tensor), WeakSet()).add(saved)
        return saved

    def unpack(self, saved):
        """The unpack hook."""
        if not self.open or saved.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        return saved.tensor

    def before_write(self, tensor, operands=()):
        """Copy the values saved from memory about to be changed. Returns the operands to save for backward."""
        if self.outer is not None:
            operands = self.outer(tensor, operands)
        memory = saved_tensor_hooks.memory_of(tensor)
        for saved in self.unchanged.pop(memory, ()):
            saved.tensor = self.copy(saved.tensor)
        first, *others = operands or (tensor,)
        return first, *[
            x.clone() if isinstance(x, Tensor) and saved_tensor_hooks.memory_of(x) == memory else x for x in others
        ]

    @staticmethod
    def copy(tensor):
        """Return a copy of a saved tensor."""
        return tensor_of(array_of(tensor).copy())


class allow_mutation_on_saved_tensors(saved_tensors_hooks, contextlib.ContextDecorator):
    """For a block, allow in-place changes of tensors that backward needs: they are copied before their first change.

    Yields an object whose `clear()` frees everything that is saved. Backward must be called inside the block.
    Raises RuntimeError when nested.

    >>> import cygrad
    >>> a = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.autograd.graph.allow_mutation_on_saved_tensors():
    ...     b = a.clone()
    ...     y = (b ** 2).sum()
    ...     _ = b.mul_(10)
    ...     y.backward()
    >>> a.grad
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        self._context = _MutationContext()

    def _recreate_cm(self):
        return allow_mutation_on_saved_tensors()

    def _plan(self):
        if saved_tensor_hooks.write_hook() is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        return self._context.plan()

    def _ended(self):
        self._context.clear()
        self._context.open = False


class copies_of_saved(saved_tensors_hooks):
    """Like `allow_mutation_on_saved_tensors`, but nests, and backward may be called later."""

    def __init__(self) -> None:
        self._context = _MutationContext()
        self._context.copy = _clone
        self._context.outer = saved_tensor_hooks.write_hook()

    def _plan(self):
        return self._context.plan()


def _clone(tensor):
    modes = get_modes()
    try:
        set_modes(modes | NO_GRAD)
        return tensor.clone()
    finally:
        set_modes(modes)


# -- settings of PyTorch's compiler and streams --


def region_activation_memory_budget(budget: float) -> Any:
    """Raises RuntimeError, as in PyTorch outside compiled code: to save memory, use `utils.checkpoint`.

    Raises TypeError for non-numbers, ValueError for numbers that are not between 0 and 1.

    >>> import cygrad
    >>> cygrad.autograd.graph.region_activation_memory_budget(0.5)
    Traceback (most recent call last):
        ...
    RuntimeError: torch.autograd.graph.region_activation_memory_budget can only be used inside a to...
    """
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{name} can only be used inside a torch.compile region; it has no effect in eager mode.\n"
        "  cygrad compiles nothing; cygrad.utils.checkpoint recomputes parts instead of keeping their saved tensors"
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Has no effect: leaves accumulate in the stream that called backward, which waits for all others.

    >>> import cygrad
    >>> cygrad.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    """
    _check_switch(enabled)


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Has no effect: even while a graph is captured, each node runs in the stream in which it was recorded.

    >>> import cygrad
    >>> cygrad.autograd.graph.set_override_stale_capture_stream(True)
    """
    _check_switch(enabled)


def _check_switch(enabled):
    if not isinstance(enabled, bool):
        raise RuntimeError(f"enabled must be a bool, but got {messages.type_name(enabled)}")
