"""The exceptions of PyTorch's exporter, for programs that catch them."""

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """The base of the exporter's warnings."""


class OnnxExporterError(RuntimeError):
    """The base of the exporter's errors."""


class UnsupportedOperatorError(OnnxExporterError):
    """An op that ONNX cannot express."""

    def __init__(self, name, version, supported_version):
        text = f"Exporting the operator '{name}' to ONNX opset version {version} is not supported"
        if supported_version is not None:
            text += f". Support for this operator was added in version {supported_version}, try exporting with it"
        super().__init__(text)


class SymbolicValueError(OnnxExporterError):
    """A value in a graph that is not what an op needs."""

    def __init__(self, msg, value):
        super().__init__(f"{msg}  [Caused by the value '{value}']")
