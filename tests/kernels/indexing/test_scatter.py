"""Loops of scatter.h against NumPy: scatter, triangles, nonzero, masks; and clamped integers."""

import numpy as np
import pytest
from arrays_zoo import layouts

import cygrad
from cygrad._kernels.cpu.base import elementwise, loop_table
from cygrad._kernels.cpu.indexing import axis_ops, indexing, scatter
from cygrad._kernels.cpu.reduction import arg_extrema
from cygrad._kernels.cpu.shape import diagonals

TYPES = ["f", "d", "i", "l", "b", "?", "e", "F", "D", "u1", ">f4"]
LENGTHS = [1, 2, 7, 16, 17, 254, 255, 256, 300, 511]


def values(rng, shape, dtype):
    """About half of the values are zeros of either sign."""
    a = np.asarray(rng.integers(-3, 4, shape) * rng.integers(0, 2, shape), np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(a.astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_nonzero(dtype):
    rng = np.random.default_rng(0)
    for shape in [(0,), (3, 0), (2, 3, 4), (), *((n,) for n in LENGTHS), (5, 70), (70, 5), (1, 9), (300, 300)]:
        a = values(rng, shape, dtype)
        for _, array in layouts(a):
            expected = np.argwhere(array) if array.ndim else np.empty((int(bool(array)), 0), np.int64)
            found = axis_ops.nonzero(array)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected)
            assert arg_extrema.count_nonzero(array) == len(expected)
            if array.ndim:
                np.testing.assert_array_equal(axis_ops.first_nonzero(array, 3), expected[:3])
                np.testing.assert_array_equal(axis_ops.first_nonzero(array, 10**5)[:5], expected[:5])


def test_unusual_values_are_not_zero():
    for dtype in (np.float32, np.float64):
        tiny = np.finfo(dtype).smallest_subnormal
        a = np.array([0, -0.0, np.nan, -np.nan, np.inf, -np.inf, tiny, -tiny, 1], dtype)
        np.testing.assert_array_equal(axis_ops.nonzero(a)[:, 0], np.arange(2, 9))
        assert axis_ops.count_nonzero(np.tile(a, 9999)) == 7 * 9999
    whole = np.array([0, -(2**63), 2**62, 1, 2**32, 0])
    np.testing.assert_array_equal(axis_ops.nonzero(whole)[:, 0], [1, 2, 3, 4])
    assert arg_extrema.count_nonzero(np.tile(whole, 9999)) == 4 * 9999


@pytest.mark.parametrize("dtype", ["f", "d", "i", "l", "F", "D", "?", "e"])
@pytest.mark.parametrize(
    "shape", [(4, 6), (6, 4), (1, 5), (5, 1), (3, 7, 5), (2, 3, 0), (2, 0, 3), (200, 300)], ids=str
)
def test_triangles(shape, dtype):
    a = np.random.default_rng(0).integers(1, 9, shape).astype(dtype)
    for k in (-9999, -7, -3, -1, 0, 1, 2, 5, 9999):
        for _, array in layouts(a):
            for own, plain in ((diagonals.tril, np.tril), (diagonals.triu, np.triu)):
                found = own(array, k)
                assert found.dtype == a.dtype and found.shape == shape
                np.testing.assert_array_equal(found, plain(a, k))


def scatter_by_hand(out, axis, index, source):
    for at in np.ndindex(index.shape):
        to = list(at)
        to[axis] = index[at]
        out[tuple(to)] = source[at] if source.ndim else source


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 300])
@pytest.mark.parametrize("columns", [0, 1, 4, 9, 200])
def test_places_of_triangles(rows, columns):
    for offset in (-(2**62), -rows - 1, -rows, -1, 0, 1, 3, columns - 1, columns, columns + 2, 2**62):
        shift = min(max(offset, -1000), 1000)
        expected = np.nonzero(np.tri(rows, columns, shift, bool))
        np.testing.assert_array_equal(diagonals.tril_indices(rows, columns, offset), expected)
        expected = np.nonzero(~np.tri(rows, columns, shift - 1, bool))
        np.testing.assert_array_equal(diagonals.triu_indices(rows, columns, offset), expected)


def test_places_of_triangles_without_ends():
    many = 2**62
    assert diagonals.triu_indices(many, 2, 0).tolist() == [[0, 0, 1], [0, 1, 1]]
    assert diagonals.tril_indices(2, many, 0).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert diagonals.tril_indices(many, 2, 1 - many).tolist() == [[many - 1], [0]]
    assert diagonals.triu_indices(many, 2, 2).shape == diagonals.tril_indices(many, 2, -many).shape == (2, 0)


