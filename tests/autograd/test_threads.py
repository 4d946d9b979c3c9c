"""Several threads: disjoint graphs, shared leaves, a shared graph, and what belongs to each thread alone."""

import threading

import pytest

import cygrad as torch
from cygrad.autograd import nan_check, set_detect_anomaly
from helpers import in_thread, leaf

THREADS = 6


def in_threads(work):
    """Run `work(i)` in several threads that start together; gives what each returned or raised."""
    outcomes = [None] * THREADS
    barrier = threading.Barrier(THREADS)

    def body(i):
        barrier.wait()
        try:
            outcomes[i] = work(i)
        except Exception as error:
            outcomes[i] = error.with_traceback(None)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_disjoint_graphs_in_parallel():
    def work(i):
        x = torch.full((50,), float(i + 1), requires_grad=True)
        for _ in range(20):
            x.grad = None
            y = x
            for _ in range(10):
                y = y * x
            y.sum().backward()
        return x.grad[0].item()

    assert in_threads(work) == pytest.approx([11.0 * (i + 1) ** 10 for i in range(THREADS)])


@pytest.mark.parametrize("size", [1, 40_000])
def test_shared_leaves_lose_nothing(size):
    w = torch.zeros(size, requires_grad=True)
    passes = 50

    def work(i):
        for _ in range(passes):
            (w * (i + 1)).sum().backward()

    assert in_threads(work) == [None] * THREADS
    total = passes * sum(range(1, THREADS + 1))
    assert w.grad.eq(total).all()


def test_a_shared_graph_that_is_kept_serves_all_threads():
    w = leaf(1.0, 2.0)
    loss = (w.exp() * w).sum()

    def work(_):
        (g,) = torch.autograd.grad(loss, w, retain_graph=True)
        return g.tolist()

    results = in_threads(work)
    assert all(result == results[0] for result in results)


def test_a_shared_graph_that_is_freed_serves_one_thread():
    for _ in range(20):
        w = leaf(1.0, 2.0)
        loss = (w.exp() * w).sum()
        y = loss.sin()
        outcomes = in_threads(lambda _, y=y: y.backward())
        errors = [error for error in outcomes if error is not None]
        assert len(errors) == THREADS - 1
        for error in errors:
            assert isinstance(error, torch.errors.FreedGraphError)
            assert "retain_graph=True" in str(error)
            assert "freed" in error.sites


def test_hooks_of_one_pass_run_in_its_thread():
    w = leaf(1.0)
    y = w * 2
    seen = []
    y.register_hook(lambda grad: seen.append(threading.get_ident()))
    in_thread(lambda: y.backward(retain_graph=True))
    y.backward()
    assert len(set(seen)) == 2


MODES = {
    "no_grad": (torch.no_grad, lambda: torch.is_grad_enabled(), True),
    "set_grad_enabled": (lambda: torch.set_grad_enabled(False), lambda: torch.is_grad_enabled(), True),
    "inference_mode": (torch.inference_mode, lambda: not torch.is_inference_mode_enabled(), True),
    "nan_check": (nan_check, lambda: torch.tensor(-1.0).log().isnan().item(), True),
    "anomaly mode": (lambda: set_detect_anomaly(True), lambda: not torch.is_anomaly_enabled(), False),
}


@pytest.mark.parametrize("name", MODES)
def test_modes_of_a_thread_are_not_those_of_another(name):
    """As in PyTorch, where anomaly mode alone holds for all threads."""
    mode, is_off, is_local = MODES[name]
    assert is_off()
    with mode():
        assert in_thread(is_off) is is_local
    assert is_off()


def test_numbers_of_nodes_count_in_each_thread():
    def work():
        x = leaf(1.0)
        return (x * 2).grad_fn._sequence_nr() - (x * 3).grad_fn._sequence_nr()

    assert in_thread(work) == work() == -1
