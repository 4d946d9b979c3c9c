"""The exporter's functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from cygrad.onnx.errors import OnnxExporterError

__all__ = [
    "export", "is_in_onnx_export", "register_custom_op_symbolic", "select_model_mode_for_export",
    "unregister_custom_op_symbolic",
]  # fmt: skip

_NAME = re.compile(r"^[a-zA-Z0-9-_]+::[a-zA-Z-_]+[a-zA-Z0-9-_]*$")
_DEFAULT_OPSET = 20
_symbolics: dict[Any, Any] = {}  # {(name, opset): function}; nothing calls them
_exporting: list[Any] = []  # the models that are being exported


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Any = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: Any = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Any = None,
    training: Any = 0,
    operator_export_type: Any = 0,
    do_constant_folding: bool = True,
    custom_opsets: Any = None,
    export_modules_as_functions: Any = False,
    autograd_inlining: bool = True,
) -> Any:
    """Write what a model computes for arguments like `args` as an ONNX model.

    The model, a module or a function, is run once, and once more for each length that varies; it must do the same
    for all of them. `args` are its arguments: a tuple, or one tensor; a dictionary at the end holds arguments by
    name, as `kwargs` do. Returns an `ONNXProgram`, and saves it if there is a file `f`; with `dynamo=False` there
    must be one, and None is returned.

    `dynamic_axes` names the dimensions whose lengths vary, {name of an input: {dimension: name}} or
    {name: [dimensions]}; `dynamic_shapes` does the same by the arguments, with names or `torch.export.Dim`. Dimensions
    of one name have one length. Which numbers of the model follow these lengths is found by trying others.

    `input_names` and `output_names` name tensors in their order. `opset_version` is ONNX's version of ops (default:
    20). Without `export_params`, weights become inputs; with `keep_initializers_as_inputs` they are inputs with
    defaults. `training` tells the mode of the model while it runs: that of evaluation, by default. `verify` compares
    with the model in onnxruntime. The remaining arguments are taken, and change nothing: weights stay within the file
    unless it would exceed 2 GiB, and constants are folded as they are written.

    Needs the package onnx (`pip install onnx`); raises ModuleNotFoundError without it. Raises
    `torch.onnx.errors.UnsupportedOperatorError` for an op that has no ONNX form, with its line, and
    `OnnxExporterError` for a model that cannot be recorded or that works for one length only.

    >>> import cygrad
    >>> model = cygrad.nn.Linear(3, 2)
    >>> axes = {"x": {0: "batch"}}
    >>> program = cygrad.onnx.export(model, cygrad.ones(1, 3), input_names=["x"], dynamic_axes=axes)
    >>> [node.op_type for node in program.model_proto.graph.node]
    ['Gemm']
    """
    if find_spec("onnx") is None:
        raise ModuleNotFoundError("torch.onnx.export needs the package onnx: pip install onnx", name="onnx")
    from cygrad.export._onnx_files import exported  # not needed before

    if custom_translation_table or export_modules_as_functions:
        raise NotImplementedError(
            "torch.onnx.export: `custom_translation_table` and `export_modules_as_functions` are not supported"
        )
    if operator_export_type not in (None, 0):
        raise NotImplementedError("torch.onnx.export: only operator_export_type=OperatorExportTypes.ONNX is supported")
    if f is None and not dynamo:
        raise ValueError("torch.onnx.export: `f` must be given if dynamo=False")
    _exporting.append(model)
    try:
        program = exported(
            model,
            args,
            kwargs,
            mode=select_model_mode_for_export(model, training),
            input_names=input_names,
            output_names=output_names,
            opset=_DEFAULT_OPSET if opset_version is None else opset_version,
            dynamic_axes=dynamic_axes,
            dynamic_shapes=dynamic_shapes,
            export_params=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
        )
    finally:
        _exporting.remove(model)
    if verify:
        program.verify()
    if f is not None:
        program.save(f)
    return program if dynamo else None


def is_in_onnx_export() -> bool:
    """Whether this call is part of an export.

    >>> import cygrad
    >>> cygrad.onnx.is_in_onnx_export()
    False
    """
    return bool(_exporting)


def register_custom_op_symbolic(symbolic_name: Any, symbolic_fn: Any, opset_version: int) -> Any:
    """Register the function that writes an op, such as "mylib::op", to a graph. It is kept, and never called.

    Raises OnnxExporterError unless the name is of the form "domain::op".

    >>> import cygrad
    >>> def write(g, x):
    ...     return g.op("mylib::twice", x)
    >>> cygrad.onnx.register_custom_op_symbolic("mylib::twice", write, 18)
    >>> cygrad.onnx.unregister_custom_op_symbolic("mylib::twice", 18)
    """
    _check_name(symbolic_name)
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: Any, opset_version: int) -> Any:
    """Undo `register_custom_op_symbolic`.

    >>> import cygrad
    >>> cygrad.onnx.register_custom_op_symbolic("mylib::half", lambda g, x: x, 18)
    >>> cygrad.onnx.unregister_custom_op_symbolic("mylib::half", 18)
    """
    _check_name(symbolic_name)
    _symbolics.pop((symbolic_name, opset_version), None)


def _check_name(name):
    if not _NAME.match(name):
        raise OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the format domain::name, and should "
            "start with a letter and contain only alphanumerical characters"
        )


@contextmanager
def select_model_mode_for_export(model: Any, mode: Any) -> Any:
    """Context in which a model is in evaluation mode, in training mode, or as it is (a `TrainingMode`, or None).

    >>> import cygrad
    >>> model = cygrad.nn.Dropout()
    >>> with cygrad.onnx.select_model_mode_for_export(model, cygrad.onnx.TrainingMode.EVAL):
    ...     model.training
    False
    >>> model.training
    True
    """
    if mode is None or mode == 1:
        yield
        return
    modules = list(model.modules()) if hasattr(model, "modules") else []
    before = [module.training for module in modules]
    for module in modules:
        module.training = mode == 2
    try:
        yield
    finally:
        for module, training in zip(modules, before):
            module.training = training
