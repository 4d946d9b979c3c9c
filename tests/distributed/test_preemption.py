"""`should_stop`: a signal to one process ends the loops of all after the same step."""

import re
import signal
import subprocess
import sys
import threading

import pytest
from mpi_runs import PROGRAMS, environment, mpiexec, needs_mpi

import cygrad.distributed as dist
from cygrad.distributed import _preemption

needs_signals = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signals")


@pytest.fixture
def fresh(monkeypatch):
    """No signal has come, none is watched, and all handlers are put back."""
    monkeypatch.setattr(_preemption, "_has_come", threading.Event())
    monkeypatch.setattr(_preemption, "_watched", set())
    former = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGTERM)}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@needs_signals
@pytest.mark.usefixtures("group", "fresh")
def test_a_signal_is_noted_once():
    seen = []
    signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    own = signal.getsignal(signal.SIGUSR1)
    assert not dist.should_stop() and not dist.should_stop(signals=("SIGUSR1", "SIGTERM"))
    assert signal.getsignal(signal.SIGUSR1) is not own
    signal.raise_signal(signal.SIGUSR1)
    assert dist.should_stop() and seen == [signal.SIGUSR1]
    assert signal.getsignal(signal.SIGUSR1) is own  # as before, and so it stays
    assert dist.should_stop() and signal.getsignal(signal.SIGUSR1) is own


@needs_signals
@pytest.mark.usefixtures("group", "fresh")
def test_what_ends_a_process_does_so_the_second_time():
    dist.should_stop(signals=["SIGTERM"])
    signal.raise_signal(signal.SIGTERM)
    assert dist.should_stop() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("group", "fresh")
def test_another_thread_watches_nothing():
    handlers = signal.getsignal(signal.SIGUSR1)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(dist.should_stop()))
    thread.start()
    thread.join()
    assert answers == [False] and signal.getsignal(signal.SIGUSR1) is handlers


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("name", ["SIGNONSENSE", "USR1", 10, "SIG_DFL"])
def test_names_that_are_not_signals(name):
    with pytest.raises(ValueError, match=r"^should_stop\(\)"):
        dist.should_stop(signals=[name])


def test_without_a_group():
    with pytest.raises(ValueError, match="^Default process group has not been initialized"):
        dist.should_stop()


def steps(output, size):
    found = re.findall(r"^rank \d stopped after (\d+)$", output, re.M)
    assert len(found) == size, output
    return set(map(int, found))


@needs_mpi
@pytest.mark.parametrize("who", ["itself", "other", "twice"])
def test_all_ranks_stop_after_the_same_step(who):
    code, output = mpiexec(3, "stops.py", who)
    assert code == 0, output
    (step,) = steps(output, 3)
    assert 3 <= step < 2000


@needs_mpi
def test_run_passes_the_signal_on():
    process = subprocess.Popen(
        [sys.executable, "-m", "cygrad.distributed.run", "--nproc-per-node", "2", str(PROGRAMS / "stops.py"), "nobody"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        lines = [process.stdout.readline() for _ in range(2)]
        assert all(line.startswith("ready") for line in lines), lines
        process.send_signal(signal.SIGUSR1)
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, output
    assert len(steps(output, 2)) == 1
