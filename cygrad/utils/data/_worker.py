"""What a worker of a `DataLoader` does, and the threads or processes that do it.

Note [Order of batches]
-----------------------
The loader numbers the batches, hands them to the workers in turn and gives them out by number. What reading batch n
draws at random comes from a stream of its own, which follows from the loader's seed for the iteration and n. So the
batches do not depend on the number of workers, nor on which of them is faster.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import cygrad
from cygrad.random import drawing_from
from cygrad.utils.data.collate import default_collate
from cygrad.utils.data.dataset import read_items, reader_of_batches

__all__ = ["get_worker_info"]

PATIENCE = 5.0  # seconds that a worker gets to finish its batch when it is to stop
_ODD = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: its multiples lie far from each other


# -- reading a batch --


@dataclass(frozen=True)
class Reading:
    """How a loader's samples become batches: all that a worker has to know."""

    dataset: Any
    is_iterable: bool
    makes_batches: bool
    drop_last: bool
    collate: Callable[[Any], Any]

    def reader(self) -> Callable[[Any], Any]:
        """A function from a batch's indices to the batch; StopIteration says that there are no more samples."""
        if self.is_iterable:
            return self._iterating()
        if not self.makes_batches:
            return lambda index: self.collate(self.dataset[index])
        at_once = reader_of_batches(self.dataset) if self.collate is default_collate else None
        return at_once or (lambda indices: self.collate(read_items(self.dataset, indices)))

    def _iterating(self) -> Callable[[Any], Any]:
        samples = iter(self.dataset)

        def read(indices: Any) -> Any:
            if not self.makes_batches:
                return self.collate(next(samples))
            batch = list(itertools.islice(samples, len(indices)))
            if not batch or (self.drop_last and len(batch) < len(indices)):
                raise StopIteration
            return self.collate(batch)

        return read


def stream(seed: int, number: int) -> drawing_from:
    """Where reading batch `number` draws from; see Note [Order of batches]."""
    return drawing_from(cygrad.Generator().manual_seed((seed + (number + 1) * _ODD) % 2**64))


# -- in the worker --


class WorkerInfo(NamedTuple):
    """Which of how many workers this is, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_here = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a `DataLoader`, its `id`, `num_workers`, `seed` and `dataset`; elsewhere None.

    >>> from cygrad.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return getattr(_here, "info", None)


class Task(NamedTuple):
    """A batch to read: in which iteration, its number and indices, and the seed of the iteration."""

    epoch: int
    number: int
    indices: Any
    seed: int


class NoMoreSamples(NamedTuple):
    """What a worker answers when its part of an iterable dataset has ended."""


@dataclass
class Failure:
    """An exception in a worker, as text."""

    kind: type
    text: str

    @classmethod
    def of(cls, error: BaseException, where: str) -> Failure:
        """What is known of an exception that is being handled."""
        lines = "".join(traceback.format_exception(error))
        return cls(type(error), f"Caught {type(error).__name__} {where}.\nOriginal {lines}")

    def error(self) -> BaseException:
        """An exception of the same type, whose text has the traceback of the original."""
        if issubclass(self.kind, KeyError):
            return self.kind(_Text(self.text))
        if not issubclass(self.kind, Exception):  # a SystemExit of a worker ends no program
            return RuntimeError(self.text)
        try:
            return self.kind(self.text)
        except TypeError:  # it is made of other arguments
            return RuntimeError(self.text)


class _Text(str):
    """A text whose repr, which KeyError shows, has line breaks."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Work:
    """All that a worker is told when it starts."""

    reading: Reading
    num_workers: int
    seed: int
    init: Callable[[int], Any] | None
    kind: str

    def run(self, worker: int, tasks: Any, answer: Callable[[int, int, Any], None]) -> None:
        """Read the batches that come from `tasks`, until None comes."""
        where = f"in DataLoader worker {self.kind} {worker}"
        reading = self.reading
        _here.info = WorkerInfo(worker, self.num_workers, self.seed + worker, reading.dataset)
        failure, epoch, read = self._initialise(worker, where), None, None
        while (task := tasks.get()) is not None:
            try:
                with stream(task.seed, task.number):
                    if task.epoch != epoch:
                        epoch, read = task.epoch, None
                        read = reading.reader()
                    result = failure or (read(task.indices) if read else NoMoreSamples())
            except StopIteration as error:
                result = NoMoreSamples() if reading.is_iterable else Failure.of(error, where)
            except BaseException as error:
                result = Failure.of(error, where)
            answer(task.epoch, task.number, result)
            del task, result  # they may be large, and the next task may be long in coming

    def _initialise(self, worker: int, where: str) -> Failure | None:
        if self.init is None:
            return None
        try:
            with drawing_from(cygrad.Generator().manual_seed((self.seed + worker) % 2**64)):
                self.init(worker)
        except BaseException as error:
            return Failure.of(error, where)
        return None


# -- crews --


@contextlib.contextmanager
def putting_off_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C wait until the block has ended.

    Between the start of workers and the note of who ends them it would leave them running; and what is raised in the
    functions that Python calls around a fork is printed, and lost.
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
    """The workers of a loader, and the way to them."""

    end: Any  # what ends them: a `weakref.finalize`, so that it is called when their owner is no more
    epoch = 0  # how many iterations they have served

    @property
    def is_at_work(self) -> bool:
        """Whether they have not been ended."""
        return self.end.alive

    def send(self, worker: int, task: Task) -> None:
        """Give a worker a task."""
        raise NotImplementedError

    def receive(self, timeout: float | None) -> tuple[int, int, Any]:
        """The next answer: the iteration, the batch's number, the batch. Raises `queue.Empty` after `timeout`."""
        raise NotImplementedError

    def stop(self) -> None:
        """Let the workers finish the batch they are at, and end them."""
        raise NotImplementedError


class Threads(Crew):
    """Workers that are threads of this process. Each has a shallow copy of the dataset."""

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
        except BaseException:  # no more threads, or no memory
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
    # The copy lets `worker_init_fn` and the dataset's methods set attributes that the other workers do not see.
    reading = replace(work.reading, dataset=copy.copy(work.reading.dataset))
    replace(work, reading=reading).run(worker, tasks, lambda *answer: answers.put(answer))
