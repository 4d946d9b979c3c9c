"""What serves instead of the parts of PyTorch that cygrad does not have."""

_COMPILER = "cygrad has no compiler back ends: `torch.compile` replays the kernels that ran"
_EXPORT = "cygrad exports no programs: save `model.state_dict()`, and define the model in code"
_QUANTIZED = "cygrad has no quantized tensors: use float16 or bfloat16"

_INSTEAD = {
    "torch._dynamo": _COMPILER,
    "torch._inductor": _COMPILER,
    "torch.ao": _QUANTIZED,
    "torch.export": _EXPORT,
    "torch.quantization": _QUANTIZED,
    "torch.quantize_per_tensor": _QUANTIZED,
}


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
