"""Elementwise padding and its gradient, against NumPy."""

import numpy as np
import pytest

from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.shape import padding

NUMPY = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
CASES = [
    ((2, 30), (0, 0)),
    ((2, 30), (5, 0)),
    ((2, 30), (0, 29)),
    ((2, 30), (29, 29)),
    ((1, 20_000), (100, 37)),
    ((3, 40, 50), (3, 2, 20, 1)),
    ((2, 3, 90, 80), (1, 1, 0, 3)),
    ((2, 3, 30, 20, 9), (4, 8, 10, 10, 0, 5)),
]


def padded(array, mode, counts):
    pairs = list(zip(counts[::2], counts[1::2]))
    return np.pad(array, [(0, 0)] * (array.ndim - len(pairs)) + pairs[::-1], NUMPY[mode])


@pytest.mark.parametrize("few", [0, chunks.FEW])
@pytest.mark.parametrize("mode", padding.MODES)
@pytest.mark.parametrize(("shape", "counts"), CASES)
def test_padding(monkeypatch, shape, counts, mode, few):
    monkeypatch.setattr(chunks, "FEW", few)
    array = np.random.default_rng(0).standard_normal(shape)
    expected = padded(array, mode, counts)
    assert np.array_equal(padding.by_elements(array, mode, counts), expected)
    assert np.array_equal(padding.by_elements(np.asfortranarray(array), mode, counts), expected)


@pytest.mark.parametrize("mode", padding.MODES)
@pytest.mark.parametrize(("shape", "counts"), CASES)
def test_sum_back(shape, counts, mode):
    places = padded(np.arange(np.prod(shape)).reshape(shape), mode, counts)
    values = np.random.default_rng(0).standard_normal(places.shape)
    expected = np.bincount(places.ravel(), values.ravel()).reshape(shape)
    before = values.copy()
    assert np.allclose(padding.sum_back(values, mode, counts, shape), expected, 1e-12, 1e-12)
    assert np.array_equal(values, before)
