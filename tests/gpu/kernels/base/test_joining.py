"""Joins: results for all layouts, types and numbers of arrays, in one launch."""

import cupy_standin
import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.device.cupy_library import switches


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


TYPES = [torch.bool, torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128]


def some(dtype, *shape):
    return (torch.arange(int(np.prod(shape))) % 251).reshape(shape).to(dtype)


def same(function, given):
    """Compare a join on both devices; return the launches."""
    on_gpu = [t.cuda() if own is None else own(t.cuda()) for t, own in given]
    with cupy_standin.watch() as seen:
        found = function(on_gpu)
    expected = function([t if own is None else own(t) for t, own in given])
    assert found.dtype == expected.dtype and found.shape == expected.shape and found.is_contiguous()
    np.testing.assert_array_equal(found.cpu(), expected)
    return seen.launches


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_dense_arrays(dtype, axis):
    shapes = [[4, 6, 8], [4, 6, 8], [4, 6, 8]]
    for shape, length in zip(shapes, (5, 1, 12)):
        shape[axis] = length
    launches = same(lambda ts: torch.cat(ts, axis), [(some(dtype, *shape), None) for shape in shapes])
    assert launches in ([], ["join"])


LAYOUTS = {
    "transposed": lambda t: t.permute(1, 0, 2).contiguous().permute(1, 0, 2),
    "last first": lambda t: t.permute(2, 0, 1).contiguous().permute(1, 2, 0),
    "every other": lambda t: torch.cat([t, t], 2)[:, :, ::2],
    "sliced": lambda t: torch.cat([t, t], 2)[:, :, 3 : 3 + t.shape[2]],
    "expanded": lambda t: t[:1].expand(t.shape),
    "one number": lambda t: t[1, 2, 3].expand(t.shape),
    "backwards": lambda t: t.flip(2),
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32], ids=str)
def test_layouts(dtype, how, axis):
    given = [(some(dtype, 3, 4, 8), LAYOUTS[how]), (some(dtype, 3, 4, 8), None), (some(dtype, 3, 4, 8), LAYOUTS[how])]
    same(lambda ts: torch.cat(ts, axis), given)
    same(lambda ts: torch.stack(ts, axis), given)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 33])
def test_many_arrays(count):
    given = [(some(torch.float32, 3, 1 + i % 4), None) for i in range(count)]
    launches = same(lambda ts: torch.cat(ts, 1), given)
    if launches and switches.own_launches:
        assert len(launches) == -(-count // 8)
    same(torch.stack, [(some(torch.float32, 2, 3), None)] * count)


def test_empty_arrays_and_many_dimensions():
    same(torch.cat, [(some(torch.float32, 0, 3), None)] * 2)
    same(torch.cat, [(some(torch.float32, 0), None), (some(torch.float32, 5), None)])
    deep = some(torch.float16, 2, 3, 2, 2, 3, 2, 2, 2)
    for dims in ((0, 1, 2, 3, 4, 5, 6, 7), (7, 5, 3, 1, 6, 4, 2, 0)):
        same(lambda ts, dims=dims: torch.cat([t.permute(dims) for t in ts], 3), [(deep, None), (deep, None)])


def test_the_gradient_of_a_split_is_one_launch():
    x = torch.randn(5, 4, 24, device="cuda").to(torch.float16).requires_grad_()
    parts = x.chunk(3, -1)
    grads = [torch.full_like(part, 1.0 + i) for i, part in enumerate(parts)]
    with cupy_standin.watch() as seen:
        torch.autograd.backward(parts, grads)
    assert seen.launches in ([], ["join"])
    assert x.grad[0, 0].tolist() == [1.0] * 8 + [2.0] * 8 + [3.0] * 8
