"""Survival models of pycox on torchtuples: Cox, and discrete hazards, with early stopping and scores."""

import numpy as np
import torch
import torchtuples as tt
from pycox.evaluation import EvalSurv
from pycox.models import CoxPH, DeepHitSingle, LogisticHazard

torch.manual_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(80, 4)).astype("float32")
durations = rng.exponential(np.exp(-x[:, 0])).astype("float32")
events = (rng.random(80) < 0.7).astype("float32")
net = tt.practical.MLPVanilla(4, [8, 8], 1, batch_norm=True, dropout=0.1, output_bias=False)
model = CoxPH(net, tt.optim.Adam(0.01))
fitting = {"batch_size": 40, "epochs": 4, "verbose": False}
stop, valid = tt.callbacks.EarlyStopping(), tt.tuplefy(x, (durations, events))
log = model.fit(x, (durations, events), **fitting, callbacks=[stop], val_data=valid)
print("cox", *log.to_pandas()["train_loss"].tolist())
model.compute_baseline_hazards()
survival = model.predict_surv_df(x)
print("concordance", EvalSurv(survival, durations, events, censor_surv="km").concordance_td())
for kind in (LogisticHazard, DeepHitSingle):
    transform = kind.label_transform(6)
    target = transform.fit_transform(durations, events)
    model = kind(
        tt.practical.MLPVanilla(4, [8], transform.out_features), tt.optim.AdamWR(0.01), duration_index=transform.cuts
    )
    log = model.fit(x, target, **fitting)
    print(kind.__name__, *log.to_pandas()["train_loss"].tolist(), float(model.predict_surv_df(x).iloc[2].sum()))
