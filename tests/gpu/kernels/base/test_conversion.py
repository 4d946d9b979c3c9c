"""Conversions between floating-point types: values and layouts, alone and many in one launch."""

import cupy_standin
import numpy as np
import pytest

import cygrad as torch
from cygrad._core.graph.internals import array_of
from cygrad._kernels.device.cupy_library import switches
from cygrad._kernels.gpu.launch import conversion


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


FLOATS = torch.float16, torch.bfloat16, torch.float32, torch.float64
SIZES = 0, 1, 3, 4, 511, 2048, 2049, 9001
LAYOUTS = {
    "dense": lambda t: t,
    "transposed": lambda t: t.t(),
    "sliced": lambda t: t.flatten()[1:],
    "strided": lambda t: t[:, ::2],
    "expanded": lambda t: t[:1].expand(3, t.shape[1]),
    "turned": lambda t: t.reshape(2, -1, t.shape[1] // 2).permute(2, 0, 1),
}


def numbers(size, dtype):
    torch.manual_seed(0)
    x = torch.randn(size) * 50
    special = [float("nan"), float("inf"), -float("inf"), -0.0, 65519.0, 65520.0, 1.00390625, 1e-7]
    x[: len(special)] = torch.tensor(special[: len(x)])
    return x.to(dtype)


@pytest.mark.parametrize("to", FLOATS, ids=str)
@pytest.mark.parametrize("given", FLOATS, ids=str)
def test_values(given, to):
    pytest.importorskip("ml_dtypes")
    for size in SIZES:
        x = numbers(size, given)
        with cupy_standin.watch() as seen:
            found = x.cuda().to(to)
        np.testing.assert_array_equal(found.cpu().double(), x.to(to).double())
        if seen.launches and size and given != to and switches.own_launches:
            is_own = torch.float64 not in (given, to) or {given, to} == {torch.float32, torch.float64}
            assert seen.launches == ["convert_array" if is_own else "astype"]


@pytest.mark.parametrize("how", LAYOUTS)
def test_layouts(how):
    x = numbers(4 * 1026, torch.float32).reshape(4, 1026)
    found, expected = (LAYOUTS[how](t).to(torch.float16) for t in (x.cuda(), x))
    assert found.stride() == expected.stride()
    np.testing.assert_array_equal(found.cpu(), expected)


@pytest.mark.parametrize("to", FLOATS[:3], ids=str)
@pytest.mark.parametrize("count", [1, 2, 96, 98])
def test_many_in_one_launch(count, to):
    pytest.importorskip("ml_dtypes")
    given = torch.float32 if to != torch.float32 else torch.bfloat16
    arrays = [numbers(SIZES[i % len(SIZES)], given).reshape(1, -1) for i in range(count)]
    with cupy_standin.watch() as seen:
        found = conversion.converted_together([array_of(a.cuda()) for a in arrays], to.numpy)
    assert seen.launches.count("convert_each") in (0, -(-count // 96))
    for a, b in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(a.get().astype(np.float64), b.to(to).double())
        assert a.shape == b.shape and a.data.ptr % 16 == 0
