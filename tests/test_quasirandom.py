"""Sobol' sequences."""

import builtins
import copy
import pickle

import numpy as np
import pytest

import cygrad as torch
from cygrad.quasirandom import SobolEngine

pytest.importorskip("scipy")


def test_first_points():
    """The first points in two dimensions, by hand: van der Corput's sequence in Gray code order, and its partner."""
    points = SobolEngine(2).draw(6)
    expected = [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75], [0.375, 0.375], [0.875, 0.875]]
    assert points.tolist() == expected and points.dtype is torch.float32


@pytest.mark.parametrize("scramble", [False, True])
def test_every_dimension_is_stratified(scramble):
    """Each of 64 intervals has one of 64 points, in every dimension."""
    points = SobolEngine(40, scramble, seed=3).draw(64, dtype=torch.float64).numpy()
    if scramble:
        points = np.minimum(points, 1 - 1e-9)  # the first point is rounded to float32
    assert (np.sort(np.floor(points * 64), axis=0) == np.arange(64)[:, None]).all()


def test_pieces_are_those_of_the_whole():
    for scramble in (False, True):
        whole = SobolEngine(3, scramble, seed=1).draw(20)
        pieces = SobolEngine(3, scramble, seed=1)
        parts = [pieces.draw(), pieces.draw(0), pieces.draw(4), pieces.fast_forward(5).draw(10)]
        assert pieces.num_generated == 20
        assert torch.equal(torch.cat(parts), torch.cat([whole[:5], whole[10:]]))
        assert torch.equal(pieces.reset().draw(20), whole)
        assert torch.equal(SobolEngine(3, scramble, seed=1).fast_forward(7).draw(13), whole[7:])


def test_powers_of_two():
    engine = SobolEngine(2)
    assert engine.draw_base2(2).shape == (4, 2)
    assert engine.draw_base2(2).shape == (4, 2)
    with pytest.raises(ValueError, match=r"8 points have been previously generated, then: n=8\+2\*\*2=12."):
        engine.draw_base2(2)
    assert engine.num_generated == 8


def test_dtype_and_out():
    out = torch.empty(0)
    assert SobolEngine(2).draw(3, out=out) is out and out.shape == (3, 2)
    assert SobolEngine(2).draw(3, dtype=torch.float64).dtype is torch.float64
    with pytest.raises(NotImplementedError, match="\"_sobol_engine_draw\" not implemented for 'Long'"):
        SobolEngine(2).draw(3, dtype=torch.int64)


def test_seeds():
    first, again, other = (SobolEngine(2, scramble=True, seed=seed).draw(4) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    torch.manual_seed(0)
    unseeded = SobolEngine(2, scramble=True).draw(4)
    assert not torch.equal(unseeded, SobolEngine(2, scramble=True).draw(4))
    torch.manual_seed(0)
    assert torch.equal(unseeded, SobolEngine(2, scramble=True).draw(4))


def test_copies_go_on_where_the_engine_is():
    engine = SobolEngine(2, scramble=True, seed=1)
    engine.draw(3)
    copies = copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))
    expected = engine.draw(4)
    assert all(torch.equal(one.draw(4), expected) for one in copies)


def test_repr():
    assert repr(SobolEngine(2)) == "SobolEngine(dimension=2)"
    assert repr(SobolEngine(2, True, 5)) == "SobolEngine(dimension=2, scramble=True, seed=5)"


def test_wrong_arguments():
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
            SobolEngine(dimension)
    engine = SobolEngine(1)
    with pytest.raises(RuntimeError, match=r"Trying to create tensor with negative dimension -2: \[-2, 1\]"):
        engine.draw(-1)
    with pytest.raises(TypeError, match="must be int, not float"):
        engine.draw(2.5)
    assert engine.num_generated == 0 and engine.draw(2).tolist() == [[0], [0.5]]


def test_without_scipy(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install scipy"):
        SobolEngine(2)
