"""DataLoader: batches of a dataset, prefetched by workers."""

from __future__ import annotations

import itertools
import queue
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import cygrad
from cygrad.utils.data._fetch import _BaseDatasetFetcher, _IterableDatasetFetcher, _MapDatasetFetcher
from cygrad.utils.data._own_workers import _sharding_worker_init_fn  # noqa: F401, libraries look for it here
from cygrad.utils.data._pinning import pin_memory
from cygrad.utils.data._worker import (
    Crew,
    Failure,
    NoMoreSamples,
    Reading,
    Task,
    Threads,
    Work,
    putting_off_ctrl_c,
)
from cygrad.utils.data._worker import get_worker_info as get_worker_info
from cygrad.utils.data.collate import default_collate, default_convert
from cygrad.utils.data.dataset import Dataset, IterableDataset
from cygrad.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from cygrad.utils.warning import warn

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)
_T = TypeVar("_T")
_collate_fn_t = Callable[[list[_T]], Any]  # PyTorch's names of the types of `collate_fn` and `worker_init_fn`
_worker_init_fn_t = Callable[[int], None]

_FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


class _DatasetKind:
    """How samples are read: by their indices from a `Map`, or in the order of an `Iterable`.

    >>> from cygrad.utils.data import DataLoader, _DatasetKind
    >>> DataLoader(range(4))._dataset_kind == _DatasetKind.Map
    True
    """

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> _BaseDatasetFetcher:
        """Return an object that reads batches, for libraries with iterators or workers of their own.

        >>> from cygrad.utils.data import _DatasetKind, default_collate
        >>> _DatasetKind.create_fetcher(_DatasetKind.Map, range(9), True, default_collate, False).fetch([2, 4])
        tensor([2, 4])
        """
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler[None]):
    """In place of indices, for an iterable dataset: None, again and again."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """An iterable of the batches of a dataset.

    dataset: indexed by number, or an `IterableDataset`.
    batch_size: None for individual samples without batching. drop_last: drop a shorter last batch.
    shuffle, sampler, batch_sampler: the order of the samples, or of batches of them.
    num_workers: the number of threads that read ahead, each prefetch_factor batches (2); with 0 the caller reads. With
    multiprocessing_context (`"fork"`, `"spawn"`, ...) they are processes, which pays off for datasets with much Python
    computation. persistent_workers: keep them for the next iteration.
    collate_fn: makes a batch from a list of samples. worker_init_fn: called first in each worker, with its number.
    timeout: seconds to wait for a batch. generator: determines the order and the seed; by default the global one.
    in_order: yield batches in the order of the samples, else as they become ready. pin_memory: copy tensors of
        batches to pinned memory, for `to("cuda", non_blocking=True)`; warns without a GPU.

    Each worker draws random numbers (`cygrad.rand` and the like) from its own stream, seeded as in PyTorch; without
    workers they come from the default one. Each worker has its own copy of the dataset, a shallow one if it is a
    thread. An exception in a worker is reraised here, with its traceback as text. When an iterator ends, fails or is
    deleted, its workers end.

    Raises ValueError and TypeError for invalid arguments, RuntimeError if a worker dies or times out.

    >>> import cygrad
    >>> from cygrad.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(cygrad.arange(5.0), cygrad.arange(5))
    >>> for x, y in DataLoader(data, batch_size=2):
    ...     print(x, y)
    tensor([0., 1.]) tensor([0, 1])
    tensor([2., 3.]) tensor([2, 3])
    tensor([4.]) tensor([4])
    """

    dataset: Any
    sampler: Any
    batch_sampler: Any
    _crew: Crew | None = None
    _IterableDataset_len_called: int | None = None  # what `len` told of an iterable dataset
    _is_made = False

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: cygrad.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.prefetch_factor, self.persistent_workers = prefetch_factor, persistent_workers
        self.worker_init_fn, self.generator, self.in_order = worker_init_fn, generator, in_order
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.multiprocessing_context = multiprocessing_context
        self._check_workers()
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        self._check_order(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            sampler = self._order(bool(shuffle))
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = collate_fn or (default_collate if self.makes_batches else default_convert)
        self._is_made = True

    def _check_order(self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any) -> None:
        """Raise ValueError for conflicting options about the order of the samples."""
        if self.is_iterable:
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        if batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")

    def _check_workers(self) -> None:
        """Raise ValueError for inconsistent worker options."""
        if self.num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if self.timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if self.num_workers == 0:
            if self.prefetch_factor is not None:
                raise ValueError(
                    "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                    "multiprocessing, otherwise set prefetch_factor to None."
                )
            if self.persistent_workers:
                raise ValueError("persistent_workers option needs num_workers > 0")
        elif self.prefetch_factor is not None and self.prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")

    def check_worker_number_rationality(self) -> None:
        """Do nothing: workers are threads, of which more than processors do no harm.

        >>> from cygrad.utils.data import DataLoader
        >>> DataLoader(range(4), num_workers=2).check_worker_number_rationality()
        """

    def _order(self, shuffle: bool) -> Iterable[Any]:
        if self.is_iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    @property
    def makes_batches(self) -> bool:
        """Whether samples are collated into batches rather than yielded individually."""
        return self._auto_collation

    @property
    def _auto_collation(self) -> bool:
        """PyTorch's name of `makes_batches`, which subclasses override: batches of indices then go to the dataset."""
        return self.batch_sampler is not None

    @property
    def is_iterable(self) -> bool:
        """Whether the dataset gives samples in an order of its own."""
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def multiprocessing_context(self) -> Any:
        """The multiprocessing context of worker processes, or None if workers are threads."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            from cygrad.utils.data._processes import checked_context  # needed only for worker processes

            context = checked_context(context)
        self._multiprocessing_context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_made and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return self._get_iterator()

    def _get_iterator(self) -> _BaseDataLoaderIter:
        return (_MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter)(self)

    def __len__(self) -> int:
        if not self.is_iterable:
            return len(self._index_sampler)
        length = len(self.dataset)
        if self.batch_size is not None:
            length = length // self.batch_size if self.drop_last else -(-length // self.batch_size)
        self._IterableDataset_len_called = length
        return length

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self.makes_batches else self.sampler


# -- Iterators. Programs pass loaders of their own to them, too, which have PyTorch's attributes. --


def _reading_of(loader: Any) -> Reading:
    is_iterable = loader._dataset_kind == _DatasetKind.Iterable
    return Reading(loader.dataset, is_iterable, loader._auto_collation, loader.drop_last, loader.collate_fn)


def _seed_of(loader: Any) -> int:
    """Draw the seed of the workers; those that keep on working keep theirs."""
    crew = getattr(loader, "_crew", None)
    if crew is None or not crew.is_at_work:
        loader._crew_seed = draw_seed(loader.generator)
    return loader._crew_seed


def _persistent_crew(loader: Any, seed: int) -> Crew:
    """Return the persistent workers, starting them if necessary."""
    crew = getattr(loader, "_crew", None)
    if crew is None or not crew.is_at_work:
        crew = loader._crew = _new_crew(loader, loader, seed)
    return crew


def _new_crew(loader: Any, owner: Any, seed: int) -> Crew:
    """Start workers, which end with their owner or with the program."""
    processes = loader.multiprocessing_context
    kind = "thread" if processes is None else "process"
    work = Work(_reading_of(loader), loader.num_workers, seed, loader.worker_init_fn, kind)
    with putting_off_ctrl_c():
        if processes is None:
            crew: Crew = Threads(work)
        else:
            from cygrad.utils.data._processes import Processes  # needed only for worker processes

            crew = Processes(work, processes)
        crew.end = weakref.finalize(owner, crew.stop)
    return crew


class _BaseDataLoaderIter(Iterator[Any]):
    """Base of the iterators over batches: the seed, the indices, and the number of batches so far.

    Libraries derive iterators of their own from it, which define `_next_data`. So the attributes have PyTorch's names.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self._dataset, self._dataset_kind = loader.dataset, loader._dataset_kind
        self._auto_collation, self._collate_fn, self._drop_last = (
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )
        self._num_workers, self._timeout = loader.num_workers, loader.timeout
        self._persistent_workers = loader.persistent_workers
        self._world_size, self._rank = _place_among_processes()
        self._index_sampler = loader._index_sampler
        _BaseDataLoaderIter._reset(self, loader)  # subclasses begin when they are made
        self._base_seed = _seed_of(loader)
        self._shared_seed = None
        self._pin_memory = loader.pin_memory and cygrad.cuda.is_available()
        self._pin_memory_device = "cuda" if self._pin_memory else None
        if loader.pin_memory and not self._pin_memory:
            warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used."
            )

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Begin an iteration."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        said = self._IterableDataset_len_called
        if said is not None and self._num_yielded == said + 1:
            self._warn_of_more_than(said)
        return batch

    def pinned(self, batch: Any) -> Any:
        """Return the batch in pinned memory, if requested and if there is a GPU."""
        return pin_memory(batch) if self._pin_memory else batch

    def __len__(self) -> int:
        return len(self.loader)

    def _warn_of_more_than(self, said: int) -> None:
        """Warn that an iterable dataset yields more than its reported length."""
        warn(
            f"Length of IterableDataset {self._dataset} was reported to be {said}(when accessing "
            f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
            + (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
                * (self._num_workers > 0)
            )
        )


