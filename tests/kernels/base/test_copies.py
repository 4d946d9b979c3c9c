"""Copies between strided arrays (copies.h) give NumPy's results and touch no other memory."""

import itertools

import numpy as np
import pytest
from arrays_zoo import layouts, values

import cygrad
from cygrad._kernels.cpu.base.arrays import copy_array, fill

DTYPES = ["?", "u1", "i2", "f2", "f4", "i8", "f8", "c8", "c16", "g", "O"]
SHAPES = [(), (0, 3), (1,), (5,), (3, 4), (15, 17), (16, 16), (20, 33), (4, 48), (3, 5, 18), (2, 1, 4, 3), (1, 64, 5)]


def framed(shape, dtype, order):
    """Return (an array for a result with axis `order` in memory, the memory around it, which must not change)."""
    memory = np.full(tuple(shape[axis] + 2 for axis in order), 7, dtype)
    inner = memory[(slice(1, -1),) * len(shape) + (...,)]
    return inner.transpose(np.argsort(order)) if shape else inner, memory


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_layouts(shape, dtype):
    a = values(np.random.default_rng(0), shape, "f4" if dtype == "O" else dtype).astype(dtype)
    for order in itertools.islice(itertools.permutations(range(len(shape))), 6):
        for name, source in layouts(a) if dtype != "O" else [("objects", a)]:
            out, memory = framed(shape, dtype, order)
            copy_array(out, source)
            np.testing.assert_array_equal(out, a, err_msg=f"{name} {order}")
            out[...] = 7
            assert (memory == np.full((), 7, dtype)).all(), (name, order)


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8", "c16"])
@pytest.mark.parametrize(
    "shape", [(700, 300), (300, 700), (33, 17, 301), (5, 2051, 16), (70000,), (40000, 3), (100, 1024)], ids=str
)
def test_many_elements_for_every_number_of_threads(shape, dtype):
    a = values(np.random.default_rng(1), shape, dtype)
    former = cygrad.get_num_threads()
    try:
        for threads, order in itertools.product((1, 3), itertools.permutations(range(len(shape)))):
            cygrad.set_num_threads(threads)
            out, memory = framed(shape, dtype, order)
            copy_array(out, a)
            assert np.array_equal(out, a)
            turned = np.empty_like(a)
            copy_array(turned, out)
            assert np.array_equal(turned, a)
            backwards = np.empty_like(a)
            copy_array(backwards, a[..., ::-1])
            assert np.array_equal(backwards, a[..., ::-1])
            out[...] = 7
            assert (memory == np.full((), 7, dtype)).all()
    finally:
        cygrad.set_num_threads(former)


@pytest.mark.parametrize("n", [3, 40, 500])
def test_broadcast_and_filled(n):
    for source in (np.array(2, "f4"), np.arange(n, dtype="f4"), np.arange(n, dtype="f4")[:, None]):
        out = np.zeros((n, n), "f4")
        copy_array(out, source)
        assert np.array_equal(out, np.broadcast_to(source, (n, n)))
    fill(out, 3)
    assert (out == 3).all()
    fill(out[:, ::2], float("nan"))
    assert np.isnan(out[:, ::2]).all() and (out[:, 1::2] == 3).all()


@pytest.mark.parametrize("dtype", ["?", "i1", "e", "f", "d", "D", ">f8"])
@pytest.mark.parametrize("size", [32767, 32769, 50_001, 1 << 17, (1 << 20) + 1])
def test_all_that_is_filled_and_nothing_beside_it(size, dtype):
    whole = np.zeros(size + 16, dtype)
    fill(whole[8:-8], 1)
    assert (whole[8:-8] == 1).all() and not whole[:8].any() and not whole[-8:].any()


def test_the_bits_of_nan_and_of_zeros_stay():
    bits = np.array([0x7F800001, 0xFFC12345, 0x80000000, 1] * 100, "u4").reshape(20, 20)
    for source in (bits, bits.T, bits[:, ::-1]):
        out = np.empty((20, 20), "f4")
        copy_array(out, source.view("f4") if source.flags.c_contiguous else np.ndarray(
            source.shape, "f4", bits, source.ctypes.data - bits.ctypes.data, source.strides))  # fmt: skip
        assert np.array_equal(out.view("u4"), source)


@pytest.mark.parametrize("n", [6, 300])
def test_overlapping_and_converted(n):
    a = np.arange(n * n, dtype="f4").reshape(n, n)
    expected = a.T.copy()
    copy_array(a, a.T)
    assert np.array_equal(a, expected)
    shifted = a.copy()
    copy_array(shifted[1:], shifted[:-1])
    assert np.array_equal(shifted[1:], a[:-1])
    out = np.empty((n, n), "f8")
    copy_array(out, a)
    assert np.array_equal(out, a)


def test_what_does_not_fit_is_refused():
    frozen = np.zeros((3, 4), "f4")
    frozen.flags.writeable = False
    for out, a in ((np.zeros((3, 4), "f4"), np.zeros((4, 3), "f4")), (frozen, np.zeros((3, 4), "f4"))):
        with pytest.raises(ValueError):
            copy_array(out, a)


@pytest.mark.parametrize("shape, dim", [((300, 200), 0), ((300, 200), 1), ((3, 100, 200), 1), ((40000,), 0)])
def test_joined(shape, dim):
    a = values(np.random.default_rng(2), shape, "f4")
    for other in (a, a.astype("f8"), a[..., ::-1], a[tuple(slice(0, 0 if d == dim else None) for d in range(a.ndim))]):
        found = cygrad.cat([cygrad.from_numpy(a), cygrad.from_numpy(other.copy()), cygrad.from_numpy(a)], dim)
        expected = np.concatenate([a, other, a], dim)
        assert np.array_equal(found.numpy(), expected) and found.numpy().dtype == expected.dtype


@pytest.mark.parametrize("shifts, dims", [(1, 0), (-3, 1), ((2, 5), (0, 1)), ((2, 5), (1, 1)), (0, 0), (601, -2)])
def test_rolled(shifts, dims):
    a = values(np.random.default_rng(3), (200, 300), "f4")
    assert np.array_equal(cygrad.from_numpy(a).roll(shifts, dims).numpy(), np.roll(a, shifts, dims))
    assert cygrad.empty(0, 3).roll(shifts, dims).shape == (0, 3)
