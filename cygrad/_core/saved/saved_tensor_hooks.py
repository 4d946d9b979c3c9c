"""Saved-tensor hooks: the pack hook's result takes the place of the tensor in the node until it is unpacked."""

import threading
import weakref
from functools import partial
from typing import Any

from cygrad._core import graph_errors
from cygrad._core.errors.messages import type_name
from cygrad._core.graph import internals
from cygrad._core.graph.dual import record_same
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.saved_slots import Packed, pack_saved, replace_saved
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.interrupt_safe import putting
from cygrad._core.runtime.thread_state import save_by, take_saving

_FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
    "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved variables after calling backward."
)
_SET_BEFORE = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
    "allowed at a time."
)


def _check_hooks(function, first, pack_hook, unpack_hook):
    if not (callable(pack_hook) and callable(unpack_hook)):
        raise TypeError(
            f"{function}(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. ({first}arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None"
        )


# -- one saved tensor --


def unlike(value, shape, dtype):
    """Return the error for an unpack hook's result that is not a tensor of this shape and dtype."""
    if not isinstance(value, Tensor):
        return TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type_name(value)}"
        )
    memory = internals.memory_of(value)
    return RuntimeError(
        f"the unpack hook of a saved tensor returned shape {memory.shape} and torch.{memory.dtype}, but "
        f"{shape} and torch.{dtype} was saved"
    )


class SavedTensor:
    """Handle of a value saved by a node in one of its slots; created by `node._raw_saved_self` and the like."""

    __slots__ = ("__weakref__", "_node", "_place")
    _node: Any
    _place: int
    __module__ = "cygrad.autograd.graph"

    def __init__(self):
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, pack_hook=None, unpack_hook=None):  # None is refused like all that cannot be called
        """Store `pack_hook(tensor)` in place of the tensor, and apply `unpack_hook` to it when the tensor is needed.

        Raises RuntimeError if hooks are already registered, or if the tensor is None or has been freed.
        """
        _check_hooks("register_hooks", "self: SavedTensor, ", pack_hook, unpack_hook)
        value, _, freed = self._node._place(self._place)
        if freed:
            raise RuntimeError(_FREED)
        if isinstance(value, Packed):
            raise RuntimeError(_SET_BEFORE)
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        pack_saved(pack_hook, unpack_hook, self._node, self._place)  # numbers are kept unchanged

    def unpack(self):
        """Return the saved tensor as the node will get it. Raises RuntimeError if it has been freed or changed."""
        node, place = self._node, self._place
        if not hasattr(node, "saved"):  # of a custom function
            return node.saved_tensors[place]
        if node._freed_by is not None:
            raise graph_errors.freed_error(node, node._freed_by)
        return node.saved(place) if place < 3 else node.saved_output(0)

    @property
    def data(self):
        """The saved tensor, or the result of the pack hook if there is one."""
        value = self._node._place(self._place)[0]
        if isinstance(value, Packed):
            return value.packed
        return value if isinstance(value, Tensor) else None

    @property
    def unpack_hook(self):
        """The unpack hook, or None."""
        value = self._node._place(self._place)[0]
        return value.unpack_hook if isinstance(value, Packed) else None


class _SavedIndex(SavedTensor):
    """Handle of one of the indices, which a node saves together in one slot."""

    __slots__ = ("_at",)
    _at: int

    def register_hooks(self, pack_hook=None, unpack_hook=None):
        """Apply both hooks at once: indices are kept unpacked."""
        _check_hooks("register_hooks", "self: SavedTensor, ", pack_hook, unpack_hook)
        indices, _, freed = self._node._place(self._place)
        if freed:
            raise RuntimeError(_FREED)
        if indices[self._at] is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        found = unpack_hook(pack_hook(indices[self._at]))
        replace_saved(self._node, self._place, (*indices[: self._at], found, *indices[self._at + 1 :]))

    def unpack(self):
        return super().unpack()[self._at]

    @property
    def data(self):
        indices, _, freed = self._node._place(self._place)
        if freed:
            raise RuntimeError(_FREED)
        return indices[self._at]


_handles: weakref.WeakValueDictionary[tuple[int, ...], SavedTensor] = weakref.WeakValueDictionary()


def raw_saved(node: Any, place):
    """Return the handle of one slot of a node, or those of the indices in it: the same objects as long as the program
    keeps them.
    """
    value = node._place(place)[0]
    if isinstance(value, tuple):
        return tuple(_handle(_SavedIndex, node, place, at) for at in range(len(value)))
    return _handle(SavedTensor, node, place)


def _handle(kind, node, place, *at):
    key = id(node), place, *at  # a handle keeps its node, so that no other gets this number
    handle = _handles.get(key)
    if handle is None:
        handle = kind.__new__(kind)
        handle._node, handle._place = node, place
        if at:
            handle._at = at[0]
        handle = _handles.setdefault(key, handle)
    return handle


# -- all tensors saved by this thread --


class _Thread(threading.local):
    hooks: tuple = ()  # (pack hook, unpack hook, `on_save`, `on_write`), ...; the last is used
    disabled = None  # the error text while hooks are disabled


_thread = _Thread()
take_saving(_thread)


def write_hook():
    """Return the function that this thread calls before memory is changed, or None."""
    return _thread.hooks[-1][3] if _thread.hooks else None


def plan_of_hooks(pack_hook, unpack_hook, on_write=None):
    """Return the plan of a block with these hooks. Raises RuntimeError while hooks are disabled."""
    _check_hooks("_push_saved_tensors_default_hooks", "", pack_hook, unpack_hook)
    if _thread.disabled is not None:
        raise RuntimeError(_thread.disabled)
    hooks = _thread.hooks
    if hooks and on_write is None:
        on_write = hooks[-1][3]
    return save_by, (*hooks, (pack_hook, unpack_hook, partial(pack_saved, pack_hook, unpack_hook), on_write)), hooks


def hooks_in_use():
    """Return this thread's current pair of hooks, or None."""
    return _thread.hooks[-1][:2] if _thread.hooks else None


def stand_in(tensor):
    """Return a result recorded on the same memory, in place of an op's stored result that need not be recomputed."""
    return record_same(registry["alias"], tensor.detach().requires_grad_(), None)


def are_allowed():
    """Whether hooks may be entered in this thread."""
    return _thread.disabled is None


def plan_of_disabling(message):
    """Return the plan of a block in which hooks raise RuntimeError(message); raise it now if there are hooks."""
    if _thread.hooks:
        raise RuntimeError(message)
    _thread.disabled = _thread.disabled  # creates the entry in this thread's dictionary
    return putting(_thread.__dict__, "disabled", message)


def memory_of(tensor):
    """Return a key that tensors on the same memory share as long as one of them is alive."""
    array = internals.holding_memory(tensor)
    while array.base is not None and type(array.base) is type(array):
        array = array.base
    return id(array)
