"""Coordinates: order, merging and look-up, compared with dictionaries."""

import numpy as np
import pytest

from cygrad._kernels.sparse import coordinates as kernels
from cygrad._kernels.sparse.array import Compressed, Coordinates

SHAPES = [(5,), (3, 4), (2, 3, 2), (1, 1)]


def some(shape, count, seed):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, n, count) for n in shape])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_grouped(shape, count):
    indices = some(shape, count, count)
    merged, groups = kernels.grouped(indices, shape)
    known = sorted(set(map(tuple, indices.T.tolist())))
    assert list(map(tuple, merged.T.tolist())) == known
    if groups is not None:
        assert [known[group] for group in groups] == list(map(tuple, indices.T.tolist()))
        first = kernels.first_of_each(groups, len(known))
        assert first.tolist() == [groups.tolist().index(i) for i in range(len(known))]


@pytest.mark.parametrize("shape", SHAPES)
def test_looked_up(shape):
    known, _ = kernels.grouped(some(shape, 4, 1), shape)
    wanted = some(shape, 20, 2)
    places, there = kernels.looked_up(known, wanted, shape)
    columns = list(map(tuple, known.T.tolist()))
    for place, found, column in zip(places, there, map(tuple, wanted.T.tolist())):
        assert found == (column in columns)
        assert not found or columns[place] == column


@pytest.mark.parametrize("shape", SHAPES)
def test_positions_and_back(shape):
    indices = some(shape, 9, 3)
    places = kernels.positions(indices, shape)
    assert places.tolist() == np.ravel_multi_index(indices, shape).tolist()
    assert (kernels.coordinates_of(places, shape) == indices).all()


@pytest.mark.parametrize("rows", [[], [0], [0, 0, 3], [2, 2, 2], [1, 2, 4, 4]])
def test_bounds_and_back(rows):
    rows = np.array(rows, np.int64)
    bounds = kernels.bounds_of(rows, 5)
    assert bounds.tolist() == [int((rows < i).sum()) for i in range(6)]
    assert kernels.rows_of(bounds).tolist() == rows.tolist()


def test_arrays_cannot_be_taken_for_ordinary_ones():
    parts = np.zeros((1, 2), np.int64), np.ones(2)
    for a in (
        Coordinates(*parts, (3,)),
        Compressed(np.array([0, 1]), np.array([0]), np.ones(1), (1, 1), "sparse_csr"),
    ):
        for attempt in (
            lambda a=a: np.asarray(a),
            lambda a=a: a + 1,
            lambda a=a: np.add(a, 1),
            lambda a=a: np.sum(a),
            lambda a=a: a[0],
            lambda a=a: len(a),
            lambda a=a: a.data,
            lambda a=a: bool(a),
            lambda a=a: a.__setitem__(0, 1),
        ):
            with pytest.raises(NotImplementedError, match="Could not run 'aten::"):
                attempt()
