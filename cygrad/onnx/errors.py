"""The exceptions of the exporter."""

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """The base of the exporter's warnings."""


class OnnxExporterError(RuntimeError):
    """The base of the exporter's errors."""


class UnsupportedOperatorError(OnnxExporterError):
    """An op that ONNX cannot express."""

    def __init__(self, name, version, supported_version, where=None):
        text = f"Exporting the operator '{name}' to ONNX opset version {version} is not supported"
        if supported_version is not None:
            text += f". Support for this operator was added in version {supported_version}, try exporting with it"
        super().__init__(text if where is None else f"{text}\n  {where}")


class SymbolicValueError(OnnxExporterError):
    """A value in a graph that is not what an op needs."""

    def __init__(self, msg, value):
        super().__init__(f"{msg}  [Caused by the value '{value}']")
