"""The exceptions of the exporter."""

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """The base of the exporter's warnings.

    >>> import cygrad
    >>> issubclass(cygrad.onnx.errors.OnnxExporterWarning, UserWarning)
    True
    """


class OnnxExporterError(RuntimeError):
    """The base of the exporter's errors.

    >>> import cygrad
    >>> issubclass(cygrad.onnx.OnnxExporterError, RuntimeError)
    True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """An op that ONNX cannot express.

    >>> import cygrad
    >>> raise cygrad.onnx.errors.UnsupportedOperatorError("aten::svd", 18, None)
    Traceback (most recent call last):
        ...
    cygrad.onnx.errors.UnsupportedOperatorError: Exporting the operator 'aten::svd' ...
    """

    def __init__(self, name, version, supported_version, where=None):
        text = f"Exporting the operator '{name}' to ONNX opset version {version} is not supported"
        if supported_version is not None:
            text += f". Support for this operator was added in version {supported_version}, try exporting with it"
        super().__init__(text if where is None else f"{text}\n  {where}")


class SymbolicValueError(OnnxExporterError):
    """A value in a graph that is not what an op needs.

    >>> import cygrad
    >>> raise cygrad.onnx.errors.SymbolicValueError("not a constant", "x")
    Traceback (most recent call last):
        ...
    cygrad.onnx.errors.SymbolicValueError: not a constant  [Caused by the value 'x']
    """

    def __init__(self, msg, value):
        super().__init__(f"{msg}  [Caused by the value '{value}']")
