"""What serves instead of the parts of PyTorch that cygrad does not have."""

from typing import Any

_CLASSES = "cygrad loads no classes of C++: write them in Python"
_COMPILER = "cygrad has no compiler back ends: `torch.compile` replays the kernels that ran"
_CONTRIB = "TensorBoard is in `torch.utils.tensorboard`"
_EXPORT = "cygrad has `export`, `save`, `load`, `Dim` and `ExportedProgram.module()`"
_MOBILE = "export the module to ONNX, which runs on phones: `torch.onnx.export`"
_PACKAGE = "save modules with `torch.save`, and ship their source as a Python package"
_PASSES = "write the pass as an `fx.Interpreter`, or as a function that changes the graph"
_QUANTIZED = "cygrad has no quantized tensors: use float16 or bfloat16"
_RPC = "cygrad has no remote calls: use collectives, `send` and `recv`, or `broadcast_object_list`"
_SYMBOLIC = "cygrad has no symbolic sizes: `torch.export` takes `dynamic_shapes`"

_INSTEAD = {
    "torch._dynamo": _COMPILER,
    "torch._inductor": _COMPILER,
    "torch.ao": _QUANTIZED,
    "torch.classes": _CLASSES,
    "torch.contrib": _CONTRIB,
    "torch.cuda.jiterator": "write kernels with CuPy, which takes tensors: `cupy.ElementwiseKernel`",
    "torch.cuda.tunable": "cuBLAS chooses the kernels itself",
    "torch.distributed.nn.api": _RPC,
    "torch.export": _EXPORT,
    "torch.fx.experimental.symbolic_shapes": _SYMBOLIC,
    "torch.fx.passes": _PASSES,
    "torch.jit.mobile": _MOBILE,
    "torch.monitor": _CONTRIB,
    "torch.nativert": _COMPILER,
    "torch.nn.intrinsic": _QUANTIZED,
    "torch.nn.qat": _QUANTIZED,
    "torch.nn.quantizable": _QUANTIZED,
    "torch.onnx.verification": "compare the results of `onnxruntime` with those of the module",
    "torch.package": _PACKAGE,
    "torch.quantization": _QUANTIZED,
    "torch.quantize_per_channel": _QUANTIZED,
    "torch.quantize_per_tensor": _QUANTIZED,
    "torch.utils.bottleneck": "profile with `torch.profiler`",
    "torch.utils.bundled_inputs": _MOBILE,
    "torch.utils.hipify": "cygrad has no extensions in C++ to translate",
    "torch.utils.mobile_optimizer": _MOBILE,
    "torch.utils.model_dump": "look at a file's parts with `python -m zipfile -l`",
}
_explained: set[str] = set()  # the modules whose errors say so


def what_serves_instead(name):
    """The second line of an error about a missing `torch.x.y`, or nothing.

    >>> from cygrad.as_torch.aliases import what_serves_instead
    >>> isinstance(what_serves_instead("torch.nowhere"), str)
    True
    """
    while name:
        if name in _INSTEAD:
            return f"\n  {_INSTEAD[name]}"
        name = name.rpartition(".")[0]
    return ""


def explain_attributes(name, module: Any):
    """Have errors about attributes that a module `torch.x` lacks say what serves instead.

    >>> from types import ModuleType
    >>> from cygrad.as_torch.lacking import explain_attributes
    >>> module = ModuleType("monitor")
    >>> explain_attributes("torch.monitor", module)
    >>> module.events
    Traceback (most recent call last):
        ...
    AttributeError: module 'monitor' has no attribute 'events'
      TensorBoard is in `torch.utils.tensorboard`
    """
    if name in _explained or not any(name in (lacking, lacking.rpartition(".")[0]) for lacking in _INSTEAD):
        return
    _explained.add(name)
    usual = vars(module).get("__getattr__")

    def __getattr__(attribute):
        text = f"module {module.__name__!r} has no attribute {attribute!r}"
        if usual is not None:
            try:
                return usual(attribute)
            except AttributeError as error:
                text = str(error)
        text += what_serves_instead(f"{name}.{attribute}")
        raise AttributeError(text, name=attribute, obj=module) from None

    module.__getattr__ = __getattr__
