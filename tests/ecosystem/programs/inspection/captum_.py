"""Attributions of a network whose answer is known."""

import torch
from captum.attr import DeepLift, IntegratedGradients, LayerActivation, Saliency

model = torch.nn.Sequential(torch.nn.Linear(3, 2, bias=False), torch.nn.ReLU(), torch.nn.Linear(2, 1, bias=False))
with torch.no_grad():
    model[0].weight.copy_(torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]))
    model[2].weight.copy_(torch.tensor([[1.0, 1.0]]))
x = torch.tensor([[1.0, 1.0, 0.5]])
attributions, error = IntegratedGradients(model).attribute(x, target=0, return_convergence_delta=True)
assert torch.allclose(attributions, torch.tensor([[1.0, 3.0, -0.5]]), atol=1e-4) and error.abs().item() < 1e-4
assert Saliency(model).attribute(x, target=0).tolist() == [[1, 3, 1]]
assert torch.allclose(DeepLift(model).attribute(x, target=0), torch.tensor([[1.0, 3.0, -0.5]]), atol=1e-4)
assert LayerActivation(model, model[1]).attribute(x).tolist() == [[3, 0.5]]
