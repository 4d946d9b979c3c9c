"""Programs that run in both libraries and must report the same values."""

import re
import types
import warnings

import numpy as np
import pytest
from oracle.answers import same

import cygrad
from helpers import class_of, first_line

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")


def compare(program):
    """Run `program(library, say)` in both libraries and compare the reported values.

    `say(value)` reports a value, `say(function)` the function's result or error, and the categories of its warnings.
    """
    found, expected = [], []
    for library, said in ((cygrad, found), (torch, expected)):
        program(library, _Listener(said))
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert same(a, b), f"value {i}: {a}\nPyTorch: {b}"


def fill(module):
    """Fill every parameter and floating-point buffer of a module of either library with values that depend on
    position.
    """
    library = cygrad if isinstance(module, cygrad.nn.Module) else torch
    with library.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.is_floating_point() or tensor.is_complex():
                values = np.cos(np.arange(tensor.numel()) * 1.7 + tensor.numel()).reshape(tuple(tensor.shape))
                tensor.copy_(library.from_numpy(values).abs() + 0.1 if tensor.ndim == 1 else library.from_numpy(values))
    return module


class _Listener:
    def __init__(self, said):
        self.said = said

    def __call__(self, value):
        if not isinstance(value, types.FunctionType):
            self.said.append(_described(value))
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                outcome = _described(value())
            except Exception as error:
                outcome = class_of(error), _plain(first_line(error))
        self.said.append([outcome, [(w.category.__name__, _plain(first_line(w.message))) for w in caught]])


def _described(value):
    if isinstance(value, (cygrad.Tensor, torch.Tensor)):
        kind = type(value).__name__
        return kind, str(value.dtype), tuple(value.shape), value.requires_grad, _numbers(value)
    if isinstance(value, dict):
        return {str(key): _described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_described(item) for item in value]
    if isinstance(value, (bool, int, float, str, type(None))):
        return _plain(value) if isinstance(value, str) else value
    return _plain(repr(value))


def _numbers(tensor):
    tensor = (
        tensor.detach().to(cygrad.float32 if isinstance(tensor, cygrad.Tensor) else torch.float32)
        if (str(tensor.dtype) == "torch.bfloat16")
        else tensor.detach()
    )
    array = tensor.numpy()
    return np.where(np.isnan(array), 777, array).tolist() if array.dtype.kind in "fc" else array.tolist()


def _plain(text):
    text = re.sub(r"0x[0-9a-f]+", "0x", text.replace("cygrad", "torch"))
    return re.sub(r"torch\.nn\.modules\.\w+\.", "torch.nn.", text)  # modules are in other files here
