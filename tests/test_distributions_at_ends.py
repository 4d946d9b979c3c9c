"""Values and gradients of distributions at the ends of their parameters and supports."""

import itertools
import math

import pytest

import cygrad as torch
from cygrad import distributions as d

INF = math.inf
PROBS, LOGITS = [0.0, 1.0, 0.5, 1e-10, 0.25], [0.0, 1000.0, -1000.0, 30.0, -5.0]
POSITIVE = [1e-8, 0.5, 1.0, 2.0, 1e3]

# {name: (class, values of each parameter, values of samples)}
SPECIFIED = {
    "Bernoulli of probs": (d.Bernoulli, {"probs": PROBS}, [0.0, 1.0]),
    "Bernoulli of logits": (d.Bernoulli, {"logits": LOGITS}, [0.0, 1.0]),
    "Geometric of probs": (d.Geometric, {"probs": PROBS[1:]}, [0.0]),
    "Geometric of logits": (d.Geometric, {"logits": LOGITS}, [0.0, 1.0]),
    "Binomial of probs": (lambda probs, **how: d.Binomial(3, probs, **how), {"probs": PROBS}, [0.0, 1.0, 3.0]),
    "Binomial of logits": (
        lambda logits, **how: d.Binomial(3, logits=logits, **how),
        {"logits": LOGITS},
        [0.0, 1.0, 3.0],
    ),
    "NegativeBinomial": (d.NegativeBinomial, {"total_count": [0.0, 3.0], "logits": LOGITS}, [0.0]),
    "ContinuousBernoulli": (d.ContinuousBernoulli, {"probs": PROBS}, [0.0, 1.0]),
    "Poisson": (d.Poisson, {"rate": [0.0, *POSITIVE]}, [0.0]),
    "Exponential": (d.Exponential, {"rate": POSITIVE}, [0.0, 1.0]),
    "Laplace": (d.Laplace, {"loc": [0.0], "scale": POSITIVE}, [0.0, 1.0]),
    "HalfCauchy": (d.HalfCauchy, {"scale": POSITIVE}, [0.0, 1.0]),
    "HalfNormal": (d.HalfNormal, {"scale": POSITIVE[1:]}, [0.0, 1.0]),
    "StudentT": (d.StudentT, {"df": POSITIVE, "loc": [0.0], "scale": [1.0]}, [0.0]),
    "InverseGamma": (d.InverseGamma, {"concentration": POSITIVE, "rate": [0.5]}, [1.0]),
    "FisherSnedecor": (d.FisherSnedecor, {"df1": POSITIVE[1:], "df2": [1.0, 3.0, 5.0]}, [1.0]),
    "Pareto": (d.Pareto, {"scale": [1.0], "alpha": POSITIVE}, [1.0]),
    "Weibull": (d.Weibull, {"scale": [1.0], "concentration": [1.0, 2.0, 50.0]}, [1e-30, 1.0]),
    "Kumaraswamy": (d.Kumaraswamy, {"concentration1": [1.0, 3.0], "concentration0": [1.0, 3.0]}, [0.0, 0.5]),
    "RelaxedBernoulli": (d.RelaxedBernoulli, {"temperature": [0.5], "logits": LOGITS}, [0.5]),
    "Gamma": (d.Gamma, {"concentration": [1.0], "rate": POSITIVE}, [0.0, 1.0]),
    "Beta": (d.Beta, {"concentration1": [1.0], "concentration0": [1.0]}, [0.0, 1.0, 0.5]),
}
QUANTITIES = ["entropy", "mean", "variance"]


def made(name, leaves):
    kind, parameters, _ = SPECIFIED[name]
    return kind(**dict(zip(parameters, leaves)), validate_args=False)


def derivatives(function, values, dtype):
    """The value, and each first and second derivative: [number, ...]."""
    leaves = [torch.tensor(x, dtype=dtype, requires_grad=True) for x in values]
    value = function(*leaves)
    found = [value.item()]
    if not value.requires_grad:
        return found
    first = torch.autograd.grad(value, leaves, create_graph=True, allow_unused=True)
    for g in first:
        found.append(0.0 if g is None else g.item())
    for g in first:
        if g is not None and g.requires_grad:
            second = torch.autograd.grad(g, leaves, retain_graph=True, allow_unused=True)
            found += [0.0 if h is None else h.item() for h in second]
    return found


def functions_of(name):
    """(what, values, function of the parameters and the sample) for each case."""
    _, parameters, samples = SPECIFIED[name]
    for values in itertools.product(*parameters.values()):
        for x in samples:
            yield (
                f"log_prob({x})",
                values,
                lambda *leaves, x=x: made(name, leaves).log_prob(torch.tensor(x, dtype=leaves[0].dtype)),
            )
        for quantity in QUANTITIES:

            def take(*leaves, quantity=quantity):
                found = getattr(made(name, leaves), quantity)
                return found() if callable(found) else found

            yield quantity, values, take


