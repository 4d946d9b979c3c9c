"""Dtypes that NumPy lacks: what their names answer without ml_dtypes, float8 tensors with it, quantization schemes."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import cygrad as torch
from helpers import fails

FLOAT8 = {  # {name: (largest number, step above 1, smallest normal number)}
    "float8_e4m3fn": (448.0, 2.0**-3, 2.0**-6),
    "float8_e4m3fnuz": (240.0, 2.0**-3, 2.0**-7),
    "float8_e5m2": (57344.0, 2.0**-2, 2.0**-14),
    "float8_e5m2fnuz": (57344.0, 2.0**-3, 2.0**-15),
    "float8_e8m0fnu": (2.0**127, 1.0, 2.0**-127),
}
INTEGERS = [f"{sign}int{width}" for sign in ("", "u") for width in range(1, 8)]
QUANTIZED = {"qint8": (8, -128), "quint8": (8, 0), "qint32": (32, -(2**31)), "quint4x2": (8, 0), "quint2x4": (8, 0)}
ALL = ["bfloat16", "complex32", "float4_e2m1fn_x2", *FLOAT8, *INTEGERS, *QUANTIZED]
SCHEMES = "per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric".split()


@pytest.mark.parametrize("name", ALL)
def test_names(name):
    kind = getattr(torch, name)
    assert isinstance(kind, torch.dtype) and repr(kind) == f"torch.{name}" and getattr(torch, name) is kind
    assert copy.deepcopy(kind) is pickle.loads(pickle.dumps(kind)) is kind and kind != torch.float32
    assert kind.itemsize == {"bfloat16": 2, "complex32": 4, "qint32": 4}.get(name, 1)
    assert kind.is_floating_point == ("float" in name) and kind.is_complex == (name == "complex32")


def test_aliases():
    assert torch.chalf is torch.complex32 and torch.bit is torch.uint1
    assert torch.complex32.to_real() is torch.float16 and torch.complex32.to_complex() is torch.complex32


def test_names_without_ml_dtypes():
    code = f"""
import sys
sys.modules["ml_dtypes"] = None
import pickle
import cygrad as torch
for name in {ALL}:
    kind = getattr(torch, name)
    assert repr(kind) == f"torch.{{name}}" and pickle.loads(pickle.dumps(kind)) is kind, name
    assert kind.is_floating_point == ("float" in name)
