"""Loops of float16 and bfloat16 (half_loops.h) against float32 loops between two conversions."""

import os

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.cpu.base.ufunc import Ufunc

ml_dtypes = pytest.importorskip("ml_dtypes")

NARROW = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
BINARY = "add subtract multiply divide maximum minimum power less equal logical_and fmod remainder nextafter".split()
UNARY = "absolute negative sqrt exp tanh isnan sign".split()
PURE = os.environ.get("CYGRAD_PURE") == "1"
INEXACT = {"power", "tanh", *(["exp"] if PURE else [])}  # may be NumPy's loops, whose bits depend on the layout
SIGNED = "add subtract multiply divide negative absolute".split()  # functions for which the sign of 0 is checked
LENGTHS = [0, 1, 7, 8, 9, 511, 512, 513, 1025, 70000]  # around the lengths of vectors, chunks, and thread chunks
UNUSUAL = [0.0, -0.0, 1, -2, np.inf, -np.inf, np.nan, 65504, 3e38, 6e-8, 6e-5, 1e-39, 0.1, 2049]


@pytest.fixture(autouse=True)
def silence():
    with np.errstate(all="ignore"):
        yield


def expected(ufunc, *arrays):
    if ufunc is np.nextafter:
        return ufunc(*arrays)
    found = Ufunc(ufunc)(*(a.astype(np.float32) for a in np.broadcast_arrays(*arrays)))
    return found if found.dtype == bool else found.astype(arrays[0].dtype)


def same(found, wanted):
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


def same_or_next(found, wanted):
    """Equal, or neighbors in the narrow type; infinity is the neighbor of the largest number."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    places = [a[~np.isnan(wanted)].view(np.int16).astype(int) for a in (found, wanted)]
    first, second = (np.where(p < 0, -(p & 0x7FFF), p) for p in places)
    assert abs(first - second).max(initial=0) <= 1


def check(name, *arrays):
    ufunc = getattr(np, name)
    found, wanted = Ufunc(ufunc)(*arrays), expected(ufunc, *arrays)
    assert found.dtype == wanted.dtype
    (same_or_next if name in INEXACT else same)(found, wanted)
    if name in SIGNED:
        same(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


def operands(dtype, n):
    random = np.random.default_rng(n)
    return random.normal(size=n).astype(dtype), random.normal(size=n).astype(dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", BINARY + UNARY)
def test_lengths(name, dtype):
    for n in LENGTHS:
        check(name, *operands(dtype, n)[: getattr(np, name).nin])


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", BINARY + UNARY)
def test_unusual_numbers(name, dtype):
    a, b = (x.reshape(-1) for x in np.meshgrid(np.array(UNUSUAL).astype(dtype), np.array(UNUSUAL).astype(dtype)))
    check(name, *(a, b)[: getattr(np, name).nin])


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", BINARY)
def test_layouts(name, dtype):
    a, b = operands(dtype, 1200)
    check(name, a[::-1], b[::-1])
    check(name, a[::3], b[:400])
    check(name, a, b[:1])
    check(name, a[:1], b)
    check(name, a.reshape(30, 40).T, b[:30])
    found, wanted = Ufunc(getattr(np, name))(a, 2), expected(getattr(np, name), a, np.array([2], dtype))
    (same_or_next if name in INEXACT else same)(found, wanted)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", ["add", "less", "absolute"])
def test_results_in_given_memory(name, dtype):
    ufunc = getattr(np, name)
    given = operands(dtype, 1200)[: ufunc.nin]
    wanted = expected(ufunc, *given)
    for out in (np.zeros(1200, wanted.dtype), np.zeros(2400, wanted.dtype)[::2], np.zeros(1200, wanted.dtype)[::-1]):
        same(Ufunc(ufunc)(*given, out=out), wanted)
    if name != "less":
        Ufunc(ufunc)(*given, out=given[0])
        same(given[0], wanted)


def test_sums_and_largest_elements_are_collected_in_one():
    from cygrad._kernels.cpu.base import reduce

    a = (np.arange(6000).reshape(3, 2000) % 7).astype(np.float16)
    assert reduce.amax(a).tolist() == 6 and reduce.amin(a, (1,)).tolist() == [0, 0, 0]
    same(reduce.amax(a, (0,)), a.max(0))


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, lambda a: np.repeat(a, 2, 1)[:, ::2]])
def test_doubles_are_rounded_by_way_of_floats(layout):
    """As in PyTorch, for every layout: 65519.99999 would be 65504, but as a float it is 65520, which rounds to
    infinity.
    """
    a = layout(np.array([[65519.99999, 1], [2, 3]]))
    wanted = a.astype(np.float32)
    with np.errstate(over="ignore"):
        wanted = wanted.astype(np.float16)
    t = torch.from_numpy(a)
    assert np.isinf(wanted[0, 0]) and t.half().equal(torch.from_numpy(wanted))
    assert torch.zeros(2, 2, dtype=torch.float16).copy_(t).equal(torch.from_numpy(wanted))
