"""Modules that run exported programs, and their files."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor, nn
from cygrad.export._onnx_files import dims_of_shapes
from cygrad.export._programs.files import read_package
from cygrad.export._programs.fx_graph import described, plain_tensors
from cygrad.export._programs.program import Program, mapped
from cygrad.export._programs.recording import RecordingError, record
from cygrad.export._programs.sizes import generalized, undone
from cygrad.export.dynamic_shapes import resolved
from cygrad.export.exported_program import ExportedProgram, ranges_of, shapes_of
from cygrad.jit._traced import LoadedModule, TopLevelTracedModule, TracedModule, mirrored, module_in, write_module

__all__ = ["ExportedModule", "exported", "loaded", "module_of", "save"]


class ExportedModule(TopLevelTracedModule):
    """What `ExportedProgram.module` returns: it runs the program, for the lengths that were promised."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. Raises AssertionError for arguments of other shapes than it was exported for."""
        for name, t in self._program().bound(args, kwargs).items():
            self._check(name, t)
        return super().forward(*args, **kwargs)

    def _check(self, name: str, t: Tensor) -> None:
        dtype, shape = self.__dict__["_shapes"][name]
        if t.dim() != len(shape):
            raise AssertionError(f"Guard failed: {name}.dim() == {len(shape)}")
        for dim, (length, expected) in enumerate(zip(t.shape, shape)):
            if expected is not None and length != expected:
                raise AssertionError(f"Guard failed: {name}.size()[{dim}] == {expected}")
        if t.dtype is not dtype:
            raise AssertionError(f"Guard failed: {name}.dtype == {dtype}")


def module_of(source: nn.Module, program: Program, shapes: dict[str, Any]) -> ExportedModule:
    """Return a module that runs a program with the parameters and buffers of `source`."""
    made = mirrored(source, ExportedModule, TracedModule)
    made.__dict__.update(_programs={"forward": program}, _shapes=shapes)
    return made


def exported(mod: Any, args: Any, kwargs: Any, dynamic_shapes: Any) -> ExportedProgram:
    """Return the program of a module; see `torch.export.export`."""
    from cygrad._dynamo.exc import UserError  # the exception of PyTorch

    if not isinstance(mod, nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    attributes = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
    options: dict[str, Any] = {
        "attributes": attributes,
        "plain": plain_tensors(mod),
        "name": "forward",
        "update_buffers": True,
    }
    kwargs = dict(kwargs or {})
    dynamic_shapes = resolved(dynamic_shapes, mod, args, kwargs)
    copies, copied = (mapped(_copied, each) for each in (args, kwargs))
    try:
        with undone(mod, attributes):
            base = record(mod, copies, copied, quiet=True, **options)
        groups = list(dims_of_shapes(base, dynamic_shapes)[0]) if dynamic_shapes is not None else []
        program = generalized(mod, copies, copied, base, groups, True, **options)
    except RecordingError as error:
        raise UserError(f"the module cannot be exported: {error}") from error
    shapes = shapes_of(program)
    values = {name: described(t) for name, t in program.tensors.items()}
    program.forget()
    return ExportedProgram._made(mod, program, shapes, ranges_of(dynamic_shapes), (args, kwargs), values)


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def save(ep: Any, f: Any, extra_files: Any = None) -> None:
    """Save an exported program; see `torch.export.save`."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    shapes = {name: [str(dtype), lengths] for name, (dtype, lengths) in ep._shapes.items()}
    more = {"shapes": shapes, "ranges": ep._ranges}
    write_module(ep._source, {"forward": ep._program}, f, extra_files, "exported", **more)


def loaded(f: Any, extra_files: Any = None) -> ExportedProgram:
    """Return the exported program in a file; see `torch.export.load`."""
    content = read_package(f, ("exported",))
    module: LoadedModule = module_in(content, extra_files)
    program = module.__dict__.pop("_programs")["forward"]
    try:
        shapes = {name: _shape(content["shapes"][name]) for name in program.inputs()}
        ranges = [_range(entry) for entry in content.get("ranges", ())]
    except (KeyError, TypeError, ValueError) as error:
        raise RuntimeError(f"the file holds no program that can be run: {error}") from None
    return ExportedProgram._made(module, program, shapes, ranges, None)


def _range(entry: Any) -> Any:
    least, most = entry
    if not all(n is None or type(n) is int for n in entry):
        raise ValueError(f"the range {entry!r}")
    return [least, most]


def _shape(entry: Any) -> Any:
    dtype, lengths = entry
    found = getattr(cygrad, str(dtype).removeprefix("torch."), None)
    if not isinstance(found, cygrad.dtype) or not all(n is None or type(n) is int for n in lengths):
        raise ValueError(f"the shape {entry!r}")
    return found, lengths
