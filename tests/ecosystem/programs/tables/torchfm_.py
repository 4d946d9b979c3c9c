"""Factorization machines of torchfm, shallow and deep, learn which of two fields go together."""

import torch
from torchfm.model.afm import AttentionalFactorizationMachineModel
from torchfm.model.dcn import DeepCrossNetworkModel
from torchfm.model.dfm import DeepFactorizationMachineModel
from torchfm.model.ffm import FieldAwareFactorizationMachineModel
from torchfm.model.fm import FactorizationMachineModel
from torchfm.model.xdfm import ExtremeDeepFactorizationMachineModel

torch.manual_seed(0)
dims = [6, 5, 4]
x = torch.stack([torch.randint(0, n, (128,)) for n in dims], 1)
y = ((x[:, 0] + x[:, 1]) % 2).float()
deep = {"mlp_dims": (8,), "dropout": 0.1}
models = (
    FactorizationMachineModel(dims, embed_dim=4),
    FieldAwareFactorizationMachineModel(dims, embed_dim=4),
    DeepFactorizationMachineModel(dims, embed_dim=4, **deep),
    DeepCrossNetworkModel(dims, embed_dim=4, num_layers=2, **deep),
    ExtremeDeepFactorizationMachineModel(dims, embed_dim=4, cross_layer_sizes=(4, 4), **deep),
    AttentionalFactorizationMachineModel(dims, embed_dim=4, attn_size=4, dropouts=(0.1, 0.1)),
)
for model in models:
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    losses = []
    for _ in range(20):
        loss = torch.nn.functional.binary_cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(type(model).__name__, losses[0], losses[-1])
    assert losses[-1] < losses[0]
