"""Samples of `cygrad.distributions`: moments, shapes and gradients. The formulas are compared with PyTorch's."""

import pytest

import cygrad as torch
from cygrad import distributions as d

t = torch.tensor

SAMPLED = [
    d.Normal(1.0, 2.0),
    d.LogNormal(0.0, 0.5),
    d.Laplace(1.0, 2.0),
    d.Uniform(-1.0, 3.0),
    d.Exponential(2.0),
    d.Poisson(3.0),
    d.Bernoulli(0.3),
    d.MultivariateNormal(t([0.0, 1.0]), t([[2.0, 0.5], [0.5, 1.0]])),
    d.OneHotCategorical(t([0.2, 0.3, 0.5])),
    d.OneHotCategoricalStraightThrough(t([0.2, 0.3, 0.5])),
    d.Gamma(0.5, 2.0),
    d.Chi2(3.0),
    d.InverseGamma(8.0, 4.0),
    d.Beta(0.5, 2.0),
    d.Dirichlet(t([0.2, 1.0, 3.0])),
    d.StudentT(12.0, 1.0, 0.5),
    d.Gumbel(1.0, 0.5),
    d.HalfNormal(2.0),
    d.Pareto(0.5, 8.0),
    d.Weibull(2.0, 1.5),
    d.Kumaraswamy(1.5, 0.7),
    d.FisherSnedecor(4.0, 20.0),
    d.Multinomial(4, t([0.2, 0.3, 0.5])),
    d.LowRankMultivariateNormal(t([0.0, 1.0]), t([[1.0], [-0.5]]), t([0.5, 1.0])),
    d.Geometric(0.6),
    d.Binomial(5, t(0.3)),
    d.NegativeBinomial(3.0, logits=t(-0.4)),
    d.ContinuousBernoulli(0.8),
    d.ContinuousBernoulli(0.5),
    d.GeneralizedPareto(1.0, 2.0, 0.1),
    d.GeneralizedPareto(1.0, 2.0, -0.5),
    d.Wishart(4.5, t([[0.5, 0.2], [0.2, 0.25]])),
    d.MixtureSameFamily(
        d.Categorical(t([0.3, 0.7])), d.Independent(d.Normal(t([[0.0, 1.0], [2.0, 3.0]]), t([[1.0], [0.5]])), 1)
    ),
]


@pytest.mark.parametrize("p", SAMPLED, ids=lambda p: type(p).__name__)
def test_samples_have_the_moments(p):
    x = p.sample((50_000,))
    assert x.shape == (50_000, *p.event_shape)
    torch.testing.assert_close(x.mean(0), p.mean, rtol=0.05, atol=0.03)
    torch.testing.assert_close(x.var(0), p.variance, rtol=0.1, atol=0.03)


@pytest.mark.parametrize("concentration", [0.5, 1.0, 4.0])
def test_correlations_are_spread_as_they_should(concentration):
    """Each correlation is 2 b - 1 for a beta distributed b."""
    x = d.LKJCholesky(4, t([concentration])).sample((40_000,))
    assert x.shape == (40_000, 1, 4, 4) and x.triu(1).count_nonzero() == 0
    correlations = (x @ x.mT)[:, 0]
    torch.testing.assert_close(correlations.diagonal(0, -2, -1), torch.ones(40_000, 4))
    rows, columns = torch.tril_indices(4, 4, -1)
    each = correlations[:, rows, columns]
    torch.testing.assert_close(each.mean(0), torch.zeros(6), rtol=0, atol=0.02)
    torch.testing.assert_close(each.var(0), torch.full((6,), 1 / (2 * concentration + 3)), rtol=0.04, atol=0)


@pytest.mark.parametrize("concentration", [0.5, 3.0])
def test_density_of_factors_of_correlations_is_one_in_all(concentration):
    angle = torch.linspace(0, torch.pi, 20_001, dtype=torch.float64)[1:-1]
    factor = torch.zeros(len(angle), 2, 2, dtype=torch.float64)
    factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1] = 1, angle.cos(), angle.sin()
    density = d.LKJCholesky(2, t(concentration, dtype=torch.float64)).log_prob(factor).exp()
    assert torch.trapezoid(density * angle.sin(), angle).item() == pytest.approx(1, abs=2e-3)


