"""Variational inference, Hamiltonian Monte Carlo, mixtures, transformed distributions, and relaxed choices."""

import math

import torch
import torch.distributions as D
import torch.nn as nn
from shared import told
from torch.distributions import constraints, transforms
from torch.distributions.kl import kl_divergence, register_kl

torch.manual_seed(0)
x = torch.randn(50) * 0.5 + 2
loc, scale = torch.zeros(2, requires_grad=True), torch.full((2,), -1.0, requires_grad=True)
optimizer = torch.optim.Adam([loc, scale], lr=0.05)
prior = D.Independent(D.Normal(torch.zeros(2), torch.ones(2) * 3), 1)
for step in range(20):
    q = D.Independent(D.Normal(loc, scale.exp()), 1)
    z = q.rsample((8,))
    likelihood = D.Normal(z[:, :1], z[:, 1:].exp()).log_prob(x).sum(-1)
    loss = kl_divergence(q, prior) - likelihood.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"{loss:.3f}", loc)


def potential(q):
    return -D.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 0.8], [0.8, 1.0]])).log_prob(q)


q, accepted = torch.tensor([1.0, -1.0]), 0
for _ in range(6):
    p0 = torch.randn(2)
    position, momentum = q.clone().requires_grad_(), p0.clone()
    momentum = momentum - 0.1 * torch.autograd.grad(potential(position), position)[0]
    for i in range(5):
        position = (position + 0.2 * momentum).detach().requires_grad_()
        momentum = momentum - (0.2 if i < 4 else 0.1) * torch.autograd.grad(potential(position), position)[0]
    change = potential(q) + p0.dot(p0) / 2 - potential(position) - momentum.dot(momentum) / 2
    if torch.rand(()).log() < change:
        q, accepted = position.detach(), accepted + 1
print(q, accepted)
mixture = D.MixtureSameFamily(
    D.Categorical(torch.tensor([0.3, 0.7])), D.Independent(D.Normal(torch.tensor([[0.0, 0.0], [3.0, 1.0]]), 1.0), 1)
)
print(mixture, mixture.mean, mixture.variance, mixture.sample((2,)), mixture.log_prob(torch.ones(2)))


class Network(nn.Module):
    """Densities of y given x by mixtures of normal distributions."""

    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Sequential(nn.Linear(1, 8), nn.Tanh()), nn.Linear(8, 9)

    def forward(self, x):
        logits, loc, scale = self.out(self.body(x)).chunk(3, dim=-1)
        return D.MixtureSameFamily(D.Categorical(logits=logits), D.Normal(loc, nn.functional.softplus(scale)))


net, xs = Network(), torch.linspace(-1, 1, 20)[:, None]
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for _ in range(5):
    loss = -net(xs).log_prob(xs[:, 0].sin()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss:.4f}")
base = D.Uniform(torch.zeros(2), torch.ones(2))
logistic = D.TransformedDistribution(base, [transforms.SigmoidTransform().inv, transforms.AffineTransform(1.0, 2.0)])
y = logistic.rsample()
print(y, logistic.log_prob(y), logistic.cdf(y), logistic.icdf(torch.tensor(0.5)), logistic.support, logistic)
stick = D.biject_to(constraints.simplex)
print(
    stick(torch.tensor([0.5, -1.0])),
    stick.inv(torch.tensor([0.2, 0.3, 0.5])),
    D.transform_to(constraints.positive_definite),
)
for constraint in (
    constraints.positive,
    constraints.interval(-1, 2),
    constraints.lower_cholesky,
    constraints.corr_cholesky,
):
    t = D.transform_to(constraint)
    size = 3 if constraint is constraints.corr_cholesky else 4
    value = t(
        torch.arange(1.0, size + 1).view(2, 2)
        if constraint is constraints.lower_cholesky
        else torch.arange(1.0, size + 1) / 3
    )
    print(constraint, value, constraint.check(value))
