"""PyTorch's back end Inductor, as programs see it where there is none: settings, and answers."""

from typing import Any

from cygrad._inductor import config
from cygrad.compiler import _no_compiler

__all__ = ["aot_compile", "aoti_compile_and_package", "aoti_load_package", "compile", "config", "list_mode_options",
           "list_options"]  # fmt: skip

_ADVICE = "save model.state_dict(), and keep the Python code that makes the model"
_MODES = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}


def list_mode_options(mode=None, dynamic=None):
    """Return the settings that a mode of `torch.compile` stands for; without a mode, those of all modes.

    >>> from cygrad import _inductor
    >>> _inductor.list_mode_options("reduce-overhead")
    {'triton.cudagraphs': True}
    """
    if mode is None:
        return _MODES
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    return _MODES[mode]


def list_options():
    """Return the names of all settings."""
    settings: Any = config
    return list(settings.to_dict())


def compile(gm, example_inputs, options=None):
    """Return a program unchanged: there is no compiler."""
    return gm


def aot_compile(*args, **kwargs):
    """Raises RuntimeError: programs are not compiled ahead of time."""
    raise _no_compiler("_inductor.aot_compile", _ADVICE)


def aoti_compile_and_package(*args, **kwargs):
    """Raises RuntimeError: programs are not compiled ahead of time."""
    raise _no_compiler("_inductor.aoti_compile_and_package", _ADVICE)


def aoti_load_package(*args, **kwargs):
    """Raises RuntimeError: compiled programs cannot be run."""
    raise _no_compiler("_inductor.aoti_load_package", _ADVICE)
