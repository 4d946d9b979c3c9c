"""Module calls: hooks before and after `forward`, and backward hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cygrad
from cygrad.nn.modules._module.backward_hooks import BackwardHooks, register_regular_hooks
from cygrad.nn.modules._use import global_hooks as _global_hooks
from cygrad.nn.modules._use import with_calls
from cygrad.utils.hooks import HookDict, RemovableHandle, add_hook
from cygrad.utils.warning import warn


class ForwardHook:
    """A forward hook with a non-default calling convention; hooks with the default one are stored as they are."""

    __slots__ = ("always_call", "function", "with_kwargs")

    def __init__(self, function: Callable[..., Any], with_kwargs: bool = False, always_call: bool = False) -> None:
        self.function = function
        self.with_kwargs = with_kwargs
        self.always_call = always_call

    def before(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]
    ) -> tuple[tuple[Any, ...], dict[Any, Any]]:
        """Call the hook before `forward` and return the arguments to pass to `forward`."""
        if self.with_kwargs:
            result = self.function(module, args, kwargs)
            if result is None:
                return args, kwargs
            if isinstance(result, tuple) and len(result) == 2:
                return result
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
            )
        result = self.function(module, args)
        if result is None:
            return args, kwargs
        return result if isinstance(result, tuple) else (result,), kwargs

    def after(self, module: Any, args: tuple[Any, ...], kwargs: dict[Any, Any], output: Any) -> Any:
        """Call the hook after `forward` and return the output for the caller."""
        if self.with_kwargs:
            result = self.function(module, args, kwargs, output)
        else:
            result = self.function(module, args, output)
        return output if result is None else result


@with_calls
class Hooked:
    """Makes a module callable: `module(x)` runs the hooks and `forward`.

    Base of `Module`. Hooks are stored in dictionaries, keyed by number, in execution order.
    """

    __call__: Callable[..., Any]
    forward: Callable[..., Any]
    _forward_pre_hooks: HookDict
    _forward_hooks: HookDict
    _backward_pre_hooks: HookDict
    _backward_hooks: HookDict
    _is_full_backward_hook: bool | None

    def _init_hooks(self) -> None:
        state = self.__dict__
        state["_forward_pre_hooks"] = HookDict()
        state["_forward_hooks"] = HookDict()
        state["_backward_pre_hooks"] = HookDict()
        state["_backward_hooks"] = HookDict()
        state["_is_full_backward_hook"] = None

    # Registration

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before every `forward`.

        It may return new arguments: a tuple, or a single non-tuple value. With `with_kwargs` the call
        is `hook(module, args, kwargs)`, which may return `(args, kwargs)`. The returned handle removes
        the hook. `prepend` runs it before the existing hooks.
        """
        return add_hook(self._forward_pre_hooks, _entry(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after every `forward`; it may return a new output.

        With `with_kwargs` the call is `hook(module, args, kwargs, output)`. With `always_call` it runs
        even if `forward` raised, with None as the output.

        >>> import cygrad
        >>> layer = cygrad.nn.Linear(2, 3)
        >>> handle = layer.register_forward_hook(lambda module, args, out: print(out.shape))
        >>> _ = layer(cygrad.ones(5, 2))
        torch.Size([5, 3])
        >>> handle.remove()
        """
        return add_hook(self._forward_hooks, _entry(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` once the gradients of the outputs are known.

        It may return a tuple of gradients to replace them.
        """
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the gradients of the inputs are known.

        Both are tuples, with None where a value is not a tensor or has no gradient. The hook may
        return a tuple to replace `grad_input`. Only positional arguments count as inputs. If no input
        requires grad, the hook runs once the gradients of the outputs are known.
        """
        self._choose_backward_kind(full=True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` after the gradient of the last operation.

        The old form: `grad_input` belongs to the last operation inside the module, not to the module
        itself. Prefer `register_full_backward_hook`.
        """
        self._choose_backward_kind(full=False)
        return add_hook(self._backward_hooks, hook, prepend=False)

    def _choose_backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    # Which forward hooks are called how, by number

    @property
    def _forward_pre_hooks_with_kwargs(self) -> dict[int, bool]:
        return _numbers(self._forward_pre_hooks, "with_kwargs")

    @property
    def _forward_hooks_with_kwargs(self) -> dict[int, bool]:
        return _numbers(self._forward_hooks, "with_kwargs")

    @property
    def _forward_hooks_always_called(self) -> dict[int, bool]:
        return _numbers(self._forward_hooks, "always_call")

    # Calls with hooks

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        called: set[int] = set()
        try:
            return self._run_hooks_and_forward(args, kwargs, called)
        except Exception:
            for number, hook in _forward_hooks("forward", self._forward_hooks):
                if hook.always_call and number not in called:
                    self._run_despite_error(hook, args, kwargs)
            raise

    def _run_hooks_and_forward(self, args: tuple[Any, ...], kwargs: dict[Any, Any], called: set[int]) -> Any:
        for _, hook in _forward_hooks("forward_pre", self._forward_pre_hooks):
            args, kwargs = hook.before(self, args, kwargs)
        backward = self._backward_hooks_of_call()
        if backward is not None:
            args = backward.watch_inputs(args)
        output = self.forward(*args, **kwargs)
        for number, hook in _forward_hooks("forward", self._forward_hooks):
            called.add(number)
            output = hook.after(self, args, kwargs, output)
        if backward is not None:
            output = backward.watch_outputs(output)
        own = self._backward_hooks if self._is_full_backward_hook is False else {}
        regular = [hook for _, hook in _hooks("backward", own)]
        if regular:
            register_regular_hooks(self, regular, args, output)
        return output

    def _backward_hooks_of_call(self) -> BackwardHooks | None:
        own = self._backward_hooks if self._is_full_backward_hook else {}
        hooks = [hook for _, hook in _hooks("full_backward", own)]
        pre_hooks = [hook for _, hook in _hooks("full_backward_pre", self._backward_pre_hooks)]
        if not (hooks or pre_hooks) or not cygrad.is_grad_enabled():
            return None
        return BackwardHooks(self, pre_hooks, hooks)

    def _run_despite_error(self, hook: ForwardHook, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> None:
        try:
            hook.after(self, args, kwargs, None)
        except Exception as error:
            warn(
                "module forward hook with ``always_call=True`` raised an exception that was "
                f"silenced as another error was raised in forward: {error}"
            )


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Like `Module.register_forward_pre_hook`, for every module.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.modules.module import register_module_forward_pre_hook
    >>> handle = register_module_forward_pre_hook(lambda module, args: print(module, args))
    >>> out = nn.ReLU()(cygrad.ones(1))
    ReLU() (tensor([1.]),)
    >>> handle.remove()
    """
    return add_hook(_global_hooks, ("forward_pre", hook), prepend=False)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Like `Module.register_forward_hook`, for every module.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.modules.module import register_module_forward_hook
    >>> handle = register_module_forward_hook(lambda module, args, output: print(module))
    >>> out = nn.Sequential(nn.ReLU())(cygrad.ones(1))
    ReLU()
    Sequential(
      (0): ReLU()
    )
    >>> handle.remove()
    """
    return add_hook(_global_hooks, ("forward", _entry(hook, with_kwargs, always_call)), prepend=False)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Like `Module.register_full_backward_pre_hook`, for every module.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.modules.module import register_module_full_backward_pre_hook
    >>> handle = register_module_full_backward_pre_hook(lambda module, outputs: print(module, outputs))
    >>> nn.ReLU()(cygrad.ones(1, requires_grad=True)).backward()
    ReLU() (tensor([1.]),)
    >>> handle.remove()
    """
    return add_hook(_global_hooks, ("full_backward_pre", hook), prepend=False)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Like `Module.register_full_backward_hook`, for every module.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.modules.module import register_module_full_backward_hook
    >>> handle = register_module_full_backward_hook(lambda module, inputs, outputs: print(module, inputs))
    >>> nn.ReLU()(cygrad.ones(1, requires_grad=True)).backward()
    ReLU() (tensor([1.]),)
    >>> handle.remove()
    """
    _refuse_beside("backward")
    return add_hook(_global_hooks, ("full_backward", hook), prepend=False)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Like `Module.register_backward_hook`, for every module. Prefer `register_module_full_backward_hook`.

    Raises RuntimeError if there are full backward hooks of all modules.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.modules.module import register_module_backward_hook
    >>> handle = register_module_backward_hook(lambda module, inputs, outputs: print(module, inputs))
    >>> nn.ReLU()(cygrad.ones(1, requires_grad=True) * 2).backward()
    ReLU() (tensor([1.]),)
    >>> handle.remove()
    """
    _refuse_beside("full_backward")
    return add_hook(_global_hooks, ("backward", hook), prepend=False)


def _refuse_beside(other: str) -> None:
    if any(kind == other for kind, _ in _global_hooks.values()):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )


def _numbers(hooks: dict[int, Any], flag: str) -> dict[int, bool]:
    return {number: True for number, hook in hooks.items() if isinstance(hook, ForwardHook) and getattr(hook, flag)}


def _entry(hook: Callable[..., Any], with_kwargs: bool, always_call: bool = False) -> Any:
    """Return the dictionary entry for a hook: the hook itself where possible, so that callers can find it there."""
    return ForwardHook(hook, with_kwargs, always_call) if with_kwargs or always_call else hook


def _forward_hooks(kind: str, own: dict[Any, Any]) -> Iterator[tuple[int, ForwardHook]]:
    for number, hook in _hooks(kind, own):
        yield number, hook if isinstance(hook, ForwardHook) else ForwardHook(hook)


def _hooks(kind: str, own: dict[Any, Any]) -> Iterator[tuple[int, Any]]:
    """Yield the global hooks of this kind, then the module's own; hooks may be removed during iteration."""
    for number, (kind_of_hook, hook) in list(_global_hooks.items()):
        if kind_of_hook == kind:
            yield number, hook
    yield from list(own.items())
