"""Traces: a function or module is not traced, but returned as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad.jit._script import ScriptModule
from cygrad.utils.warning import warn


class TracerWarning(Warning):
    """A warning about a program that a trace does not capture whole. Nothing is traced here, so none is given."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silence warnings about the library's own code: there are none."""


class TracingCheckError(Exception):
    """A trace that differs from the program it was made from. Nothing is traced here, so it is never raised."""

    def __init__(self, graph_diff_error: Any, tensor_compare_error: Any, extra_msg: Any = None) -> None:
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += f"{extra_msg}\n"
        for title, error in (
            ("Graphs differed across invocations!", graph_diff_error),
            ("Tensor-valued Constant nodes differed in value across invocations.", tensor_compare_error),
        ):
            if error is not None:
                self.message += f"ERROR: {title}\n{error}\n"
        super().__init__(self.message)


class TracedModule(ScriptModule):
    """The class of modules inside a trace in PyTorch. Here `trace` returns the module it is given."""


class TopLevelTracedModule(TracedModule):
    """The class of modules that PyTorch's `trace` returns. Here it returns the module it is given."""


def is_tracing() -> bool:
    """Whether this call is being traced: always False."""
    return False


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the function or module unchanged, with a warning: unlike a trace, each call evaluates branches anew."""
    warn("cygrad does not trace: torch.jit.trace returns its argument unchanged, with its `if`s and loops")
    return func


def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the module unchanged, with a warning. `inputs` maps names of methods to arguments.

    Raises AttributeError if the module lacks one of the methods.
    """
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for name in inputs:
        getattr(mod, name)  # raises
    return trace(mod)


def script_if_tracing(fn: Callable[..., Any]) -> Any:
    """Mark a function to be compiled inside a trace: returns it unchanged."""
    return fn
