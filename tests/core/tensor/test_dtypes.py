"""Dtypes: limits, names, conversions, promotion, legacy names, and bfloat16 with and without ml_dtypes."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import cygrad as torch
from helpers import fails

CONVERSIONS = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_by_name(name):
    kind = getattr(torch, CONVERSIONS[name])
    t = torch.tensor([0.0, 1.0, 2.5])
    assert getattr(t, name)().dtype is t.to(kind).dtype is t.type(kind).dtype is kind
    assert t.type_as(torch.zeros(1, dtype=kind)).dtype is kind
    assert t.to(kind).type() == f"torch.{kind.type_name}Tensor"
    assert t.to(kind).tolist() == np.array([0.0, 1.0, 2.5]).astype(kind.numpy).tolist()


def test_conversion_to_the_default_type():
    assert torch.ones(2, dtype=torch.int64).type(torch.Tensor).dtype is torch.get_default_dtype()


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_wide_unsigned_integers(name):
    kind = getattr(torch, name)
    top = torch.iinfo(kind).max
    t = torch.tensor([0, 1, top], dtype=kind)
    assert t.tolist() == [0, 1, top] and not kind.is_signed and t[2].item() == top
    assert (t == top).tolist() == [False, False, True] and (t + 1.5).dtype is torch.float32
    with fails(RuntimeError, "Promotion for uint16, uint32, uint64 types is not supported, ..."):
        torch.promote_types(kind, torch.int32)


# --- Legacy names ------------------------------------------------------------------------------

OLD = {
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
}


@pytest.mark.parametrize("name", OLD)
def test_old_types(name):
    old, kind = getattr(torch, name), getattr(torch, OLD[name])
    assert old(2, 3).shape == (2, 3) and old(2, 3).dtype is old([1, 0]).dtype is old().dtype is kind
    assert old([1, 0]).tolist() == [1, 0] and old(torch.Size([2])).shape == old(size=(2,)).shape == (2,)
    t = torch.zeros(2, dtype=kind)
    assert isinstance(t, old) and not isinstance(t, torch.LongTensor if name != "LongTensor" else torch.IntTensor)
    assert not isinstance(3, old) and repr(old) == f"<class 'torch.{name}'>" and old.dtype is kind
    assert torch.zeros(1).type(old).dtype is torch.zeros(1).type(f"torch.{name}").dtype is kind
    shared = old(t)
    assert shared is not t and shared.data_ptr() == t.data_ptr()
    with pytest.raises(TypeError, match="expected TensorOptions"):
        old(torch.zeros(2, dtype=torch.complex64))


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_default_tensor_type():
    torch.set_default_tensor_type(torch.DoubleTensor)
    assert torch.tensor(1.0).dtype is torch.float64 and torch.tensor(1j).dtype is torch.complex128
    torch.set_default_tensor_type("torch.HalfTensor")
    assert torch.get_default_dtype() is torch.float16
    for bad in (torch.LongTensor, "torch.foo", 3):
        with pytest.raises((TypeError, AttributeError)):
            torch.set_default_tensor_type(bad)
    assert torch.get_default_dtype() is torch.float16


def test_default_tensor_type_is_deprecated():
    with pytest.warns(UserWarning, match="set_default_tensor_type"):
        torch.set_default_tensor_type(torch.FloatTensor)


@pytest.mark.parametrize(
    "call, error, line",
    [
        (lambda: torch.set_default_dtype(torch.int64), TypeError, "only floating-point types are supported as ..."),
        (lambda: torch.set_default_dtype("float32"), TypeError, "invalid dtype object: only floating-point ..."),
        (lambda: torch.zeros(1).type(3), TypeError, "dtype must be a type, str, or dtype object"),
        (lambda: torch.zeros(1).type("torch.foo"), ValueError, "invalid type: 'torch.foo'"),
        (lambda: torch.zeros(1).type(int), ValueError, "invalid type: 'int'"),
        (lambda: torch.promote_types(3, torch.int64), TypeError, "promote_types(): argument 'type1' (position 1) ..."),
        (lambda: torch.can_cast(torch.int64, "a"), TypeError, "can_cast(): argument 'to' (position 2) ..."),
        (lambda: torch.int32.to_complex(), RuntimeError, "Unknown Complex ScalarType for Int"),
        (lambda: torch.result_type("a", 3), TypeError, "result_type() received an invalid combination ..."),
    ],
)
def test_bad_types(call, error, line):
    with fails(error, line):
        call()


# --- bfloat16 ----------------------------------------------------------------------------------


def test_bfloat16_can_be_named_without_its_package():
    code = """
