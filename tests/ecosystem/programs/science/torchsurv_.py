"""Models of survival times: Cox and Weibull losses train networks; concordance, Brier score and Kaplan-Meier."""

import torch
from torchsurv.loss import cox, weibull
from torchsurv.metrics.auc import Auc
from torchsurv.metrics.brier_score import BrierScore
from torchsurv.metrics.cindex import ConcordanceIndex
from torchsurv.stats.kaplan_meier import KaplanMeierEstimator

torch.manual_seed(0)
x = torch.randn(60, 4)
time = torch.distributions.Exponential((x[:, 0] - 0.5 * x[:, 1]).exp()).sample().add(0.01)
event = torch.rand(60) < 0.7
for name, loss_of, size in (
    ("cox", cox.neg_partial_log_likelihood, 1),
    ("weibull", weibull.neg_log_likelihood_weibull, 2),
):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, size))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    losses = []
    for _ in range(25):
        loss = loss_of(model(x), event, time)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(name, losses[0], losses[-1])
    assert losses[-1] < losses[0]
    if name == "cox":
        risk = model(x).detach()[:, 0]
log_params = model(x).detach()
survival = weibull.survival_function_weibull(log_params, torch.tensor([0.5, 1.0]))
index, brier = ConcordanceIndex(), BrierScore()
print("concordance", index(risk, event, time).item())
print("auc", *Auc()(risk, event, time, new_time=torch.tensor([0.5, 1.0])).tolist())
print("brier", *brier(survival, event, time, new_time=torch.tensor([0.5, 1.0])).tolist())
estimator = KaplanMeierEstimator()
estimator(event, time)
print("kaplan-meier", estimator.km_est[:5].sum().item())
