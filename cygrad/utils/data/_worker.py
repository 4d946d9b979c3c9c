"""The work loop of `DataLoader` workers, and worker threads; worker processes are in _processes.py.

Note [Order of batches]
-----------------------
The loader numbers the batches, assigns them to the workers in turn and yields them by number. As in PyTorch, each
worker draws random numbers from a stream of its own, whose seed is the loader's plus the worker's number; without
workers they come from the default stream. The batches therefore do not depend on the relative speed of the workers.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import queue
import signal
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import cygrad
from cygrad.random import drawing_from
from cygrad.utils.data._own_workers import (  # noqa: F401, libraries look for them here
    ManagerWatchdog,
    _IterableDatasetStopIteration,
    _ResumeIteration,
)
from cygrad.utils.data.collate import default_collate
from cygrad.utils.data.dataset import read_items, reader_of_batches

__all__ = ["get_worker_info"]

PATIENCE = 5.0  # seconds a worker gets to finish its batch when stopping


# -- reading a batch --


@dataclass(frozen=True)
class Reading:
    """How a loader turns samples into batches: everything a worker needs."""

    dataset: Any
    is_iterable: bool
    makes_batches: bool
    drop_last: bool
    collate: Callable[[Any], Any]

    def reader(self) -> Callable[[Any], Any]:
        """Return a function from a batch's indices to the batch; it raises StopIteration when samples run out."""
        if self.is_iterable:
            return self._iterating()
        if not self.makes_batches:
            return lambda index: self.collate(self.dataset[index])
        at_once = reader_of_batches(self.dataset) if self.collate is default_collate else None

        def read(indices: Any) -> Any:
            if at_once is not None:
                places = list(indices)  # a tuple would index several dimensions
                if {int, np.int64}.issuperset(map(type, places)):
                    return at_once(places)
            return self.collate(read_items(self.dataset, indices))

        return read

    def _iterating(self) -> Callable[[Any], Any]:
        samples, ended = iter(self.dataset), False

        def read(indices: Any) -> Any:
            nonlocal ended
            if ended:
                raise StopIteration
            count = len(indices) if self.makes_batches else 1
            batch = take(samples, count)
            ended = len(batch) < count
            if not batch or (self.drop_last and ended):
                raise StopIteration
            return self.collate(batch if self.makes_batches else batch[0])

        return read


def take(samples: Iterator[Any], count: int) -> list[Any]:
    """Return the next samples, `count` of them or as many as are left.

    Only `next` asks for them: `itertools.islice` and `zip` call `iter` first, which starts a dataset that is its own
    iterator from the beginning.
    """
    return list(map(next, itertools.repeat(samples, count)))


# -- in the worker --


class WorkerInfo(NamedTuple):
    """A worker's index, the number of workers, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_here = threading.local()
_worker_info: WorkerInfo | None = None  # which libraries set in worker processes of their own


def get_worker_info() -> WorkerInfo | None:
    """Return `id`, `num_workers`, `seed` and `dataset` in a worker of a `DataLoader`, None elsewhere.

    >>> from cygrad.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return getattr(_here, "info", _worker_info)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return 4 numbers to seed NumPy's generators with, which differ from worker to worker."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(number) for number in np.random.SeedSequence(entropy).generate_state(4)]


class Task(NamedTuple):
    """A batch to read: its iteration, number and indices."""

    epoch: int
    number: int
    indices: Any


class NoMoreSamples(NamedTuple):
    """A worker's answer when its part of an iterable dataset is exhausted."""


@dataclass
class Failure:
    """An exception in a worker, as text."""

    kind: type
    text: str

    @classmethod
    def of(cls, error: BaseException, where: str) -> Failure:
        """Record an exception that is being handled."""
        lines = "".join(traceback.format_exception(error))
        return cls(type(error), f"Caught {type(error).__name__} {where}.\nOriginal {lines}")

    def error(self) -> BaseException:
        """Return an exception of the same type whose text contains the original traceback."""
        if issubclass(self.kind, KeyError):
            return self.kind(_Text(self.text))
        if not issubclass(self.kind, Exception):  # a worker's SystemExit must not end the program
            return RuntimeError(self.text)
        try:
            return self.kind(self.text)
        except TypeError:  # its constructor takes other arguments
            return RuntimeError(self.text)