import sys
sys.modules["ml_dtypes"] = None
import cygrad as torch
assert torch.bfloat16 is torch.bfloat16 and torch.float32 != torch.bfloat16
assert repr(torch.bfloat16) == "torch.bfloat16" and isinstance(torch.bfloat16, torch.dtype)
assert torch.finfo(torch.bfloat16).eps == 2.0**-7 and torch.bfloat16.itemsize == 2
assert torch.promote_types(torch.bfloat16, torch.float16) is torch.promote_types(torch.float32, torch.bfloat16)
assert torch.promote_types(torch.int64, torch.bfloat16) is torch.bfloat16
assert torch.can_cast(torch.int64, torch.bfloat16) and not torch.can_cast(torch.bfloat16, torch.int64)
with torch.autocast("cpu"):
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    torch.ones(2) + torch.ones(2)  # computes in float32 there
t = torch.zeros(2)
for call in (
    lambda: torch.zeros(2, dtype=torch.bfloat16),
    lambda: torch.tensor([1.0], dtype=torch.bfloat16),
    lambda: t.bfloat16(),
    lambda: t.to(torch.bfloat16),
    lambda: t.type(torch.bfloat16),
    lambda: t.type("torch.BFloat16Tensor"),
    lambda: t.sum(dtype=torch.bfloat16),
    lambda: torch.softmax(t, 0, dtype=torch.bfloat16),
    lambda: torch.set_default_dtype(torch.bfloat16),
    lambda: torch.BFloat16Tensor([1]),
    lambda: torch.empty_like(t, dtype=torch.bfloat16),
    lambda: t.new_zeros(2, dtype=torch.bfloat16),
    lambda: torch.autocast("cpu")(torch.nn.functional.linear)(t, t),
):
    try:
        call()
    except ImportError as error:
        assert "pip install ml_dtypes" in str(error), error
    else:
        raise AssertionError(call)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_bfloat16_is_imported_when_first_needed():
    pytest.importorskip("ml_dtypes")
    code = "import sys, cygrad; cygrad.zeros(2) + 1; print('ml_dtypes' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "False"
    code = "import numpy, ml_dtypes, cygrad; print(cygrad.from_numpy(numpy.ones(1, ml_dtypes.bfloat16)).dtype)"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "torch.bfloat16"


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = torch.bfloat16
    x = torch.tensor([1.0, 2.5, 1 / 3], dtype=kind, requires_grad=True)
    assert x.tolist() == [1.0, 2.5, 0.333984375] and x.numpy(force=True).dtype == ml_dtypes.bfloat16
    (x.exp() * x + x.sum()).sum().backward()
    assert x.grad.dtype is kind
    np.testing.assert_allclose(x.grad.float(), np.exp(x.detach().float()) * (1 + x.detach().float()) + 3, rtol=0.02)
    assert (x + torch.ones(3)).dtype is torch.float32 and (x * 2.5).dtype is (x * 2).dtype is kind
    assert (x.detach() + torch.ones(3, dtype=torch.float16)).dtype is torch.float32
    assert pickle.loads(pickle.dumps(kind)) is copy.copy(kind) is kind and kind.to_complex() is torch.complex64
    assert pickle.loads(pickle.dumps(x.detach())).tolist() == x.tolist()
    assert repr(x.detach()) == "tensor([1.0000, 2.5000, 0.3340], dtype=torch.bfloat16)"
    assert torch.BFloat16Tensor([1]).dtype is x.type("torch.BFloat16Tensor").dtype is kind
    assert torch.nan_to_num(torch.tensor([float("inf")], dtype=kind)).item() == torch.finfo(kind).max
    torch.set_default_dtype(kind)
    assert torch.tensor([1.0]).dtype is (torch.tensor([1]) / 2).dtype is kind


@pytest.mark.parametrize("draw", ["uniform_", "normal_", "exponential_", "cauchy_", "log_normal_", "random_"])
def test_bfloat16_drawn(draw):
    pytest.importorskip("ml_dtypes")
    drawn = getattr(torch.zeros(1000, dtype=torch.bfloat16), draw)().float()
    assert torch.isfinite(drawn).all() and len(set(drawn.tolist())) > 50
    if draw == "uniform_":
        assert 0 <= drawn.min() and drawn.max() < 1
