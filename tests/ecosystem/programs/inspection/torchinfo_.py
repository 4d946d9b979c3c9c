"""Summaries of networks: shapes, parameters, and multiplications, by hooks."""

import torch
from torch import nn
from torchinfo import summary

net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))
found = summary(net, (2, 3, 8, 8), verbose=0, col_names=("input_size", "output_size", "num_params", "mult_adds"))
print(found)
assert found.total_params == sum(p.numel() for p in net.parameters())


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 6, num_layers=2, batch_first=True)
        self.out = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 3)})
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x, flag=True):
        h = self.rnn(x)[0][:, -1]
        return self.out["a"](h), self.out["b"](h) * self.scale


print(summary(Two(), input_data=torch.ones(2, 5, 4), verbose=0, depth=3, row_settings=("var_names", "depth")))
