"""Leaves, graphs, saved results, in-place writes and the modes, as in PyTorch's notes on autograd."""

import torch
from shared import told


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x.exp()
z = (y * x).sum()
print(z.grad_fn, y.grad_fn.name(), [type(f).__name__ for f, _ in z.grad_fn.next_functions])
print(y.grad_fn._saved_result is y, torch.equal(y.grad_fn._saved_result, y))
z.backward()
print(x.grad)
told(z.backward)
told(lambda: y.grad_fn._saved_result)
a = torch.ones(3, requires_grad=True)
told(lambda: a.add_(1))
b = a * 2
told(lambda: b[0].fill_(3))
print(b, b._version, b.grad_fn)
c = a.sigmoid()
c.mul_(2)
told(lambda: c.sum().backward())
with torch.no_grad():
    d = a * 2
    print(d.requires_grad, torch.is_grad_enabled())
    a.add_(1)
told(d.sum().backward)
with torch.inference_mode():
    e = torch.ones(2) * 2
    print(e.is_inference(), e.requires_grad)
told(lambda: e.requires_grad_())
told(lambda: e.add_(1))
told(lambda: torch.ones(2, requires_grad=True) * e)
told(lambda: e._version)
v = torch.ones(2, 2, requires_grad=True)
w = v * 1
s, t = w.unbind()
told(lambda: s.mul_(2))
p, q = w.split(1)
told(lambda: p.mul_(2))
told(lambda: torch.tensor([1, 2], requires_grad=True))
told(lambda: torch.tensor([1, 2]).requires_grad_())
told(lambda: x.numpy())
told(lambda: float(torch.ones(2)))
told(lambda: (x * 2).backward())
told(lambda: (x * 2).backward(torch.ones(2)))
u = x * 2
u.retain_grad()
u.sum().backward()
print(u.grad, u.is_leaf, u.retains_grad)
told(lambda: (x * 2).grad_fn(torch.ones(3)))
told(lambda: x.detach().requires_grad_().backward(torch.ones(3)))
told(lambda: torch.autograd.grad(x.sum(), torch.ones(1, requires_grad=True)))
told(lambda: torch.autograd.grad(x.sum(), [x, torch.ones(1, requires_grad=True)], allow_unused=True))
told(lambda: torch.autograd.grad(x.sum(), [x, torch.ones(1, requires_grad=True)], materialize_grads=True))
told(lambda: torch.autograd.grad(x.sum(), torch.ones(1)))
told(lambda: torch.autograd.grad(x.sum(), u, is_grads_batched=True))
u = x * 2
print(torch.autograd.grad(u, x, torch.eye(3), is_grads_batched=True))
told(lambda: torch.autograd.backward([x.sum(), x.prod()], inputs=[]))
zc = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
told(lambda: zc.sum().backward())
(zc.abs() ** 2).sum().backward()
print(zc.grad)
told(lambda: x.register_hook(3))
told(lambda: torch.ones(2).register_hook(print))
told(lambda: torch.ones(2, requires_grad=True).register_post_accumulate_grad_hook(lambda t: None) is None)
told(lambda: (x * 1).register_post_accumulate_grad_hook(lambda t: None))
told(lambda: setattr(x, "grad", torch.ones(2)))
told(lambda: setattr(x, "grad", torch.ones(3, dtype=torch.float64)))
told(lambda: setattr(x, "grad", 3))
told(lambda: setattr(x, "requires_grad", 3))
told(lambda: setattr(u, "requires_grad", False))
told(lambda: setattr(x, "data", torch.ones(3, dtype=torch.int64)))
with torch.autograd.set_detect_anomaly(True):
    told(lambda: (torch.zeros(1, requires_grad=True).sqrt() * 0).sum().backward())
