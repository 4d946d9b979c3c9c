"""Jacobians, Hessians, ensembles, per-sample gradients and tangent kernels by torch.func."""

import torch
from shared import told
import torch.nn as nn
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
    functionalize,
)


torch.manual_seed(0)
w, b, x = torch.randn(3, 4), torch.randn(3), torch.randn(4)


def predict(w, b, x):
    return (w @ x + b).tanh()


jr, jf = jacrev(predict, argnums=2)(w, b, x), jacfwd(predict, argnums=2)(w, b, x)
print(jr, torch.allclose(jr, jf))
jw, jb = jacrev(predict, argnums=(0, 1))(w, b, x)
print(jw.shape, jb)
print(hessian(lambda x: predict(w, b, x).sum())(x))
out, pull = vjp(predict, w, b, x)
print([g.shape for g in pull(torch.ones(3))], pull(torch.ones(3))[2])
print(jvp(lambda x: predict(w, b, x), (x,), (torch.ones(4),)))
out, lin = linearize(lambda x: predict(w, b, x), x)
print(lin(torch.ones(4)))
model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
params = {k: v.detach() for k, v in model.named_parameters()}
data, target = torch.randn(6, 4), torch.randint(2, (6,))


def loss(params, sample, target):
    return nn.functional.cross_entropy(functional_call(model, params, (sample[None],)), target[None])


per = vmap(grad(loss), in_dims=(None, 0, 0))(params, data, target)
print({k: (v.shape, v.norm().item()) for k, v in per.items()})
g, v = vmap(grad_and_value(loss), (None, 0, 0), chunk_size=2)(params, data, target)
print(v)
models = [nn.Linear(4, 2) for _ in range(3)]
ps, bs = stack_module_state(models)
print({k: (v.shape, v.requires_grad) for k, v in ps.items()}, bs)
print(vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(ps, bs, data)[:, 0])


def ntk(a, b):
    f = lambda p, x: functional_call(model, p, (x[None],))[0]
    ja, jb = vmap(jacrev(f), (None, 0))(params, a), vmap(jacrev(f), (None, 0))(params, b)
    return sum(torch.einsum("Naf,Mbf->NMab", j.flatten(2), k.flatten(2)) for j, k in zip(ja.values(), jb.values()))


print(ntk(data[:2], data[3:5]))
told(lambda: vmap(lambda x: x.item())(torch.ones(3)))
told(lambda: vmap(lambda x: x if x > 0 else -x)(torch.ones(3)))
told(lambda: vmap(torch.dot)(torch.ones(3, 2), torch.ones(2, 2)))
told(lambda: vmap(torch.dot, in_dims=(None, None))(torch.ones(2), torch.ones(2)))
told(lambda: vmap(lambda x: x + torch.rand(3))(torch.ones(3)))
told(lambda: vmap(torch.sum, in_dims=3)(torch.ones(3)))
told(lambda: vmap(lambda x: 3)(torch.ones(3)))
told(lambda: vmap(lambda x: x, out_dims=2)(torch.ones(3)))
told(lambda: vmap(lambda x: x)())
told(lambda: vmap(lambda x: x.nonzero())(torch.ones(3, 2)))
told(lambda: vmap(lambda x: x[x > 0])(torch.ones(3, 2)))
told(lambda: grad(lambda x: x)(torch.ones(2)))
told(lambda: grad(lambda x: (x.sum(), 1))(torch.ones(2)))
told(lambda: grad(lambda x: x.sum(), argnums=1)(torch.ones(2)))
told(lambda: grad(lambda x: (x.sum(), x * 2), has_aux=True)(torch.ones(2)))
told(lambda: grad(lambda x: x.sum())(torch.ones(2, dtype=torch.int64)))
told(lambda: jacrev(lambda x: 3)(torch.ones(2)))
told(lambda: jacfwd(lambda x: (x * 2, {"a": x.sum()}))(torch.ones(2)))
told(lambda: jvp(torch.sin, (torch.ones(2),), (torch.ones(3),)))
told(lambda: jvp(torch.sin, torch.ones(2), torch.ones(2)))
told(lambda: pull(torch.ones(2)))
told(lambda: functional_call(model, {"nosuch": x}, (data,), strict=True))
told(lambda: stack_module_state([nn.Linear(2, 2), nn.Linear(3, 3)]))
told(lambda: stack_module_state([]))
print(functionalize(lambda x: x.clone().add_(1).view(-1))(torch.ones(2, 2)))
leaked = []
grad(lambda x: leaked.append(x) or x.sum())(torch.ones(2))
print(vmap(vmap(lambda a, b: a * b, (0, None)), (None, 0))(torch.arange(3.0), torch.arange(2.0)))
print(vmap(lambda a: torch.nn.functional.dropout(a), randomness="same")(torch.ones(3, 4)).unique(dim=0).shape)
torch.manual_seed(3)
print(vmap(lambda a: a + torch.rand(2), randomness="different")(torch.zeros(3)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: a + torch.randn(2), randomness="different")(torch.zeros(3)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: torch.nn.functional.dropout(a), randomness="different")(torch.ones(3, 4)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: torch.randint(0, 9, (2,)) + a, randomness="different")(torch.ones(3)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: torch.bernoulli(a), randomness="different")(torch.full((3, 4), 0.5)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: torch.randperm(3) + a, randomness="different")(torch.ones(3)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: torch.rand(2) + a, randomness="same")(torch.ones(3)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: torch.rand_like(a), randomness="different")(torch.ones(3, 2)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: torch.normal(a, 1.0), randomness="different")(torch.ones(3, 2)), torch.rand(2))
torch.manual_seed(3)
print(vmap(lambda a: torch.multinomial(a, 2), randomness="different")(torch.ones(3, 4)), torch.rand(2))
