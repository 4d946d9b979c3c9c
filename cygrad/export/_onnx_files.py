"""Writes recorded programs as ONNX models."""

from collections.abc import Mapping, Sequence
from typing import Any

import cygrad
from cygrad import Tensor, nn
from cygrad.export._onnx_forms import base_name, form_of
from cygrad.export._onnx_forms.graph import ONNX_DTYPES, Graph, Value
from cygrad.export._onnx_forms.indexing import written
from cygrad.export._onnx_forms.older import OLDEST, in_version
from cygrad.export._onnx_forms.table import Unsupported
from cygrad.export._programs.program import Call, Program, Ref, at_path, leaves, mapped
from cygrad.export._programs.recording import RecordingError, memory_of, record
from cygrad.export._programs.sizes import Group, generalized
from cygrad.onnx._onnx_program import ONNXProgram
from cygrad.onnx.errors import OnnxExporterError, UnsupportedOperatorError
from cygrad.utils.warning import warn

__all__ = ["NATIVE_OPSETS", "model_of"]

NATIVE_OPSETS = range(OLDEST, 24)  # newer ones are converted from these
_PRODUCER = "cygrad"


class Writer:
    """Writes one program as a graph."""

    def __init__(self, program: Program, opset: int, attributes: Mapping[str, Tensor]) -> None:
        self.program, self.attributes = program, attributes
        self.graph = Graph(opset)
        self.weights: dict[str, Tensor] = {}  # parameters and buffers that the graph reads
        self.producers: dict[str, Call] = {}
        self.opset = opset

    def write(self) -> None:
        """Write all calls."""
        program = self.program
        for name in program.inputs():
            self._enter(name, name)
        for position, call in enumerate(program.calls):
            try:
                self._write(call, position)
            except Unsupported as reason:
                raise _refused(call, self.opset, str(reason)) from None
            for _, name in call.results:
                self.producers[name] = call

    def _enter(self, name: str, as_name: str) -> Value:
        t = self.program.tensors[name]
        value = Value(as_name, t.dtype, t.shape, self.program.varying.get(name, ()))
        self.graph.code(t.dtype)
        self.graph.values[name] = value
        return value

    def value(self, name: str) -> Value:
        """Return the value of a name in the program, entering constants and weights on first use."""
        found = self.graph.values.get(name)
        if found is not None:
            return found
        constant = self.program.constants.get(name)
        if constant is not None:
            self.graph.values[name] = found = self.graph.constant(_array(constant), constant.dtype)
            return found
        attribute = name.removeprefix("self.")
        t = self.attributes[attribute]
        self.weights[attribute] = t
        return self._enter(name, attribute)

    def _write(self, call: Call, position: int) -> None:
        write = form_of(call.target)
        if write is None:
            raise Unsupported("no ONNX form is known")
        for name in call.refs():
            self.value(name)

        def operand(value: Any) -> Any:
            return self.value(value.name) if type(value) is Ref else value

        args = mapped(operand, call.args)
        kwargs = {key: mapped(operand, value) for key, value in call.kwargs.items() if key not in ("out", "inplace")}
        self.graph.target = base_name(call.target)
        self.graph.results = [self.program.tensors[name] for _, name in call.results]
        if not self.graph.results:
            self.graph.results = [self.program.tensors[name] for name in call.changed]
        try:
            found = write(self.graph, *args, **kwargs)
        except TypeError as error:
            raise Unsupported(f"these arguments ({error})") from error
        for path, name in call.results:
            value = found if found is None or isinstance(found, Value) and not path else at_path(found, path)
            self._bind(name, value)
        for name in call.changed:
            if name.startswith("self."):
                raise Unsupported(f"it changes {name[5:]!r}")
            value = self.graph.values[call.results[0][1]] if call.results else found
            self._bind(name, value)
            self._change_others(name, [n for _, n in call.results], position)

    def _bind(self, name: str, value: Any) -> None:
        t = self.program.tensors[name]
        if not isinstance(value, Value):
            raise Unsupported("one of its results")
        value = self.graph.cast(value, t.dtype)
        entered = Value(value.name, t.dtype, t.shape, self.program.varying.get(name, ()))
        self.graph.values[name] = entered

    # -- changes in place ------------------------------------------------------------------------------

    def _change_others(self, name: str, results: Sequence[str], position: int) -> None:
        """Give the tensors that share memory with a changed one their new values, as far as they are used later."""
        later = {n for call in self.program.calls[position + 1 :] for n in (*call.refs(), *call.changed)}
        later |= {value.name for value in leaves(self.program.output) if type(value) is Ref}
        tensors = self.program.tensors
        memory = memory_of(tensors[name])
        others = [
            n
            for n in self.graph.values
            if n in later and n != name and n not in results and memory and memory_of(tensors[n]) == memory
        ]
        if not others:
            return
        same = [n for n in others if _place(tensors[n]) == _place(tensors[name])]
        for other in same:
            self._bind(other, self.graph.values[name])
        others = [n for n in others if n not in same]
        if not others:
            return
        root, chain = self._root(name)
        if chain:
            base = self.graph.values[root]

            def part(numbers: Value) -> Value:
                return self._viewed(numbers, root, chain)

            self._bind(root, written(self.graph, base, part, self.graph.values[name]))
        for other in others:
            other_root, steps = self._root(other)
            if other_root != root:
                raise Unsupported("a change in place of memory that is seen in several ways")
            self._bind(other, self._viewed(self.graph.values[root], root, steps))

    def _root(self, name: str) -> tuple[str, list[tuple[Call, str]]]:
        """Return the tensor that a view was made from, and the calls (with the names of their results) that made it."""
        chain: list[tuple[Call, str]] = []
        memory = memory_of(self.program.tensors[name])
        while name in self.producers:
            call = self.producers[name]
            source = call.args[0] if call.args else None
            if type(source) is not Ref or memory_of(self.program.tensors[source.name]) != memory:
                break
            if not call.changed:
                chain.append((call, name))
            name = source.name
        return name, chain[::-1]

    def _viewed(self, value: Value, root: str, chain: Sequence[tuple[Call, str]]) -> Value:
        """Apply the views of a chain to another value of the root's shape."""
        shape = self.graph.values[root].shape
        for call, name in chain:
            value = Value(value.name, value.dtype)
            value._shape = shape
            write = form_of(call.target)
            assert write is not None
            rest = mapped(lambda each: self.value(each.name) if type(each) is Ref else each, call.args[1:])
            kwargs = mapped(lambda each: self.value(each.name) if type(each) is Ref else each, call.kwargs)
            self.graph.target = base_name(call.target)
            self.graph.results = [self.program.tensors[n] for _, n in call.results]
            found = write(self.graph, value, *rest, **kwargs)
            path = next(path for path, n in call.results if n == name)
            value = at_path(found, path)
            shape = self.graph.values[name].shape
        return value


