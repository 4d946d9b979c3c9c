"""Gather along a dimension, and casts to and from half precision, against NumPy."""

import numpy as np
import pytest

from cygrad import tensor
from cygrad._kernels.cpu.indexing import indexing
from cygrad._kernels.cpu.reduction import sorting
from cygrad._kernels.platform import thread_pool

SHAPES = [
    ((7,), 0),
    ((4, 5, 6), 0),
    ((4, 5, 6), 1),
    ((4, 5, 6), 2),
    ((300, 400), 0),
    ((300, 400), 1),
    ((200, 3, 90), 1),
]
TYPES = [np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.complex64, np.complex128, np.bool_, ">f4"]


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_gather(random, shape, axis, dtype):
    a = (random.standard_normal(shape) * 9).astype(dtype)
    for count in (1, 3, 2 * shape[axis]):
        index = random.integers(0, shape[axis], (*shape[:axis], count, *shape[axis + 1 :]))
        expected = np.take_along_axis(a, index, axis)
        assert np.array_equal(indexing.gather(a, axis, index), expected)
        assert np.array_equal(indexing.gather(np.asfortranarray(a), axis, np.asfortranarray(index)), expected)
        assert np.array_equal(indexing.gather(a, axis, index - shape[axis]), expected)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("wrong", [100, -101, 2**62, -(2**63)])
def test_gather_outside(random, axis, wrong):
    a, index = random.standard_normal((100, 100)), random.integers(0, 100, (100, 100))
    index[90, 90] = wrong
    with pytest.raises(IndexError):
        indexing.gather(a, axis, index)


def test_gather_from_other_lengths(random):
    a, index = random.standard_normal((6, 50)), random.integers(0, 50, (4, 7))
    assert np.array_equal(indexing.gather(a, 1, index), np.take_along_axis(a[:4], index, 1))
    assert indexing.gather(a, 1, np.empty((6, 0), np.int64)).shape == (6, 0)


@pytest.mark.parametrize("kind", ["any", "equal", "nan", "only nan", "infinite", "rising", "falling"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), [((5, 1000), 1), ((1000, 5), 0), ((3, 463, 7), 1), ((100, 257), 1)])
def test_firsts(random, shape, axis, dtype, kind):
    a = random.standard_normal(shape).astype(dtype)
    if kind == "equal":
        a = np.round(a * 3)
    elif kind == "nan":
        a[random.random(shape) < 0.02] = np.nan
    elif kind == "only nan":
        a[...] = np.nan
    elif kind == "infinite":
        a[random.random(shape) < 0.1] = np.inf
        a[random.random(shape) < 0.1] = -np.inf
    elif kind in ("rising", "falling"):
        a = np.sort(a, axis)
        a = np.flip(a, axis) if kind == "falling" else a
    order = np.moveaxis(a, axis, -1)
    for k in (1, 9, 32):
        for largest in (False, True):
            values, places = sorting.first_along(a, axis, k, largest)
            # NaN is larger than all numbers; equal elements keep their order
            keys = [order, np.isnan(order)] if not largest else [-order, ~np.isnan(order)]
            expected = np.lexsort(keys, -1)[..., :k]
            assert np.array_equal(np.take_along_axis(a, places, axis), values, equal_nan=True)
            assert np.array_equal(
                np.moveaxis(values, axis, -1), np.take_along_axis(order, expected, -1), equal_nan=True
            )


def test_threads_change_nothing(random):
    a, index = random.standard_normal((200, 500)), random.integers(0, 500, (200, 500))
    former, found = thread_pool.num_threads(), []
    try:
        for count in (1, 2, 3):
            thread_pool.set_num_threads(count)
            found.append((indexing.gather(a, 1, index), *sorting.first_along(a, 1, 10, True)))
    finally:
        thread_pool.set_num_threads(former)
    for other in found[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(found[0], other))


def test_every_half_to_single():
    half = np.arange(65536, dtype=np.uint16).view(np.float16)
    found = tensor(half).float().numpy()
    numbers = ~np.isnan(half)
    assert np.array_equal(found[numbers].view(np.uint32), half[numbers].astype(np.float32).view(np.uint32))
    assert np.isnan(found[~numbers]).all()


def test_single_to_half():
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    between = ((halves[1:] + halves[:-1]) / 2).astype(np.float32)  # halfway cases
    near = [between, np.nextafter(between, np.float32(np.inf)), np.nextafter(between, np.float32(0))]
    limits = np.array([65504, 65519.996, 65520, 1e30, np.inf, 0, 1e-45, 2.0**-25, 2.0**-26, np.nan], np.float32)
    spread = np.arange(0, 2**32, 65537, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([*near, limits, spread])
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
    found = tensor(x).half().numpy()
    numbers = ~np.isnan(x)
    assert np.array_equal(found[numbers].view(np.uint16), expected[numbers].view(np.uint16))
    assert np.isnan(found[~numbers]).all()


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 33, 1000, 70001])
def test_halves_of_any_length(n):
    x = np.random.default_rng(n).standard_normal(n + 1).astype(np.float32)[1:]
    halves = tensor(x).half()
    assert np.array_equal(halves.numpy(), x.astype(np.float16))
    assert np.array_equal(halves.float().numpy(), x.astype(np.float16).astype(np.float32))


def test_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    every = np.arange(65536, dtype=np.uint16).view(bfloat16)
    found = tensor(every).float().numpy()
    numbers = ~np.isnan(found)
    assert np.array_equal(found.view(np.uint32), np.arange(65536, dtype=np.uint32) << 16)
    near = (np.arange(65536, dtype=np.uint32) << 16)[:, None] + np.array(
        [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32
    )
    x = near.ravel().view(np.float32)
    with np.errstate(all="ignore"):
        expected = x.astype(bfloat16)
    found = tensor(x).bfloat16()
    numbers = ~np.isnan(x)
    assert np.array_equal(found.float().numpy()[numbers], expected.astype(np.float32)[numbers])
    assert np.isnan(found.float().numpy()[~numbers]).all()
    for n in (0, 1, 15, 17, 33):
        assert np.array_equal(
            tensor(x[5000 : 5000 + n]).bfloat16().float().numpy(), expected[5000 : 5000 + n].astype("f4")
        )


@pytest.mark.parametrize("dtype", ["f", "d", "i", "F", "D", "?"])
@pytest.mark.parametrize("shape, axis, count", [((900, 70), 0, 1000), ((70, 900), 1, 300), ((9, 40, 50), 1, (20, 3))])
def test_slices_by_index(shape, axis, count, dtype):
    rng = np.random.default_rng(5)
    a = rng.integers(0, 2, shape).astype(dtype)
    index = rng.integers(-shape[axis], shape[axis], count)
    for array in (a, np.asfortranarray(a), a[::-1]):
        found = indexing.index(array, [None] * axis + [index])
        expected = np.take(array, index, axis)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    for wrong in (shape[axis], -shape[axis] - 1):
        with pytest.raises(IndexError):
            indexing.index(a, [None] * axis + [np.full(count, wrong)])
