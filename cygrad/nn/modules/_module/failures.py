"""Annotates errors raised in a forward pass with the module they came from."""

from __future__ import annotations

import contextlib
from typing import Any

import cygrad

# Raised for wrong shapes, types and values. Other exceptions may be control flow of the program.
TOLD = (RuntimeError, ValueError, IndexError, TypeError, AssertionError)


def tell_module(error: BaseException, module: Any) -> None:
    """Add a note to `error` naming the innermost module that raised it, by its path from `module`.

    Called once per enclosing module as the error propagates, so that the final path is relative to the outermost one.
    """
    failed, note = getattr(error, "_failed_module", (module, None))
    if note is None and type(error) is TypeError:
        _name_the_layer(error, type(module))
    path = next((name for name, child in module.named_modules() if child is failed), None)
    if path is None or isinstance(error, RecursionError):  # called, but not a submodule of `module`
        return
    of = f"'{path}' of {type(module).__name__}, " if path else ""
    text = f"  in module {of}{_described(failed)}"
    notes = getattr(error, "__notes__", [])
    if note in notes:
        notes[notes.index(note)] = text
    else:
        error.add_note(text)
    error._failed_module = failed, text  # type: ignore[attr-defined]


def _name_the_layer(error: TypeError, kind: type) -> None:
    """Name the public layer in an argument error if `forward` belongs to a base class that PyTorch does not have."""
    base = next((each for each in kind.__mro__ if "forward" in vars(each)), kind)
    layer = next((each for each in kind.__mro__ if hasattr(cygrad.nn, each.__name__)), base)
    start = f"{base.__name__}.forward()"
    if (
        base is not layer
        and base.__name__ not in ("_BatchNorm", "_InstanceNorm")
        and base.__module__.startswith("cygrad.nn.modules.")
        and str(error).startswith(start)
    ):
        error.args = (f"{layer.__name__}.forward()" + str(error).removeprefix(start),)


def _described(module: Any) -> str:
    settings = ""
    with contextlib.suppress(Exception):  # a subclass whose attributes are not set yet
        settings = module.extra_repr()
    return f"{type(module).__name__}({settings})"
