"""Real NVP and splines of normflows learn a density, and are inverted."""

import normflows as nf
import torch

torch.manual_seed(0)
base = nf.distributions.base.DiagGaussian(2)
flows = []
for _ in range(4):
    flows += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 16, 2], init_zeros=True)), nf.flows.Permute(2, mode="swap")]
    flows += [nf.flows.ActNorm(2)]
model = nf.NormalizingFlow(base, flows)
angle = 2 * torch.pi * torch.rand(128)
points = torch.stack([angle.cos(), angle.sin()], 1) + 0.1 * torch.randn(128, 2)
splines = nf.NormalizingFlow(
    nf.distributions.base.DiagGaussian(2),
    [nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 16), nf.flows.LULinearPermute(2)],
)
for each in (model, splines):
    optimizer = torch.optim.Adam(each.parameters(), lr=5e-3)
    losses = []
    for _ in range(25):
        optimizer.zero_grad()
        loss = each.forward_kld(points)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("losses", losses[0], losses[-1])
    assert losses[-1] < losses[0]
    with torch.no_grad():
        assert torch.allclose(each.forward(each.inverse(points)), points, atol=1e-3)