def test_densities_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    scale, x = [[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.25], [0.25, 1.5]]
    found = d.Wishart(3.5, t(scale, dtype=torch.float64))
    assert found.log_prob(t(x, dtype=torch.float64)).item() == pytest.approx(stats.wishart.logpdf(x, 3.5, scale))
    assert found.entropy().item() == pytest.approx(stats.wishart.entropy(3.5, scale))
    for c in (-0.5, 0.0, 0.25):
        found, expected = d.GeneralizedPareto(0.5, 2.0, t(c, dtype=torch.float64)), stats.genpareto(c, 0.5, 2.0)
        assert found.log_prob(t(1.5, dtype=torch.float64)).item() == pytest.approx(expected.logpdf(1.5))
        assert found.cdf(t(1.5, dtype=torch.float64)).item() == pytest.approx(expected.cdf(1.5))
        assert found.variance.item() == pytest.approx(expected.var())


def test_samples_of_matrices_carry_gradients():
    df, factor = t(5.0, requires_grad=True), t([[1.0, 0.0], [0.5, 1.0]], requires_grad=True)
    x = d.Wishart(df, scale_tril=factor).rsample((2000,))
    x.diagonal(0, -2, -1).sum(-1).mean().backward()
    trace = (factor.detach() ** 2).sum().item()
    assert df.grad.item() == pytest.approx(trace, rel=0.1)  # the mean of x is df times the covariances
    torch.testing.assert_close(factor.grad.tril(), 2 * 5 * factor.detach(), rtol=0.1, atol=0.3)


def test_singular_matrices_are_drawn_again(monkeypatch):
    p = d.Wishart(3.0, torch.eye(2))
    unused = torch.eye(2).expand(2, 2, 2)  # PyTorch does not give the first samples
    drawn = [unused, torch.stack([torch.zeros(2, 2), torch.eye(2)]), 2 * torch.ones(2, 1, 1) * torch.eye(2)]
    monkeypatch.setattr(d.Wishart, "_drawn", lambda self, shape: drawn.pop(0))
    with pytest.warns(UserWarning, match="Singular sample detected"):
        x = p.sample((2,))
    assert x.tolist() == [[[2, 0], [0, 2]], [[1, 0], [0, 1]]] and not drawn
    with pytest.warns(UserWarning, match="Low df values detected"):
        d.Wishart(1.5, torch.eye(2))


def test_batches_of_exponential_families_diverge_one_by_one():
    p = d.Wishart(t([3.0, 4.0]), t([[2.0, 0.5], [0.5, 1.0]]))
    q = d.Wishart(t([5.0, 3.5]), torch.eye(2))
    each = [d.kl_divergence(*(d.Wishart(x.df[i], x.covariance_matrix[i]) for x in (p, q))) for i in range(2)]
    torch.testing.assert_close(d.kl_divergence(p, q), torch.stack(each))
    entropies = d.ExponentialFamily.entropy(p)
    torch.testing.assert_close(entropies, p.entropy(), check_stride=False)
    with pytest.raises(NotImplementedError, match="^The cross KL-divergence between different exponential families"):
        d.kl_divergence(d.Normal(0.0, 1.0), p)


@pytest.mark.parametrize("concentration", [1e-6, 0.5, 6.0, 400.0])
def test_angles_are_as_near_to_their_mean_as_they_should(concentration):
    p = d.VonMises(2.5, t([concentration]))
    x = p.sample((20_000,))
    assert x.shape == (20_000, 1) and x.abs().max() <= 3.1416
    torch.testing.assert_close((x - 2.5).cos().mean(0), 1 - p.variance, rtol=0.02, atol=0.02)
    assert (x - 2.5).sin().mean().abs() < 0.02


def test_shares_of_sticks_have_gradients():
    loc = torch.zeros(3, requires_grad=True)
    p = d.LogisticNormal(loc, torch.ones(3))
    x = p.rsample((5,))
    assert x.shape == (5, 4) and torch.allclose(x.sum(-1), torch.ones(5))
    x[:, 0].sum().backward()
    assert loc.grad[0] > 0 and not loc.grad[1:].any()


def test_classes_are_drawn_as_often_as_they_should():
    p = d.Categorical(t([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]))
    x = p.sample((50_000,))
    assert x.shape == (50_000, 2) and x.dtype is torch.int64 and (x[:, 1] == 0).all()
    shares = torch.bincount(x[:, 0]) / 50_000
    torch.testing.assert_close(shares, t([0.2, 0.3, 0.5]), rtol=0, atol=0.01)
    assert p.sample((0,)).shape == (0, 2) and p.sample().shape == (2,)


