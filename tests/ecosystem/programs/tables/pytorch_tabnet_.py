"""TabNet learns a table: a classifier with masks of what it attends to, and a regressor."""

import numpy as np
import torch
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor

rng = np.random.default_rng(0)
x = rng.normal(size=(128, 6)).astype(np.float32)
y = (x[:, 0] + x[:, 1] > 0).astype(int)
classifier = TabNetClassifier(
    n_d=4, n_a=4, n_steps=2, seed=0, verbose=0, device_name="cpu", cat_idxs=[], optimizer_params={"lr": 2e-2}
)
classifier.fit(
    x, y, eval_set=[(x, y)], eval_metric=["auc", "logloss"], max_epochs=6, batch_size=64, virtual_batch_size=32
)
print(*classifier.history["loss"], classifier.predict_proba(x)[0, 0])
masks = classifier.explain(x)[0]
print(float(masks.sum()), *classifier.feature_importances_.tolist())
regressor = TabNetRegressor(
    n_d=4,
    n_a=4,
    n_steps=2,
    seed=0,
    verbose=0,
    device_name="cpu",
    scheduler_fn=torch.optim.lr_scheduler.StepLR,
    scheduler_params={"step_size": 2},
)
regressor.fit(x, x[:, :1] * 2, max_epochs=4, batch_size=64, virtual_batch_size=32)
print(*regressor.history["loss"])
assert classifier.history["loss"][-1] < classifier.history["loss"][0]