temperature = torch.tensor(0.5)
logits = torch.zeros(3, requires_grad=True)
relaxed = D.RelaxedOneHotCategorical(temperature, logits=logits)
sample = relaxed.rsample()
print(sample, relaxed.log_prob(sample), torch.autograd.grad(sample.max(), logits)[0])
straight = D.OneHotCategoricalStraightThrough(logits=logits).rsample((2,))
print(straight, torch.autograd.grad(straight.sum(0)[0], logits)[0])
for d in (
    D.Gamma(2.0, 3.0), D.Beta(2.0, 0.5), D.Dirichlet(torch.tensor([1.0, 2.0, 3.0])), D.StudentT(4.0), D.Poisson(3.0),
    D.NegativeBinomial(4.0, 0.3), D.VonMises(0.5, 2.0), D.LKJCholesky(2, 1.5), D.Wishart(torch.tensor(4.0), torch.eye(2)),
    D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2)), D.Kumaraswamy(0.5, 3.0), D.Pareto(1.0, 3.0),
    D.Weibull(1.0, 2.0), D.Gumbel(0.0, 1.0), D.HalfCauchy(1.0), D.ContinuousBernoulli(0.3), D.FisherSnedecor(3.0, 5.0),
    D.Binomial(5, torch.tensor([0.2, 0.7])), D.Multinomial(4, torch.ones(3) / 3), D.Geometric(0.4), D.InverseGamma(3.0, 1.0),
    D.LogisticNormal(torch.zeros(2), torch.ones(2)), D.GeneralizedPareto(0.0, 1.0, 0.1),
):  # fmt: skip
    torch.manual_seed(0)
    s = d.sample()
    print(type(d).__name__, d, s, d.log_prob(s), d.support, d.batch_shape, d.event_shape)
    told(lambda: d.mean)
    told(lambda: d.variance)
    if type(d).mode is not D.Distribution.mode:
        told(lambda: d.mode)
    told(d.entropy)
told(lambda: D.Normal(0.0, -1.0))
told(lambda: D.Normal(0.0, 1.0).log_prob(torch.tensor("a")))
told(lambda: D.Categorical(torch.tensor([-1.0, 2.0])))
told(lambda: D.Bernoulli(0.5).log_prob(torch.tensor(2.0)))
told(lambda: D.Bernoulli(0.5, validate_args=False).log_prob(torch.tensor(2.0)))
told(lambda: D.Uniform(1.0, 0.0))
told(lambda: D.Normal(0.0, 1.0).expand((2, 3)))
told(lambda: D.Independent(D.Normal(0.0, 1.0), 1))
told(lambda: D.Dirichlet(torch.tensor([1.0, -1.0])))
told(lambda: D.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]])))
told(lambda: D.MultivariateNormal(torch.zeros(2)))
told(lambda: D.Categorical(logits=torch.zeros(3)).enumerate_support())


class Mine(D.Distribution):
    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate, validate_args=None):
        (self.rate,) = D.utils.broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        return -torch.log1p(-torch.rand(shape)) / self.rate


@register_kl(Mine, D.Exponential)
def _kl(p, q):
    return p.rate / q.rate


print(Mine(torch.tensor([2.0, 3.0])), Mine(2.0).rsample((2,)), kl_divergence(Mine(1.0), D.Exponential(4.0)))
told(lambda: Mine(-1.0))
told(lambda: Mine(1.0).log_prob(torch.ones(1)))
told(lambda: Mine(1.0).entropy())
w, mu = torch.tensor([0.5, 0.5]), torch.tensor([0.0, 4.0])
data = torch.cat([torch.randn(20), torch.randn(20) + 3])
for _ in range(5):
    logp = D.Normal(mu, 1.0).log_prob(data[:, None]) + w.log()
    r = (logp - logp.logsumexp(1, keepdim=True)).exp()
    w, mu = r.mean(0), (r * data[:, None]).sum(0) / r.sum(0)
print(w, mu, math.log(2), torch.special.ndtr(mu), torch.special.entr(w))
