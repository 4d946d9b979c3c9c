"""Gradients through gradients: MAML by functions and by graphs, hypernetworks, implicit layers, unrolled optimizers."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, hessian, jacrev, jvp, stack_module_state, vjp, vmap

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
params = {k: v.detach().clone().requires_grad_() for k, v in net.named_parameters()}


def task():
    amplitude, phase = torch.rand(()) * 4.9 + 0.1, torch.rand(()) * 3
    x = torch.rand(2, 6, 1) * 10 - 5
    return x, amplitude * torch.sin(x + phase)


def mse(params, x, y):
    return F.mse_loss(functional_call(net, params, (x,)), y)


def adapted(params, x, y):
    grads = grad(mse)(params, x[0], y[0])
    return mse({k: params[k] - 0.05 * grads[k] for k in params}, x[1], y[1])


optimizer = torch.optim.Adam(params.values(), lr=1e-2)
for step in range(3):
    xs, ys = map(torch.stack, zip(*[task() for _ in range(4)]))
    optimizer.zero_grad()
    loss = vmap(adapted, in_dims=(None, 0, 0))(params, xs, ys).mean()
    loss.backward()
    optimizer.step()
    print(step, f"{loss:.6f}")
graph = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
meta = torch.optim.SGD(graph.parameters(), 0.1)
for step in range(2):
    x, y = task()
    fast = list(graph.parameters())
    for _ in range(2):
        out = F.linear(F.relu(F.linear(x[0], *fast[:2])), *fast[2:])
        grads = torch.autograd.grad(F.mse_loss(out, y[0]), fast, create_graph=True)
        fast = [w - 0.01 * g for w, g in zip(fast, grads)]
    loss = F.mse_loss(F.linear(F.relu(F.linear(x[1], *fast[:2])), *fast[2:]), y[1])
    meta.zero_grad()
    loss.backward()
    meta.step()
    print(f"{loss:.6f}", graph[0].bias.grad)


class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(2, 3)
        self.make = nn.ModuleDict({k.replace(".", "_"): nn.Linear(3, v.numel()) for k, v in net.named_parameters()})

    def forward(self, t, x):
        z = self.e(t)
        weights = {k: self.make[k.replace(".", "_")](z).view(v.shape) for k, v in net.named_parameters()}
        return functional_call(net, weights, (x,))


hyper = Hyper()
opt = torch.optim.RAdam(hyper.parameters(), lr=0.05)
x = torch.linspace(-1, 1, 7)[:, None]
for step in range(4):
    loss = sum(F.mse_loss(hyper(torch.tensor(t), x), x * (2 * t - 1)) for t in range(2))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"{loss:.6f}", len(list(hyper.make)))


class FixedPoint(nn.Module):
    """A layer z = tanh(W z + x), whose gradient comes from the implicit function theorem."""

    def __init__(self, n):
        super().__init__()
        self.W = nn.Linear(n, n, bias=False)
        nn.init.orthogonal_(self.W.weight, 0.5)

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(60):
                z = torch.tanh(self.W(z) + x)
        z = torch.tanh(self.W(z) + x)
        z0 = z.clone().detach().requires_grad_()
        f0 = torch.tanh(self.W(z0) + x)

        def solve(g):
            y = g
            for _ in range(60):
                y = torch.autograd.grad(f0, z0, y, retain_graph=True)[0] + g
            return y

        if z.requires_grad:
            z.register_hook(solve)
        return z


layer = FixedPoint(3)
x = torch.randn(2, 3, requires_grad=True)
print(torch.autograd.gradcheck(layer, x, check_undefined_grad=False), layer(x).grad_fn)
models = [nn.Linear(2, 2) for _ in range(3)]
stacked, buffers = stack_module_state(models)
base = models[0]
out = vmap(lambda p, x: functional_call(base, p, (x,)), (0, None))(stacked, torch.eye(2))
print(out.shape, torch.allclose(out, torch.stack([m(torch.eye(2)) for m in models])))
log_lr = torch.tensor(-2.0, requires_grad=True)
w, target = torch.zeros(3, requires_grad=True), torch.tensor([1.0, -1.0, 2.0])
m = torch.zeros(3)
for _ in range(5):
    (g,) = torch.autograd.grad(((w - target) ** 2).sum(), w, create_graph=True)
    m = 0.9 * m + g
    w = w - log_lr.exp() * m
((w - target) ** 2).sum().backward()
print(log_lr.grad)


def energy(q):
    return (q**4 / 4 - q**2 / 2).sum() + (q[0] * q[1]).sin()


q = torch.tensor([0.3, -0.2])
print(hessian(energy)(q), jvp(grad(energy), (q,), (torch.ones(2),))[1])
_, pull = vjp(grad(energy), q)
print(pull(torch.ones(2))[0], jacrev(jacrev(jacrev(energy)))(q).shape)
e = torch.optim.Adam([p := torch.ones(2, requires_grad=True)], lr=torch.tensor(0.1), capturable=False)
energy(p).backward()
e.step()
print(p)


class Invert(torch.autograd.Function):
    """Solves A x = b, with the rule written by solves."""

    @staticmethod
    def forward(ctx, A, b):
        x = torch.linalg.solve(A, b)
        ctx.save_for_backward(A, x)
        return x

    @staticmethod
    def backward(ctx, g):
        A, x = ctx.saved_tensors
        gb = torch.linalg.solve(A.mT, g)
        return -gb[:, None] * x, gb


A = (torch.eye(3) * 3 + torch.rand(3, 3)).requires_grad_()
b = torch.rand(3, requires_grad=True)
print(torch.autograd.gradcheck(Invert.apply, (A, b)), torch.autograd.gradgradcheck(Invert.apply, (A, b)))
gp = [torch.tensor(v, requires_grad=True) for v in (0.0, -1.0)]
X, Y = torch.linspace(0, 3, 6)[:, None], torch.linspace(0, 3, 6).sin()
for _ in range(3):
    K = torch.exp(-torch.cdist(X, X).pow(2) / (2 * gp[0].exp() ** 2)) + gp[1].exp() * torch.eye(6)
    L = torch.linalg.cholesky(K)
    loss = 0.5 * Y @ torch.cholesky_solve(Y[:, None], L).squeeze() + L.diagonal().log().sum()
    grads = torch.autograd.grad(loss, gp)
    with torch.no_grad():
        for p, g in zip(gp, grads):
            p.sub_(0.1 * g)
print(f"{loss:.6f}", gp, torch.distributions.MultivariateNormal(torch.zeros(6), scale_tril=L.detach()).log_prob(Y))