def _place(t: Tensor) -> Any:
    return t.data_ptr(), tuple(t.shape), t.stride()


def _array(t: Tensor) -> Any:
    t = t.detach().cpu()
    return (t.to(cygrad.float32) if t.dtype is cygrad.bfloat16 else t.resolve_conj()).numpy()


def _refused(call: Call, opset: int, reason: str) -> UnsupportedOperatorError:
    name = call.target.rpartition(".")[2]
    return UnsupportedOperatorError(f"aten::{name}", opset, None, f"torch.{call.target}, at {call.site}: {reason}")


# -- models ------------------------------------------------------------------------------------------------


def model_of(
    program: Program,
    attributes: Mapping[str, Tensor],
    *,
    opset: int,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dim_names: Mapping[str, Mapping[int, str]] | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    name: str = "main_graph",
) -> Any:
    """Return the program as an ONNX model (`onnx.ModelProto`).

    `dim_names` names the dimensions that vary: {name of an input in the program: {dimension: name}}.
    """
    import onnx  # an extra

    native = min(max(opset, NATIVE_OPSETS[0]), NATIVE_OPSETS[-1])
    writer = Writer(program, native, attributes)
    writer.write()
    graph, helper = writer.graph, onnx.helper
    outputs = _outputs(writer)
    renamed = _renamed(program, input_names, output_names, len(outputs), set(writer.weights))
    names = dict(zip(program.inputs(), renamed[0]))
    inputs = []
    for each in program.inputs():
        t = program.tensors[each]
        given = (dim_names or {}).get(each, {})
        varying = program.varying.get(each, set())
        shape = [
            given.get(d, f"{names[each]}_dim_{d}") if d in varying or d in given else n for d, n in enumerate(t.shape)
        ]
        inputs.append(helper.make_tensor_value_info(names[each], graph.code(t.dtype), shape))
    weights = [
        helper.make_tensor_value_info(each, graph.code(t.dtype), list(t.shape)) for each, t in writer.weights.items()
    ]
    try:
        nodes, infos = in_version(graph, native), []
    except Unsupported as reason:
        raise OnnxExporterError(f"the model cannot be exported: {reason}") from None
    produced = {each for node in nodes for each in node.output}
    for value, out in zip(outputs, renamed[1]):
        if value.name in produced and value.name not in names:
            produced.discard(value.name)
            names[value.name] = out
        else:  # an argument, a constant or another result
            nodes.append(helper.make_node("Identity", [value.name], [out], name=f"/output/{out}"))
        shape = [f"{out}_dim_{d}" if n is None else n for d, n in enumerate(value.shape)]
        infos.append(helper.make_tensor_value_info(out, graph.code(value.dtype), shape))
    for node in nodes:
        for values in (node.input, node.output):
            for i, each in enumerate(values):
                values[i] = names.get(each, each)
    read = {each for node in nodes for each in node.input}
    initializers = [
        onnx.numpy_helper.from_array(array, each) for each, array in graph.constants.items() if each in read
    ]
    if export_params:
        initializers += [_initializer(onnx, each, t) for each, t in writer.weights.items()]
    if not export_params or keep_initializers_as_inputs:
        inputs += weights
    made = helper.make_graph(nodes, name, inputs, infos, initializer=initializers)
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", native)],
        producer_name=_PRODUCER,
        producer_version=str(cygrad.__version__),
        ir_version=min(onnx.IR_VERSION, 10),
    )
    return model if opset == native else _converted(onnx, model, opset)


