"""Dictionaries of hooks, handles that remove hooks, and checks of hook results."""

import itertools
import weakref
from typing import Any, Self

from cygrad._core.errors import messages

_ids = itertools.count()


class HookDict(dict):
    """Hooks by number, in the order of registration. Supports weak references, so that handles keep nothing alive.

    >>> from cygrad.utils.hooks import HookDict, RemovableHandle
    >>> hooks = HookDict()
    >>> handle = RemovableHandle.add(hooks, print)
    >>> list(hooks.values())
    [<built-in function print>]
    """

    __slots__ = ("__weakref__",)

    def __repr__(self):
        return f"OrderedDict({list(self.items()) or ''})"  # PyTorch's


class RemovableHandle:
    """Removes a hook: by `remove()`, or at the end of the block when used as a context manager.

    >>> import cygrad
    >>> from cygrad.utils.hooks import HookDict, RemovableHandle
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 2)
    >>> with handle:
    ...     x.sum().backward()
    >>> handle.remove()  # harmless, as the block has removed it
    >>> hooks = HookDict()
    >>> handle = RemovableHandle.add(hooks, print)
    >>> RemovableHandle.of(hooks, handle.id).remove()
    >>> x.grad, len(hooks)
    (tensor([2., 2.]), 0)
    """

    __slots__ = {
        "extra_dict_ref": "Weak references to other dictionaries that the number is removed from.",
        "hooks_dict_ref": "Weak reference to the dictionary.",
        "id": "The number of the hook in its dictionary.",
    }
    __module__ = "cygrad.utils.hooks"

    id: int
    hooks_dict_ref: Any
    extra_dict_ref: tuple[Any, ...]

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        extra = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.extra_dict_ref = tuple(weakref.ref(each) for each in extra)
        self.id = next(_ids)

    @classmethod
    def add(cls, hooks_dict: Any, hook: Any) -> Self:
        """Add `hook` to `hooks_dict` and return its handle."""
        handle = cls(hooks_dict)
        hooks_dict[handle.id] = hook
        return handle

    @classmethod
    def of(cls, hooks_dict: Any, number: int) -> Self:
        """Return a handle of the hook of that number."""
        handle = cls.__new__(cls)
        handle.__setstate__((hooks_dict, number))
        return handle

    def __getstate__(self):  # that of PyTorch's class
        extra = tuple(each() for each in self.extra_dict_ref)
        return (self.hooks_dict_ref(), self.id, extra) if extra else (self.hooks_dict_ref(), self.id)

    def __setstate__(self, state):
        hooks, self.id = state[:2]
        self.hooks_dict_ref = weakref.ref(HookDict() if hooks is None else hooks)
        extra = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(weakref.ref(HookDict() if each is None else each) for each in extra)

    def remove(self) -> None:
        """Remove the hook; calling this twice is harmless."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def warn_if_has_hooks(tensor):
    """Warn of hooks on a tensor that is about to be pickled, since they are lost; not of those marked for it.

    >>> import cygrad
    >>> from cygrad.utils.hooks import warn_if_has_hooks
    >>> warn_if_has_hooks(cygrad.ones(2))  # it has none
    """
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            from cygrad._core.errors.sites import warn  # needed only here

            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning"
            )


# -- checks of hook results --


def _hook_name(hook):
    return getattr(hook, "__name__", "<unknown>")


def check_hook_result(hook, result, grad):
    """Check the replacement for `grad` that a hook returned."""
    from cygrad._core.graph.tensor import Tensor  # which imports this module

    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{messages.type_name(result)}'")
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if result.dtype is not grad.dtype:
        from cygrad._core.graph.internals import array_of  # needed only for errors

        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has changed the type of value (was {messages.type_word(array_of(grad))} "
            f"got {messages.type_word(array_of(result))})"
        )
    if result.shape != grad.shape:
        raise RuntimeError(f"hook '{_hook_name(hook)}' has changed the size of value")


def check_post_accumulate_result(hook, result, leaf):
    """Check the result of a post-accumulate hook: it is not used, so it must be None or the leaf itself."""
    check_hook_result(hook, result, leaf)
    if result is not leaf:
        raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def check_hook_results(hook, results, grads):
    """Check the replacement for the tuple `grads` that a node's hook returned."""
    if not isinstance(results, tuple):
        raise TypeError(f"expected tuple, but hook returned '{messages.type_name(results)}'")
    if len(results) != len(grads):
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has returned an incorrect number of values "
            f"(got {len(results)}, but expected {len(grads)})"
        )
    for result, grad in zip(results, grads, strict=True):
        if result is not None:
            check_hook_result(hook, result, grad)
    return results
