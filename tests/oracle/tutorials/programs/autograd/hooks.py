"""Hooks of tensors, nodes, modules, saved tensors, optimizers and state dicts."""

import torch
from shared import told
import torch.nn as nn
from torch.autograd.graph import (
    saved_tensors_hooks,
    save_on_cpu,
    disable_saved_tensors_hooks,
    allow_mutation_on_saved_tensors,
    register_multi_grad_hook,
    get_gradient_edge,
    Node,
)


torch.manual_seed(0)
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x.register_hook(lambda g: print("x", g) or g * 2)
x.register_hook(lambda g: print("again", g))
y = x * 3
y.register_hook(lambda g: print("y", g))
y.retain_grad()
y.grad_fn.register_hook(lambda i, o: print("node", i, o))
y.grad_fn.register_prehook(lambda o: print("pre", o) or (o[0] * 10,))
x.register_post_accumulate_grad_hook(lambda t: print("post", t.grad))
y.sum().backward()
print(y.grad, x.grad)
h.remove()
h.remove()
register_multi_grad_hook((x, y), lambda gs: print("multi", gs))
register_multi_grad_hook((x, y), lambda g: print("any", g), mode="any")
(x * 3).sum().backward()
told(lambda: register_multi_grad_hook((x,), print, mode="some"))
edge = get_gradient_edge(x * 2)
print(type(edge).__name__, edge.node, edge.output_nr)
x = torch.tensor([1.0, 2.0], requires_grad=True)
packed = []
with saved_tensors_hooks(lambda t: packed.append(t.shape) or t.clone(), lambda t: t * 1):
    z = (x * x).exp().sum()
print(packed, torch.autograd.grad(z, x))
with saved_tensors_hooks(lambda t: 3, lambda t: t):
    z = (x * x).sum()
told(lambda: z.backward())
with saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
    told(lambda: (x * x).sum())
with disable_saved_tensors_hooks("not here"):
    told(lambda: saved_tensors_hooks(lambda t: t, lambda t: t).__enter__())
with save_on_cpu():
    print(torch.autograd.grad((x * x).sum(), x))
with allow_mutation_on_saved_tensors() as ctx:
    a = torch.ones(2, requires_grad=True)
    b = a.clone()
    c = b * b
    b.add_(1)
    c.sum().backward()
    print(a.grad)
raw = (x * x).grad_fn._raw_saved_self
told(lambda: raw.register_hooks(lambda t: t, 3))
told(lambda: raw.register_hooks(lambda t: t.sum(), lambda t: t))
told(lambda: raw.register_hooks(lambda t: t.sum(), lambda t: t))

m = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
for name, sub in m.named_modules():
    sub.register_forward_pre_hook(lambda mod, args, name=name: print("pre", name, [tuple(a.shape) for a in args]))
    sub.register_forward_hook(lambda mod, args, out, name=name: print("post", name, tuple(out.shape)))
    sub.register_full_backward_hook(
        lambda mod, gi, go, name=name: print(
            "back", name, [None if g is None else tuple(g.shape) for g in gi], [tuple(g.shape) for g in go]
        )
    )
    sub.register_full_backward_pre_hook(lambda mod, go, name=name: print("backpre", name, [tuple(g.shape) for g in go]))
m(torch.randn(4, 2)).sum().backward()
m(torch.randn(4, 2, requires_grad=True)).sum().backward()
k = nn.Linear(2, 2)
k.register_forward_hook(
    lambda mod, args, kwargs, out: print("kw", kwargs.keys()) or out * 0, with_kwargs=True, always_call=True
)
k.register_forward_pre_hook(lambda mod, args, kwargs: ((kwargs.pop("input"),), {}), with_kwargs=True, prepend=True)
print(k(input=torch.ones(1, 2)))
told(lambda: k(torch.ones(1, 3)))
k = nn.Linear(2, 2)
k.register_forward_pre_hook(lambda mod, args: 3)
told(lambda: k(torch.ones(2)))
k = nn.Linear(2, 2)
k.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
told(lambda: k(torch.ones(1, 2, requires_grad=True)).sum().backward())
k = nn.Linear(2, 2)
k.register_full_backward_hook(lambda mod, gi, go: None)
told(lambda: k.register_backward_hook(lambda mod, gi, go: None))
k = nn.Linear(2, 2)
k.register_state_dict_post_hook(lambda mod, sd, prefix, meta: print("sd", list(sd), prefix))
k.register_state_dict_pre_hook(lambda mod, prefix, keep: print("sdpre", prefix, keep))
k.register_load_state_dict_pre_hook(
    lambda mod, sd, prefix, meta, strict, missing, unexpected, errors: print("ldpre", list(sd), strict)
)
k.register_load_state_dict_post_hook(lambda mod, inc: print("ldpost", inc) or inc.missing_keys.clear())
print(nn.Sequential(k).load_state_dict({"0.weight": torch.ones(2, 2)}))
opt = torch.optim.SGD(k.parameters(), lr=0.1, momentum=0.9)
opt.register_step_pre_hook(lambda o, a, kw: print("before", a, kw))
opt.register_step_post_hook(lambda o, a, kw: print("after", len(o.state)))
opt.register_state_dict_post_hook(lambda o, sd: print(sorted(sd)))
for p in k.parameters():
    p.grad = torch.ones_like(p)
opt.step()
opt.load_state_dict(opt.state_dict())
