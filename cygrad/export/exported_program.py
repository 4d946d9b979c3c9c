"""The classes of exported programs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from cygrad import Tensor, fx, nn
from cygrad.export._programs.fx_graph import graph_module_of, lifted
from cygrad.export._programs.program import Program
from cygrad.export.dynamic_shapes import Dim
from cygrad.export.graph_signature import ExportGraphSignature, signature_of
from cygrad.utils._sympy.value_ranges import ValueRanges, int_oo

__all__ = ["ExportedProgram", "UnflattenedModule"]


def no_export(name: str, advice: str) -> RuntimeError:
    """Return the error of a function that is not supported."""
    return RuntimeError(f"torch.export.{name}: cygrad does not do this\n  {advice}")


class ExportedProgram:
    """A program that `torch.export.export` has recorded, with its parameters and buffers.

    >>> import cygrad
    >>> program = cygrad.export.export(cygrad.nn.BatchNorm1d(2), (cygrad.ones(3, 2),))
    >>> type(program).__name__, program.module()(cygrad.ones(3, 2)).shape
    ('ExportedProgram', torch.Size([3, 2]))
    >>> [name for name, parameter in program.named_parameters()], len(list(program.parameters()))
    (['weight', 'bias'], 2)
    >>> [name for name, buffer in program.named_buffers()], len(list(program.buffers()))
    (['running_mean', 'running_var', 'num_batches_tracked'], 3)
    >>> program.run_decompositions() is program
    True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise no_export("ExportedProgram", "torch.export.export makes exported programs")

    _source: Any
    _program: Program
    _shapes: dict[str, Any]
    _ranges: list[list[int | None]]
    _values: dict[str, Tensor]  # shapes and dtypes of the tensors by name; known to the one that recorded the program
    example_inputs: Any
    dialect = "TRAINING"

    @classmethod
    def _made(
        cls,
        source: Any,
        program: Program,
        shapes: dict[str, Any],
        ranges: list[list[int | None]],
        example_inputs: Any,
        values: dict[str, Tensor] | None = None,
    ) -> ExportedProgram:
        made = object.__new__(cls)
        made._source, made._program, made._shapes, made._ranges = source, program, shapes, ranges
        made.example_inputs, made._values = example_inputs, values or {}
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __repr__(self) -> str:
        code, signature = self.graph_module.print_readable(print_output=False), str(self.graph_signature)
        code, signature = (text.replace("\n", "\n    ") for text in (code, signature))
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"
        )

    def module(self, check_guards: bool = True) -> Any:
        """Return a module that runs the program; it shares the parameters and buffers."""
        from cygrad.export._exported_module import module_of  # which imports this module

        return module_of(self._source, self._program, self._shapes)

    @property
    def graph_module(self) -> fx.GraphModule:
        """The program as a module of `torch.fx`.

        Its arguments are the parameters, buffers and constants, and then the values among the arguments, as
        `graph_signature` lists them. Calls of functions that are ops of `torch.ops.aten` are written as calls of these.
        """
        return graph_module_of(self._program, self._source, self._values)

    @property
    def graph(self) -> fx.Graph:
        """The program as a graph of `torch.fx`."""
        return self.graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the inputs and outputs are: arguments, parameters, buffers, constants, results."""
        return signature_of(self._program, self._source)

    @property
    def range_constraints(self) -> dict[str, ValueRanges]:
        """The lengths that vary, named "s0", "s1", ... in the order of `dynamic_shapes`, and what they may be.

        >>> import cygrad
        >>> batch = cygrad.export.Dim("batch", max=16)
        >>> model = cygrad.nn.Linear(3, 2)
        >>> cygrad.export.export(model, (cygrad.ones(4, 3),), dynamic_shapes=({0: batch},)).range_constraints
        {'s0': VR[0, 16]}
        """
        return {
            f"s{i}": ValueRanges(least, int_oo if most is None else most)
            for i, (least, most) in enumerate(self._ranges)
        }

    @property
    def state_dict(self) -> dict[str, Any]:
        """The parameters and persistent buffers."""
        state = self._source.state_dict(keep_vars=True)
        parameters = {name: state[name] for name, _ in self._source.named_parameters(remove_duplicate=False)}
        return {**parameters, **state}

    @property
    def constants(self) -> dict[str, Tensor]:
        """The tensors that are neither arguments nor parameters or buffers."""
        return {path: t for kind, _, path, t in lifted(self._program, self._source) if kind == "constant"}

    def parameters(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters."""
        return self._source.parameters()

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Iterate over the parameters with their names."""
        return self._source.named_parameters()

    def buffers(self) -> Iterator[Tensor]:
        """Iterate over the buffers."""
        return self._source.buffers()

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the buffers with their names."""
        return self._source.named_buffers()

    def run_decompositions(self, decomp_table: Any = None) -> ExportedProgram:
        """Return the program as it is: its calls are those of public functions."""
        return self


class UnflattenedModule:
    """The class of modules made from exported programs. Making one raises RuntimeError.

    >>> import cygrad
    >>> cygrad.export.UnflattenedModule()
    Traceback (most recent call last):
        ...
    RuntimeError: torch.export.UnflattenedModule: cygrad does not do this...
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise no_export("UnflattenedModule", "ExportedProgram.module() has the names of the original")


def ranges_of(shapes: Any) -> list[list[int | None]]:
    """Return [least, most or None] for each length that `dynamic_shapes` describes, in their order."""
    found: dict[Any, list[int | None]] = {}
    todo = [shapes]
    while todo:
        value = todo.pop(0)
        if isinstance(value, dict):
            todo = [*value.values(), *todo]
        elif isinstance(value, (list, tuple)):
            todo = [*value, *todo]
        elif isinstance(value, str):
            found.setdefault(value, [0, None])
        elif isinstance(value, Dim):
            root = getattr(value, "root", value)
            most = None if root.max == math.inf else int(root.max)
            found.setdefault(root.__name__, [root.min, most])
        elif getattr(value, "type", None) in ("AUTO", "DYNAMIC"):
            found[len(found), "hint"] = [value.min or 2, value.max]
    return list(found.values())


def shapes_of(program: Program) -> dict[str, Any]:
    """Return {name of an input: (dtype, lengths with None for those that vary)}."""
    found = {}
    for name in program.inputs():
        t = program.tensors[name]
        varying = program.varying.get(name, set())
        found[name] = (t.dtype, [None if d in varying else n for d, n in enumerate(t.shape)])
    return found
