"""Functions and passes that do not end in the order in which they began, as those that greenlets run."""

import gc

import pytest
from compile.replays import bits

import cygrad
from cygrad._core.replay.calls.following import Follower, following

SIZE = 100_000


def chain(u):
    return (u.tanh() * u + u.exp() * u.sigmoid()).sum()


def test_followers_that_end_in_another_order():
    u = cygrad.randn(SIZE, requires_grad=True)
    expected = bits(cygrad.autograd.grad(chain(u), u)[0])
    last = Follower(least=0)
    first, second = following(Follower(least=0)), following(last)
    first.__enter__()
    second.__enter__()
    for _ in range(6):
        cygrad.autograd.grad(chain(u), u)
    replays = last.replays
    assert replays > 0
    first.__exit__()
    del first
    gc.collect()
    second.__exit__()  # the follower from before it is gone
    for _ in range(6):
        assert bits(cygrad.autograd.grad(chain(u), u)[0]) == expected
    assert last.replays == replays


def test_functions_that_end_in_another_order():
    greenlet = pytest.importorskip("greenlet")
    main = greenlet.getcurrent()
    u = cygrad.randn(SIZE, requires_grad=True)
    expected = bits(cygrad.autograd.grad(chain(u), u)[0])
    calls = []

    def function(rest):
        @cygrad.compile
        def step():
            calls.append(1)
            gradient = cygrad.autograd.grad(chain(u), u)[0]
            rest()
            return bits(gradient)

        return step

    inner = function(lambda: main.switch())
    for _ in range(8):
        began = []

        def begin(began=began):
            began.append(greenlet.greenlet(inner))
            began[0].switch()

        assert function(begin)() == expected
        gc.collect()
        assert began[0].switch() == expected
        assert bits(cygrad.autograd.grad(chain(u), u)[0]) == expected


def test_passes_that_end_in_another_order():
    greenlet = pytest.importorskip("greenlet")
    main = greenlet.getcurrent()

    def run(switch):
        with cygrad.enable_grad():
            x = cygrad.ones(3, requires_grad=True)
            y = x * 2
            y.register_hook(lambda grad: (switch(), grad)[1])
            y.sum().backward()
        return x.grad.tolist()

    for _ in range(20):
        other = greenlet.greenlet(lambda: run(main.switch))
        other.switch()
        assert run(other.switch) == [2, 2, 2]
        assert other.dead
        del other
        gc.collect()
        cygrad.set_grad_enabled(True)  # each thread has one mode, as in PyTorch
        with pytest.raises(RuntimeError, match="during backward pass"):
            cygrad.autograd.Variable._execution_engine.queue_callback(lambda: None)
