"""Embeddings of numbers in tables, linear, periodic and by pieces, learn together with an MLP and a ResNet."""

import torch
from rtdl_num_embeddings import (
    LinearReLUEmbeddings,
    PeriodicEmbeddings,
    PiecewiseLinearEmbeddings,
    PiecewiseLinearEncoding,
    compute_bins,
)
from rtdl_revisiting_models import MLP, FTTransformer, ResNet
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = torch.randn(64, 3)
y = (x[:, 0].sin() + x[:, 1].abs()).unsqueeze(1)
bins = compute_bins(x, n_bins=8)
trees = compute_bins(x, tree_kwargs={"min_samples_leaf": 8}, y=y[:, 0], regression=True, n_bins=8)
print("bins", *(edge.item() for edges in (bins[0], trees[0]) for edge in edges))
embeddings = {
    "linear": LinearReLUEmbeddings(3, 8),
    "periodic": PeriodicEmbeddings(3, 8, lite=False),
    "pieces": PiecewiseLinearEmbeddings(bins, 8, activation=False, version="B"),
    "trees": PiecewiseLinearEmbeddings(trees, 8, activation=True, version="A"),
}
backbones = (
    lambda: MLP(d_in=24, d_out=1, n_blocks=2, d_block=16, dropout=0.1),
    lambda: ResNet(d_in=24, d_out=1, n_blocks=2, d_block=16, d_hidden_multiplier=2.0, dropout1=0.1, dropout2=0.0),
)
for (name, embedding), backbone in zip(embeddings.items(), backbones * 2):
    model = nn.Sequential(embedding, nn.Flatten(), backbone())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(15):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, losses[0], losses[-1])
    assert losses[-1] < 0.8 * losses[0]
print("encoding", PiecewiseLinearEncoding(bins)(x).sum().item())
model = FTTransformer(n_cont_features=3, cat_cardinalities=[4], d_out=1, **FTTransformer.get_default_kwargs(1))
print("transformer", model.eval()(x, torch.randint(0, 4, (64, 1))).mean().item(), len(model.make_parameter_groups()))
