"""What functions that write ops to ONNX graphs are made with. Nothing is exported, so none of them is ever called."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import cygrad
from cygrad.onnx.errors import OnnxExporterError

__all__ = ["SYMBOLIC_MODULES", "parse_args", "quantized_args"]

_OPSETS = range(7, 21)  # the versions of ONNX that PyTorch has a module for


def parse_args(*arg_descriptors):
    """Return a decorator that notes the kinds of arguments ("v", "i", "is", ...) of a function that writes an op.

    >>> from cygrad.onnx.symbolic_helper import parse_args
    >>> @parse_args("v", "i")
    ... def write(g, x, dim):
    ...     return g.op("Softmax", x, axis_i=dim)
    """

    def decorator(fn):
        fn._arg_descriptors = arg_descriptors
        return fn

    return decorator


def quantized_args(*arg_q_descriptors, scale=None, zero_point=None, quantize_output=True):
    """Return a decorator that returns its function unchanged: there are no quantized arguments.

    >>> from cygrad.onnx.symbolic_helper import quantized_args
    >>> @quantized_args(True)
    ... def write(g, x):
    ...     return g.op("Relu", x)
    >>> write.__name__
    'write'
    """
    return lambda fn: fn


def _writes(name):
    """Return a function that stands for one that acts on a graph."""

    def write(*args, **kwargs):
        """Raises OnnxExporterError: there is no graph to write to."""
        raise OnnxExporterError(
            f"{name} writes to an ONNX graph, and cygrad makes none\n  export the model with PyTorch"
        )

    write.__name__ = write.__qualname__ = name
    return write


def __getattr__(name):
    """The helpers with which PyTorch's exporter reads and writes graphs: their names are `_get_...`, and so on."""
    if name.startswith("__") or not name.startswith(_PREFIXES):
        raise AttributeError(f"module 'torch.onnx.symbolic_helper' has no attribute {name!r}")
    return _writes(name)


_PREFIXES: tuple[str, ...] = (
    "_get_",
    "_is_",
    "_maybe_",
    "_parse_",
    "_node_",
    "_unpack_",
    "_scalar",
    "_unimplemented",
    "_onnx_",
)
_HELPERS = "slice squeeze unsqueeze reshape size interpolate topk sort select scatter batchnorm argmin_argmax"
_PREFIXES += tuple(f"_{word}_helper" for word in _HELPERS.split())


class _Opset(ModuleType):
    """The ops that an exporter writes in one version of ONNX: those that cygrad has, under their names."""

    def __getattr__(self, name):
        if name.startswith("__") or not (hasattr(cygrad, name) or hasattr(cygrad.nn.functional, name)):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return _writes(name)


def _opset(version):
    name = f"cygrad.onnx.symbolic_opset{version}"
    module = _Opset(name, _Opset.__doc__)
    module.__spec__ = ModuleSpec(name, None)
    sys.modules[name] = module
    return module


SYMBOLIC_MODULES = {f"symbolic_opset{version}": _opset(version) for version in _OPSETS}
