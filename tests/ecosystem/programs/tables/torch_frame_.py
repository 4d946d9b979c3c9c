"""Tables with columns of several kinds in PyTorch Frame: two models learn them."""

import numpy as np
import pandas as pd
import torch
import torch_frame
from torch_frame.data import DataLoader, Dataset
from torch_frame.nn import FTTransformer, ResNet
from torch_frame.nn.encoder import EmbeddingEncoder, LinearEncoder

rng = np.random.default_rng(0)
table = pd.DataFrame({"a": rng.normal(size=96), "b": rng.normal(size=96), "kind": rng.choice(list("xyz"), 96)})
table["y"] = table["a"] + (table["kind"] == "x")
stypes = {
    "a": torch_frame.numerical,
    "b": torch_frame.numerical,
    "kind": torch_frame.categorical,
    "y": torch_frame.numerical,
}
data = Dataset(table, col_to_stype=stypes, target_col="y")
data.materialize()
frame = data.tensor_frame
for kind in (FTTransformer, ResNet):
    torch.manual_seed(0)
    encoders = {torch_frame.categorical: EmbeddingEncoder(), torch_frame.numerical: LinearEncoder()}
    model = kind(
        channels=16, out_channels=1, num_layers=2, col_stats=data.col_stats, col_names_dict=frame.col_names_dict,
        stype_encoder_dict=encoders,
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        losses.append(0.0)
        for batch in DataLoader(frame, batch_size=48, shuffle=True):
            loss = torch.nn.functional.mse_loss(model(batch).view(-1), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1] += loss.item() / 2
    print(kind.__name__, losses[0], losses[-1])
    assert losses[-1] < losses[0]
print("frame", frame[:3].feat_dict[torch_frame.numerical].sum().item(), frame[[1, 2]].num_rows)