@pytest.mark.parametrize("dtype", ["f", "d", "i", "l", "F", "b", ">f4"])
@pytest.mark.parametrize("shape, axis, count", [((7,), 0, 9), ((5, 6), 1, 8), ((5, 6), 0, 3), ((3, 4, 5), 1, 6)])
def test_scatter(shape, axis, count, dtype):
    rng = np.random.default_rng(0)
    places = (*shape[:axis], count, *shape[axis + 1 :])
    for small in (places, tuple(max(n - 1, 1) for n in places)):
        index = rng.integers(0, shape[axis], small)
        out = rng.integers(0, 9, shape).astype(dtype)
        for source in (rng.integers(10, 99, places).astype(dtype), np.array(7, dtype)):
            expected, found = out.copy(), out.copy()
            scatter_by_hand(expected, axis, index, source)
            scatter.scatter(found, axis, index, source)
            np.testing.assert_array_equal(found, expected)
            strided = np.repeat(out, 2, -1)[..., ::2]
            scatter.scatter(strided, axis, index.astype(np.int32), source)
            np.testing.assert_array_equal(strided, expected)


def test_scatter_outside():
    for wrong in (4, 10**12):
        out, index = np.zeros((3, 4), np.float32), np.array([[0], [1], [wrong]])
        with pytest.raises(IndexError):
            scatter.scatter(out, 1, index, np.ones((3, 1), np.float32))
        tensor = cygrad.zeros(3, 4)
        with pytest.raises(RuntimeError):
            tensor.scatter_(1, cygrad.tensor(index), 1.0)
        assert not tensor.any()
    scatter.scatter(out, 1, index.clip(-1, -1), np.array(2, np.float32))
    np.testing.assert_array_equal(out[:, 3], 2)


@pytest.mark.parametrize("kind", ["f", "d"])
def test_indices_that_another_thread_has_changed(kind):
    # changed after validation: out-of-range elements are neither written nor read
    index = np.array([[0, 3, -1], [10**15, 2, -(2**63)], [4, 1, 2**63 - 1]])
    memory = np.zeros(14, kind)
    arrays = memory[1:13], index, np.arange(1, 10).astype(kind)
    if not loop_table.has_loops(memory):
        return
    assert loop_table.run(scatter.SCATTER, arrays, (4, 3, 1, 3), 0, 3, 1)
    np.testing.assert_array_equal(memory, [0, 1, 0, 0, 2, 0, 0, 5, 0, 0, 8, 0, 0, 0])
    found = np.full(9, 7, kind)
    assert loop_table.run(indexing.GATHER, (memory[1:13], index, found), (4, 3, 1), 0, 9, 1)
    np.testing.assert_array_equal(found, [1, 2, 7, 7, 5, 7, 7, 8, 7])


def test_added_rows_outside():
    for dtype in (np.float32, np.int64, np.float16):
        for wrong in (-1, 3):
            with pytest.raises(IndexError):
                scatter.add_rows(np.zeros((3, 2), dtype), np.array([0, wrong]), np.ones((2, 2), dtype))


def test_sums_at_indices_of_both_signs():
    index, values = np.array([0, 2, -1, 1]), np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(scatter.index_sum(values, (3, 2), (index,)), [[0, 1], [6, 7], [6, 8]])


REDUCTIONS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@pytest.mark.parametrize("reduce", [*REDUCTIONS, "mean"])
@pytest.mark.parametrize("dtype", ["f", "d", "l", "F"])
@pytest.mark.parametrize("shape, axis, count", [((7,), 0, 40), ((3, 5), 1, 40), ((5, 6), 0, 9), ((3, 4, 5), 1, 6)])
def test_scatter_reduce(shape, axis, count, dtype, reduce):
    if dtype == "F" and reduce in ("amax", "amin"):
        return
    rng = np.random.default_rng(0)
    places = (*shape[:axis], count, *shape[axis + 1 :])
    a, source = rng.integers(1, 4, shape).astype(dtype), rng.integers(1, 4, places).astype(dtype)
    if dtype == "f" and reduce != "mean":
        source[(0,) * len(places)] = np.nan
    for small in (places, (*places[:axis], 3, *places[axis + 1 :]), tuple(max(n - 1, 1) for n in places)):
        index = rng.integers(0, shape[axis], small)
        at = tuple(index if d == axis else own for d, own in enumerate(np.indices(small, sparse=True)))
        values = source[tuple(map(slice, small))]
        for include_self in (True, False):
            expected, counts = a.copy(), np.full(shape, include_self, float)
            if not include_self:
                expected[at] = (
                    {"prod": 1, "amax": -np.inf, "amin": np.inf}.get(reduce, 0)
                    if dtype not in "l"
                    else ({"prod": 1, "amax": -9, "amin": 9}.get(reduce, 0))
                )
            with np.errstate(invalid="ignore"):  # NumPy warns about NaN
                REDUCTIONS.get(reduce, np.add).at(expected, at, values)
            if reduce == "mean":
                np.add.at(counts, at, 1)
                divide = np.floor_divide if dtype == "l" else np.divide
                expected = divide(expected, np.maximum(counts, 1).astype(dtype))
            found = scatter.scatter_reduce(a, axis, index, source, reduce, include_self)
            assert found.dtype == a.dtype
            np.testing.assert_allclose(found, expected, 1e-5)


