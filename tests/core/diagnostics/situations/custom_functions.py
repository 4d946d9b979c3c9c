"""Custom functions, and gradcheck's messages about them (rows 25, 26)."""

from core.diagnostics.situations.table import leaf, situation

import cygrad as torch
from cygrad.autograd import Function, gradcheck


def apply(backward, *args):
    """Apply and differentiate a custom function of `a` and `b` with this backward."""

    class Given(Function):
        @staticmethod
        def forward(ctx, a, b=None):
            return a * 2

    Given.backward = staticmethod(backward)
    Given.apply(*args).sum().backward()


@situation
def too_few_gradients():
    apply(lambda ctx, grad: grad, leaf(1.0), leaf(2.0))


@situation
def gradient_of_the_wrong_shape():
    apply(lambda ctx, grad: torch.ones(7), leaf(1.0, 2.0))


@situation
def gradient_that_is_no_tensor():
    apply(lambda ctx, grad: 5.0, leaf(1.0))


@situation
def gradient_of_a_number():
    apply(lambda ctx, grad: (grad, grad), leaf(1.0), 3.0)


@situation
def backward_that_fails():
    apply(lambda ctx, grad: grad.no_such_attribute, leaf(1.0))


@situation
def differentiated_twice():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    (g,) = torch.autograd.grad(Once.apply(x) ** 2, x, create_graph=True)
    g.backward()


@situation
def intermediate_value_differentiated_twice():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(1.0)
    (slope,) = torch.autograd.grad(Exp.apply(x), x, create_graph=True)
    slope.backward()


@situation
def saved_value_that_is_no_tensor():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3.0)
            return x * 3.0

    Scale.apply(leaf(1.0))


@situation
def gradcheck_in_float32():
    gradcheck(lambda x: x * x, leaf(0.5, 4.0))


@situation
def gradcheck_at_a_kink():
    gradcheck(torch.relu, torch.tensor([0.0, 1.0], dtype=torch.double, requires_grad=True), eps=2**-10)


@situation
def gradcheck_of_a_formula_that_changes():
    factors = iter([2.0, 2.5] * 20)

    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * next(factors)

    gradcheck(Double.apply, torch.tensor([0.5], dtype=torch.double, requires_grad=True), eps=2**-10)


@situation
def gradcheck_of_a_wrong_formula():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    gradcheck(Square.apply, torch.tensor([0.5, 4.0], dtype=torch.double, requires_grad=True), eps=2**-10)
