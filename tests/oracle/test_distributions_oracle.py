"""`cygrad.distributions` against PyTorch: densities, moments, divergences, and what is said of bad values."""

import pytest
from oracle.programs import compare

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = pytest.mark.oracle

DISTRIBUTIONS = {
    "d.Normal(t([0.0, 1.0]), t([1.0, 2.0]))": [0.5, 1.5],
    "d.Normal(0.0, t([1.0, 2.0]))": [0.5, 1.5],
    "d.LogNormal(t([0.0, 1.0]), t([1.0, 0.5]))": [0.5, 1.5],
    "d.Laplace(t([0.0, 1.0]), t([1.0, 2.0]))": [0.5, 1.5],
    "d.Uniform(t([0.0, 1.0]), t([1.0, 2.5]))": [0.5, 1.5],
    "d.Exponential(t([1.0, 2.0]))": [0.5, 1.5],
    "d.Poisson(t([1.0, 2.5]))": [0.0, 3.0],
    "d.Bernoulli(t([0.3, 0.9]))": [0.0, 1.0],
    "d.Bernoulli(logits=t([0.3, -0.9]))": [0.0, 1.0],
    "d.Categorical(t([[1.0, 3.0, 0.0], [1.0, 1.0, 2.0]]))": [0, 2],
    "d.Categorical(logits=t([[1.0, 3.0, 0.0], [1.0, 1.0, 2.0]]))": [0, 2],
    "d.OneHotCategorical(t([0.2, 0.8]))": [0.0, 1.0],
    "d.Independent(d.Normal(t([0.0, 1.0]), t([1.0, 2.0])), 1)": [0.5, 1.5],
    "d.MultivariateNormal(t([0.0, 1.0]), t([[2.0, 0.5], [0.5, 1.0]]))": [0.5, 1.5],
    "d.MultivariateNormal(t([0.0, 1.0]), precision_matrix=t([[2.0, 0.5], [0.5, 1.0]]))": [0.5, 1.5],
    "d.MultivariateNormal(t([[0.0, 1.0], [1.0, 1.0]]), scale_tril=t([[2.0, 0.0], [0.5, 1.0]]))": [0.5, 1.5],
}


def named(lib):
    return {"d": lib.distributions, "t": lib.tensor, "lib": lib}


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_what_a_distribution_tells(text):
    def program(lib, say):
        p = eval(text, named(lib))
        value = lib.tensor(DISTRIBUTIONS[text])
        say(repr(p))
        for name in ("batch_shape", "event_shape", "has_rsample", "mean", "variance", "stddev", "mode"):
            say(lambda name=name: getattr(p, name))
        say(repr(p.support))
        for name in ("log_prob", "cdf"):
            say(lambda name=name: getattr(p, name)(value))
        say(lambda: p.icdf(lib.tensor([0.3, 0.6])))
        for name in ("entropy", "perplexity", "enumerate_support"):
            say(lambda name=name: getattr(p, name)())
        larger = p.expand((3, *p.batch_shape))
        say(repr(larger))
        say(lambda: larger.log_prob(value))
        say(tuple(larger.sample((4,)).shape))
        say(p.sample((4,)).requires_grad)
        say(lambda: p.log_prob(lib.tensor([float("nan"), 0.0, 1.0])))

    compare(program)


