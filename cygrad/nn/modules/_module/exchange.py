"""The state of modules in files: as PyTorch's modules have it, so that each library loads the other's.

Both keep the same attributes, but for hooks. PyTorch has dictionaries of functions, and others that tell by number how
to call them; here an entry is a function, or an object that knows.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from cygrad.nn.modules._module.hooks import ForwardHook
from cygrad.utils.hooks import HookDict, RemovableHandle

_HOOKS = (
    *("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks", "_state_dict_hooks"),
    *("_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)
_WITH_KEYWORDS = {name: f"{name}_with_kwargs" for name in ("_forward_hooks", "_forward_pre_hooks")}
_ALWAYS = "_forward_hooks_always_called"


def to_torch(module: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a module as one of PyTorch has it."""
    new = {**state, **module._computed_state()}
    own_hooks = module._own_hooks()
    new |= {name: OrderedDict() for name in (*_WITH_KEYWORDS.values(), _ALWAYS)}
    for name in _HOOKS:
        new[name] = OrderedDict()
        hooks = dict(state.get(name, {}))
        if name in own_hooks:
            handle, hook = own_hooks[name]
            number = max(hooks, default=-1) + 1
            hooks[number] = hook
            new[handle] = RemovableHandle.of(new[name], number)
        for number, hook in hooks.items():
            if isinstance(hook, ForwardHook):
                if hook.with_kwargs:
                    new[_WITH_KEYWORDS[name]][number] = True
                if hook.always_call:
                    new[_ALWAYS][number] = True
                hook = hook.function
            new[name][number] = hook
    return new


def from_torch(module: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a module as ours have it, given that of one of either library."""
    computed = {*_WITH_KEYWORDS.values(), _ALWAYS, *module._computed_names}
    new = {name: value for name, value in state.items() if name not in computed}
    for name in _HOOKS:
        hooks = state.get(name)
        if hooks is None or type(hooks) is HookDict:
            continue
        new[name] = found = HookDict()
        with_keywords, always = state.get(_WITH_KEYWORDS.get(name, ""), {}), state.get(_ALWAYS, {})
        for number, hook in hooks.items():
            calls_always = name == "_forward_hooks" and number in always
            is_plain = number not in with_keywords and not calls_always
            found[number] = hook if is_plain else ForwardHook(hook, number in with_keywords, calls_always)
    return new
