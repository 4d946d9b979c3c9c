"""Transformed distributions against PyTorch's."""

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = pytest.mark.oracle

LIBRARIES = cygrad, torch
CASES = {
    "tanh": (lambda d, t: [d.TanhTransform(cache_size=1)], [0.3, -0.9]),
    "sigmoid": (lambda d, t: d.SigmoidTransform(), [0.2, 0.7]),
    "exp, affine": (lambda d, t: [d.ExpTransform(), d.AffineTransform(1.0, -2.0)], [-3.0, 0.5]),
    "composed": (
        lambda d, t: d.ComposeTransform([d.AffineTransform(t([1.0, 2.0]), 3.0), d.TanhTransform()]),
        [0.1, 0.2],
    ),
    "inverse": (lambda d, t: [d.SigmoidTransform(), d.ExpTransform().inv], [-0.2, -0.7]),
    "none": (lambda d, t: [], [1.0, 2.0]),
}


def numbers(values):
    return [value.detach().numpy() for value in values]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("events", [0, 1])
def test_densities_and_gradients(case, events):
    make, values = CASES[case]
    found = []
    for library in LIBRARIES:
        d = library.distributions

        def t(numbers, library=library):
            return library.tensor(numbers, dtype=library.float64)

        base = d.Normal(t([0.0, 1.0]).requires_grad_(), t([1.0, 2.0]))
        moved = d.TransformedDistribution(d.Independent(base, events), make(d, t))
        density = moved.log_prob(t(values))
        results = [density, *library.autograd.grad(density.sum(), base.loc)]
        if not events and case != "composed":
            moved = d.TransformedDistribution(base, make(d, t))
            results += [moved.cdf(t(values)), moved.icdf(t([0.2, 0.8]))]
        sample = moved.rsample((3,))
        assert sample.requires_grad and not moved.sample().requires_grad
        assert library.isfinite(moved.log_prob(sample)).all()
        shapes = moved.batch_shape, moved.event_shape, sample.shape, moved.expand((4, 2)[: 2 - events]).sample().shape
        found.append((numbers(results), [tuple(shape) for shape in shapes]))
    for ours, theirs in zip(*(results for results, _ in found), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert found[0][1] == found[1][1]


def test_the_last_argument_is_kept():
    for library in LIBRARIES:
        for size, same in ((1, True), (0, False)):
            tanh = library.distributions.TanhTransform(cache_size=size)
            x = library.tensor([20.0])
            assert (tanh.inv(tanh(x)) is x) is same and tanh.inv.inv is tanh
            assert repr(tanh.inv) == "_InverseTransform(TanhTransform())"


@pytest.mark.parametrize("value", [[2.0], "x"])
def test_values_outside_are_refused(value):
    lines = []
    for library in LIBRARIES:
        d = library.distributions
        moved = d.TransformedDistribution(d.Normal(0.0, 1.0), d.TanhTransform(), validate_args=True)
        with pytest.raises(ValueError) as caught:
            moved.log_prob(value if isinstance(value, str) else library.tensor(value))
        lines.append(str(caught.value).split("(value")[0])
        with pytest.raises(ValueError, match="^transforms must be a Transform or list, but was 3"):
            d.TransformedDistribution(d.Normal(0.0, 1.0), 3)
    assert lines[0] == lines[1]
