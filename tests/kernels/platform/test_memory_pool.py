"""The pool that supplies memory for large arrays: its counters, caching, reuse and release."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sanitizing import keeps_memory

import cygrad
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.platform import machine, memory_pool

SMALLEST = 2**15  # bytes of the smallest allocation from the pool


def counters():
    return memory_pool.counters()[0]


def capacity(size):
    """The pool's size class for a request: four per power of two, computed differently from memory_pool.h."""
    steps = [2**k * quarter // 4 for k in range(12, 40) for quarter in (5, 6, 7, 8)]
    return min(step for step in steps if step >= size)


def array(nbytes):
    """An array of that size from the pool (or from NumPy, if it is small)."""
    return cygrad.empty(nbytes, dtype=cygrad.uint8).numpy()


@pytest.fixture(autouse=True)
def put_back():
    gc.collect()
    cygrad.empty_cache()
    limit = cygrad.get_memory_limit()
    yield
    cygrad.set_memory_limit(limit)
    cygrad.empty_cache()


# --- Counters ----------------------------------------------------------------------------------


@keeps_memory
def test_what_one_array_counts():
    before = counters()
    x = array(100_000)
    after = counters()
    for name, growth in {"requested_bytes": 100_000, "allocated_bytes": 114_688, "allocation": 1}.items():
        assert after[name][0] - before[name][0] == growth
        assert after[name][2] - before[name][2] == growth
        assert after[name][3] == before[name][3]
    del x
    freed = counters()
    assert freed["requested_bytes"][0] == before["requested_bytes"][0]
    assert freed["requested_bytes"][3] - before["requested_bytes"][3] == 100_000
    assert freed["reserved_bytes"][0] - before["reserved_bytes"][0] == 114_688  # cached
    cygrad.empty_cache()
    assert counters()["reserved_bytes"][0] == before["reserved_bytes"][0]


def test_small_arrays_are_not_counted():
    before = counters()
    x = array(SMALLEST - 1)
    assert counters() == before
    y = array(SMALLEST)
    assert counters()["requested_bytes"][0] == before["requested_bytes"][0] + SMALLEST
    del x, y


@given(st.integers(SMALLEST, 2**36))
def test_a_quarter_is_wasted_at_most(size):
    assert size <= capacity(size) <= 1.25 * size


def test_peaks():
    x = array(10**6)
    before = counters()["requested_bytes"][0]
    cygrad.reset_peak_memory_stats()
    y = array(10**6)
    del y
    stats = cygrad.memory_stats()
    assert stats["requested_bytes.all.peak"] == before + 10**6
    assert stats["requested_bytes.all.current"] == before
    cygrad.reset_peak_memory_stats()
    assert cygrad.memory_stats()["requested_bytes.all.peak"] == before
    del x


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3 * 10**6), st.integers(0, 9)), max_size=60))
def test_random_programs(program):
    """Arrays are created and freed at random; each keeps its values, and the counters match the live ones."""
    before = counters()
    alive = {}
    for number, (size, place) in enumerate(program):
        alive.pop(place, None)
        x = array(size)
        x[:8] = x[-8:] = number % 251
        alive[place] = (x, number % 251)
        del x
        for y, value in alive.values():
            assert (y[:8] == value).all() and (y[-8:] == value).all()
        large = [len(y) for y, _ in alive.values() if len(y) >= SMALLEST]
        now = counters()
        assert now["requested_bytes"][0] - before["requested_bytes"][0] == sum(large)
        assert now["allocated_bytes"][0] - before["allocated_bytes"][0] == sum(map(capacity, large))
        assert now["allocation"][0] - before["allocation"][0] == len(large)
        assert now["reserved_bytes"][0] >= now["allocated_bytes"][0]
    y = None
    alive.clear()
    assert counters()["requested_bytes"][0] == before["requested_bytes"][0]


def test_what_is_kept_is_bounded_by_what_was_used_at_once():
    before = counters()["reserved_bytes"][0]
    for size in range(10**6, 40 * 10**6, 10**6):
        array(size)
    assert counters()["reserved_bytes"][0] - before <= 1.25 * capacity(39 * 10**6) + 2**24


