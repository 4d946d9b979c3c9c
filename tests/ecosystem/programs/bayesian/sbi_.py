"""Inference from simulations: a density of parameters, given what they lead to, is learned and sampled."""

import torch
from sbi.inference import NPE
from sbi.utils import BoxUniform

torch.manual_seed(0)
prior = BoxUniform(low=-2 * torch.ones(2), high=2 * torch.ones(2))
theta = prior.sample((300,))
x = theta + 0.1 * torch.randn_like(theta)
inference = NPE(prior, density_estimator="maf", show_progress_bars=False)
estimator = inference.append_simulations(theta, x).train(max_num_epochs=15, training_batch_size=50)
posterior = inference.build_posterior(estimator)
samples = posterior.sample((200,), x=torch.tensor([0.5, -1.0]), show_progress_bars=False)
print("mean", samples.mean(0).tolist())
assert samples.shape == (200, 2) and float((samples.mean(0) - torch.tensor([0.5, -1.0])).abs().max()) < 0.8
