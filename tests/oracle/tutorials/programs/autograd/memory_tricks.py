"""Steps within backward, fused functions, functions that differentiate twice, memory formats, gradients made visible."""

import math
import weakref

import torch
import torch.nn.functional as F
from shared import told
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizers = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}


def optimizer_hook(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)
x = torch.randn(5, 4)
for _ in range(3):
    loss = model(x).square().mean()
    loss.backward()
    print(f"{loss:.5f}", [p.grad for p in model.parameters()])
print(
    [o.state[p]["step"] for p, o in optimizers.items()], optimizers[model[0].bias].state_dict()["state"][0]["exp_avg"]
)


def expand(t, ndim=4):
    return t[None, :, None, None]


def bn_backward(grad_out, X, total, sqrt_var, N, eps):
    tmp = ((X - expand(total) / N) * grad_out).sum(dim=(0, 2, 3))
    tmp *= -1
    d_denom = tmp / (sqrt_var + eps) ** 2
    d_var = d_denom / (2 * sqrt_var)
    d_mean = -grad_out.sum(dim=(0, 2, 3)) / (sqrt_var + eps)
    grad_input = X * expand(d_var * 2 / (N - 1))
    grad_input += expand(-d_var * 2 / (N - 1) * total / N)
    grad_input += grad_out / expand(sqrt_var + eps)
    grad_input += expand(d_mean / N)
    return grad_input


class FusedConvBN2DFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, conv_weight, eps=1e-3):
        assert X.ndim == 4
        ctx.save_for_backward(X, conv_weight)
        X = F.conv2d(X, conv_weight)
        total = X.sum(dim=(0, 2, 3))
        sqrt_var = X.var(unbiased=True, dim=(0, 2, 3)).sqrt()
        ctx.eps, ctx.sum, ctx.N, ctx.sqrt_var = eps, total, X.numel() / X.size(1), sqrt_var
        return (X - expand(total / ctx.N)) / expand(sqrt_var + eps)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        X, conv_weight = ctx.saved_tensors
        out = F.conv2d(X, conv_weight)
        grad_out = bn_backward(grad_out, out, ctx.sum, ctx.sqrt_var, ctx.N, ctx.eps)
        grad_X = F.conv_transpose2d(grad_out, conv_weight)
        grad_weight = F.conv2d(X.transpose(1, 0), grad_out.transpose(1, 0)).transpose(1, 0)
        return grad_X, grad_weight, None, None, None, None, None


weight = torch.rand(5, 3, 3, 3, requires_grad=True, dtype=torch.double)
X = torch.rand(2, 3, 7, 7, requires_grad=True, dtype=torch.double)
print(gradcheck(FusedConvBN2DFunction.apply, (X, weight)))
fused = FusedConvBN2DFunction.apply(X, weight)
print(fused.sum(dim=(0, 2, 3)).abs().max() < 1e-10, fused.square().mean())
(g,) = torch.autograd.grad(fused.square().sum(), X, create_graph=True)
told(lambda: g.sum().backward())


class Sinh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        expx, expnegx = torch.exp(x), torch.exp(-x)
        ctx.save_for_backward(expx, expnegx)
        return (expx - expnegx) / 2, expx, expnegx

    @staticmethod
    def backward(ctx, grad_out, grad_pos, grad_neg):
        expx, expnegx = ctx.saved_tensors
        return grad_out * (expx + expnegx) / 2 + grad_pos * expx - grad_neg * expnegx


class SinhForgetful(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.expx, ctx.expnegx = torch.exp(x), torch.exp(-x)
        return (ctx.expx - ctx.expnegx) / 2

    @staticmethod
    def backward(ctx, grad_out):
        return grad_out * (ctx.expx + ctx.expnegx) / 2


x = torch.rand(3, 3, requires_grad=True, dtype=torch.double)
print(gradcheck(lambda x: Sinh.apply(x)[0], x), gradgradcheck(lambda x: Sinh.apply(x)[0], x))
told(lambda: gradgradcheck(SinhForgetful.apply, x))


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        return CubeBackward.apply(grad_out, x)


class CubeBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, grad_out, x):
        ctx.save_for_backward(x, grad_out)
        return grad_out * 3 * x**2

    @staticmethod
    def backward(ctx, grad):
        x, grad_out = ctx.saved_tensors
        return grad * 3 * x**2, grad * grad_out * 6 * x


print(gradcheck(Cube.apply, x), gradgradcheck(Cube.apply, x), Cube.apply(x).grad_fn)

