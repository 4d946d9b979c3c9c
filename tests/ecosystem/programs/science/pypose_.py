"""Rotations and rigid motions of PyPose: products, logarithms, gradients, and Levenberg-Marquardt."""

import pypose as pp
import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = pp.randn_SE3(3)
step = pp.randn_se3(3) * 0.1
step.requires_grad_()
moved = step.Exp() * x
(moved.Log().square().sum()).backward()
print(*moved[0].tolist(), *step.grad[0].tolist())
assert torch.allclose((moved @ moved.Inv()).translation(), torch.zeros(3, 3), atol=1e-12)
points = torch.randn(3, 5, 3)
print(
    "acts",
    moved.unsqueeze(1).Act(points).sum().item(),
    moved.matrix().sum().item(),
    moved.rotation().euler().sum().item(),
)


class Inverse(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.pose = pp.Parameter(pp.randn_SE3(*shape))

    def forward(self, given):
        return (self.pose.Exp() @ given).Log() if self.pose.ltype is pp.se3_type else (self.pose @ given).Log()


given = pp.randn_SE3(2)
model = Inverse(2)
optimizer = pp.optim.LM(model, strategy=pp.optim.strategy.Adaptive(damping=1e-6))
losses = [optimizer.step(given).item() for _ in range(6)]
print("losses", losses[0])
assert losses[-1] < 1e-8
track = pp.module.IMUPreintegrator(gravity=9.81).double()
out = track(dt=torch.full((1, 4, 1), 0.1), gyro=torch.randn(1, 4, 3), acc=torch.randn(1, 4, 3))
print("imu", out["pos"].sum().item(), out["vel"].sum().item(), out["rot"].sum().item())