for name, (largest, eps, tiny) in {FLOAT8}.items():
    limits = torch.finfo(getattr(torch, name))
    assert (limits.max, limits.eps, limits.tiny) == (largest, eps, tiny), name
    for call in (
        lambda: torch.zeros(2, dtype=getattr(torch, name)),
        lambda: torch.zeros(2).to(getattr(torch, name)),
        lambda: torch.tensor([1.0], dtype=getattr(torch, name)),
    ):
        try:
            call()
        except ImportError as error:
            assert str(error).startswith(f"torch.{{name}} needs the package ml_dtypes: pip install"), error
        else:
            raise AssertionError(name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", FLOAT8)
def test_limits(name):
    limits = torch.finfo(getattr(torch, name))
    largest, eps, tiny = FLOAT8[name]
    assert (limits.bits, limits.max, limits.eps, limits.tiny, limits.resolution) == (8, largest, eps, tiny, 1)
    assert limits.min == (tiny if name == "float8_e8m0fnu" else -largest) and limits.dtype == name
    with fails(TypeError, "torch.iinfo() requires an integer input type. ..."):
        torch.iinfo(getattr(torch, name))


@pytest.mark.parametrize("name", QUANTIZED)
def test_limits_of_quantized_numbers(name):
    limits = torch.iinfo(getattr(torch, name))
    assert (limits.bits, limits.min) == QUANTIZED[name] and limits.max - limits.min == 2**limits.bits - 1


@pytest.mark.parametrize("name", [*INTEGERS, *QUANTIZED, "complex32", "float4_e2m1fn_x2"])
def test_no_tensors(name):
    kind = getattr(torch, name)
    for call in (lambda: torch.ones(2, dtype=kind), lambda: torch.ones(2).to(kind), lambda: torch.empty(2).view(kind)):
        with fails(NotImplementedError, f"not implemented for '{kind.type_name}'"):
            call()


@pytest.mark.parametrize(
    "other, expected",
    [
        *(("bool", "complex32"), ("int64", "complex32"), ("float16", "complex32"), ("complex32", "complex32")),
        *(("bfloat16", "complex64"), ("float32", "complex64"), ("complex64", "complex64")),
        *(("float64", "complex128"), ("complex128", "complex128")),
    ],
)
def test_promotion_of_short_complex_numbers(other, expected):
    short, kind = torch.complex32, getattr(torch, other)
    assert torch.promote_types(short, kind) is torch.promote_types(kind, short) is getattr(torch, expected)
    assert torch.can_cast(kind, short) and torch.can_cast(short, kind) == kind.is_complex


@pytest.mark.parametrize(
    "name, line",
    [
        ("qint8", "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules ..."),
        ("bits8", "Promotion from Float and Bits8 is unsupported."),
        ("int3", "Promotion from Float and Int3 is unsupported."),
    ],
)
def test_what_is_not_promoted(name, line):
    kind = getattr(torch, name)
    assert torch.promote_types(kind, kind) is kind
    assert torch.can_cast(kind, torch.float32) and torch.can_cast(torch.float32, kind)
    with fails(RuntimeError, line):
        torch.promote_types(torch.float32, kind)


def test_promotion_of_short_unsigned_integers():
    assert torch.promote_types(torch.uint3, torch.float16) is torch.float16
    with fails(RuntimeError, "Promotion for uint16, uint32, uint64 types is not supported, ..."):
        torch.promote_types(torch.uint3, torch.int32)


def test_signs():
    assert torch.int3.is_signed and torch.float8_e5m2.is_signed and not torch.uint3.is_signed
    with fails(RuntimeError, "isSignedType not supported for quantized types"):
        assert torch.quint8.is_signed
    with fails(RuntimeError, "Bits types are undefined"):
        assert torch.bits8.is_signed


def test_schemes():
    for name in SCHEMES:
        scheme = getattr(torch, name)
        assert repr(scheme) == f"torch.{name}" and isinstance(scheme, torch.qscheme)
        assert pickle.loads(pickle.dumps(scheme)) is copy.deepcopy(scheme) is scheme
    assert torch.per_tensor_affine != torch.per_channel_affine
    with fails(TypeError, "cannot create 'torch.qscheme' instances"):
        torch.qscheme()


# --- float8 tensors ----------------------------------------------------------------------------


@pytest.fixture
def ml_dtypes():
    return pytest.importorskip("ml_dtypes")


@pytest.mark.parametrize("name", list(FLOAT8)[:4])
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_conversion(ml_dtypes, name, source):
    largest = min(FLOAT8[name][0], 65504.0)
    x = torch.linspace(-largest, largest, 999).to(getattr(torch, source))
    x8 = x.to(getattr(torch, name))
    wanted = x.float().numpy().astype(getattr(ml_dtypes, name))  # rounded to the nearest, ties to even
    assert x8.numpy().view(np.uint8).tolist() == wanted.view(np.uint8).tolist()
    assert x8.float().tolist() == wanted.astype(np.float32).tolist() and x8.element_size() == 1
    assert x8.to(torch.float64).dtype is torch.float64 and x8.to(x8.dtype) is x8


def test_numbers_out_of_range(ml_dtypes):
    x = torch.tensor([1e9, -1e9, np.inf, np.nan, 3.0, -1.0, 0.0])
    assert x.to(torch.float8_e4m3fn).tolist() == pytest.approx([448, -448, 448, np.nan, 3, -1, 0], nan_ok=True)
    assert x.to(torch.float8_e5m2).tolist() == pytest.approx([np.inf, -np.inf, np.inf, np.nan, 3, -1, 0], nan_ok=True)
    assert torch.isnan(x.to(torch.float8_e4m3fnuz)).tolist() == [True] * 4 + [False] * 3
    assert x[4:].to(torch.float8_e8m0fnu).tolist() == [4.0, 1.0, 2.0**-127]
    with fails(RuntimeError, "value cannot be converted to type c10::Float8_e4m3fn without overflow"):
        torch.full((2,), 1e9, dtype=torch.float8_e4m3fn)


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_tensors(ml_dtypes, name):
    kind = getattr(torch, name)
    x = torch.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=kind)
    assert x.type() == f"torch.{kind.type_name}Tensor" and x.dtype is kind
    assert x.t().contiguous().tolist() == [[1, 4], [2, 8]] and x[1, 0].item() == 4 and x[[1]].tolist() == [[4, 8]]
    assert torch.cat([x, x]).shape == (4, 2) and torch.stack([x, x]).dtype is kind
    assert (x == x.clone()).all() and not (x != x).any()
    assert torch.ones_like(x).tolist() == [[1, 1]] * 2 and torch.full((2,), 2.0, dtype=kind).tolist() == [2, 2]
    assert x.view(torch.uint8).view(kind).tolist() == x.tolist() and x.copy_(torch.ones(2, 2)).tolist() == [[1, 1]] * 2
    assert torch.where(x == x, x, x * x).tolist() == [[1, 1]] * 2
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist() and x.untyped_storage().nbytes() == 4
    least = 2.0**-127 if name == "float8_e8m0fnu" else 0.0
    assert torch.zeros(2, dtype=kind).tolist() == torch.zeros_like(x)[0].tolist() == [least] * 2