class _Text(str):
    """A string whose repr, which KeyError shows, keeps line breaks."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Work:
    """Everything a worker receives when it starts."""

    reading: Reading
    num_workers: int
    seed: int
    init: Callable[[int], Any] | None
    kind: str

    def run(self, worker: int, tasks: Any, answer: Callable[[int, int, Any], None]) -> None:
        """Read the batches received from `tasks` until None arrives."""
        where = f"in DataLoader worker {self.kind} {worker}"
        _here.info = WorkerInfo(worker, self.num_workers, self.seed + worker, self.reading.dataset)
        with drawing_from(cygrad.Generator().manual_seed((self.seed + worker) % 2**64)):
            self._work(worker, tasks, answer, where)

    def _work(self, worker: int, tasks: Any, answer: Callable[[int, int, Any], None], where: str) -> None:
        reading = self.reading
        failure, epoch, read = self._initialise(worker, where), None, None
        while (task := tasks.get()) is not None:
            try:
                if task.epoch != epoch:
                    epoch, read = task.epoch, None
                    read = reading.reader()
                result = failure or (read(task.indices) if read else NoMoreSamples())
            except StopIteration as error:
                result = NoMoreSamples() if reading.is_iterable else Failure.of(error, where)
            except BaseException as error:
                result = Failure.of(error, where)
            answer(task.epoch, task.number, result)
            del task, result  # they may be large, and the next task may take long to arrive

    def _initialise(self, worker: int, where: str) -> Failure | None:
        if self.init is None:
            return None
        try:
            self.init(worker)
        except BaseException as error:
            return Failure.of(error, where)
        return None


# -- crews --


@contextlib.contextmanager
def putting_off_ctrl_c() -> Iterator[None]:
    """Defer KeyboardInterrupt until the block has ended.

    An interrupt between starting workers and registering their finalizer would leave them running; and exceptions
    raised in callbacks that Python runs around a fork are printed and lost.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield  # only the main thread is interrupted
        return
    came: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda *call: came.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[-1])


class Crew:
    """The workers of a loader, and communication with them."""

    end: Any  # ends them: a `weakref.finalize`, called when their owner dies
    epoch = 0  # the number of iterations served

    @property
    def is_at_work(self) -> bool:
        """Whether the workers are still running."""
        return self.end.alive

    def send(self, worker: int, task: Task) -> None:
        """Send a task to a worker."""
        raise NotImplementedError

    def receive(self, timeout: float | None) -> tuple[int, int, Any]:
        """Return the next answer (iteration, batch number, batch). Raises `queue.Empty` after `timeout`."""
        raise NotImplementedError

    def stop(self) -> None:
        """Let the workers finish their current batch, and end them."""
        raise NotImplementedError


class Threads(Crew):
    """Thread-based workers. Each has a shallow copy of the dataset."""

    def __init__(self, work: Work) -> None:
        self.answers: queue.SimpleQueue = queue.SimpleQueue()
        self.tasks = [queue.SimpleQueue() for _ in range(work.num_workers)]  # type: ignore[var-annotated]
        self.threads: list[threading.Thread] = []
        try:
            for worker, tasks in enumerate(self.tasks):
                arguments = (work, worker, tasks, self.answers)
                thread = threading.Thread(target=_run_in_thread, args=arguments, daemon=True)
                thread.start()
                self.threads.append(thread)
        except BaseException:  # out of threads or memory
            self.stop()
            raise

    def send(self, worker: int, task: Task) -> None:
        self.tasks[worker].put(task)

    def receive(self, timeout: float | None) -> tuple[int, int, Any]:
        return self.answers.get(timeout=timeout)

    def stop(self) -> None:
        for tasks in self.tasks:
            while not tasks.empty():
                tasks.get()
            tasks.put(None)
        end = time.monotonic() + PATIENCE
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(0, end - time.monotonic()))


def _run_in_thread(work: Work, worker: int, tasks: Any, answers: Any) -> None:
    # The copy isolates attributes set by `worker_init_fn` and by the dataset's methods from the other workers.
    dataset, init = copy.copy(work.reading.dataset), work.init
    if getattr(init, "__self__", None) is work.reading.dataset:  # a method of the dataset
        init = types.MethodType(init.__func__, dataset)  # type: ignore[union-attr]
    replace(work, reading=replace(work.reading, dataset=dataset), init=init).run(
        worker, tasks, lambda *answer: answers.put(answer)
    )