def test_an_array_that_cannot_be_made_leaves_nothing():
    before = counters()["requested_bytes"][0]
    with pytest.raises(ValueError, match="negative"):
        new_array((-1000, -1000), np.dtype("f").num)
    assert counters()["requested_bytes"][0] == before


# --- Reuse -------------------------------------------------------------------------------------


@keeps_memory
def test_memory_is_aligned_and_used_again():
    x = array(500_000)
    place = x.ctypes.data
    assert place % 64 == 0
    del x
    y = array(499_999)  # of the same size class
    assert y.ctypes.data == place


@keeps_memory
def test_backward_needs_no_memory_but_that_of_forward():
    x = cygrad.ones(200_000, requires_grad=True)

    def step():
        y = x
        for _ in range(10):
            y = y.tanh()
        y.sum().backward()
        x.grad = None

    step()
    cygrad.reset_peak_memory_stats()
    segments = cygrad.memory_stats()["segment.all.allocated"]
    start = cygrad.memory_stats()["requested_bytes.all.current"]
    step()
    stats = cygrad.memory_stats()
    assert stats["segment.all.allocated"] == segments  # nothing new from the system
    assert stats["requested_bytes.all.peak"] - start <= 12 * 800_000  # ten results, and the gradients in turn
    assert stats["requested_bytes.all.current"] == start


def test_what_numpy_makes_for_an_op_comes_from_the_pool():
    x = cygrad.ones(400, 500)
    before = counters()["requested_bytes"][0]
    y = cygrad.logcumsumexp(x, 0)
    assert counters()["requested_bytes"][0] == before + 800_000
    np.ones(10**6)  # this memory is not ours
    assert counters()["requested_bytes"][0] == before + 800_000
    assert y[0, 0] == 1


# --- Arrays that own pool memory ---------------------------------------------------------------


def test_arrays_outlive_their_tensors():
    t = cygrad.arange(100_000) + 0
    a, view = t.numpy(), t[10:].numpy()
    assert np.shares_memory(a, view)
    del t
    gc.collect()
    others = [array(800_000) for _ in range(3)]
    for other in others:
        other[:] = 255
    assert (a == np.arange(100_000)).all() and view[0] == 10
    assert a.flags.writeable


def test_resize_and_pickle():
    before = counters()["requested_bytes"][0]
    a = cygrad.ones(100_000, dtype=cygrad.int64).numpy().base
    assert a.flags.owndata
    a.resize(200_000, refcheck=False)
    assert a[:100_000].all() and not a[100_000:].any()
    assert counters()["requested_bytes"][0] == before + 1_600_000
    assert sys.getsizeof(a) > 1_600_000
    a.resize(10, refcheck=False)
    assert (a == np.ones(10)).all()
    assert counters()["requested_bytes"][0] == before
    a.resize(100_000, refcheck=False)
    assert (pickle.loads(pickle.dumps(a)) == a).all()


def test_tracemalloc_sees_it():
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        x = array(10**6)
        assert tracemalloc.get_traced_memory()[0] - before >= 10**6
        del x
        assert tracemalloc.get_traced_memory()[0] - before < 10**5
    finally:
        tracemalloc.stop()


# --- Limits ------------------------------------------------------------------------------------


def test_too_much_names_the_lines_that_hold_the_most():
    cygrad.set_memory_limit(counters()["allocated_bytes"][0] + 2**24)
    held = [cygrad.ones(2**20), cygrad.ones(2**20)]  # the holder
    with pytest.raises(
        MemoryError, match="(?s)Unable to allocate 16000000 bytes.*8 MB in 2 arrays made at .*# the holder"
    ):
        cygrad.ones(4 * 10**6)
    with pytest.raises(MemoryError, match="(?s)Unable to allocate .* the limit is .*# the holder"):
        while True:  # allocated through NumPy
            held.append(cygrad.logcumsumexp(held[0], 0))
    del held[:]
    cygrad.ones(3 * 10**6)


