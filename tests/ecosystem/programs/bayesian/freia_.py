"""Invertible networks of FrEIA learn a density: coupling blocks in a row, and a graph with a condition."""

import FrEIA.framework as ff
import FrEIA.modules as fm
import numpy as np
import torch
from torch import nn

np.random.seed(0)  # noqa: NPY002, SciPy draws the soft permutations
torch.manual_seed(0)


def subnet(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 16), nn.ReLU(), nn.Linear(16, n_out))


angles = torch.rand(128) * torch.pi
x = torch.stack([angles.cos(), angles.sin()], 1) + 0.1 * torch.randn(128, 2)
inn = ff.SequenceINN(2)
for _ in range(3):
    inn.append(fm.AllInOneBlock, subnet_constructor=subnet, permute_soft=True)
optimizer = torch.optim.Adam(inn.parameters(), lr=1e-2)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    z, log_jacobian = inn(x)
    loss = (0.5 * z.square().sum(1) - log_jacobian).mean() / 2
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < losses[0] - 0.2
z, forwards = inn(x)
back, backwards = inn(z, rev=True)
assert torch.allclose(back, x, atol=1e-4) and torch.allclose(forwards, -backwards, atol=1e-4)

condition = ff.ConditionNode(3)
nodes = [ff.InputNode(4, name="input")]
for block in (fm.GLOWCouplingBlock, fm.RNVPCouplingBlock):
    nodes.append(ff.Node(nodes[-1], block, {"subnet_constructor": subnet, "clamp": 1.5}, conditions=condition))
    nodes.append(ff.Node(nodes[-1], fm.PermuteRandom, {"seed": 0}))
graph = ff.GraphINN([*nodes, condition, ff.OutputNode(nodes[-1], name="output")])
z, log_jacobian = graph(torch.randn(5, 4), c=[torch.ones(5, 3)])
print("conditional", z.sum().item(), log_jacobian.sum().item())
print("orthogonal", fm.OrthogonalTransform([(4,)])([torch.ones(2, 4)])[0][0].norm().item())
