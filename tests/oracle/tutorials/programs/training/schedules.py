"""Learning-rate schedules, chained and sequential, and their states and errors."""

import math, copy
import torch
from torch.optim import SGD, Adam, lr_scheduler as S, swa_utils
from shared import told


def optimizer(n=2):
    return SGD(
        [{"params": [torch.nn.Parameter(torch.ones(1))], "lr": 0.1 * (i + 1)} for i in range(n)], lr=1.0, momentum=0.9
    )


def run(make, steps=8, metric=None):
    o = optimizer()
    s = make(o)
    seen = [s.get_last_lr()]
    for i in range(steps):
        o.step()
        s.step(*(() if metric is None else (metric[i],)))
        seen.append(s.get_last_lr())
    print(type(s).__name__, [[round(v, 7) for v in each] for each in seen])
    state = s.state_dict()
    print(sorted(k for k in state if not k.startswith("_") and k != "lr_lambdas"))
    o2 = optimizer()
    s2 = make(o2)
    s2.load_state_dict(copy.deepcopy(state))
    print(getattr(s2, "last_epoch", None), s2.get_last_lr())


run(lambda o: S.StepLR(o, 3, 0.5))
run(lambda o: S.MultiStepLR(o, [2, 4, 4], 0.1))
run(lambda o: S.ConstantLR(o, 0.5, 3))
run(lambda o: S.LinearLR(o, 0.1, 1.0, 4))
run(lambda o: S.ExponentialLR(o, 0.9))
run(lambda o: S.PolynomialLR(o, 5, 2.0))
run(lambda o: S.CosineAnnealingLR(o, 4, 0.01))
run(lambda o: S.CosineAnnealingWarmRestarts(o, 2, 2, 0.001))
run(lambda o: S.CyclicLR(o, 0.01, 0.2, 2, mode="triangular2", cycle_momentum=True))
run(lambda o: S.CyclicLR(o, [0.01, 0.02], [0.2, 0.4], 3, 1, mode="exp_range", gamma=0.9))
run(lambda o: S.OneCycleLR(o, [0.5, 1.0], total_steps=9))
run(lambda o: S.OneCycleLR(o, 0.5, epochs=3, steps_per_epoch=3, three_phase=True, anneal_strategy="linear"))
run(lambda o: S.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]))
run(lambda o: S.MultiplicativeLR(o, lambda e: 0.95))
run(lambda o: S.ReduceLROnPlateau(o, patience=1, factor=0.5, cooldown=1), 8, [1, 1, 1, 1, 0.5, 0.6, 0.6, 0.6])
run(
    lambda o: S.ReduceLROnPlateau(o, mode="max", threshold_mode="abs", patience=0, min_lr=[0.05, 0.15]),
    5,
    [1, 1, 1, 1, 1],
)
run(lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], o))
run(lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [3]))
run(lambda o: swa_utils.SWALR(o, 0.05, 3, "linear"))
o = optimizer()
told(lambda: S.StepLR(3, 3))
told(lambda: S.LambdaLR(o, [lambda e: 1]))
told(lambda: S.ConstantLR(o, 1.5))
told(lambda: S.LinearLR(o, 0.0))
told(lambda: S.LinearLR(o, 0.5, 2.0))
told(lambda: S.OneCycleLR(o, 0.1))
told(lambda: S.OneCycleLR(o, 0.1, total_steps=-1))
told(lambda: S.OneCycleLR(o, 0.1, total_steps=5, pct_start=2.0))
told(lambda: S.OneCycleLR(o, [0.1], total_steps=5))
told(lambda: S.CyclicLR(o, 0.1, 0.2, mode="nosuch"))
told(lambda: S.CyclicLR(Adam([torch.nn.Parameter(torch.ones(1))]), 0.1, 0.2, cycle_momentum=False) is None)
told(lambda: S.CosineAnnealingWarmRestarts(o, 0))
told(lambda: S.CosineAnnealingWarmRestarts(o, 1, 0))
told(lambda: S.ReduceLROnPlateau(o, factor=1.5))
told(lambda: S.ReduceLROnPlateau(o, mode="nosuch"))
told(lambda: S.ReduceLROnPlateau(o, min_lr=[1]))
told(lambda: S.ReduceLROnPlateau(o).step())
told(lambda: S.SequentialLR(o, [S.ConstantLR(o)], [3]))
told(lambda: S.SequentialLR(o, [], []))
told(lambda: S.SequentialLR(o, [S.ConstantLR(o), S.ConstantLR(optimizer())], [3]))
told(lambda: S.ChainedScheduler([]))
told(lambda: S.ChainedScheduler([S.ConstantLR(o), S.ConstantLR(optimizer())]))
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    o = optimizer()
    s = S.StepLR(o, 1)
    s.step()
    o.step()
    s.step(3)
    s.get_lr()
    print([(w.category.__name__, str(w.message).splitlines()[0][:90]) for w in caught])
r = S.OneCycleLR(o, 0.1, total_steps=3)
for _ in range(3):
    told(lambda: r.step())
m = torch.nn.Linear(1, 1)
avg = swa_utils.AveragedModel(m, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
for i in range(3):
    with torch.no_grad():
        m.weight.fill_(float(i))
        m.bias.fill_(i * 2.0)
    avg.update_parameters(m)
print(avg.module.weight, avg.n_averaged, list(avg.state_dict()))
told(lambda: swa_utils.get_ema_avg_fn(2.0))
told(lambda: swa_utils.SWALR(o, 0.1, anneal_strategy="x"))
