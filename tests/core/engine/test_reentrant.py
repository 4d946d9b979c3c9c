"""Nested backward passes, backward in several threads, and long chains."""

import threading

import pytest

import cygrad as torch
from helpers import in_thread, in_threads, leaf


class Reentrant(torch.autograd.Function):
    """Identity times two, whose backward runs a nested backward pass."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            out = Reentrant.apply(inner, ctx.depth - 1) if ctx.depth else inner * 2
            out.sum().backward()
        return grad * inner.grad, None


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_backward_inside_backward(depth):
    x = leaf(1.0)
    Reentrant.apply(x, depth).backward()
    assert x.grad.tolist() == [2.0]


def test_backward_of_an_unrelated_graph_inside_a_hook():
    x, other = leaf(1.0), leaf(5.0)
    y = x * 2
    square = other * other
    y.register_hook(lambda g: square.backward())
    (y * 3).backward()
    assert x.grad.tolist() == [6.0]
    assert other.grad.tolist() == [10.0]


def test_grad_of_a_shared_subgraph_inside_a_hook():
    seen = []
    x = leaf(3.0)
    shared = x * x
    y = shared * 2

    def inner(gradient):
        seen.append(torch.autograd.grad(shared, x, retain_graph=True)[0].item())

    y.register_hook(inner)
    (y + shared).backward()
    assert seen == [6.0]
    assert x.grad.tolist() == [18.0]


def test_inner_run_accumulates_into_the_same_leaf():
    x = leaf(1.0)
    y = x * 2
    side = x * 10
    y.register_hook(lambda g: side.backward())
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_exception_in_an_inner_run_comes_out_of_the_outer():
    x = leaf(1.0)
    y = x * 2
    inner = leaf(1.0) * 2
    inner.register_hook(lambda g: 1 / 0)
    handle = y.register_hook(lambda g: inner.backward())
    with pytest.raises(ZeroDivisionError):
        y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_final_callbacks_of_inner_and_outer_runs():
    order = []
    engine = torch.autograd.Variable._execution_engine
    x, other = leaf(1.0), leaf(1.0)
    other.register_hook(lambda g: engine.queue_callback(lambda: order.append("inner")))
    y = x * 2
    z = other * 2

    def inner(gradient):
        engine.queue_callback(lambda: order.append("outer"))
        z.backward()

    y.register_hook(inner)
    y.backward()
    assert order == ["inner", "outer"]


# ------------------------------------------------------------------ threads


def test_disjoint_graphs_in_ten_threads():
    def work(seed):
        x = leaf(float(seed))
        for _ in range(20):
            x.grad = None
            y = x
            for _ in range(50):
                y = y * 1 + x
            y.backward()
        return x.grad.item()

    assert in_threads([lambda n=n: work(n) for n in range(10)]) == [51.0] * 10


def test_shared_leaf_gets_the_sum_over_all_threads():
    x = leaf(1.0, 2.0)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    in_threads([work] * 8)
    assert x.grad.tolist() == [800.0, 800.0]


def test_shared_subgraph_is_run_correctly_by_every_thread():
    x = leaf(1.0, 2.0)
    shared = (x * x).sin() * 1
    outputs = [(shared * n).sum() for n in range(1, 9)]
    alone = torch.autograd.grad(shared.sum(), x, retain_graph=True)[0]
    got = in_threads([lambda out=out: torch.autograd.grad(out, x, retain_graph=True)[0] for out in outputs])
    for n, gradient in enumerate(got, start=1):
        expected = torch.autograd.grad(outputs[n - 1], x, retain_graph=True)[0]
        assert gradient.tolist() == expected.tolist()
    assert got[0].tolist() == alone.tolist()


def test_accumulation_through_a_shared_subgraph_in_threads():
    x = leaf(1.0)
    shared = x * 3
    in_threads([lambda: (shared * 2).sum().backward(retain_graph=True)] * 8)
    assert x.grad.tolist() == [48.0]


def test_one_graph_built_here_and_run_in_another_thread():
    x = leaf(2.0)
    y = x * x
    in_thread(y.backward)
    assert x.grad.tolist() == [4.0]


def test_hooks_run_in_the_thread_that_called_backward():
    where = []
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: where.append(threading.get_ident()))
    in_thread(lambda: (where.append(threading.get_ident()), y.backward()))
    assert where[0] == where[1] != threading.get_ident()


def test_exception_in_one_thread_leaves_the_others_alone():
    def good():
        x = leaf(1.0)
        for _ in range(20):
            (x * 2).backward()
        return x.grad.item()

    def bad():
        x = leaf(1.0)
        x.register_hook(lambda g: 1 / 0)
        for _ in range(20):
            with pytest.raises(ZeroDivisionError):
                (x * 2).backward()
        return "raised"

    assert in_threads([good, bad, good, bad]) == [40.0, "raised", 40.0, "raised"]


# ------------------------------------------------------------------ long chains


def test_chain_of_a_hundred_thousand_ops():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y


def test_chain_freed_without_ever_running():
    y = leaf(1.0)
    for _ in range(100_000):
        y = y * 1.0001
    del y


def test_chain_of_in_place_ops():
    x = leaf(1.0)
    y = x * 1
    for _ in range(50_000):
        y += 1
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_chain_of_views():
    x = torch.ones(2, 3, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y.t()
    y.sum().backward()
    assert x.grad.tolist() == [[1.0] * 3] * 2


def test_chain_of_written_slices():
    x = leaf(2.0)
    buffer = torch.zeros(4)
    for i in range(5_000):
        buffer[i % 4] = x[0]
    buffer.sum().backward()
    assert x.grad.tolist() == [4.0]


def test_chain_that_shares_each_value_twice():
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = (y + y) * 0.5
    y.backward()
    assert x.grad.tolist() == [1.0]
