"""Models of clicks of DeepCTR learn which categories go together, by its own training loop."""

import numpy as np
import torch
from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat, get_feature_names
from deepctr_torch.models import DIN, DCNMix, DeepFM, xDeepFM

rng = np.random.default_rng(0)
columns = [SparseFeat("item", 6, embedding_dim=4), SparseFeat("user", 5, embedding_dim=4), DenseFeat("age", 1)]
data = {"item": rng.integers(0, 6, 128), "user": rng.integers(0, 5, 128), "age": rng.random(128).astype("float32")}
clicks = ((data["item"] + data["user"]) % 2).astype("float32")
for kind in (DeepFM, xDeepFM, DCNMix):
    model = kind(columns, columns, dnn_hidden_units=(16, 8), device="cpu", seed=1)
    model.compile(torch.optim.Adam(model.parameters(), lr=1e-2), "binary_crossentropy", metrics=["auc"])
    history = model.fit(data, clicks, batch_size=32, epochs=5, verbose=0, shuffle=False)
    print(kind.__name__, *history.history["loss"], model.predict(data, 64).mean())
    assert history.history["loss"][-1] < history.history["loss"][0]
assert get_feature_names(columns) == ["item", "user", "age"]
history = VarLenSparseFeat(SparseFeat("hist_item", 6, 4, embedding_name="item"), 4, length_name="seq_length")
data |= {"hist_item": rng.integers(1, 6, (128, 4)), "seq_length": rng.integers(1, 5, 128)}
model = DIN([*columns, history], ["item"], att_hidden_size=(8,), dnn_hidden_units=(8,), device="cpu", seed=1)
model.compile("adagrad", "binary_crossentropy")
print("DIN", *model.fit(data, clicks, batch_size=32, epochs=2, verbose=0, shuffle=False).history["loss"])
