"""A rule may overwrite its incoming gradient, but only if nothing else can see it."""

import numpy as np
import pytest

import cygrad as torch
from cygrad._core.graph.spent_gradients import is_spare

RULES = {
    "mul": lambda x, c: x * c,
    "mul_both": lambda x, c: x * (x * c),
    "square": lambda x, c: x * x,
    "pow": lambda x, c: x**2 * c,
    "div": lambda x, c: x / c,
    "divided": lambda x, c: c / x,
    "number": lambda x, c: x * 3,
    "exp": lambda x, c: x.exp() * c,
    "log": lambda x, c: x.log() * c,
    "sqrt": lambda x, c: x.sqrt() * c,
    "rsqrt": lambda x, c: x.rsqrt() * c,
    "reciprocal": lambda x, c: x.reciprocal() * c,
    "sin": lambda x, c: x.sin().cos() * c,
    "tan": lambda x, c: x.tan() * c,
    "tanh": lambda x, c: x.tanh() * c,
    "sigmoid": lambda x, c: x.sigmoid() * c,
    "relu": lambda x, c: torch.relu(x - 1) * c,
    "abs": lambda x, c: (x - 1).abs() * c,
    "erf": lambda x, c: x.erf() * c,
}


def operands(dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(5, 7, generator=generator).to(dtype) + 0.5
    return x.requires_grad_(), torch.rand(5, 7, generator=generator).to(dtype) + 0.5


def passed_through(result):
    """The gradient passes through two steps first, so that no one else owns what reaches `result`."""
    return (result * 2 * 0.5).sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("name", RULES)
def test_gradients_are_those_of_a_recorded_pass(name, dtype):
    """A recorded pass modifies no gradient in place."""
    x, c = operands(dtype)
    (recorded,) = torch.autograd.grad(passed_through(RULES[name](x, c)), x, create_graph=True)
    (grad,) = torch.autograd.grad(passed_through(RULES[name](x, c)), x)
    assert np.array_equal(grad.numpy(), recorded.detach().numpy())
    assert np.array_equal(c.numpy(), operands(dtype)[1].numpy())


@pytest.mark.parametrize("name", RULES)
def test_what_somebody_sees_stays_as_it_was(name):
    """Retained, hooked, captured and user-provided gradients stay unchanged."""
    x, c = operands()
    y = x * 1
    z = RULES[name](y, c)
    w = z * 1
    seen = []
    w.retain_grad()
    z.register_hook(lambda g: seen.append((g, g.clone())))
    y.register_hook(lambda g: seen.append((g, g.clone())))
    z.grad_fn.register_hook(lambda grads, outs: seen.extend((g, g.clone()) for g in outs if g is not None))
    given = torch.full((5, 7), 2.0)
    (captured,) = torch.autograd.grad(w, z, given, retain_graph=True)
    copy = captured.clone()
    w.grad = None
    w.backward(given, retain_graph=True)
    assert (given == 2).all()
    assert torch.equal(captured, copy)
    assert (w.grad == 2).all()
    assert seen
    for grad, at_the_time in seen:
        assert torch.equal(grad, at_the_time)


def test_a_second_pass_gives_the_same():
    x, c = operands()
    loss = passed_through((x * c).tanh().exp() * c)
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    (second,) = torch.autograd.grad(loss, x)
    assert torch.equal(first, second)


def test_broadcast_and_transposed_gradients():
    x, c = operands()
    row = torch.ones(7, requires_grad=True)
    loss = (((x.t() * c.t()).t() * row).tanh() * 2).sum()
    gradients = torch.autograd.grad(loss, (x, row))
    recorded = torch.autograd.grad((((x.t() * c.t()).t() * row).tanh() * 2).sum(), (x, row), create_graph=True)
    for grad, other in zip(gradients, recorded):
        assert torch.equal(grad, other.detach())


def test_a_backward_pass_inside_a_rule():
    """A pass started by a custom function's backward must not overwrite the gradient that backward received."""

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            before = g.clone()
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                (inner,) = torch.autograd.grad((y * 2).tanh() * 3, y, g)
            assert torch.equal(g, before)
            return g * 2 + 0 * inner

    x, c = operands()
    passed_through(Twice.apply(x * c) * c).backward()
    assert torch.allclose(x.grad, 2 * c * c)


def test_memory_is_used_again():
    """Of ten steps, all but the first reuse the memory of the incoming gradient."""
    x = torch.ones(1 << 18, requires_grad=True)
    y = x
    for _ in range(10):
        y = y * 1.0
    torch.empty_cache()
    torch.reset_peak_memory_stats()
    before = torch.memory_stats()["allocated_bytes.all.current"]
    y.sum().backward()
    grown = torch.memory_stats()["allocated_bytes.all.peak"] - before
    assert grown < 2.5 * x.numel() * x.itemsize


def test_a_reshaped_gradient_is_taken_over():
    """The gradient of a flattened tensor covers a whole array that nothing else references, so it is not copied."""
    x = torch.ones(1 << 9, 1 << 9, requires_grad=True)
    y = x.reshape(-1) * 2.0 * torch.ones(1 << 18)
    torch.empty_cache()
    torch.reset_peak_memory_stats()
    before = torch.memory_stats()["allocated_bytes.all.current"]
    y.backward(torch.ones(1 << 18).expand(1 << 18))
    assert torch.memory_stats()["allocated_bytes.all.peak"] - before < 2.5 * x.numel() * x.itemsize
    assert x.grad.shape == x.shape
    assert (x.grad == 2).all()


def test_part_of_a_larger_array_is_copied():
    """A leaf's gradient keeps no more memory alive than its own elements."""

    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return torch.zeros(100, 5)[0]

    x = torch.ones(5, requires_grad=True)
    First.apply(x).sum().backward()
    assert x.grad.numpy().base is None or x.grad.numpy().base.nbytes == x.grad.nbytes


def ways_to_keep():
    """Functions that keep a reference to a gradient, which arrives second and is added to one that is shared."""
    kept = []

    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            kept.append(g * 2)
            return kept[-1]

    class AsArray(Kept):
        @staticmethod
        def backward(ctx, g):
            kept.append((g * 2).numpy())
            return torch.from_numpy(kept[-1])

    class AsView(Kept):
        @staticmethod
        def backward(ctx, g):
            kept.append((g * 2).view(-1))
            return kept[-1].view(g.shape)

    def hooked(x):
        y = x * 2
        y.grad_fn.register_hook(lambda grads, _: kept.append(grads[0]))
        return y

    return kept, {"tensor": Kept.apply, "array": AsArray.apply, "view": AsView.apply, "post-hook": hooked}


@pytest.mark.parametrize("way", ["tensor", "array", "view", "post-hook"])
def test_what_comes_second_stays_as_it_was_if_somebody_has_it(way):
    kept, ways = ways_to_keep()
    x = operands()[0].detach().requires_grad_()
    y = x * 1
    # The sum's expanded gradient arrives first, because its node is newer.
    branch = ways[way](y)
    total = y.sum()
    (grad,) = torch.autograd.grad(branch.sum() + total, x)
    assert np.array_equal(grad.numpy(), np.full((5, 7), 3, np.float32))
    (only,) = kept
    kept.clear()  # without the GIL, functions that hold it stay alive
    assert np.array_equal(np.asarray(only).reshape(5, 7), np.full((5, 7), 2, np.float32))


def test_what_comes_second_for_two_stays_as_it_was():
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            same = g * 2
            return same, same

    x, c = operands()
    c.requires_grad_()
    y, z = x * 1, c * 1
    found = torch.autograd.grad(Both.apply(y, z).sum() + (y.sum() + z.sum()), (x, c))
    assert [np.unique(grad.numpy()).tolist() for grad in found] == [[3], [3]]


def test_no_other_tensor_is_taken_for_the_gradient_of_a_pass_that_failed():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    total = (y * y * 2).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()
    later = [torch.ones(3) for _ in range(1000)]  # some reuse the memory of that gradient
    assert not any(is_spare(each) for each in later)
