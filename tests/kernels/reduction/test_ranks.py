"""Order statistics by rank, against a full sort."""

import numpy as np
import pytest

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.reduction.sorting import places_of_ranks


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(chunks, "SIZE", 1 << 10)


def check(rows, ranks):
    expected = np.take_along_axis(np.argsort(rows, 1, kind="stable"), ranks, 1)
    assert (places_of_ranks(rows, ranks) == expected).all()


@pytest.mark.parametrize("different", [2, 100, 10**6])
@pytest.mark.parametrize("shape", [(1, 20000), (300, 37), (2, 3000), (1, 1)])
@pytest.mark.parametrize("kind", ["any", "ordered", "with nan", "with inf", "nan alone", "one high"])
def test_places(shape, different, kind):
    rng = np.random.default_rng(different)
    rows = rng.integers(0, different, shape).astype(np.float32)
    if kind == "ordered":
        rows.sort()
    elif kind == "one high":  # which a random sample misses
        rows[...] = 0
        rows[:, -1] = 1
    elif kind != "any":
        for value in (np.nan,) if "nan" in kind else (np.inf, -np.inf):
            rows[rng.random(shape) < (2 if "alone" in kind else 0.2)] = value
    ranks = rng.integers(0, shape[1], (shape[0], 4))
    ranks[:, 0], ranks[:, 1] = 0, shape[1] - 1
    ranks[:, 3] = ranks[:, 2]
    check(rows, ranks)


def test_strided_rows_and_integers():
    rng = np.random.default_rng(0)
    rows = rng.integers(-50, 50, (5000, 3)).T
    check(rows, rng.integers(0, 5000, (3, 2)))
    check(rows.astype(np.float64)[:, ::-2], rng.integers(0, 2500, (3, 2)))