# (name, quantity): where a moment itself is not a number, or a number leaves the range of float64
UNDEFINED = {
    ("FisherSnedecor", "mean"), ("FisherSnedecor", "variance"), ("StudentT", "mean"), ("StudentT", "variance"),
    ("Geometric of logits", "mean"), ("Geometric of logits", "variance"),
    ("NegativeBinomial", "mean"), ("NegativeBinomial", "variance"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIFIED)
def test_nothing_is_nan_at_ends(name):
    seen = 0
    for what, values, function in functions_of(name):
        try:
            found = derivatives(function, values, torch.float64)
        except NotImplementedError:
            continue
        seen += 1
        if (name, what) not in UNDEFINED or math.isfinite(found[0]):
            assert not any(map(math.isnan, found)), f"{what} at {values}: {found}"
    assert seen


# --- Divergences -------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda p: p, lambda p: d.Independent(p, 1)], ids=["plain", "independent"])
@pytest.mark.parametrize("logit", [30.0, -30.0, -5.0, 80.0, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_divergence_of_logits(wrap, logit, dtype):
    """For q = 1/2, derivatives by the logit l are s l and s (1 - l tanh(l / 2)), where s = 1 / (2 cosh(l / 2))^2."""
    logits = torch.tensor([logit], dtype=dtype, requires_grad=True)
    half = torch.full((1,), 0.5, dtype=dtype)
    found = d.kl_divergence(wrap(d.Bernoulli(logits=logits)), wrap(d.Bernoulli(half)))
    (first,) = torch.autograd.grad(found.sum(), logits, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), logits)
    slope = 1 / (2 * math.cosh(logit / 2)) ** 2
    assert first.item() == pytest.approx(slope * logit, rel=1e-5)
    assert second.item() == pytest.approx(slope * (1 + logit * math.tanh(-logit / 2)), rel=1e-5)


def test_divergence_of_certain_events():
    """At p = 0 the term p log(p / q) is 0; the derivative by q is (1 - p) / (1 - q) - p / q."""
    p = torch.tensor([0.0, 1.0, 0.25, 0.0], requires_grad=True)
    q = torch.tensor([0.5, 0.5, 0.75, 0.0], requires_grad=True)
    found = d.kl_divergence(d.Bernoulli(p), d.Bernoulli(q))
    expected = [math.log(2), math.log(2), 0.25 * math.log(1 / 3) + 0.75 * math.log(3), 0]
    assert found.tolist() == pytest.approx(expected)
    found.sum().backward()
    assert q.grad.tolist() == pytest.approx([2, -2, 3 - 1 / 3, 1])
    assert p.grad.isfinite().all() and p.grad[2].item() == pytest.approx(2 * math.log(1 / 3), rel=1e-5)
    impossible = d.kl_divergence(d.Bernoulli(torch.tensor([0.5, 1.0])), d.Bernoulli(torch.tensor([1.0, 0.0])))
    assert impossible.tolist() == [INF, INF]


def test_divergence_of_far_logits_is_finite():
    p, q = (torch.tensor(x, requires_grad=True) for x in (0.0, -1000.0))
    found = d.kl_divergence(d.Bernoulli(logits=p), d.Bernoulli(logits=q))
    found.backward()
    assert found.item() == pytest.approx(500 - math.log(2), rel=1e-6)
    assert [p.grad.item(), q.grad.item()] == pytest.approx([250, -0.5])


@pytest.mark.parametrize("count", [1.0, 3.0])
def test_divergence_of_binomials(count):
    for given, other in itertools.product([{"probs": 0.0}, {"probs": 1.0}, {"logits": 40.0}], [0.5, 0.25]):
        p, q = ({k: torch.tensor(v, requires_grad=True) for k, v in given.items()}, torch.tensor(other))
        q.requires_grad_()
        found = d.kl_divergence(d.Binomial(int(count), **p), d.Binomial(int(count), q))
        grads = torch.autograd.grad(found, [*p.values(), q])
        share = 0 if given.get("probs") == 0 else 1
        assert found.item() == pytest.approx(-count * math.log(other if share else 1 - other), rel=1e-6)
        assert all(g.isfinite() for g in grads)
        assert grads[1].item() == pytest.approx(count * ((1 - share) / (1 - other) - share / other), rel=1e-5)


def test_divergence_of_classes():
    p = torch.tensor([-INF, 0.0, 0.0], requires_grad=True)
    q = torch.tensor([-INF, 0.0, math.log(3.0)], requires_grad=True)
    found = d.kl_divergence(d.Categorical(logits=p), d.Categorical(logits=q))
    found.backward()
    assert found.item() == pytest.approx(math.log(0.5) - (math.log(0.25) + math.log(0.75)) / 2)
    half = math.log(3) / 4  # p (log(p / q) - the divergence)
    assert p.grad.tolist() == pytest.approx([0, half, -half], abs=1e-6)
    assert q.grad.tolist() == pytest.approx([0, -0.25, 0.25], abs=1e-6)


def test_divergences_that_are_infinite_have_no_nan():
    def parameters(*values):
        return [torch.tensor(x, requires_grad=True) for x in values]

    scale, alpha, loc, spread = parameters(1.0, 0.5, 0.0, 2.0)
    low, high, a, b = parameters(-1.0, 2.0, 0.5, 3.0)
    for found, leaves in (
        (d.kl_divergence(d.Pareto(scale, alpha), d.Normal(loc, spread)), [scale, alpha, loc, spread]),
        (d.kl_divergence(d.Pareto(scale, alpha), d.Gamma(a, b)), [scale, alpha, a, b]),
        (d.kl_divergence(d.Uniform(low, high), d.Beta(a, b)), [low, high, a, b]),
        (d.kl_divergence(d.Uniform(low, high), d.Gamma(a, b)), [low, high, a, b]),
        (d.kl_divergence(d.Uniform(low, high), d.Pareto(scale, alpha)), [low, high, scale, alpha]),
        (d.kl_divergence(d.Bernoulli(torch.tensor(0.5)), d.Poisson(torch.tensor(0.0))), []),
    ):
        assert found.item() == INF
        for g in torch.autograd.grad(found, leaves, allow_unused=True) if leaves else ():
            assert g is None or not g.isnan()


def test_densities_in_tails():
    x = torch.tensor(1e-300, dtype=torch.float64)
    c = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    found = d.Weibull(torch.ones((), dtype=torch.float64), c).log_prob(x)
    assert found.item() == pytest.approx(math.log(2) + math.log(1e-300))
    assert torch.autograd.grad(found, c)[0].item() == pytest.approx(0.5 + math.log(1e-300))
    far = torch.tensor(1000.0, requires_grad=True)
    found = d.RelaxedBernoulli(torch.tensor(0.5), logits=far).log_prob(torch.tensor(0.5))
    assert found.item() == pytest.approx(math.log(0.5) - 1000 + math.log(4), rel=1e-6)
    assert torch.autograd.grad(found, far)[0].item() == -1
    assert d.Geometric(logits=torch.tensor(-1000.0)).entropy().item() == pytest.approx(1001)
    assert d.Geometric(torch.tensor(1.0)).entropy().item() == 0
    assert d.Geometric(logits=torch.tensor(1000.0)).log_prob(torch.tensor(2.0)).item() == -2000
    ends = d.Kumaraswamy(torch.tensor(1.0), torch.tensor(3.0)).log_prob(torch.tensor([0.0, 0.5]))
    assert ends.exp().tolist() == pytest.approx([3, 0.75])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_samples_of_small_concentrations_are_inside(dtype):
    torch.manual_seed(1)
    small = torch.tensor(0.01, dtype=dtype, requires_grad=True)
    samples = d.Beta(small, small).rsample([2000])
    assert samples.min() == torch.finfo(dtype).tiny and 0.9 < samples.max() < 1
    assert d.Beta(small, small).log_prob(samples).isfinite().all()
    samples.sum().backward()
    assert small.grad.isfinite()


def test_counts_have_the_dtype_of_the_probabilities():
    found = d.NegativeBinomial(torch.tensor([3, 4]), probs=torch.tensor([0.25, 0.5], dtype=torch.float64))
    assert found.total_count.dtype is torch.float64 and found.sample((5,)).dtype is torch.float64


def test_gamma_takes_numbers():
    assert d.Gamma(0.5, 1).log_prob(0) == INF and d.Gamma(2, 1).log_prob(0) == -INF
    assert d.Chi2(2.0).log_prob(2) == d.Chi2(2.0).log_prob(torch.tensor(2.0))
    with pytest.raises(ValueError, match="Expected value argument"):
        d.Gamma(2.0, 1.0).log_prob(-1)


def test_gradients_of_concentrations_by_name():
    from cygrad.distributions.gammas import _Dirichlet_backward

    a = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
    x = d.Dirichlet(a).rsample()
    x[1].backward()
    found = _Dirichlet_backward(x.detach(), a.detach(), torch.tensor([0.0, 1.0, 0.0]))
    assert torch.equal(found, a.grad)