def test_the_limit_gives_up_what_is_kept_first():
    array(10**7)
    cygrad.set_memory_limit(counters()["allocated_bytes"][0] + 12 * 10**6)
    x = array(9 * 10**6)
    assert counters()["reserved_bytes"][0] <= cygrad.get_memory_limit()
    del x


def test_set_memory_limit_checks():
    former = cygrad.get_memory_limit()
    assert cygrad.set_memory_limit(None) == former
    assert cygrad.get_memory_limit() == 0
    with pytest.raises(TypeError, match="must be int or None, not float"):
        cygrad.set_memory_limit(1.5)
    with pytest.raises(ValueError, match="-1 is not a number of bytes"):
        cygrad.set_memory_limit(-1)


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("1k", 1024), ("512M", 2**29), ("1.5 GB", 3 * 2**29), ("0", 0)]
)
def test_the_limit_from_the_environment(text, size):
    assert machine.memory_limit({"CYGRAD_MEMORY_LIMIT": text}) == size


@pytest.mark.parametrize("text", ["much", "-1", "1X", "nan", "1e30"])
def test_a_wrong_limit_in_the_environment(text):
    with pytest.raises(ValueError, match="not a number of bytes"):
        machine.memory_limit({"CYGRAD_MEMORY_LIMIT": text})


def test_the_container_limits_memory_and_processors(monkeypatch):
    files = {
        "/proc/self/cgroup": "4:memory:/pod/inner\n3:cpu,cpuacct:/pod\n",
        "/sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "1073741824",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us": "50000",
        "/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us": "100000",
    }
    monkeypatch.setattr(machine, "_read", lambda path: files.get(path, ""))
    assert machine.usable_memory() <= 2**30
    assert machine.usable_cpus() == 1
    files.clear()
    files["/proc/self/cgroup"] = "0::/outside/the/container"
    files["/sys/fs/cgroup/memory.max"] = "536870912"
    files["/sys/fs/cgroup/cpu.max"] = "max 100000"
    assert machine.usable_memory() <= 2**29
    assert machine.usable_cpus() >= 1
    files["/sys/fs/cgroup/memory.max"] = "max"
    files["/sys/fs/cgroup/cpu.max"] = "100000 100000"
    assert machine.usable_memory() >= 2**29 or not files
    assert machine.usable_cpus() == 1


# --- Threads and processes ---------------------------------------------------------------------


def test_threads_share_the_pool():
    before = counters()["requested_bytes"][0]
    failed = []

    def work(seed):
        sizes = np.random.default_rng(seed).integers(1, 400_000, 300)
        alive = {}
        for i, size in enumerate(sizes):
            x = array(int(size))
            x[:] = value = (seed + i) % 251
            alive[i % 7] = (x, value)
            if not all((y == v).all() for y, v in alive.values()):
                failed.append(i)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert counters()["requested_bytes"][0] == before


# The threads and the child share no Python variable: without the GIL, CPython 3.13 may fork while another thread holds
# the lock of a dictionary or cell that both read, and the child would then wait forever.
FORK = """
import os, threading, cygrad

def work(ones, is_over):
    while not is_over():
        ones(20_000)

def fork_beside(threads, ones, empty_cache):
    for thread in threads: thread.start()
    kept = cygrad.arange(50_000)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            ones(20_000)
            empty_cache()
            os._exit(0 if (kept + 1).sum() == 50_000 * 50_001 // 2 else 1)
        assert os.waitpid(child, 0)[1] == 0

over = threading.Event()
threads = [threading.Thread(target=work, args=(cygrad.ones, over.is_set)) for _ in range(3)]
fork_beside(threads, cygrad.ones, cygrad.empty_cache)
over.set()
for thread in threads: thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_a_pool_of_its_own():
    package = Path(cygrad.__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        [sys.executable, "-P", "-c", FORK], env=environment, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr


def test_the_summary():
    held = cygrad.ones(10**6)  # held
    text = cygrad.memory_summary()
    assert "Allocated memory" in text
    assert "# held" in text
    del held
