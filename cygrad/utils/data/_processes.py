"""Process-based workers of a `DataLoader`, each with a copy of all memory; imported on demand."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

import cygrad
from cygrad.utils.data._worker import PATIENCE, Crew, Failure, Task, Work

_LOOK = 0.5  # seconds between checks that all processes are alive


def checked_context(wanted: Any) -> Any:
    """Return a multiprocessing context, given directly or by name. Raises ValueError or TypeError."""
    if isinstance(wanted, str):
        names = multiprocessing.get_all_start_methods()
        if wanted not in names:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {names!r}, but got "
                f"multiprocessing_context={wanted!r}"
            )
        return multiprocessing.get_context(wanted)
    if not isinstance(wanted, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={wanted}"
        )
    return wanted


@contextlib.contextmanager
def _apart_from_mpi() -> Iterator[None]:
    """Hide the variables of a launcher of MPI: a worker that imports mpi4py must not take itself for a rank."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(("PMI_", "PMIX_", "OMPI_"))}
    try:
        yield
    finally:
        os.environ.update(hidden)


class Processes(Crew):
    """Process-based workers. Each receives tasks through its own pipe; answers come back through a shared queue."""

    def __init__(self, work: Work, context: Any) -> None:
        self.answers = context.Queue()
        self.stopping, self.stopper = context.Pipe(duplex=False)  # all workers wait on it, and nobody reads it
        self.tasks: list[Any] = []
        self.workers: list[Any] = []
        try:
            for worker in range(work.num_workers):
                receiver, sender = context.Pipe(duplex=False)
                arguments = (work, worker, receiver, self.answers, self.stopping)
                process = context.Process(target=_run, args=arguments, daemon=True)
                with _apart_from_mpi():
                    process.start()
                receiver.close()
                self.tasks.append(sender)
                self.workers.append(process)
        except BaseException:
            self.stop()
            raise

    def send(self, worker: int, task: Task) -> None:
        with contextlib.suppress(BrokenPipeError):  # the worker died, which `receive` will notice
            self.tasks[worker].send_bytes(_Pickler.dumps(task))

    def receive(self, timeout: float | None) -> tuple[int, int, Any]:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = _LOOK if end is None else max(0, min(_LOOK, end - time.monotonic()))
            try:
                return pickle.loads(self.answers.get(timeout=wait))
            except queue.Empty:
                dead = [str(worker.pid) for worker in self.workers if not worker.is_alive()]
                if dead:
                    codes = [worker.exitcode for worker in self.workers if not worker.is_alive()]
                    raise RuntimeError(
                        f"DataLoader worker (pid(s) {', '.join(dead)}) exited unexpectedly\n"
                        f"  exit codes {codes}; a negative one is a signal, and -9 often means out of memory"
                    ) from None
                if end is not None and time.monotonic() >= end:
                    raise

    def stop(self) -> None:
        self.stopper.send(None)
        end = time.monotonic() + PATIENCE
        for worker in self.workers:
            worker.join(max(0, end - time.monotonic()))
        for worker in self.workers:
            if worker.is_alive():
                worker.kill()
                worker.join()
            worker.close()
        for channel in (*self.tasks, self.stopping, self.stopper, self.answers):
            channel.close()


class _Pickler(ForkingPickler):
    """Copies tensors, even if `cygrad.multiprocessing` would hand them over in shared memory: a batch goes one way."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        kinds = cygrad.Tensor, cygrad.nn.Buffer, cygrad.nn.Parameter
        self.dispatch_table = {kind: how for kind, how in self.dispatch_table.items() if kind not in kinds}


class _Tasks:
    """The receiving end of a worker's pipe."""

    def __init__(self, receiver: Any, stopping: Any) -> None:
        self.receiver, self.stopping = receiver, stopping
        parent = multiprocessing.parent_process()
        assert parent is not None
        self.parent = parent.sentinel

    def get(self) -> Task | None:
        """Return the next task, or None when the worker should stop or the parent has died."""
        ready = connection.wait([self.receiver, self.stopping, self.parent])
        return self.receiver.recv() if ready == [self.receiver] else None


def _run(work: Work, worker: int, receiver: Any, answers: Any, stopping: Any) -> None:
    """Entry point of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group: the parent stops the workers
    sys.setswitchinterval(1e-4)  # so that the queue's feeder thread sends each answer promptly
    cygrad.set_num_threads(1)  # the workers share the processors
    random.seed(work.seed + worker)
    words = worker, work.seed % 2**32, work.seed >> 32, 0  # as in PyTorch
    np.random.seed(np.random.SeedSequence(words).generate_state(4))  # noqa: NPY002  datasets may use the global generator

    def answer(epoch: int, number: int, result: Any) -> None:
        try:
            data = _Pickler.dumps((epoch, number, result))
        except Exception as error:
            if not isinstance(result, Failure):  # a Failure gets here if its exception class cannot be pickled
                result = Failure.of(error, f"in DataLoader worker process {worker}, when it handed over a batch")
            data = _Pickler.dumps((epoch, number, replace(result, kind=RuntimeError)))
        answers.put(bytes(data))

    work.run(worker, _Tasks(receiver, stopping), answer)
    answers.cancel_join_thread()  # nobody reads what is left in the queue
