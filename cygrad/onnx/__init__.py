"""Writes models as ONNX files, under the names of PyTorch's exporter; see docs/export.md."""

from enum import IntEnum

from cygrad import __version__
from cygrad.onnx import errors, operators, symbolic_helper, utils
from cygrad.onnx._onnx_program import ONNXProgram
from cygrad.onnx.errors import OnnxExporterError
from cygrad.onnx.symbolic_helper import SYMBOLIC_MODULES as _SYMBOLIC_MODULES
from cygrad.onnx.utils import (
    export,
    is_in_onnx_export,
    register_custom_op_symbolic,
    select_model_mode_for_export,
    unregister_custom_op_symbolic,
)

__all__ = [
    "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "errors",
    "export", "is_in_onnx_export", "operators", "register_custom_op_symbolic",
    "select_model_mode_for_export",    "symbolic_helper", "unregister_custom_op_symbolic", "utils",
]  # fmt: skip

globals().update(_SYMBOLIC_MODULES)
producer_name = "pytorch"
producer_version = __version__


class OperatorExportTypes(IntEnum):
    """How an exporter writes ops that ONNX does not have.

    >>> import cygrad
    >>> cygrad.onnx.OperatorExportTypes.ONNX.value
    0
    """

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(IntEnum):
    """Which mode an exporter puts the model into.

    >>> import cygrad
    >>> [mode.name for mode in cygrad.onnx.TrainingMode]
    ['EVAL', 'PRESERVE', 'TRAINING']
    """

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


TensorProtoDataType = IntEnum(
    "TensorProtoDataType",
    "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 "
    "COMPLEX128 BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ",
    start=0,
    module=__name__,
)
TensorProtoDataType.__doc__ = """The numbers of dtypes in ONNX files.

>>> import cygrad
>>> cygrad.onnx.TensorProtoDataType.FLOAT.value
1
"""
