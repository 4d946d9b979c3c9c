"""Functions of one's own: contexts, non-differentiable and dirty results, double backward, forward mode, vmap."""

import torch
from shared import told
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, g, gd):
        x, d = ctx.saved_tensors
        print("needs", ctx.needs_input_grad)
        return g * d + gd * 6 * x

    @staticmethod
    def jvp(ctx, t):
        x, d = ctx.saved_tensors
        return t * d, 6 * x * t

    @staticmethod
    def vmap(info, in_dims, x):
        print("vmap", info.batch_size, info.randomness, in_dims)
        return Cube.apply(x), (0, 0)


x = torch.tensor([1.0, 2.0], requires_grad=True)
y, d = Cube.apply(x)
print(y, d, y.grad_fn, y.grad_fn.name())
(g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
print(g, torch.autograd.grad(g.sum(), x))
print(torch.func.jvp(Cube.apply, (x.detach(),), (torch.ones(2),)))
print(torch.func.vmap(lambda a: Cube.apply(a)[0])(torch.arange(3.0)))
print(torch.func.vmap(torch.func.grad(lambda a: Cube.apply(a)[0]))(torch.arange(3.0)))
told(lambda: torch.autograd.gradcheck(lambda a: Cube.apply(a)[0], (x.double().detach().requires_grad_(),)))


class Dirty(Function):
    @staticmethod
    def forward(ctx, a, b):
        a.add_(b)
        ctx.mark_dirty(a)
        return a

    @staticmethod
    def backward(ctx, g):
        return g, g * 2


a = torch.ones(2, requires_grad=True) * 1
b = torch.ones(2, requires_grad=True)
r = Dirty.apply(a, b)
print(r is a, r.grad_fn, a._version)
r.sum().backward()
print(b.grad)
told(lambda: Dirty.apply(torch.ones(2, requires_grad=True), b))


class Once(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


(g,) = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
told(lambda: g.sum().backward())


class Sorted(Function):
    @staticmethod
    def forward(ctx, a):
        values, index = a.sort()
        ctx.mark_non_differentiable(index)
        ctx.save_for_backward(index)
        ctx.set_materialize_grads(False)
        return values, index

    @staticmethod
    def backward(ctx, g, gi):
        print(g, gi)
        return None if g is None else torch.zeros_like(g).scatter(0, ctx.saved_tensors[0], g)


v, i = Sorted.apply(torch.tensor([3.0, 1.0, 2.0], requires_grad=True))
print(v.requires_grad, i.requires_grad)
v[0].backward()


class Wrong(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * b

    @staticmethod
    def backward(ctx, g):
        return g


told(lambda: Wrong.apply(x, x).sum().backward())


class Shape(Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, g):
        return g[:1].expand(3)


told(lambda: Shape.apply(x).sum().backward())


class NoBackward(Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2


told(lambda: NoBackward.apply(x).sum().backward())


class Texts(Function):
    @staticmethod
    def forward(ctx, a):
        return "text", a * 2

    @staticmethod
    def backward(ctx, n, g):
        print(n, g)
        return g


told(lambda: Texts.apply(x))
told(lambda: Texts.apply(x)[1].sum().backward())
told(lambda: Function())
told(lambda: Cube()(x))


class Bad(Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, g):
        return "gradient"


told(lambda: Bad.apply(x).sum().backward())


class Same(Function):
    @staticmethod
    def forward(ctx, a):
        return a

    @staticmethod
    def backward(ctx, g):
        return g * 5


r = Same.apply(x)
print(r is x, r.grad_fn, r._is_view(), torch.autograd.grad(r.sum(), x))


class Saves(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(3)
        return a


told(lambda: Saves.apply(x))
