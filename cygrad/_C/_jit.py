"""Switches of TorchScript's fusers, which are kept for programs that restore them, and the classes of its graphs.

Programs run as plain Python here (`cygrad.jit`), so that there are no fusers and no graphs.
"""

from __future__ import annotations

from typing import Any

from cygrad.jit import ScriptFunction, ScriptModule

__all__ = ["ScriptFunction", "ScriptModule", "_get_tracing_state", "_is_tracing", "_set_tracing_state"]
__all__ += ["_get_graph_executor_optimize", "_set_graph_executor_optimize"]

_switches = {"profiling_executor": True, "profiling_mode": True, "texpr_fuser": True, "nvfuser": False, "guard": False}
_switches |= {"optimize": True}


def _set(name: str, value: bool) -> bool:
    """Set a switch and return what it was."""
    before, _switches[name] = _switches[name], bool(value)
    return before


def _jit_set_profiling_executor(value: bool) -> bool:
    """Set the switch and return what it was."""
    return _set("profiling_executor", value)


def _jit_set_profiling_mode(value: bool) -> bool:
    """Set the switch and return what it was."""
    return _set("profiling_mode", value)


def _jit_set_texpr_fuser_enabled(value: bool) -> None:
    """Set the switch."""
    _set("texpr_fuser", value)


def _jit_texpr_fuser_enabled() -> bool:
    """Return the switch."""
    return _switches["texpr_fuser"]


def _jit_set_nvfuser_enabled(value: bool) -> bool:
    """Set the switch and return what it was."""
    return _set("nvfuser", value)


def _jit_nvfuser_enabled() -> bool:
    """Return the switch."""
    return _switches["nvfuser"]


def _jit_set_nvfuser_guard_mode(value: bool) -> bool:
    """Set the switch and return what it was."""
    return _set("guard", value)


def _jit_can_fuse_on_cpu() -> bool:
    """Whether loops on the CPU can be joined: never."""
    return False


def _jit_can_fuse_on_gpu() -> bool:
    """Whether loops on a GPU can be joined: never."""
    return False


def _jit_override_can_fuse_on_cpu(value: bool) -> None:
    """Do nothing: loops are never joined."""


def _jit_override_can_fuse_on_gpu(value: bool) -> None:
    """Do nothing: loops are never joined."""


def _jit_clear_class_registry() -> None:
    """Forget the classes that have been compiled: none ever are."""


_emit_hooks: tuple[Any, Any] = (None, None)


def _jit_set_emit_hooks(module_hook: Any, function_hook: Any) -> None:
    """Keep what is to be called with modules and functions that have been compiled: none ever are."""
    global _emit_hooks
    _emit_hooks = module_hook, function_hook


def _jit_get_emit_hooks() -> tuple[Any, Any]:
    """Return what `_jit_set_emit_hooks` was given."""
    return _emit_hooks


def _get_graph_executor_optimize() -> bool:
    """Return the switch."""
    return _switches["optimize"]


def _set_graph_executor_optimize(value: bool) -> None:
    """Set the switch."""
    _set("optimize", value)


def _get_tracing_state() -> Any:
    """Return what records the running program: None, since none is."""
    return None


def _set_tracing_state(state: Any) -> None:
    """Do nothing: no program is recorded."""


def _is_tracing() -> bool:
    """Whether the running program is being recorded: never."""
    return False


def _part_of_torchscript(name: str) -> type:
    def __init__(self: Any, *args: Any, **named: Any) -> None:
        raise TypeError(f"torch._C.{name}: No constructor defined!\n  cygrad makes no graphs of programs")

    doc = f"A part of TorchScript, of which there are no objects: programs ask `isinstance(x, {name})`."
    return type(name, (), {"__init__": __init__, "__module__": "cygrad._C", "__doc__": doc})


_PARTS = ("Block", "Graph", "Node", "ScriptClass", "ScriptDict", "ScriptList", "ScriptMethod", "ScriptObject", "Value")
globals().update({name: _part_of_torchscript(name) for name in _PARTS})
__all__ += _PARTS
__all__ += [name for name in list(globals()) if name.startswith("_jit_")]
