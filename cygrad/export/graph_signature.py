"""What the inputs and outputs of an exported program are: arguments, parameters, buffers, constants, results."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cygrad import nn
from cygrad.export._programs.fx_graph import graph_module_of, lifted, user_inputs
from cygrad.export._programs.program import Program, Ref
from cygrad.fx import Node

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind",
    "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument", "TensorArgument",
]  # fmt: skip


@dataclass
class TensorArgument:
    """A tensor, by its name in the graph.

    >>> import cygrad
    >>> cygrad.export.graph_signature.TensorArgument(name="x")
    TensorArgument(name='x')
    """

    name: str


@dataclass
class ConstantArgument:
    """An argument or a result that is no tensor.

    >>> import cygrad
    >>> cygrad.export.graph_signature.ConstantArgument(name="n", value=3)
    ConstantArgument(name='n', value=3)
    """

    name: str
    value: Any


@dataclass
class SymIntArgument:
    """An integer that may vary, by its name in the graph.

    >>> import cygrad
    >>> cygrad.export.graph_signature.SymIntArgument(name="batch")
    SymIntArgument(name='batch')
    """

    name: str


@dataclass
class SymFloatArgument:
    """A number that may vary, by its name in the graph.

    >>> import cygrad
    >>> cygrad.export.graph_signature.SymFloatArgument(name="scale")
    SymFloatArgument(name='scale')
    """

    name: str


@dataclass
class SymBoolArgument:
    """A truth value that may vary, by its name in the graph.

    >>> import cygrad
    >>> cygrad.export.graph_signature.SymBoolArgument(name="is_causal")
    SymBoolArgument(name='is_causal')
    """

    name: str


@dataclass
class CustomObjArgument:
    """An object of a class of TorchScript; no program here has one.

    >>> import cygrad
    >>> cygrad.export.graph_signature.CustomObjArgument(name="queue", class_fqn="mylib.Queue")
    CustomObjArgument(name='queue', class_fqn='mylib.Queue', fake_val=None)
    """

    name: str
    class_fqn: str
    fake_val: Any = None


class InputKind(enum.Enum):
    """What an input is.

    >>> import cygrad
    >>> [kind.name for kind in cygrad.export.graph_signature.InputKind]
    ['USER_INPUT', 'PARAMETER', 'BUFFER', 'CONSTANT_TENSOR', 'CUSTOM_OBJ', 'TOKEN']
    """

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What an output is.

    >>> import cygrad
    >>> [kind.name for kind in cygrad.export.graph_signature.OutputKind][:3]
    ['USER_OUTPUT', 'LOSS_OUTPUT', 'BUFFER_MUTATION']
    """

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclass
class InputSpec:
    """An input. Parameters, buffers and constants have a `target`, their name in the module.

    >>> import cygrad
    >>> program = cygrad.export.export(cygrad.nn.Linear(2, 1), (cygrad.ones(3, 2),))
    >>> [(spec.kind.name, spec.target) for spec in program.graph_signature.input_specs]
    [('PARAMETER', 'weight'), ('PARAMETER', 'bias'), ('USER_INPUT', None)]
    """

    kind: InputKind
    arg: Any
    target: str | None = None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass
class OutputSpec:
    """An output.

    >>> import cygrad
    >>> program = cygrad.export.export(cygrad.nn.Linear(2, 1), (cygrad.ones(3, 2),))
    >>> [spec.kind.name for spec in program.graph_signature.output_specs]
    ['USER_OUTPUT']
    """

    kind: OutputKind
    arg: Any
    target: str | None = None

    def __str__(self) -> str:
        return f"{self.arg.name}: {self.kind.name}" + ("" if self.target is None else f" target='{self.target}'")


@dataclass
class ExportBackwardSignature:
    """The gradients among the outputs of a program for training.

    >>> import cygrad
    >>> cygrad.export.ExportBackwardSignature({"grad_w": "weight"}, {}, "loss").gradients_to_parameters
    {'grad_w': 'weight'}
    """

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


def _shown(arg: Any) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported program, in their order.

    >>> import cygrad
    >>> signature = cygrad.export.export(cygrad.nn.Linear(2, 1), (cygrad.ones(3, 2),)).graph_signature
    >>> signature.parameters, signature.user_inputs
    (('weight', 'bias'), ('input',))
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _of(self, kind: InputKind) -> Iterator[InputSpec]:
        return (spec for spec in self.input_specs if spec.kind is kind)

    def _targets(self, kind: InputKind) -> tuple[Any, ...]:
        return tuple(spec.target for spec in self._of(kind))

    def _by_input(self, kind: InputKind) -> Mapping[str, Any]:
        return MappingProxyType({spec.arg.name: spec.target for spec in self._of(kind)})

    def _changed(self, kind: OutputKind) -> Mapping[str, Any]:
        return MappingProxyType({spec.arg.name: spec.target for spec in self.output_specs if spec.kind is kind})

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in the module."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers in the module."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that are not in the module's state."""
        return tuple(str(spec.target) for spec in self._of(InputKind.BUFFER) if spec.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the tensors that are neither arguments nor parameters or buffers."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """The names of objects of classes of TorchScript: none."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The names of the tensors among the arguments, and the values of the other arguments."""
        return tuple(_shown(spec.arg) for spec in self._of(InputKind.USER_INPUT))

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The names of the tensors among the results, and the other results."""
        return tuple(_shown(spec.arg) for spec in self.output_specs if spec.kind is OutputKind.USER_OUTPUT)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """{name of an input: name of the parameter}."""
        return self._by_input(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """{name of an input: name of the buffer}."""
        return self._by_input(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """{name of an input: name of the constant}."""
        return self._by_input(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """{name of an input: name of the object}: none."""
        return self._by_input(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """{name of an output: name of the buffer that gets it}: none, since programs change buffers in place."""
        return self._changed(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """{name of an output: name of the parameter that gets it}: none, as for buffers."""
        return self._changed(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """{name of an output: name of the argument that gets it}: none, as for buffers."""
        return self._changed(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """The gradients among the outputs: None."""
        return None

    @property
    def assertion_dep_token(self) -> None:
        """What orders assertions: None."""
        return None

    def __str__(self) -> str:
        parts = ["\n# inputs", *map(str, self.input_specs), "\n# outputs", *map(str, self.output_specs), ""]
        return "\n".join(parts)


_KINDS = {
    "parameter": InputKind.PARAMETER,
    "buffer": InputKind.BUFFER,
    "constant": InputKind.CONSTANT_TENSOR,
}


def signature_of(program: Program, module: nn.Module) -> ExportGraphSignature:
    """Return the signature of a program that reads the parameters and buffers of `module`."""
    inputs = []
    state = module.state_dict()
    for kind, name, path, _ in lifted(program, module):
        persistent = path in state if kind == "buffer" else None
        inputs.append(InputSpec(_KINDS[kind], TensorArgument(name), path, persistent))
    for name, value in user_inputs(program):
        arg = TensorArgument(name) if type(value) is Ref else ConstantArgument(name, value)
        inputs.append(InputSpec(InputKind.USER_INPUT, arg))
    found = graph_module_of(program, module).graph.output_node().args[0]
    outputs = [TensorArgument(v.name) if isinstance(v, Node) else ConstantArgument("", v) for v in found]
    return ExportGraphSignature(inputs, [OutputSpec(OutputKind.USER_OUTPUT, arg) for arg in outputs])