def test_gradients_through_float8(ml_dtypes):
    x = torch.tensor([1.1, 2.0], requires_grad=True)
    (x.to(torch.float8_e5m2).float() * torch.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("suffix", ["e4m3fn", "e5m2"])
def test_no_arithmetic(ml_dtypes, suffix):
    x = torch.ones(2).to(getattr(torch, f"float8_{suffix}"))
    kind = f"Float8_{suffix}"
    refused = {
        "add_stub": lambda: x + x,
        "neg_cpu": lambda: -x,
        "div_cpu": lambda: x / x,
        "sum_cpu": x.sum,
        "prod_out_cpu": lambda: x.prod(0),
        "cumsum_out_cpu": lambda: x.cumsum(0),
        "max_all": x.max,
        "max_values_cpu": x.amax,
        "argmax_cpu": x.argmax,
        "sorting_kernel_method_name": x.sort,
        "topk_cpu": lambda: x.topk(1),
        "softmax_lastdim_kernel_impl": lambda: x.softmax(0),
        "nonzero_count_cpu": x.nonzero,
        "exp_vml_cpu": x.exp,
        "sign_cpu": x.sign,
    }
    for kernel, call in refused.items():
        with fails(NotImplementedError, f"\"{kernel}\" not implemented for '{kind}'"):
            call()
    assert x.sum(dtype=torch.float32).item() == x.float().mean().item() * 2 == 2
    assert (x * x).float().tolist() == [1, 1] and torch.cat([x, x]).roll(1).shape == (4,)
    with fails(RuntimeError, f"Promotion for Float8 Types is not supported, attempted to promote {kind} and Float"):
        x + torch.ones(2)
    with fails(RuntimeError, f"Unknown Complex ScalarType for {kind}"):
        x.dtype.to_complex()
    with fails(TypeError, f"couldn't find storage object {kind}Storage"):
        torch.set_default_dtype(x.dtype)


def test_float8_files(ml_dtypes, tmp_path):
    tensors = {name: torch.tensor([1.0, 2.0, 0.5]).to(getattr(torch, name)) for name in FLOAT8}
    torch.save(tensors, tmp_path / "f")
    loaded = torch.load(tmp_path / "f")
    assert {name: t.dtype.name for name, t in loaded.items()} == {name: name for name in FLOAT8}
    assert all(t.tolist() == [1.0, 2.0, 0.5] for t in loaded.values())
