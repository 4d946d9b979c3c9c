"""States that `distributed` attaches to modules without wrapping them, such as those of PyTorch's first FSDP."""

from __future__ import annotations

import weakref

from cygrad import nn


class _State:
    """What a module is given; subclasses say by whom."""


_states: weakref.WeakKeyDictionary[nn.Module, weakref.ref[_State]] = weakref.WeakKeyDictionary()


def _insert_module_state(module: nn.Module, state: _State) -> None:
    """Attach `state` to `module`, which must have none."""
    if module in _states:
        raise AssertionError(f"Inserting {module} more than once.")
    _states[module] = weakref.ref(state)


def _get_module_state(module: nn.Module) -> _State | None:
    """Return the state of `module`: itself if it is one, what was attached to it otherwise, None if nothing was."""
    if isinstance(module, _State):
        return module
    attached = _states.get(module)
    return None if attached is None else attached()
