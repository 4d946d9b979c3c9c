"""The graph: its nodes and edges, hooks on what is saved and on several gradients, saved tensors that may change."""

import contextlib
from functools import partial
from weakref import WeakSet

from cygrad._core.engine.arguments import GradientEdge
from cygrad._core.engine.backward import notes_of_run, will_run
from cygrad._core.errors import messages
from cygrad._core.graph import saved_tensor_hooks
from cygrad._core.graph.hook_handles import RemovableHandle
from cygrad._core.graph.internals import array_of, count_change, tensor_of
from cygrad._core.graph.node import Node, nodes_alive
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.interrupt_safe import Block
from cygrad._core.runtime.thread_state import get_modes, set_modes
from cygrad._kernels.gpu.runtime.pinned_memory import pinned
from cygrad.autograd.grad_mode import NO_GRAD
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


def get_gradient_edge(tensor):
    """Where the gradient of `tensor` arrives in the graph, for `backward` and `grad` in place of the tensor itself.

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


def live_nodes():
    """How many graph nodes are alive in this process; all objects that the collector knows are looked at.

    >>> import cygrad, gc
    >>> _ = gc.collect()
    >>> before = cygrad.autograd.graph.live_nodes()
    >>> y = cygrad.ones(2, requires_grad=True) * 3
    >>> cygrad.autograd.graph.live_nodes() - before
    1
    """
    return len(nodes_alive())


def increment_version(tensor):
    """Count a change in place that was made behind the back of autograd; `tensor` may be an iterable of tensors.

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
    """For a block, keep `pack_hook(tensor)` in place of each tensor that this thread saves for backward.

    When the tensor is needed, `unpack_hook` of that gives it back: a tensor of the same values, shape and dtype. The
    pack hook is called without recording. Of nested blocks the inner one counts.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> with cygrad.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), cygrad.from_numpy):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def _plan(self):
        return saved_tensor_hooks.plan_of_hooks(self.pack_hook, self.unpack_hook)


class save_on_cpu(saved_tensors_hooks):
    """For a block, keep what is saved for backward in the CPU's memory, as a copy.

    What was on a GPU goes back to it when it is needed. Of a tensor on the CPU the copy protects what is saved from
    changes in place. With `pin_memory` the copy of what was on a GPU lies in memory that is locked for transfers, and
    comes back while the program goes on. `device_type` is there for scripts.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
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
    """For a block, `saved_tensors_hooks` raises RuntimeError with this message; TypeError if it is no text."""

    def __init__(self, error_message):
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

    def __init__(self, handles):
        self._handles = tuple(handles)

    def remove(self):
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call `fn` in each backward pass once the gradients of all of `tensors` are known, or of the first one.

    With `mode="all"` `fn(grads)` gets a gradient for each tensor, None for those that the pass does not reach; with
    "any" `fn(grad)` gets the first gradient that is computed. Returns a handle with `remove()`. Raises ValueError for
    another mode, AssertionError if "all" of tensors do not require grad.

    >>> import cygrad
    >>> a, b = cygrad.ones(2, requires_grad=True), cygrad.ones(2, requires_grad=True)
    >>> handle = cygrad.autograd.graph.register_multi_grad_hook((a, b), print)
    >>> (a * 2 + b).sum().backward()
    (tensor([2., 2.]), tensor([1., 1.]))
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    if mode == "any":
        called = object()  # a key among the notes of each pass

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
            fn(tuple(grads))

    return _MultiHandle([tensor.register_hook(partial(collect, i)) for i, tensor in enumerate(tensors)])


# -- changing what is saved --


class _Saved:
    """What lies in a node for a tensor that may be changed: the tensor, or from its first change on a copy."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor):
        self.tensor = tensor.detach()


class _MutationContext:
    """What one `allow_mutation_on_saved_tensors` block has saved."""

    def __init__(self):
        self.saved: WeakSet = WeakSet()
        self.unchanged: dict = {}  # by memory: what is saved of it and not yet copied
        self.open = True
        self.outer = None  # what is called before this one before memory is changed

    def plan(self):
        """That of a block in which this holds."""
        return saved_tensor_hooks.plan_of_hooks(self.pack, self.unpack, self.before_write)

    def clear(self):
        """Forget all that is saved: what was recorded so far can no longer be differentiated."""
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
        """Copy what is saved of memory that is about to be changed. Gives the operands to be saved for backward."""
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
        """A copy of what is saved."""
        return tensor_of(array_of(tensor).copy())


class allow_mutation_on_saved_tensors(saved_tensors_hooks, contextlib.ContextDecorator):
    """For a block, tensors that backward needs may be changed in place: they are copied before their first change.

    Gives an object whose `clear()` forgets all that is saved. Backward must be called inside the block.
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

    def __init__(self):
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
    """As `allow_mutation_on_saved_tensors`, but it nests, and backward may be called later."""

    def __init__(self):
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


# -- what PyTorch's compiler and streams are told --


def region_activation_memory_budget(budget):
    """Raises RuntimeError, as PyTorch does where nothing is compiled: to save memory, use `utils.checkpoint`.

    Raises TypeError for what is no number, ValueError for one that is not between 0 and 1.
    """
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{name} can only be used inside a torch.compile region; it has no effect in eager mode.\n"
        "  here nothing is compiled; cygrad.utils.checkpoint computes parts again in place of keeping what they save"
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled):
    """Changes nothing: leaves collect in the stream that called backward, which waits for all others."""
    _check_switch(enabled)


def set_override_stale_capture_stream(enabled):
    """Changes nothing: while a graph is captured, too, each node runs in the stream in which it was made."""
    _check_switch(enabled)


def _check_switch(enabled):
    if not isinstance(enabled, bool):
        raise RuntimeError(f"enabled must be a bool, but got {messages.type_name(enabled)}")
