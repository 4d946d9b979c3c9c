"""The exporter's functions: what they are asked for at import time is taken, and an export raises."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any

from cygrad.onnx.errors import OnnxExporterError

__all__ = [
    "export", "is_in_onnx_export", "register_custom_op_symbolic", "select_model_mode_for_export",
    "unregister_custom_op_symbolic",
]  # fmt: skip

_NAME = re.compile(r"^[a-zA-Z0-9-_]+::[a-zA-Z-_]+[a-zA-Z0-9-_]*$")
_symbolics: dict[Any, Any] = {}  # {(name, opset): function}; nothing calls them


def export(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError."""
    raise NotImplementedError(
        "cygrad cannot write ONNX files\n"
        "  call torch.save(model.state_dict(), path) here; with PyTorch, call "
        "load_state_dict(torch.load(path)) and torch.onnx.export"
    )


def is_in_onnx_export() -> bool:
    """Whether this call is part of an export: always False."""
    return False


def register_custom_op_symbolic(symbolic_name: Any, symbolic_fn: Any, opset_version: int) -> Any:
    """Register the function that writes an op, such as "mylib::op", to a graph. It is kept, and never called.

    Raises OnnxExporterError unless the name is of the form "domain::op".
    """
    _check_name(symbolic_name)
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: Any, opset_version: int) -> Any:
    """Undo `register_custom_op_symbolic`."""
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
    """Context in which a model is in evaluation mode, in training mode, or as it is (a `TrainingMode`, or None)."""
    if mode is None or mode == 1:
        yield
        return
    before = model.training
    model.train(mode == 2)
    try:
        yield
    finally:
        model.train(before)
