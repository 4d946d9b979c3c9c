"""The names of `torch.export`, for libraries that describe shapes or catch a failed export. No program is exported."""

from __future__ import annotations

import dataclasses
from typing import Any

from cygrad.export import dynamic_shapes, exported_program
from cygrad.export.dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, dims
from cygrad.export.exported_program import ExportedProgram, UnflattenedModule, no_export

__all__ = [
    "AdditionalInputs", "Dim", "ExportedProgram", "ShapesCollection", "UnflattenedModule", "default_decompositions",
    "dims", "draft_export", "dynamic_shapes", "export", "exported_program", "load", "register_dataclass", "save",
    "unflatten",
]  # fmt: skip


def export(mod: Any, args: Any, kwargs: Any = None, **options: Any) -> Any:
    """Raises RuntimeError: programs are not exported."""
    raise no_export("export")


def draft_export(mod: Any, args: Any, kwargs: Any = None, **options: Any) -> Any:
    """Raises RuntimeError: programs are not exported."""
    raise no_export("draft_export")


def save(ep: Any, f: Any, **options: Any) -> None:
    """Raises RuntimeError: there are no exported programs to save."""
    raise no_export("save")


def load(f: Any, **options: Any) -> Any:
    """Raises RuntimeError: exported programs cannot be run."""
    raise no_export("load")


def unflatten(module: Any, flat_args_adapter: Any = None) -> Any:
    """Raises RuntimeError: there are no exported programs."""
    raise no_export("unflatten")


def default_decompositions() -> Any:
    """Return how ops of exported programs are replaced by others: an empty dictionary."""
    return {}


def register_dataclass(cls: Any, *, serialized_type_name: Any = None) -> Any:
    """Let objects of a dataclass be arguments of exported programs: checks the class, and does nothing else.

    Raises AssertionError for other classes.
    """
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
