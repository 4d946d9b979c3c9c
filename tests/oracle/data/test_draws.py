"""The same seed gives PyTorch's samples of distributions, orders of samples and numbers drawn by workers."""

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle

DISTRIBUTIONS = """
Bernoulli(a)
Bernoulli(logits=b - 2)
Beta(a * 3, b)
Binomial(9, a)
Binomial(100, a)
Binomial(torch.tensor(9), a)
Categorical(torch.stack([a, b]))
Categorical(logits=torch.stack([a, b]))
Cauchy(a, b)
Chi2(b)
ContinuousBernoulli(a)
Dirichlet(b)
Dirichlet(torch.stack([a, b]))
Exponential(b)
FisherSnedecor(b, b + 1)
Gamma(a, b)
GeneralizedPareto(a, b, a)
Geometric(a)
Gumbel(a, b)
HalfCauchy(b)
HalfNormal(b)
Independent(Normal(a, b), 1)
InverseGamma(b, a)
Kumaraswamy(a, b)
LKJCholesky(2, b[0])
Laplace(a, b)
LogNormal(a, b)
LogisticNormal(a, b)
LowRankMultivariateNormal(a, torch.stack([a, b], 1), b)
MixtureSameFamily(Categorical(a), Normal(a, b))
Multinomial(7, b)
MultivariateNormal(a, scale_tril=torch.diag(b))
NegativeBinomial(b, a)
Normal(a, b)
OneHotCategorical(b)
OneHotCategoricalStraightThrough(b / b.sum())
Pareto(a, b)
Poisson(b * 5)
RelaxedBernoulli(b[0], a)
RelaxedOneHotCategorical(b[0], b)
StudentT(b)
TransformedDistribution(Normal(a, b), [ExpTransform()])
Uniform(a, b)
VonMises(a, b)
Weibull(a, b)
Wishart(b.new_tensor(5.0), torch.diag(b))
""".strip().splitlines()


def sampled(lib, expression, dtype, shape):
    dtype = getattr(lib, dtype)
    a, b = lib.tensor([0.3, 0.5, 0.9], dtype=dtype), lib.tensor([1.0, 2.5, 4.0], dtype=dtype)
    made = eval(expression, vars(lib.distributions) | {"torch": lib, "a": a, "b": b})
    lib.manual_seed(3)
    return made.sample(shape).double().numpy(), lib.rand(1).item()


@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", DISTRIBUTIONS)
def test_samples(expression, dtype):
    """To the last digits, which differ where functions are composed otherwise."""
    for shape in ((), (1,), (3,), (4, 5)):
        (found, following), (expected, expected_following) = (
            sampled(lib, expression, dtype, shape) for lib in (cygrad, torch)
        )
        assert following == expected_following
        rtol, atol = (1e-5, 1e-6) if dtype == "float32" else (1e-12, 1e-14)
        np.testing.assert_allclose(found, expected, rtol, atol)


def orders(lib):
    """Return what samplers, splits and loaders give, one after the other."""
    data = lib.utils.data
    own = lib.Generator().manual_seed(2)
    lib.manual_seed(3)
    yield [list(part.indices) for part in data.random_split(range(17), [5, 12])]
    yield [list(part.indices) for part in data.random_split(range(17), [0.3, 0.7])]
    yield [list(part.indices) for part in data.random_split(range(17), [0.3, 0.7], generator=own)]
    yield list(data.RandomSampler(range(13)))
    yield list(data.RandomSampler(range(13), replacement=True, num_samples=70))
    yield list(data.RandomSampler(range(13), num_samples=40))
    yield list(data.RandomSampler(range(13), generator=own))
    yield list(data.SubsetRandomSampler([3, 4, 9, 8]))
    yield list(data.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], 5, replacement=False))
    yield list(data.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], 9))
    yield list(data.distributed.DistributedSampler(range(11), 2, 1))
    for options in ({"batch_size": 4}, {"batch_size": 4, "generator": own}, {"batch_size": None}):
        loader = data.DataLoader(lib.arange(10), shuffle=True, **options)
        for _ in range(2):
            yield [batch.tolist() for batch in loader]
    yield lib.rand(2).tolist()
    yield lib.rand(2, generator=own).tolist()


def test_orders():
    found, expected = list(orders(cygrad)), list(orders(torch))
    assert found == expected


class Noisy:
    """Samples with numbers that PyTorch or cygrad, and NumPy, draw in the worker, and its seed."""

    def __init__(self, lib):
        self.lib = lib

    def __len__(self):
        return 12

    def __getitem__(self, index):
        info = self.lib.utils.data.get_worker_info()
        drawn = [np.random.rand(), info.seed % 1000] if info else [0, 0]  # noqa: NPY002
        return self.lib.tensor([index, self.lib.rand(()).item(), *drawn])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_numbers_of_workers(workers, persistent):
    def batches(lib):
        options = {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": persistent}
        lib.manual_seed(8)
        loader = lib.utils.data.DataLoader(Noisy(lib), 3, shuffle=True, **options if workers else {})
        return [[batch.tolist() for batch in loader] for _ in range(2)], lib.rand(2).tolist()

    assert batches(cygrad) == batches(torch)