def _place_among_processes() -> tuple[int, int]:
    """Return the number of processes of a distributed program, and which of them this one is."""
    dist = sys.modules.get("cygrad.distributed")
    if dist is None or not dist.is_initialized():
        return 1, 0
    return dist.get_world_size(), dist.get_rank()


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Reads each batch on demand, in the calling thread."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self.read = _reading_of(loader).reader()

    def _next_data(self) -> Any:
        return self.pinned(self.read(next(self._sampler_iter)))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Lets workers read ahead; see Note [Order of batches]."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self.crew = (
            _persistent_crew(loader, self._base_seed)
            if loader.persistent_workers
            else _new_crew(loader, self, self._base_seed)
        )
        self.crew.epoch += 1
        self.epoch = self.crew.epoch
        self.sent = 0
        self.next_worker = 0
        self.working = [True] * loader.num_workers  # False: the worker's part of an iterable dataset is exhausted
        self.open: dict[int, int] = {}  # {number of a requested batch: its worker}
        self.ready: dict[int, Any] = {}  # batches that arrived before their turn
        factor = 2 if loader.prefetch_factor is None else loader.prefetch_factor
        for _ in range(factor * loader.num_workers):
            self.send_next()

    def send_next(self) -> None:
        """Request the next batch from the next worker, if any batches are left."""
        count = self.loader.num_workers
        workers = [(self.next_worker + i) % count for i in range(count)]
        worker = next((worker for worker in workers if self.working[worker]), None)
        if worker is None:
            return
        indices = next(self._sampler_iter, StopIteration)
        if indices is StopIteration:
            return
        self.open[self.sent] = worker
        self.crew.send(worker, Task(self.epoch, self.sent, indices))
        self.sent += 1
        self.next_worker = (worker + 1) % count

    def _next_data(self) -> Any:
        if self.epoch != self.crew.epoch:
            raise RuntimeError("another iteration with the persistent workers of this DataLoader has begun")
        try:
            result = self.next_answer()
        except BaseException as error:
            if not isinstance(error, Exception) or not self.loader.persistent_workers:
                self.crew.end()
            raise
        if isinstance(result, Failure):
            raise result.error()  # the iteration may go on, as in PyTorch
        if isinstance(result, NoMoreSamples):
            if not self.loader.persistent_workers:
                self.crew.end()
            raise StopIteration
        return self.pinned(result)

    def next_answer(self) -> Any:
        """Return the next batch, or the failure that arrived in its place; NoMoreSamples at the end."""
        if not self.open and self.crew.is_at_work:
            self.send_next()  # with prefetch_factor=0
        while self.open and self.crew.is_at_work:  # workers that were ended do not answer
            number = next(iter(self.open)) if self.loader.in_order else next(iter(self.ready), -1)
            if number not in self.ready:
                self.receive()
                continue
            del self.open[number]
            result = self.ready.pop(number)
            if not isinstance(result, NoMoreSamples):
                self.send_next()
                return result
        return NoMoreSamples()

    def _shutdown_workers(self) -> None:
        """End the workers, as programs do that stop early."""
        self.crew.end()

    def receive(self) -> None:
        """Wait for an answer from any worker. Raises RuntimeError on timeout."""
        try:
            epoch, number, result = self.crew.receive(self.loader.timeout or None)
        except queue.Empty:
            raise RuntimeError(f"DataLoader timed out after {self.loader.timeout} seconds") from None
        if epoch != self.epoch:
            return  # from an abandoned iteration
        self.ready[number] = result
        if isinstance(result, NoMoreSamples) and self.working[self.open[number]]:
            self.working[self.open[number]] = False
            self.send_next()
