"""Graphs far deeper than the C stack are recorded, run and freed, even with little stack left."""

import threading

import pytest

import cygrad as torch
from helpers import leaf


def chain(length):
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y


def in_small_stack(function, *args):
    """Run in a thread with a stack of 256 KB, which recursion over the graph would overflow."""
    errors = []

    def body():
        try:
            function(*args)
        except BaseException as error:
            errors.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=body)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]


def test_hundred_thousand_ops_in_a_small_stack():
    in_small_stack(chain, 100_000)


def test_graph_of_a_gradient_in_a_small_stack():
    def work():
        x = torch.ones((), dtype=torch.float64, requires_grad=True)
        y = x
        for _ in range(20_000):
            y = y * 1.00001
        y = y * y
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        (second,) = torch.autograd.grad(first, x)
        assert second.item() == pytest.approx(2 * 1.00001**40_000)

    in_small_stack(work)


def test_views_and_saved_tensors_in_a_small_stack():
    def work():
        x = torch.ones(2, 2, requires_grad=True)
        y = x
        for _ in range(30_000):
            y = y.t().exp().log()
        y.sum().backward()

    in_small_stack(work)


def test_hundred_thousand_written_slices():
    x = leaf(2.0)
    buffer = torch.zeros(4)
    for i in range(100_000):
        buffer[i % 4] = x[0]
    buffer.sum().backward()
    assert x.grad.tolist() == [4.0]


def test_a_graph_is_freed_at_every_depth_of_calls():
    def written(length):
        x = leaf(2.0)
        buffer = torch.zeros(4)
        for i in range(length):
            buffer[i % 4] = x[0]

    def below(calls):  # each is a call from C; CPython 3.13 limits their number, and ours count as 64
        written(600) if calls == 0 else list(map(below, [calls - 1]))

    for calls in range(66):
        below(calls)


def test_chain_of_custom_functions():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = Same.apply(y)
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y


@pytest.mark.slow
def test_five_million_ops():
    chain(5_000_000)


@pytest.mark.slow
def test_five_million_ops_in_a_small_stack():
    in_small_stack(chain, 5_000_000)