def test_samples_carry_gradients():
    loc, scale = t([0.0, 1.0], requires_grad=True), t([1.0, 2.0], requires_grad=True)
    p = d.Normal(loc, scale)
    x = p.rsample((3,))
    x.sum().backward()
    assert loc.grad.tolist() == [3, 3]
    torch.testing.assert_close(scale.grad, ((x - loc) / scale).sum(0).detach())
    assert not p.sample().requires_grad


def test_gradients_of_gamma_samples_are_those_of_their_quantiles():
    special = pytest.importorskip("scipy.special")
    for concentration in (0.3, 4.0):
        a = torch.full((200,), concentration, dtype=torch.float64, requires_grad=True)
        x = d.Gamma(a, 1.0).rsample()
        x.sum().backward()
        level, step = special.gammainc(concentration, x.detach().numpy()), 1e-5
        above, below = (special.gammaincinv(concentration + s, level) for s in (step, -step))
        torch.testing.assert_close(a.grad, torch.from_numpy((above - below) / (2 * step)), rtol=1e-4, atol=1e-9)


def test_relaxed_classes_learn_which_one_is_best():
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    for kind in (d.RelaxedOneHotCategorical, d.OneHotCategoricalStraightThrough):
        logits.detach().zero_()
        for _ in range(60):
            options = () if kind is d.OneHotCategoricalStraightThrough else (t(0.5),)
            x = kind(*options, logits=logits).rsample((32,))
            optimizer.zero_grad()
            (x * t([1.0, 0.0, 0.8])).sum(-1).mean().backward()
            optimizer.step()
        assert logits.argmax() == 1


def test_samples_of_small_concentrations_are_finite():
    x = d.Dirichlet(torch.full((100, 3), 1e-4)).rsample()
    assert x.isfinite().all() and torch.allclose(x.sum(-1), torch.ones(100))
    a = torch.full((100,), 1e-4, requires_grad=True)
    x = d.Gamma(a, 1.0).rsample()
    x.sum().backward()
    assert (x > 0).all() and a.grad.isfinite().all()


def test_checks_can_be_switched_off():
    with pytest.raises(ValueError, match="Expected parameter scale"):
        d.Normal(0.0, -1.0)
    d.Distribution.set_default_validate_args(False)
    try:
        d.Normal(0.0, -1.0)
    finally:
        d.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        d.Distribution.set_default_validate_args("perhaps")


def test_divergences_can_be_added(monkeypatch):
    monkeypatch.setattr("cygrad.distributions.kl._KL_REGISTRY", dict(d.kl._KL_REGISTRY))

    class Special(d.Normal):
        pass

    @d.register_kl(Special, d.Normal)
    def _(p, q):
        return t(-1.0)

    special = Special(0.0, 1.0)
    assert d.kl_divergence(special, d.Normal(0.0, 1.0)) == -1  # a closer match than the rule for Normal
    assert d.kl_divergence(d.Normal(0.0, 1.0), special) == 0


def test_each_class_has_a_module_as_in_pytorch():
    from cygrad.distributions.categorical import Categorical
    from cygrad.distributions.normal import Normal

    assert (Categorical, Normal) == (d.Categorical, d.Normal)


def test_a_policy_learns():
    torch.manual_seed(0)
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    reward = t([0.0, 1.0, 0.2])
    for _ in range(60):
        p = d.Categorical(logits=logits)
        action = p.sample((32,))
        loss = -(p.log_prob(action) * reward[action]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert logits.argmax() == 1 and logits.softmax(0)[1] > 0.8


@pytest.mark.parametrize("kind", ["TanhTransform", "SigmoidTransform", "ExpTransform"])
def test_transformed_densities_add_up_to_one(kind):
    transform = getattr(d, kind)(cache_size=1)
    moved = d.TransformedDistribution(d.Normal(0.1, 0.8), [transform, d.AffineTransform(2.0, -3.0)])
    edges = moved.icdf(torch.linspace(0.999, 0.001, 4001))
    x = (edges[1:] + edges[:-1]) / 2
    total = (moved.log_prob(x).exp() * (edges[1:] - edges[:-1]).abs()).sum()
    assert abs(total.item() - 0.998) < 1e-3
    assert torch.allclose(moved.cdf(edges), torch.linspace(0.999, 0.001, 4001), atol=1e-4)
    assert torch.allclose(d.identity_transform(x), x) and not d.identity_transform.log_abs_det_jacobian(x, x).any()