def _converted(onnx: Any, model: Any, opset: int) -> Any:
    try:
        return onnx.version_converter.convert_version(model, opset)
    except RuntimeError as error:
        raise OnnxExporterError(
            f"the model cannot be exported: not in opset version {opset}: {error}\n"
            f"  versions {NATIVE_OPSETS[0]} to {NATIVE_OPSETS[-1]} are written directly"
        ) from None


def _initializer(onnx: Any, name: str, t: Tensor) -> Any:
    if t.dtype is not cygrad.bfloat16:
        return onnx.numpy_helper.from_array(_array(t), name)
    raw = t.detach().cpu().contiguous().view(cygrad.int16).numpy().tobytes()
    return onnx.TensorProto(name=name, dims=list(t.shape), data_type=ONNX_DTYPES[t.dtype], raw_data=raw)


def _outputs(writer: Writer) -> list[Value]:
    found = []
    for each in leaves(writer.program.output):
        if type(each) is Ref:
            found.append(writer.value(each.name))
        elif each is not None:
            raise UnsupportedOperatorError(
                "prim::Constant", writer.opset, None, f"a result of type {type(each).__name__}, which is no tensor"
            )
    return found


def _renamed(program: Program, inputs: Any, outputs: Any, count: int, taken: set[str]) -> tuple[list[str], list[str]]:
    own = program.inputs()
    wished = list(inputs or [])
    names = [*wished[: len(own)], *own[len(wished) :]]
    out = list(outputs or [])[:count]
    used = {*names, *taken}
    for i in range(len(out), count):
        base = "output" if count == 1 else f"output_{i}"
        out.append(base if base not in used else f"{base}.out")
    if len({*names, *out}) != len(names) + len(out):
        raise ValueError(f"names of inputs and outputs occur twice: {[*names, *out]}")
    return names, out


def attributes_of(model: Any) -> dict[str, Tensor]:
    """Return the parameters and buffers of a module by name; none for a function."""
    if not isinstance(model, nn.Module):
        return {}
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


# -- the exporter ------------------------------------------------------------------------------------------


