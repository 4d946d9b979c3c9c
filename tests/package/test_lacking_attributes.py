"""After the switch, errors about attributes of modules say what serves instead; in new processes, since it stays on."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.interpreter

PROGRAM = """
import cygrad
cygrad.as_torch()
import torch, torch.fx.passes

def text(module, name):
    try:
        getattr(module, name)
    except AttributeError as error:
        assert error.name == name and error.obj is module and error.__cause__ is None
        return str(error)
    raise AssertionError(name)

assert "no quantized tensors" in text(torch.nn, "intrinsic") and "no quantized tensors" in text(torch.ao, "x")
assert "torch.onnx.export" in text(torch.utils, "mobile_optimizer")
assert "fx.Interpreter" in text(torch.fx.passes, "x") and "back ends" in text(torch._inductor, "x")
assert text(torch.nn, "foo") == "module 'cygrad.nn' has no attribute 'foo'"
assert not hasattr(torch.utils, "hipify") and getattr(torch.cuda, "tunable", 1) == 1
assert torch.nn is cygrad.nn and torch.utils.data is cygrad.utils.data and torch.cuda.FloatTensor
"""


def test_sentences():
    command = [sys.executable, "-W", "error", "-W", "ignore:PyTorch is installed", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
