"""Programs recorded from modules, to be saved and run without their code, and ONNX files; see docs/export.md."""

from __future__ import annotations

import dataclasses
from typing import Any

from cygrad.export import dynamic_shapes, exported_program, graph_signature
from cygrad.export.dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, dims
from cygrad.export.exported_program import ExportedProgram, UnflattenedModule, no_export
from cygrad.export.graph_signature import ExportBackwardSignature, ExportGraphSignature
from cygrad.onnx import export as onnx

__all__ = [
    "AdditionalInputs", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
    "ShapesCollection", "UnflattenedModule", "default_decompositions", "dims", "draft_export", "dynamic_shapes",
    "export", "exported_program", "graph_signature", "load", "onnx", "register_dataclass", "save", "unflatten",
]  # fmt: skip


def export(
    mod: Any,
    args: Any,
    kwargs: Any = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: Any = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Return the program that a module runs for example arguments, as an `ExportedProgram`.

    `dynamic_shapes` tells which dimensions of the arguments vary, by a `Dim` or a name for each; all other lengths are
    fixed, and so are arguments that are no tensors. The remaining arguments are taken, and change nothing.

    Raises ValueError for anything but a module, and `torch._dynamo.exc.UserError` for a module that cannot be recorded
    or that works for one length only.

    >>> import cygrad
    >>> batch = cygrad.export.Dim("batch")
    >>> model = cygrad.nn.Linear(3, 2)
    >>> program = cygrad.export.export(model, (cygrad.ones(4, 3),), dynamic_shapes=({0: batch},))
    >>> program.module()(cygrad.ones(5, 3)).shape
    torch.Size([5, 2])
    """
    from cygrad.export._exported_module import exported  # which imports this package

    return exported(mod, args, kwargs, dynamic_shapes)


def draft_export(mod: Any, args: Any, kwargs: Any = None, **options: Any) -> ExportedProgram:
    """Return the same as `export`.

    >>> import cygrad
    >>> program = cygrad.export.draft_export(cygrad.nn.ReLU(), (cygrad.ones(2),))
    >>> program.module()(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return export(mod, args, kwargs, **options)


def save(ep: Any, f: Any, *, extra_files: Any = None, opset_version: Any = None, pickle_protocol: int = 2) -> None:
    """Save an exported program with its parameters and buffers to a path or a binary file.

    `extra_files` are texts or bytes by name to keep along. The file is one of `torch.save`, in cygrad's own terms;
    PyTorch's `torch.export.load` does not read it. Raises TypeError for anything but an exported program.

    >>> import cygrad
    >>> import io
    >>> program = cygrad.export.export(cygrad.nn.Linear(2, 1), (cygrad.ones(3, 2),))
    >>> file = io.BytesIO()
    >>> cygrad.export.save(program, file)
    >>> size = file.seek(0)
    >>> cygrad.export.load(file).module()(cygrad.ones(3, 2)).shape
    torch.Size([3, 1])
    """
    from cygrad.export._exported_module import save  # which imports this package

    save(ep, f, extra_files)


def load(f: Any, *, extra_files: Any = None, expected_opset_version: Any = None) -> ExportedProgram:
    """Load an exported program. Loading runs no code, and a program calls functions on tensors alone.

    The values of `extra_files` are replaced by those in the file. Raises RuntimeError for other files, including those
    of PyTorch's `torch.export.save`.

    >>> import cygrad
    >>> import io
    >>> file = io.BytesIO()
    >>> cygrad.export.save(cygrad.export.export(cygrad.nn.ReLU(), (cygrad.ones(2),)), file)
    >>> size = file.seek(0)
    >>> cygrad.export.load(file).module()(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    from cygrad.export._exported_module import loaded  # which imports this package

    return loaded(f, extra_files)


def unflatten(module: Any, flat_args_adapter: Any = None) -> Any:
    """Raises RuntimeError: the program is one for the whole module.

    >>> import cygrad
    >>> program = cygrad.export.export(cygrad.nn.ReLU(), (cygrad.ones(2),))
    >>> cygrad.export.unflatten(program)
    Traceback (most recent call last):
        ...
    RuntimeError: torch.export.unflatten: cygrad does not do this...
    """
    raise no_export("unflatten", "ExportedProgram.module() has the names of the original")


def default_decompositions() -> Any:
    """Return how ops of exported programs are replaced by others: an empty dictionary.

    >>> import cygrad
    >>> cygrad.export.default_decompositions()
    {}
    """
    return {}


def register_dataclass(cls: Any, *, serialized_type_name: Any = None) -> Any:
    """Let objects of a dataclass be arguments of exported programs: checks the class, and does nothing else.

    Raises AssertionError for other classes.

    >>> import cygrad
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Batch:
    ...     x: cygrad.Tensor
    ...     y: cygrad.Tensor
    >>> cygrad.export.register_dataclass(Batch)
    """
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
