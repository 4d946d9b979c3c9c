"""Errors in forward passes tell which module they came from."""

from __future__ import annotations

import contextlib
from typing import Any

# What wrong shapes, types and values raise. Others may be signals between a program's own parts.
TOLD = (RuntimeError, ValueError, IndexError, TypeError)


def tell_module(error: BaseException, module: Any) -> None:
    """Note the innermost module that an error left, by its path from `module`, which it leaves now."""
    failed, note = getattr(error, "_failed_module", (module, None))
    path = next((name for name, child in module.named_modules() if child is failed), None)
    if path is None or isinstance(error, RecursionError):  # called, but no part of `module`
        return
    of = f"'{path}' of {type(module).__name__}, " if path else ""
    text = f"  in module {of}{_described(failed)}"
    notes = getattr(error, "__notes__", [])
    if note in notes:
        notes[notes.index(note)] = text
    else:
        error.add_note(text)
    error._failed_module = failed, text  # type: ignore[attr-defined]


def _described(module: Any) -> str:
    settings = ""
    with contextlib.suppress(Exception):  # of a subclass whose attributes are not there yet
        settings = module.extra_repr()
    return f"{type(module).__name__}({settings})"