t = torch.empty(2, 3, 4, 5)
print(t.stride(), t.is_contiguous(memory_format=torch.channels_last))
t = t.to(memory_format=torch.channels_last)
print(t.shape, t.stride(), t.is_contiguous(), t.is_contiguous(memory_format=torch.channels_last))
print(t.clone().stride(), t.contiguous().stride(), (t + 1).stride(), torch.empty_like(t).stride(), t[:1].stride())
print(torch.preserve_format, t.to(torch.float64).stride(), t.clone(memory_format=torch.contiguous_format).stride())
special = torch.empty(4, 1, 3, 3)
print(special.is_contiguous(memory_format=torch.channels_last), special.is_contiguous())
print(
    special.to(memory_format=torch.channels_last).stride(),
    special.contiguous(memory_format=torch.channels_last).stride(),
)
conv = nn.Conv2d(3, 2, 3).to(memory_format=torch.channels_last)
image = torch.rand(2, 3, 6, 6).contiguous(memory_format=torch.channels_last)
print(conv.weight.is_contiguous(memory_format=torch.channels_last), conv(image).shape)
print(torch.allclose(conv(image), F.conv2d(image.contiguous(), conv.weight.contiguous(), conv.bias), atol=1e-6))
told(lambda: torch.empty(2, 3).to(memory_format=torch.channels_last))
told(lambda: torch.empty(2, 3, 4).contiguous(memory_format=torch.channels_last))
told(lambda: torch.empty(1, 2, 3, 4, 5, memory_format=torch.channels_last_3d).stride())


def fc_layer(in_size, out_size, norm_layer):
    return nn.Sequential(nn.Linear(in_size, out_size), norm_layer(out_size), nn.Sigmoid())


class Net(nn.Module):
    def __init__(self, norm_layer):
        super().__init__()
        self.layers = nn.Sequential(*(fc_layer(6, 6, norm_layer) for _ in range(4)), nn.Linear(6, 1))

    def forward(self, x):
        return self.layers(x)


def hook_forward(name, grads, backward):
    def hook(module, inputs, output):
        if backward:
            output.register_hook(lambda grad: grads.append((name, grad)))
        else:
            output.retain_grad()
            grads.append((name, output))

    return hook


torch.manual_seed(10)
inputs, targets = torch.randn(8, 6), torch.rand(8, 1)
for norm in (nn.Identity, nn.BatchNorm1d):
    net, grads, retained = Net(norm), [], []
    for name, layer in net.named_modules():
        if not list(layer.children()):
            layer.register_forward_hook(hook_forward(name, grads, backward=True))
            layer.register_forward_hook(hook_forward(name, retained, backward=False))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
    optimizer.zero_grad()
    F.mse_loss(net(inputs), targets).backward()
    print(norm.__name__, [(name, f"{grad.abs().mean().item():.3e}") for name, grad in grads[:6]])
    print(all(any(torch.equal(g, t.grad) for _, g in grads) for _, t in retained), len(retained))
lr, steps = 0.5, torch.tensor(0.0)
w = torch.tensor([2.0], requires_grad=True)
for _ in range(4):
    inner = (w - 1).pow(2).sum()
    (g,) = torch.autograd.grad(inner, w, create_graph=True)
    penalty = inner + 0.1 * g.norm(2)
    w = (w - lr * torch.autograd.grad(penalty, w)[0]).detach().requires_grad_()
    steps += 1
print(w, steps)
big = torch.ones(10, requires_grad=True)
kept = weakref.ref(big.exp())
print(kept(), torch.cat([big, big]).untyped_storage().nbytes(), big.element_size() * big.nelement())
a = torch.zeros(3, requires_grad=True)
with torch.autograd.graph.save_on_cpu(pin_memory=False):
    out = (a.cos() * a.exp()).sum()
out.backward()
print(a.grad, math.isclose(out.item(), 3))


class Reversible(torch.autograd.Function):
    """Gives the inputs back from the outputs, so that nothing is kept between."""

    @staticmethod
    def forward(ctx, x1, x2, f, g, *params):
        with torch.no_grad():
            y1 = x1 + f(x2)
            y2 = x2 + g(y1)
        ctx.f, ctx.g, ctx.params = f, g, params
        ctx.save_for_backward(y1.detach(), y2.detach())
        return y1, y2

    @staticmethod
    def backward(ctx, d1, d2):
        y1, y2 = ctx.saved_tensors
        with torch.no_grad():
            x2 = y2 - ctx.g(y1)
            x1 = y1 - ctx.f(x2)
        with torch.enable_grad():
            x1, x2 = x1.detach().requires_grad_(), x2.detach().requires_grad_()
            z1 = x1 + ctx.f(x2)
            z2 = x2 + ctx.g(z1)
        grads = torch.autograd.grad((z1, z2), (x1, x2, *ctx.params), (d1, d2))
        return grads[0], grads[1], None, None, *grads[2:]


f, g = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Tanh())
parts = torch.randn(2, 4, 3).requires_grad_()
y1, y2 = Reversible.apply(parts[0], parts[1], f, g, *f.parameters(), *g.parameters())
(y1 * y2).sum().backward()
print(parts.grad, f.weight.grad, y1.grad_fn)
