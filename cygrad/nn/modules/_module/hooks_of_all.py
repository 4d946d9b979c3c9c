"""PyTorch's names for the hooks of all modules.

There they are dictionaries in `torch.nn.modules.module`. Programs ask whether there are any, and put new dictionaries
in their places in order to forget all hooks. Ours are all in one dictionary, which a call of a module tests at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from cygrad.nn.modules._module.hooks import ForwardHook
from cygrad.nn.modules._use import global_hooks


class _OfKinds(Mapping):
    """The hooks of some kinds, or those with a flag among them, by number; with a flag, the values are True."""

    def __init__(self, *kinds: str, flag: str | None = None) -> None:
        self._kinds = kinds
        self._flag = flag

    def __getitem__(self, number: int) -> Any:
        kind, hook = global_hooks[number]
        if kind not in self._kinds or not self._has_flag(hook):
            raise KeyError(number)
        if self._flag is not None:
            return True
        return hook.function if isinstance(hook, ForwardHook) else hook

    def _has_flag(self, hook: Any) -> bool:
        return self._flag is None or (isinstance(hook, ForwardHook) and getattr(hook, self._flag))

    def __iter__(self) -> Iterator[int]:
        hooks = list(global_hooks.items())
        return iter([number for number, (kind, hook) in hooks if kind in self._kinds and self._has_flag(hook)])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _hooks_of(*kinds: str) -> property:
    def replace(module: ModuleType, hooks: Mapping[int, Callable[..., Any]]) -> None:
        new = {number: (kinds[0], hook) for number, hook in hooks.items()}
        for number in _OfKinds(*kinds):
            del global_hooks[number]
        global_hooks.update(new)

    return property(lambda module: _OfKinds(*kinds), replace)


class HooksOfAll(ModuleType):
    """The class of the module `cygrad.nn.modules.module`."""

    _global_forward_pre_hooks = _hooks_of("forward_pre")
    _global_forward_hooks = _hooks_of("forward")
    _global_backward_pre_hooks = _hooks_of("full_backward_pre")
    _global_backward_hooks = _hooks_of("full_backward", "backward")
    _global_forward_hooks_with_kwargs = property(lambda module: _OfKinds("forward", flag="with_kwargs"))
    _global_forward_hooks_always_called = property(lambda module: _OfKinds("forward", flag="always_call"))
