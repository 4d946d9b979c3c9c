"""Every optimizer on one problem, parameter groups, states, hooks in the backward pass, errors."""

import copy
import torch
from torch import nn, optim
from shared import told

torch.manual_seed(0)
A, b = torch.randn(6, 3), torch.randn(6)


def trained(make, steps=6, closure=False):
    w = nn.Parameter(torch.tensor([1.0, -1.0, 0.5]))
    c = nn.Parameter(torch.zeros(1))
    o = make([{"params": [w]}, {"params": [c], "lr": 0.02}]) if not closure else make([w, c])

    def f():
        o.zero_grad()
        loss = ((A @ w + c - b) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(steps):
        loss = o.step(f)
    return w, c, loss, sorted(o.state[w]) if w in o.state else None, o


for name, kw in [
    ("SGD", {}),
    ("SGD", dict(momentum=0.9, nesterov=True, weight_decay=0.1)),
    ("SGD", dict(momentum=0.9, dampening=0.5, maximize=True)),
    ("Adam", dict(amsgrad=True)),
    ("Adam", dict(weight_decay=0.1, betas=(0.8, 0.9))),
    ("AdamW", {}),
    ("NAdam", dict(momentum_decay=0.01)),
    ("NAdam", dict(decoupled_weight_decay=True, weight_decay=0.1)),
    ("RAdam", {}),
    ("RAdam", dict(decoupled_weight_decay=True, weight_decay=0.1)),
    ("Adamax", {}),
    ("Adagrad", dict(lr_decay=0.1, initial_accumulator_value=0.1)),
    ("Adadelta", dict(rho=0.8)),
    ("RMSprop", dict(centered=True, momentum=0.5)),
    ("Rprop", {}),
    ("ASGD", dict(t0=2, lambd=0.01)),
    ("Adafactor", {}),
]:
    w, c, loss, keys, o = trained(lambda p: getattr(optim, name)(p, lr=0.05, **kw))
    print(name, kw, w.data, c.data, loss.item(), keys)
    if name in ("SGD", "Adam", "Adafactor"):
        print(o)
        sd = o.state_dict()
        print(
            sd["param_groups"],
            {
                k: {n: (v if not isinstance(v, torch.Tensor) else v.tolist()) for n, v in s.items()}
                for k, s in sd["state"].items()
            },
        )
w, c, loss, keys, o = trained(lambda p: optim.LBFGS(p, lr=0.5, max_iter=5, line_search_fn="strong_wolfe"), 2, True)
print(w.data, loss.item(), keys)
w, c, loss, keys, o = trained(lambda p: optim.LBFGS(p, lr=0.5, max_iter=5, history_size=2), 2, True)
print(w.data, loss.item())
p = [nn.Parameter(torch.ones(2))]
told(lambda: optim.SGD(p, lr=-1))
told(lambda: optim.SGD(p, momentum=-1))
told(lambda: optim.SGD(p, nesterov=True))
told(lambda: optim.SGD([], lr=1))
told(lambda: optim.SGD(p[0], lr=1))
told(lambda: optim.SGD([3], lr=1))
told(lambda: optim.SGD([p[0] * 2], lr=1))
told(lambda: optim.SGD([{"params": p}, {"params": p}], lr=1))
told(lambda: optim.SGD(p + p, lr=1).param_groups[0].keys())
told(lambda: optim.Adam(p, betas=(1.0, 0.9)))
told(lambda: optim.Adam(p, eps=-1))
told(lambda: optim.Adam(p, lr=torch.tensor(0.1), foreach=True))
told(lambda: optim.Adam(p, foreach=True, fused=True))
told(lambda: optim.LBFGS([{"params": p}, {"params": [nn.Parameter(torch.ones(1))]}]))
told(lambda: optim.LBFGS(p).step())
o = optim.Adam(p)
told(lambda: o.add_param_group({"params": p}))
told(lambda: o.add_param_group([p]))
told(lambda: o.add_param_group({"params": {p[0]}}))
told(lambda: o.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 3.0}))
print(len(o.param_groups), o.param_groups[1]["lr"], o.defaults["lr"])
told(lambda: optim.Adam(p).load_state_dict(o.state_dict()))
told(lambda: o.load_state_dict({"state": {}}))
named = optim.SGD(nn.Linear(2, 1).named_parameters(), lr=0.1)
print(named.param_groups[0]["param_names"], named.state_dict()["param_groups"])
told(lambda: optim.SGD([("a", p[0]), ("a", nn.Parameter(torch.ones(1)))], lr=1))
told(lambda: named.add_param_group({"params": [nn.Parameter(torch.ones(1))]}))
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
each = {q: optim.Adam([q], lr=0.01) for q in model.parameters()}


def step(q):
    each[q].step()
    each[q].zero_grad()


for q in model.parameters():
    q.register_post_accumulate_grad_hook(step)
for _ in range(3):
    loss = ((model(A)[:, 0] - b) ** 2).mean()
    loss.backward()
print(loss.item(), [q.grad for q in model.parameters()])
sp = nn.Embedding(4, 2, sparse=True)
with torch.no_grad():
    sp.weight.fill_(1.0)
so = optim.SparseAdam(sp.parameters(), lr=0.1)
sp(torch.tensor([1, 3, 1])).sum().backward()
so.step()
print(sp.weight)
told(lambda: optim.Adam(sp.parameters()).step())
told(lambda: optim.SparseAdam([nn.Parameter(torch.ones(2).to_sparse())]))


class Mine(optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            for q in g["params"]:
                if q.grad is not None:
                    self.state[q]["n"] = self.state[q].get("n", 0) + 1
                    q.add_(q.grad.sign(), alpha=-g["lr"])


m = Mine(p)
(p[0] ** 2).sum().backward()
m.step()
print(p, m.state_dict(), copy.deepcopy(m).param_groups[0]["lr"], m)