@pytest.mark.skipif(not loop_table.has_loops(np.zeros(1)), reason="without loops, ops alone look at indices")
@pytest.mark.parametrize("kind", ["f", "d"])
def test_sums_outside(kind):
    index, memory = np.array([[0, 2], [1, 3]]), np.zeros(10, kind)
    out, values = memory[1:9].reshape(2, 2, 2), np.ones((2, 2), kind)
    for wrong in (-1, 2, 10**15):
        index[1, 1] = wrong
        with pytest.raises(IndexError):
            scatter.add_at(out.reshape(2, 4)[:, :2].copy(), 1, index, values)
    assert loop_table.along(9, memory[:8].reshape(2, 4), 1, index, values) != 0  # or None, without loops
    assert not memory[8:].any()


def test_what_loops_along_an_axis_do_not_take():
    """Operands with other lengths beside the axis, too few elements, other dtypes or read-only memory are rejected."""
    x, index = np.zeros((2, 3), "f"), np.zeros((2, 2), np.int64)
    frozen = x.copy()
    frozen.flags.writeable = False
    for whole, axis, where, part in (
        (x, 1, index[:1], x),
        (x, 0, index, x),
        (x, 1, index, np.zeros((2, 1), "f")),
        (x, 1, index, np.zeros((3, 2), "f")),
        (x, 1, index, np.zeros(2, "f")),
        (x, 1, index, x.astype("d")),
        (x, 1, index.astype(np.int32), x),
        (x, 2, index, x),
        (x, -1, index, x),
        (x.T, 0, index.T, x.T),
        (x, 1, index[:, ::-1], x),
        (frozen, 1, index, x),
    ):
        assert loop_table.along(scatter.SCATTER, whole, axis, where, part) is None
    assert loop_table.along(indexing.GATHER, x, 1, index, frozen) is None


def test_scatter_of_itself():
    a = np.arange(12.0).reshape(3, 4)
    index = np.array([[1, 2, 3, 0]] * 3)
    scatter.scatter(a, 1, index, a)
    np.testing.assert_array_equal(a, [[3, 0, 1, 2], [7, 4, 5, 6], [11, 8, 9, 10]])


@pytest.mark.parametrize("dtype", ["f", "d", "i", "l"])
def test_columns_by_index(dtype):
    a = np.random.default_rng(0).integers(0, 99, (300, 70)).astype(dtype)
    for index in (np.array([0, 69, -1, -70, 5]), np.arange(69, -1, -1), np.random.default_rng(1).integers(-70, 70, 90)):
        for _, array in layouts(a):
            np.testing.assert_array_equal(indexing.index_select(array, 1, index), a[:, index])
    for wrong in (70, -71):
        with pytest.raises(IndexError):
            indexing.index_select(a, 1, np.full(90, wrong))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("share", [0, 0.02, 0.5, 0.97, 1])
def test_masked_elements(share, dtype):
    rng = np.random.default_rng(2)
    for shape in [(0,), (3, 5), (90, 70), (4097,), (4104,)]:
        a, mask = values(rng, shape, dtype), rng.random(shape) < share
        for _, array in layouts(a):
            for _, chosen in layouts(mask):
                found = indexing.masked_select(array, chosen)
                assert found.dtype == array.dtype
                np.testing.assert_array_equal(found, a[mask])
                np.testing.assert_array_equal(indexing.index(array, [chosen]), a[mask])


@pytest.mark.parametrize("n", [0, *LENGTHS, 70001])
def test_clamped_integers(n):
    a = np.random.default_rng(n).integers(-(2**63), 2**63 - 1, n)
    for low, high in ((-5, 2**62), (None, 3), (-(2**40), None), (9, -9), (-(2**63), 2**63 - 1)):
        expected = a if low is None else np.maximum(a, low)
        expected = expected if high is None else np.minimum(expected, high)
        np.testing.assert_array_equal(elementwise.clamp(a, low, high), expected)
        np.testing.assert_array_equal(elementwise.clamp(a[::-1], low, high), expected[::-1])
        inside = a.copy()
        assert elementwise.clamp(inside, low, high, inside) is inside
        np.testing.assert_array_equal(inside, expected)
