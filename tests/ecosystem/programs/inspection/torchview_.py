"""Drawings of networks by torchview: its tensors note the functions and modules that they pass."""

import torch
from torch import nn
from torchview import draw_graph


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        self.cell = nn.GRU(4, 4)

    def forward(self, x):
        y, _ = self.cell(self.inner(x) + x)
        return torch.cat([y, x], -1).mean(0), y[0] * 2


graph = draw_graph(Residual(), input_size=(3, 2, 4), expand_nested=True)
source = graph.visual_graph.source
assert all(name in source for name in ("Linear", "ReLU", "GRU", "cat", "mean", "__getitem__", "(2, 8)"))
print(float(source.count("->")), float(source.count("label")))
