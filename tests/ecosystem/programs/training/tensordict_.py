"""Tensors in dictionaries: shapes, modules that read and write them, files, and an ensemble by `vmap`."""

import tempfile

import torch
from tensordict import LazyStackedTensorDict, TensorDict, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn

torch.manual_seed(0)
data = TensorDict({"x": torch.rand(8, 2), "more": {"y": torch.ones(8)}}, batch_size=[8])
assert torch.cat([data, data + 1]).shape == (16,) and data[2:4]["more", "y"].shape == (2,)
assert LazyStackedTensorDict.lazy_stack([data, data.clone()])["x"].shape == (2, 8, 2)
model = TensorDictSequential(
    TensorDictModule(nn.Linear(2, 8), in_keys=["x"], out_keys=["hidden"]),
    TensorDictModule(nn.Tanh(), in_keys=["hidden"], out_keys=["hidden"]),
    TensorDictModule(nn.Linear(8, 1), in_keys=["hidden"], out_keys=["found"]),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(data.clone())["found"].squeeze(1) - data["more", "y"]).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses[0], losses[-1])
assert losses[-1] < 0.5 * losses[0]


@tensorclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor


assert torch.stack([Pair(torch.ones(3), torch.zeros(3), batch_size=[3])] * 2).first.shape == (2, 3)
parameters = TensorDict.from_module(model).data


def answer(parameters, inputs):
    with parameters.to_module(model):
        return model(inputs)["found"]


ensemble = torch.func.vmap(answer, (0, None))(torch.stack([parameters, parameters * 0.5]), data)
print("ensemble", ensemble.mean((1, 2)).tolist())
stacked = LazyStackedTensorDict.lazy_stack([data, data + 1], 1)
for dim in (0, 1):  # along the dimension of the samples in each dictionary, and along that of the dictionaries
    found = torch.vmap(lambda sample: TensorDict({"sum": sample["x"].sum(0)}, []), dim)(stacked)
    assert found.batch_size == stacked.shape[dim : dim + 1] and torch.equal(found["sum"], stacked["x"].sum(1 - dim))
with tempfile.TemporaryDirectory() as folder:
    data.memmap(folder)
    assert torch.equal(TensorDict.load_memmap(folder)["x"], data["x"])
