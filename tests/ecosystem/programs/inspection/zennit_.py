"""Relevance is propagated through a network by rules of zennit, which replace gradients by hooks."""

import torch
from torch import nn
from zennit.attribution import Gradient, IntegratedGradients, SmoothGrad
from zennit.canonizers import SequentialMergeBatchNorm
from zennit.composites import EpsilonAlpha2Beta1, EpsilonGammaBox, EpsilonPlusFlat, GuidedBackprop, NameMapComposite
from zennit.rules import Epsilon, Gamma

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 6, 3, padding=1),
    nn.BatchNorm2d(6),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(6, 8, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(128, 4),
)
for _ in range(2):
    model(torch.randn(8, 3, 8, 8))
model.eval()
images, target = torch.randn(2, 3, 8, 8), torch.eye(4)[[1, 2]]
composites = {
    "plus": EpsilonPlusFlat(canonizers=[SequentialMergeBatchNorm()]),
    "box": EpsilonGammaBox(low=-3.0, high=3.0),
    "beta": EpsilonAlpha2Beta1(),
    "guided": GuidedBackprop(),
    "names": NameMapComposite([(["0"], Gamma(0.25)), (["4", "7"], Epsilon(1e-3))]),
}
for name, composite in composites.items():
    with Gradient(model=model, composite=composite) as attributor:
        output, relevance = attributor(images, target)
    print(name, output[0, 1].item(), relevance.abs().sum().item(), relevance[0, 0, 3, 3].item())
with SmoothGrad(noise_level=0.1, n_iter=4, model=model) as attributor:
    print(attributor(images, target)[1].abs().sum().item())
with IntegratedGradients(n_iter=5, model=model) as attributor:
    print(attributor(images, target)[1].sum().item())
