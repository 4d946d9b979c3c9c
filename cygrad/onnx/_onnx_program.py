"""`ONNXProgram`: an exported model in memory."""

from __future__ import annotations

import os
from typing import Any

import cygrad
from cygrad.onnx.errors import OnnxExporterError

__all__ = ["ONNXProgram"]

_LARGEST = 2**31 - 1  # the bytes of a protobuf file


class ONNXProgram:
    """An ONNX model, as `torch.onnx.export` returns it.

    >>> import cygrad
    >>> program = cygrad.onnx.export(cygrad.nn.ReLU(), cygrad.ones(2))
    >>> program.model_proto.graph.input[0].name
    'input'
    >>> import io
    >>> program.save(io.BytesIO())
    >>> program.call_reference(cygrad.tensor([-1.0, 2.0]))
    [tensor([0., 2.])]
    >>> program.verify()
    >>> program.optimize()
    >>> program.initialize_inference_session()
    >>> program.release()
    """

    def __init__(self, model_proto: Any, reference: Any = None, flatten: Any = None) -> None:
        self.model_proto = model_proto
        self._reference, self._flatten = reference, flatten
        self._session: Any = None

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        ops = [node.op_type for node in graph.node]
        names = [[value.name for value in values] for values in (graph.input, graph.output)]
        return f"ONNXProgram(inputs={names[0]}, outputs={names[1]}, {len(ops)} nodes)"

    def save(
        self,
        destination: Any,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Save the model to a path or a binary file.

        With `external_data`, and if it would exceed 2 GiB, the weights go to a second file beside it, `NAME.data`.
        Without `include_initializers` the weights are left out.
        """
        import onnx  # an extra

        model = self.model_proto
        if not include_initializers or keep_initializers_as_inputs:
            model = self._with_inputs(include_initializers)
        size = sum(len(each.raw_data) for each in model.graph.initializer)
        if not isinstance(destination, (str, os.PathLike)):
            destination.write(model.SerializeToString())
        elif external_data or size > _LARGEST:
            copy = onnx.ModelProto()
            copy.CopyFrom(model)
            name = os.path.basename(os.fspath(destination)) + ".data"
            onnx.save_model(copy, destination, save_as_external_data=True, location=name, size_threshold=1024)
        else:
            onnx.save_model(model, destination)

    def _with_inputs(self, include_initializers: bool) -> Any:
        import onnx  # an extra

        model = onnx.ModelProto()
        model.CopyFrom(self.model_proto)
        known = {value.name for value in model.graph.input}
        for each in model.graph.initializer:
            if each.name not in known:
                model.graph.input.append(onnx.helper.make_tensor_value_info(each.name, each.data_type, list(each.dims)))
        if not include_initializers:
            del model.graph.initializer[:]
        return model

    def initialize_inference_session(self, initializer: Any = None) -> None:
        """Make the session of onnxruntime that calls use."""
        import onnxruntime  # an extra

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        make = initializer or (
            lambda model: onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        )
        self._session = make(self.model_proto.SerializeToString())

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Run the model in onnxruntime, with the arguments of the exported one; return the results as tensors."""
        if self._session is None:
            self.initialize_inference_session()
        names = [value.name for value in self._session.get_inputs()]
        tensors = self._flatten(args, kwargs) if self._flatten is not None else list(args)
        given = {name: t.detach().cpu().numpy() for name, t in zip(names, tensors)}
        return [cygrad.from_numpy(array) for array in self._session.run(None, given)]

    def call_reference(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Run the recorded program itself; return the results as tensors."""
        return list(self._reference(args, kwargs))

    def verify(self, args: Any = None, kwargs: Any = None, rtol: float = 1e-3, atol: float = 1e-4) -> None:
        """Compare with the recorded program. Raises OnnxExporterError if results differ."""
        args, kwargs = self._example if args is None else (args, kwargs or {})
        for i, (found, expected) in enumerate(zip(self(*args, **kwargs), self.call_reference(*args, **kwargs))):
            if not cygrad.allclose(found.to(expected.dtype), expected, rtol=rtol, atol=atol, equal_nan=True):
                raise OnnxExporterError(f"output {i} of the ONNX model differs from that of the model")

    _example: Any = ((), {})

    def optimize(self) -> None:
        """Leave the model as it is: it has no redundant parts that runtimes do not remove."""

    def release(self) -> None:
        """Let go of the session of onnxruntime."""
        self._session = None

    def apply_weights(self, state_dict: Any) -> None:
        """Replace weights by those of a state dict.

        >>> import cygrad
        >>> program = cygrad.onnx.export(cygrad.nn.Linear(2, 1), cygrad.ones(3, 2))
        >>> program.apply_weights({"weight": cygrad.zeros(1, 2), "bias": cygrad.ones(1)})
        """
        import onnx  # an extra

        for each in self.model_proto.graph.initializer:
            if each.name in state_dict:
                array = state_dict[each.name].detach().cpu().numpy()
                each.CopyFrom(onnx.numpy_helper.from_array(array, each.name))
