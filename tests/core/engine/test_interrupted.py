"""Ctrl-C, garbage collection, and failures inside and between backward passes leave everything consistent."""

import gc
import signal
import threading
import time

import pytest

import cygrad as torch
from cygrad.autograd import Function
from helpers import in_threads, leaf


@pytest.fixture
def ctrl_c():
    """Make Ctrl-C raise KeyboardInterrupt, even if the test runner changed that."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, former)


def wait_for_ctrl_c():
    """Wait by sleeping, which is safe to interrupt; while acquiring or releasing a lock, `threading` may raise
    RuntimeError.
    """
    for _ in range(1000):
        time.sleep(0.01)


def usable(x, output):
    """Check the graph by another pass; return the gradient."""
    x.grad = None
    output.backward()
    return x.grad.tolist()


# ------------------------------------------------------------------ Ctrl-C


def test_ctrl_c_in_a_hook_ends_the_pass_and_leaves_the_graph_usable(ctrl_c):
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda grad: ctrl_c())
    z = (y * 3).sum()
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            z.backward(retain_graph=True)
    handle.remove()
    assert usable(x, z) == [6]


def test_ctrl_c_between_two_nodes(ctrl_c):
    """The signal arrives from outside in the middle of a long pass."""
    x = leaf(1.0)
    y = x
    for _ in range(200_000):
        y = y + 1
    begun = []

    def interrupt():
        while not begun:
            time.sleep(0.001)
        ctrl_c()

    thread = threading.Thread(target=interrupt)
    thread.start()
    y.register_hook(begun.append)
    with pytest.raises(KeyboardInterrupt):
        y.backward(retain_graph=True)
        wait_for_ctrl_c()  # in case the pass was faster
    thread.join()
    z = x * 2
    assert usable(x, z) == [2]


def test_ctrl_c_in_the_main_thread_leaves_other_threads_alone(ctrl_c):
    x = leaf(1.0)
    started, finish = threading.Event(), threading.Event()
    w = leaf(1.0)
    v = w * 5

    def wait(grad):
        started.set()
        assert finish.wait(30)

    v.register_hook(wait)
    worker = threading.Thread(target=lambda: (v * 2).backward())
    worker.start()
    assert started.wait(30)
    y = x * 2
    handle = y.register_hook(lambda grad: ctrl_c())
    z = y * 3
    with pytest.raises(KeyboardInterrupt):
        z.backward(retain_graph=True)
    finish.set()
    worker.join(30)
    assert w.grad.tolist() == [10]
    handle.remove()
    assert usable(x, z) == [6]


def test_ctrl_c_is_not_for_other_threads(ctrl_c):
    """A pass outside the main thread continues; Python raises the interrupt in the main thread."""
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda grad: ctrl_c())
    z = y * 3
    asleep = []

    def run():
        while not asleep:
            time.sleep(0.001)
        z.backward()

    thread = threading.Thread(target=run)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        asleep.append(True)
        wait_for_ctrl_c()
    thread.join(30)  # the interrupt may have arrived while the pass was still running
    assert x.grad.tolist() == [6]


# ------------------------------------------------------------------ the collector


def test_collecting_inside_hooks_and_functions():
    class Collects(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.circle = ctx
            ctx.save_for_backward(x)
            gc.collect()
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            gc.collect()
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = leaf(1.0, 1.0)

    def collect(*args):
        gc.collect()

    x.register_hook(collect)
    x.register_post_accumulate_grad_hook(collect)
    y = Collects.apply(x)
    y.register_hook(collect)
    y.grad_fn.register_hook(collect)
    y.grad_fn.register_prehook(collect)
    y.retain_grad()
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert y.grad.tolist() == [1, 1]


def test_collecting_in_threads_that_share_a_leaf():
    x = leaf(1.0)

    def collect(grad):
        gc.collect(0)

    def work():
        for _ in range(20):
            y = x * x * x
            y.register_hook(collect)
            y.backward()

    in_threads([work] * 4)
    assert x.grad.tolist() == [240]


@pytest.mark.parametrize("n_threads", [2, 10])
def test_the_sum_over_threads_is_exact(n_threads):
    x = leaf(1.0, 2.0)
    shared = x * 3

    def disjoint():
        w = leaf(2.0)
        for _ in range(50):
            (w * w).backward()
        return w.grad.item()

    def into_the_leaf():
        for _ in range(50):
            (x * 2).sum().backward()

    def through_the_shared_part():
        for _ in range(50):
            (shared * 2).sum().backward(retain_graph=True)

    assert in_threads([disjoint] * n_threads) == [200.0] * n_threads
    in_threads([into_the_leaf] * n_threads)
    assert x.grad.tolist() == [100.0 * n_threads] * 2
    x.grad = None
    in_threads([through_the_shared_part] * n_threads)
    assert x.grad.tolist() == [300.0 * n_threads] * 2


# ------------------------------------------------------------------ failures in nested passes


class Checkpoint(Function):
    """Recomputes its forward inside backward, with a backward pass of its own."""

    @staticmethod
    def forward(ctx, function, x):
        ctx.function = function
        ctx.save_for_backward(x)
        return function(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.function(x)
        torch.autograd.backward(y, grad)
        return None, x.grad


def test_a_failing_hook_in_a_pass_inside_a_function():
    def fail(grad):
        if broken:
            raise ValueError("inner")

    def function(x):
        y = x * x
        if y.requires_grad:
            y.register_hook(fail)
        return y * 3

    x = leaf(2.0)
    z = Checkpoint.apply(function, Checkpoint.apply(function, x))
    broken = True
    for _ in range(3):
        with pytest.raises(ValueError, match="inner"):
            z.backward(retain_graph=True)
    assert torch.is_grad_enabled()
    assert x.grad is None
    broken = False
    z.backward()
    assert x.grad.tolist() == [864]  # z = 27 x^4


def test_an_inner_pass_over_the_outer_graph_that_fails():
    x = leaf(3.0)
    y = x * x
    z = y * 2
    calls = []

    def hook(grad):
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("inner")
        if len(calls) == 1:
            with pytest.raises(KeyError):
                z.backward(retain_graph=True)

    y.register_hook(hook)
    z.backward(retain_graph=True)  # continues after the inner pass failed
    assert x.grad.tolist() == [12]
    assert len(calls) == 2


def test_an_inner_pass_that_frees_the_outer_graph():
    x = leaf(3.0)
    y = x * x
    z = y * y
    done = []

    def hook(grad):
        if not done:
            done.append(1)
            z.backward()

    y.register_hook(hook)
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        z.backward(retain_graph=True)
    assert x.grad.tolist() == [108]  # from the inner pass


def test_hooks_that_take_apart_what_is_running():
    x = leaf(1.0)
    y = x * 2
    handles = []

    def remove_all(*args):
        for handle in handles:
            handle.remove()

    for _ in range(3):
        handles += [
            y.register_hook(remove_all),
            y.grad_fn.register_hook(remove_all),
            y.grad_fn.register_prehook(remove_all),
        ]
    y.backward(retain_graph=True)
    y.register_hook(lambda grad: [y.detach_(), None][1])
    y.backward()
    assert x.grad.tolist() == [4]


def test_a_leaf_given_other_memory_while_its_gradient_is_on_the_way():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda grad: setattr(x, "data", torch.ones(3, 3)))
    with pytest.raises(RuntimeError, match=r"^Function MulBackward0 returned an invalid gradient at index 0"):
        y.sum().backward()
    assert x.grad is None