MVN = "d.MultivariateNormal(t([%s, 1.0]), t([[%s, 0.5], [0.5, 1.0]]))"
DIVERGENCES = [
    ("d.Normal(0.0, 1.0)", "d.Normal(1.0, 2.0)"),
    ("d.LogNormal(0.0, 1.0)", "d.LogNormal(1.0, 2.0)"),
    ("d.Laplace(0.0, 1.0)", "d.Laplace(1.0, 2.0)"),
    ("d.Uniform(0.0, 1.0)", "d.Uniform(-1.0, 2.0)"),
    ("d.Uniform(-1.0, 1.0)", "d.Uniform(0.0, 2.0)"),
    ("d.Exponential(1.0)", "d.Exponential(2.0)"),
    ("d.Poisson(1.0)", "d.Poisson(2.0)"),
    ("d.Bernoulli(0.3)", "d.Bernoulli(0.6)"),
    ("d.Categorical(t([0.2, 0.8]))", "d.Categorical(t([0.5, 0.5]))"),
    ("d.Categorical(t([0.2, 0.8]))", "d.Categorical(t([1.0, 0.0]))"),
    ("d.Categorical(t([0.0, 1.0]))", "d.Categorical(t([0.5, 0.5]))"),
    ("d.OneHotCategorical(t([0.2, 0.8]))", "d.OneHotCategorical(t([0.5, 0.5]))"),
    ("d.Independent(d.Normal(t([0.0, 1.0]), 1.0), 1)", "d.Independent(d.Normal(t([1.0, 1.0]), 2.0), 1)"),
    (MVN % (0.0, 2.0), MVN % (1.0, 1.5)),
    ("d.Uniform(0.0, 1.0)", "d.Poisson(1.0)"),
]


@pytest.mark.parametrize("p, q", DIVERGENCES)
def test_divergences(p, q):
    def program(lib, say):
        say(lambda: lib.distributions.kl_divergence(eval(p, named(lib)), eval(q, named(lib))))

    compare(program)


BAD = [
    "d.Normal(t([float('nan'), 0.0]), 1.0)",
    "d.Normal(t([0.0, 0.0]), -1.0)",
    "d.Normal('a', 1.0)",
    "d.Normal(t([float('nan')]), 1.0, validate_args=False)",
    "d.Normal(lib.zeros(3), 1.0).log_prob(lib.zeros(2))",
    "d.Normal(0.0, 1.0).log_prob(1.0)",
    "d.Normal(0.0, 1.0).enumerate_support()",
    "d.Exponential(1.0).log_prob(t([-1.0, 2.0]))",
    "d.Uniform(1.0, 0.0)",
    "d.Uniform(0.0, 1.0).log_prob(t(2.0))",
    "d.Categorical()",
    "d.Categorical(t([0.2, 0.8]), t([0.2, 0.8]))",
    "d.Categorical(t(1.0))",
    "d.Categorical(t([-0.2, 0.8]))",
    "d.Categorical(t([0.2, 0.8])).log_prob(t(2))",
    "d.OneHotCategorical(t([0.2, 0.8])).log_prob(t([1.0, 1.0]))",
    "d.Bernoulli(1.5)",
    "d.Bernoulli(0.5, 0.5)",
    "d.Bernoulli(0.5).log_prob(t(0.3))",
    "d.Bernoulli(0.5).rsample()",
    "d.MultivariateNormal(lib.zeros(2))",
    "d.MultivariateNormal(lib.zeros(()), lib.eye(2))",
    "d.MultivariateNormal(lib.zeros(2), lib.ones(2))",
    "d.MultivariateNormal(lib.zeros(2), t([[1.0, 0.0], [0.0, -1.0]]))",
    "d.MultivariateNormal(lib.zeros(2), lib.eye(2)).log_prob(lib.zeros(3))",
    "d.Independent(d.Normal(lib.zeros(3, 2), 1.0), 3)",
]


@pytest.mark.parametrize("text", BAD)
def test_bad_parameters_and_values(text):
    def program(lib, say):
        say(lambda: repr(eval(text, named(lib))))

    compare(program)


@pytest.mark.parametrize("text", [text for text in DISTRIBUTIONS if "Poisson" not in text])
def test_gradients_reach_the_parameters(text):
    def program(lib, say):
        leaves = []

        def leaf(values):
            leaves.append(lib.tensor(values, requires_grad=True))
            return leaves[-1]

        p = eval(text, named(lib) | {"t": leaf})
        p.log_prob(lib.tensor(DISTRIBUTIONS[text])).sum().backward()
        for x in leaves:
            say(x.grad)

    compare(program)