def exported(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    *,
    mode: Any,
    opset: int,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    dynamic_axes: Any,
    dynamic_shapes: Any,
    export_params: bool,
    keep_initializers_as_inputs: bool,
) -> Any:
    """Return an `ONNXProgram`; see `torch.onnx.export`."""
    import onnx  # an extra

    args, named = _arguments(args, kwargs)
    attributes = attributes_of(model)
    options: dict[str, Any] = {"attributes": attributes, "name": "forward"}
    try:
        with mode, cygrad.no_grad():
            copies, copied = (mapped(_copied, each) for each in (args, named))
            base = record(model, copies, copied, **options)
            groups, dim_names = named_dims(base, input_names, output_names, dynamic_axes, dynamic_shapes)
            program = generalized(model, copies, copied, base, groups, True, **options)
            made = model_of(
                program, attributes, opset=opset, input_names=input_names, output_names=output_names,
                dim_names=dim_names, export_params=export_params,
                keep_initializers_as_inputs=keep_initializers_as_inputs, name="main_graph")  # fmt: skip
    except RecordingError as error:
        raise OnnxExporterError(f"the model cannot be exported: {error}") from error
    if sum(len(each.raw_data) for each in made.graph.initializer) < 2**31 - 2**20:
        onnx.checker.check_model(made, full_check=True)
    found = ONNXProgram(
        made,
        lambda args, kwargs: [
            each for each in leaves(program.run(args, kwargs, attributes.__getitem__)) if isinstance(each, Tensor)
        ],
        lambda args, kwargs: list(program.bound(args, kwargs).values()),
    )
    found._example = args, named
    return found


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _arguments(args: Any, kwargs: Mapping[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(args, list):
        args = tuple(args)
    if not isinstance(args, tuple):
        args = (args,)
    if kwargs is None and args and isinstance(args[-1], dict) and all(isinstance(key, str) for key in args[-1]):
        return args[:-1], dict(args[-1])
    return args, dict(kwargs or {})


def named_dims(
    program: Program,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    dynamic_axes: Any,
    dynamic_shapes: Any,
) -> tuple[list[Group], dict[str, dict[int, str]]]:
    """Return the groups of dimensions that vary together, and the names of all by input."""
    own = program.inputs()
    shown = dict(zip([*(input_names or [])[: len(own)], *own[len(input_names or []) :]], own))
    found: list[tuple[str, int, str]] = []
    for name, axes in (dynamic_axes or {}).items():
        if name not in shown:
            if name not in (output_names or ()):
                warn(f"Provided key {name} for dynamic axes is not a valid input/output name")
        else:
            pairs = (
                axes.items()
                if isinstance(axes, Mapping)
                else [(d, f"{name}_dynamic_axes_{i + 1}") for i, d in enumerate(axes)]
            )
            found += [(shown[name], dim, str(label)) for dim, label in pairs]
    if dynamic_shapes is not None:
        found += _labelled(program, dynamic_shapes)
    return _grouped(program, found)


def dims_of_shapes(program: Program, shapes: Any) -> tuple[list[Group], dict[str, dict[int, str]]]:
    """Return the same for `dynamic_shapes` as `torch.export` takes them."""
    return _grouped(program, _labelled(program, shapes))


def _grouped(program: Program, found: list[tuple[str, int, str]]) -> tuple[list[Group], dict[str, dict[int, str]]]:
    names: dict[str, dict[int, str]] = {}
    groups: dict[str, Group] = {}
    for name, dim, label in found:
        t = program.tensors[name]
        if not -t.dim() <= dim < t.dim():
            raise ValueError(f"input {name!r} has {t.dim()} dimensions, and no dimension {dim}")
        names.setdefault(name, {})[dim % t.dim()] = label
        groups.setdefault(label, []).append((name, dim % t.dim()))
    return list(groups.values()), names


def _labelled(program: Program, shapes: Any) -> list[tuple[str, int, str]]:
    structures = [structure for _, structure in program.parameters]
    if isinstance(shapes, Mapping):
        pairs = [(dict(program.parameters)[name], shape) for name, shape in shapes.items()]
    else:
        pairs = list(zip(structures, shapes))
    found: list[tuple[str, int, str]] = []
    for structure, shape in pairs:
        _walk(structure, shape, found)
    return found


def _walk(structure: Any, shape: Any, found: list[tuple[str, int, str]]) -> None:
    if shape is None or structure is None:
        return
    if type(structure) is Ref:
        pairs = shape.items() if isinstance(shape, Mapping) else enumerate(shape)
        for dim, label in pairs:
            if label is None or isinstance(label, int) or getattr(label, "type", None) == "STATIC":
                continue
            text = label if isinstance(label, str) else getattr(label, "__name__", None)
            found.append((structure.name, dim, text or f"{structure.name}_dim_{dim}"))
    elif isinstance(structure, dict):
        for key, inner in structure.items():
            _walk(inner, shape.get(key), found)
    elif isinstance(structure, (list, tuple)):
        for inner, each in zip(structure, shape):
            _walk(inner, each, found)
