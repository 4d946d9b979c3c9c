"""TabM, an ensemble of networks that share most weights, learns a table."""

import torch
from rtdl_num_embeddings import LinearReLUEmbeddings
from tabm import EnsembleView, LinearEnsemble, TabM

torch.manual_seed(0)
x, categories = torch.randn(64, 3), torch.randint(0, 4, (64, 1))
y = x[:, 0].sin() + (categories[:, 0] > 1) * 0.5
for arch in ("tabm", "tabm-mini", "tabm-packed"):
    model = TabM.make(
        n_num_features=3, cat_cardinalities=[4], d_out=1, k=4, arch_type=arch, n_blocks=2, d_block=16,
        num_embeddings=LinearReLUEmbeddings(3, 8),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        predicted = model(x, categories).squeeze(-1)
        loss = torch.nn.functional.mse_loss(predicted.flatten(), y.repeat_interleave(4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(arch, losses[0], losses[-1])
    assert losses[-1] < 0.8 * losses[0]
layers = torch.nn.Sequential(EnsembleView(k=3), LinearEnsemble(3, 2, k=3))
print("linear", layers(x).sum().item())
