"""Variational inference of a coin's bias, and NUTS."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from pyro.infer.autoguide import AutoNormal

pyro.set_rng_seed(0)
data = torch.tensor([1.0] * 7 + [0.0] * 3)


def model(data):
    bias = pyro.sample("bias", dist.Beta(2.0, 2.0))
    with pyro.plate("flips", len(data)):
        pyro.sample("flip", dist.Bernoulli(bias), obs=data)


guide = AutoNormal(model)
inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.02}), Trace_ELBO(num_particles=4))
losses = [inference.step(data) for _ in range(300)]
median = guide.median(data)["bias"].item()
print("median", median)
assert sum(losses[-50:]) < sum(losses[:50]) and abs(median - 9 / 14) < 0.1

sampler = MCMC(NUTS(model), num_samples=150, warmup_steps=50, disable_progbar=True)
sampler.run(data)
assert abs(sampler.get_samples()["bias"].mean().item() - 9 / 14) < 0.1
