"""Cumulative sums along an axis from either end, against NumPy in double precision."""

import numpy as np
import pytest
from arrays_zoo import LENGTHS

import cygrad
from cygrad._kernels.cpu.indexing import axis_ops
from cygrad._kernels.cpu.reduction import scans

ACCURACY = {np.float32: 1e-6, np.float64: 1e-13}
SHAPES = [(n,) for n in LENGTHS[1:]] + [
    (3, 5),
    (4, 9),
    (13, 1),
    (6, 40, 2),
    (3, 5, 257),
    (2, 3, 256),
    (2, 0, 3),
    (9, 70),
]


def by_numpy(a, axis, from_end):
    a = a.astype("d")
    return np.flip(np.cumsum(np.flip(a, axis), axis), axis) if from_end else np.cumsum(a, axis)


@pytest.mark.parametrize("dtype", ACCURACY)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("from_end", [False, True])
def test_sums_of_any_layout(from_end, shape, dtype):
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for axis in range(a.ndim):
        for view in (a, a[::-1], a[..., ::-1], np.asfortranarray(a), np.broadcast_to(a[:1], shape)):
            found = axis_ops.cumsum(view, axis, from_end)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, by_numpy(view, axis, from_end), ACCURACY[dtype], ACCURACY[dtype])


@pytest.mark.parametrize("dtype", ACCURACY)
def test_sums_within_the_array(dtype):
    a = np.random.default_rng(0).standard_normal((6, 300)).astype(dtype)
    for axis in range(2):
        for view in (a.copy(), a.copy()[::-1], a.copy().T):
            expected = by_numpy(view, axis, False)
            axis_ops.cumsum_within(view, axis)
            np.testing.assert_allclose(view, expected, 20 * ACCURACY[dtype], 20 * ACCURACY[dtype])


@pytest.mark.parametrize("from_end", [False, True])
def test_sums_of_whole_numbers(from_end):
    """For few lines side by side, and for as many as are added together."""
    for shape in [(5,), (4, 3), (6, 200), (3, 7, 150), (0, 200), (1, 200)]:
        a = np.random.default_rng(0).integers(-(2**62), 2**62, shape)
        for axis in range(a.ndim):
            for view in (a, a[::-1], a[..., ::-1], np.asfortranarray(a), a.astype("i4"), a.astype("u1")):
                numbers = np.flip(view, axis) if from_end else view
                expected = np.cumsum(numbers, axis, view.dtype)
                expected = np.flip(expected, axis) if from_end else expected
                np.testing.assert_array_equal(axis_ops.cumsum(view, axis, from_end), expected)
                within = view.copy()
                axis_ops.cumsum_within(within, axis, from_end)
                np.testing.assert_array_equal(within, expected)


def test_single_precision_is_added_in_double_precision():
    a = np.full(3_000_000, 0.1, np.float32)
    assert abs(axis_ops.cumsum(a, 0)[-1] - 300_000.0) < 0.1  # naive summation in single precision is off by hundreds


def test_infinities_and_nan():
    a = np.array([[1, np.inf, 2, -np.inf, 3], [np.nan, 1, 2, 3, 4], [3e38, 3e38, -3e38, 1, 1]], np.float32)
    np.testing.assert_array_equal(axis_ops.cumsum(a, 1)[0], [1, np.inf, np.inf, np.nan, np.nan])
    assert np.isnan(axis_ops.cumsum(a, 1)[1]).all()
    assert axis_ops.cumsum(a, 1)[2, 1] == np.inf


def test_integers_complex_numbers_and_halves():
    for dtype in ("i4", "u1", "F", "D", "e"):
        a = np.arange(12).reshape(3, 4).astype(dtype)
        for from_end in (False, True):
            found = axis_ops.cumsum(a, 1, from_end)
            assert found.dtype == a.dtype
            np.testing.assert_array_equal(found, by_numpy(a.real, 1, from_end))


@pytest.mark.parametrize("shape, axis", [((70, 1000), 1), ((300, 700), 0), ((5, 400, 300), 1)])
def test_threads_do_not_change_a_bit(shape, axis):
    a = np.random.default_rng(0).standard_normal(shape).astype("f")
    former, found = cygrad.get_num_threads(), set()
    for count in (1, 2, 5):
        cygrad.set_num_threads(count)
        found.add(axis_ops.cumsum(a, axis).tobytes() + axis_ops.cumsum(a, axis, True).tobytes())
    cygrad.set_num_threads(former)
    assert len(found) == 1


@pytest.mark.parametrize("dtype", ACCURACY)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_any_layout(shape, dtype):
    a = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(dtype)
    for axis in range(a.ndim):
        for view in (a, a[::-1], a[..., ::-1], np.asfortranarray(a)):
            expected = np.cumprod(view.astype("d"), axis)
            found = axis_ops.cumprod(view, axis)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, 20 * ACCURACY[dtype])
            inside = view.copy(order="K")
            axis_ops.cumprod_within(inside, axis)
            np.testing.assert_allclose(inside, expected, 200 * ACCURACY[dtype])


def extrema_by_hand(a, axis, largest):
    """The running extrema, element by element."""
    rows = np.moveaxis(a, axis, 0)
    values, places = np.empty_like(rows), np.zeros(rows.shape, np.int64)
    best, place = rows[0], np.zeros(rows.shape[1:], np.int64)
    for i, row in enumerate(rows):
        taken = (row >= best if largest else row <= best) | np.isnan(row)
        best, place = np.where(taken, row, best), np.where(taken, i, place)
        values[i], places[i] = best, place
    return np.moveaxis(values, 0, axis), np.moveaxis(places, 0, axis)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape], ids=str)
@pytest.mark.parametrize("largest", [False, True])
def test_extrema_of_any_layout(largest, shape, dtype):
    a = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    unusual = a.copy()
    if dtype != np.int64:
        unusual[np.random.default_rng(1).random(shape) < 0.1] = np.nan
        unusual[np.random.default_rng(2).random(shape) < 0.1] = -np.inf
        unusual[np.random.default_rng(3).random(shape) < 0.1] = np.inf
    for axis in range(a.ndim):
        for view in (a, unusual, unusual[::-1], unusual[..., ::-1], np.asfortranarray(unusual)):
            values, places = extrema_by_hand(view, axis, largest)
            found_values, found_places = scans.running_extremum(view, axis, largest)
            assert found_values.dtype == dtype
            np.testing.assert_array_equal(found_values, values)
            np.testing.assert_array_equal(found_places, places)


@pytest.mark.parametrize("shape", [(9,), (5, 7), (3, 7, 300)], ids=str)
def test_extrema_and_products_of_integers_of_all_bits(shape):
    """The smallest integer has no negative; products wrap around."""
    ends = np.array([-(2**63), -(2**63) + 1, -1, 0, 1, 3, 2**62 + 1, 2**63 - 1])
    a = np.random.default_rng(0).choice(ends, shape)
    for axis in range(a.ndim):
        for view in (a, a[::-1], np.asfortranarray(a)):
            for largest in (False, True):
                for found, expected in zip(
                    scans.running_extremum(view, axis, largest), extrema_by_hand(view, axis, largest)
                ):
                    np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(axis_ops.cumprod(view, axis), np.multiply.accumulate(view, axis))
            inside = view.copy()
            axis_ops.cumprod_within(inside, axis)
            np.testing.assert_array_equal(inside, np.multiply.accumulate(view, axis))
