"""Exports a model, and compares the file in onnxruntime with the model."""

import warnings

import cygrad as torch


def tensors(value):
    """The tensors in nested results, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [] if value is None else [t for each in value for t in tensors(each)]


def compare(program, model, args):
    """Run the ONNX model, and compare with the model itself."""
    with torch.no_grad():
        expected = tensors(model(*args))
    found = program(*args)
    assert [(t.dtype, t.shape) for t in found] == [(t.dtype, t.shape) for t in expected]
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def check(model, args, shapes=None, *others, **options):
    """Export for `args`, in which the dimensions in `shapes` vary; compare for these and for other arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        program = torch.onnx.export(model, args, dynamic_shapes=shapes, **options)
    for each in (args, *others):
        compare(program, model, each)
    return program
