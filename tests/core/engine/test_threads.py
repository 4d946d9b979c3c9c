"""Several threads: disjoint graphs, shared leaves, a shared graph, and thread-local state."""

import gc
import subprocess
import sys
import threading
import weakref

import pytest

import cygrad as torch
from cygrad.autograd import nan_check, set_detect_anomaly
from helpers import in_thread, leaf

THREADS = 6


def in_threads(work):
    """Run `work(i)` in several threads that start together; return what each returned or raised."""
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
    """As in PyTorch, where only anomaly mode applies to all threads."""
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


REPLACED = """
import threading, time
import cygrad as torch

x, w, y = torch.ones(4, requires_grad=True), torch.ones(4), torch.ones(4)
h = x * 2

def gradients():
    x.grad = None
    x.grad = torch.ones(4)

def arrays():
    w.data = torch.ones(4)

def histories():
    h.detach_()
    for _ in range(30):
        h.add_(x)

def reads_gradient():
    x.grad, x.grad, x.grad

def reads_array():
    w + y

def reads_history():
    h.is_leaf, h.is_leaf, h.grad_fn

def repeat(work):
    while time.monotonic() < end:
        for _ in range(100):
            work()

end = time.monotonic() + 2
threads = [threading.Thread(target=repeat, args=(work,)) for work in (REPLACES, REPLACES_TOO, READS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(x.shape, w.tolist(), h.shape)
"""


@pytest.mark.parametrize(
    "replaces, other, reads",
    [
        ("gradients", "gradients", "reads_gradient"),
        ("arrays", "arrays", "reads_array"),
        ("histories", "reads_history", "reads_history"),
    ],
)
def test_what_one_thread_replaces_another_may_read(replaces, other, reads):
    """Without the GIL, a value could be freed after another thread read its pointer and before it incremented the
    refcount.
    """
    program = REPLACED.replace("REPLACES_TOO", other).replace("REPLACES", replaces).replace("READS", reads)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "torch.Size([4]) [1.0, 1.0, 1.0, 1.0] torch.Size([4])\n"), done.stderr


def test_values_replaced_beside_a_thread_are_let_go():
    """The collector frees them at the latest: without the GIL, they are kept as long as another thread may read
    them.
    """
    x = leaf(1.0)
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    try:
        x.grad = torch.ones(1)
        died = weakref.ref(x.grad)
        x.grad = None
        gc.collect()
        assert died() is None
    finally:
        go_on.set()
        thread.join()


@pytest.mark.parametrize("size, most", [(1_000_000, 1), (100, 257)])
def test_many_values_replaced_beside_a_thread_do_not_pile_up(size, most):
    """No large values are kept besides the one in use, and at most 256 small ones."""
    x = torch.zeros(size, requires_grad=True)
    references = []
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    gc.disable()
    try:
        for _ in range(600 if size == 100 else 30):
            x.grad = torch.zeros(size)
            references.append(weakref.ref(x.grad))
            assert sum(reference() is not None for reference in references[-most - 2 :]) <= most
    finally:
        gc.enable()
        go_on.set()
        thread.join()
