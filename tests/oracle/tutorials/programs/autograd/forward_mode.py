"""Dual numbers, directional derivatives and the functional API of autograd."""

import torch
from shared import told
import torch.autograd.forward_ad as fwAD
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

x, t = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, -1.0])
with fwAD.dual_level():
    d = fwAD.make_dual(x, t)
    y = (d.sin() * d).cumsum(0)
    print(fwAD.unpack_dual(y))
    print(fwAD.unpack_dual(x))
    told(lambda: fwAD.make_dual(x, t[:2]))
    told(lambda: fwAD.make_dual(x, t.double()))
    told(lambda: fwAD.make_dual(x, 3))
    told(lambda: fwAD.make_dual(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64)))
    print(d)
    z = torch.zeros(3)
    z.copy_(d)
    print(fwAD.unpack_dual(z).tangent)
    with torch.no_grad():
        print(fwAD.unpack_dual(d * 2).tangent)
    told(lambda: fwAD.unpack_dual(d.view(3, 1).expand(3, 2)).tangent)
    told(lambda: fwAD.enter_dual_level())
    p = torch.nn.Linear(3, 2)
    with torch.no_grad():
        p.weight.copy_(torch.arange(6.0).view(2, 3))
        p.bias.zero_()
    tangents = {k: torch.ones_like(v) for k, v in p.named_parameters()}
    params = dict(p.named_parameters())
    for k, v in params.items():
        delattr(p, k)
        setattr(p, k, fwAD.make_dual(v, tangents[k]))
    print(fwAD.unpack_dual(p(x)).tangent.detach())
print(d)
told(lambda: fwAD.make_dual(x, t))
told(lambda: fwAD.unpack_dual(x))
f = lambda a: a.exp().sum(0) * a
print(
    jacobian(f, x),
    jacobian(f, x, strategy="forward-mode", vectorize=True),
    jacobian(lambda a, b: (a * b, a.sum()), (x, t)),
)
print(hessian(lambda a: (a**3).sum(), x), hessian(lambda a, b: (a * b).sum() ** 2, (x, t)))
print(vjp(f, x, torch.ones(3)), jvp(f, x, t), vhp(lambda a: f(a).sum(), x, t), hvp(lambda a: f(a).sum(), x, t))
told(lambda: jacobian(f, x, strict=True, create_graph=True))
told(lambda: jacobian(lambda a: 3, x))
told(lambda: jacobian(f, [x, 3]))
told(lambda: hessian(f, x))
told(lambda: vjp(f, x, torch.ones(2)))
told(lambda: vjp(f, x))
told(lambda: jvp(lambda a: a.detach(), x, t, strict=True))
told(lambda: jacobian(lambda a: torch.ones(2), x, strict=True))
told(lambda: jacobian(f, x, strategy="other"))
told(lambda: jacobian(f, x, strategy="forward-mode"))
told(lambda: hvp(lambda a: a.sum(), x, t, strict=True))
told(lambda: torch.autograd.gradcheck(lambda a: a * 2, x.requires_grad_()))
told(lambda: torch.autograd.gradcheck(lambda a: a.detach(), x.double().detach().requires_grad_()))
told(
    lambda: torch.autograd.gradgradcheck(
        lambda a: a.sin(), x.double().detach().requires_grad_(), check_fwd_over_rev=True
    )
)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


try:
    torch.autograd.gradcheck(Wrong.apply, x.double().detach().requires_grad_())
except Exception as e:
    print(str(e).splitlines()[0])
try:
    torch.autograd.gradcheck(Wrong.apply, x.double().detach().requires_grad_(), fast_mode=True)
except Exception as e:
    print(str(e).splitlines()[0])
