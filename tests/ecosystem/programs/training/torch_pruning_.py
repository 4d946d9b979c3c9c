"""Channels of a residual network are pruned along their dependencies, which are read off the graph of autograd."""

import torch
import torch.nn.functional as F
import torch_pruning as tp
from torch import nn


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)

    def forward(self, x):
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.blocks = nn.Sequential(Block(16), Block(16))
        self.branch = nn.Conv2d(3, 8, 1)
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        y = torch.cat([self.blocks(self.stem(x)), self.branch(x)], dim=1)
        return self.head(torch.flatten(F.adaptive_avg_pool2d(y, 1), 1))


torch.manual_seed(0)
model, images = Net(), torch.rand(2, 3, 8, 8)
before = tp.utils.count_ops_and_params(model, images)
graph = tp.DependencyGraph().build_dependency(model, example_inputs=images)
group = graph.get_pruning_group(model.stem, tp.prune_conv_out_channels, idxs=[2, 6, 9])
print(len(group))
group.prune()
print(model(images).detach().flatten()[:4].tolist())
pruner = tp.pruner.MetaPruner(
    model,
    images,
    importance=tp.importance.GroupMagnitudeImportance(p=2),
    pruning_ratio=0.5,
    ignored_layers=[model.head],
)
pruner.step()
after = tp.utils.count_ops_and_params(model, images)
out = model(images)
out.square().sum().backward()
print(model, before, after, *out.detach().flatten().tolist(), model.stem.weight.grad.norm().item())
assert after[1] < before[1]
taylor = tp.importance.GroupTaylorImportance()
tp.pruner.MetaPruner(model, images, importance=taylor, pruning_ratio=0.3, ignored_layers=[model.head]).step()
print(sum(p.numel() for p in model.parameters()))
