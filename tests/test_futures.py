"""Futures: results set by other threads."""

import pickle
import threading

import pytest

import cygrad as torch
from cygrad.futures import Future, collect_all, wait_all


def test_result():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="not completed"):
        future.value()
    future.set_result(3)
    assert future.done() and future.value() == future.wait() == 3
    for again in (lambda: future.set_result(4), lambda: future.set_exception(ValueError())):
        with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
            again()
    assert future.value() == 3


def test_error():
    future = Future()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception."):
        future.set_exception(3)
    future.set_exception(KeyError("why"))
    assert future.done()
    for ask in (future.wait, future.value):
        with pytest.raises(KeyError, match="why"):
            ask()


def test_another_thread_sets_the_result():
    future = Future()
    doubled = future.then(lambda done: 2 * done.value())
    timer = threading.Timer(0.05, future.set_result, (21,))
    timer.start()
    assert doubled.wait() == 42
    timer.join()


def test_chains():
    future = Future()
    failing = future.then(lambda done: 1 / 0)
    following = failing.then(lambda done: done.value())
    future.set_result(1)
    assert future.then(lambda done: done.value() + 1).wait() == 2
    with pytest.raises(RuntimeError, match="error when running the callback: ZeroDivisionError: division by zero"):
        failing.wait()
    with pytest.raises(RuntimeError, match="error when running the callback: RuntimeError: Got the following"):
        following.wait()


def test_callbacks(capsys):
    seen = []
    future = Future()
    future.add_done_callback(lambda done: seen.append(done.value()))
    future.add_done_callback(lambda done: 1 / 0)
    future.set_result(7)
    future.add_done_callback(lambda done: seen.append("late"))
    assert seen == [7, "late"]
    assert "ZeroDivisionError" in capsys.readouterr().err
    for method in (future.then, future.add_done_callback):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            method(3)


def test_several():
    first, second = Future(), Future()
    both = collect_all([first, second, first])
    second.set_result(2)
    assert not both.done()
    first.set_result(1)
    assert [future.value() for future in both.wait()] == [1, 2, 1]
    assert wait_all([first, second]) == [1, 2]
    assert wait_all([]) == [] == collect_all([]).wait()


def test_several_with_an_error():
    first, second = Future(), Future()
    both = collect_all([first, second])
    first.set_exception(ValueError("why"))
    assert not both.done()
    second.set_result(1)
    with pytest.raises(ValueError, match="why"):
        both.wait()


def test_class():
    assert torch.Future is Future

    class Own(Future[int]):
        pass

    assert type(Own().then(lambda done: 1)) is Future
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])


def test_what_is_no_future():
    for ask in (torch.jit.wait, lambda none: wait_all((none,)), lambda none: collect_all((Future(), none))):
        with pytest.raises(RuntimeError, match="^Future can't be None"):
            ask(None)
    with pytest.raises(RuntimeError, match="^Can not pickle torch.futures.Future"):
        pickle.dumps(Future())
