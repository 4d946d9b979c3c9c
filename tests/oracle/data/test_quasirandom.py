"""Sobol' sequences are PyTorch's, bit for bit."""

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("dimension", [1, 2, 7, 1000])
@pytest.mark.parametrize(("scramble", "seed"), [(False, None), (True, 0), (True, 1234), (True, None)])
def test_points(dimension, scramble, seed):
    def draw(library):
        library.manual_seed(5)
        engine = library.quasirandom.SobolEngine(dimension, scramble, seed)
        parts = [engine.draw(3), engine.draw(5, dtype=library.float64), engine.fast_forward(9).draw(4)]
        return [*parts, engine.shift, engine.sobolstate, engine.quasi, library.rand(1)]

    for ours, theirs in zip(draw(cygrad), draw(torch), strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_all_dimensions():
    ours, theirs = (library.quasirandom.SobolEngine(21201).sobolstate.numpy() for library in (cygrad, torch))
    np.testing.assert_array_equal(ours, theirs)
