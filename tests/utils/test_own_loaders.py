"""What libraries build loaders of their own from, which save and restore their place in the data."""

import importlib
import os

import pytest

import cygrad as torch
from cygrad.utils.data import DataLoader, IterableDataset, MapDataPipe, dataloader, datapipes

COLLATE = torch.utils.data.default_collate


class Counting(IterableDataset):
    def __iter__(self):
        return iter(range(5))


@pytest.mark.parametrize(
    ("indices", "drop_last", "batches"),
    [([[0, 1], [2, 3], [4, 0]], False, [[0, 1], [2, 3], [4, 0]]), ([[4], [3, 2]], True, [[4], [3, 2]])],
)
def test_fetchers_by_index(indices, drop_last, batches):
    fetcher = dataloader._DatasetKind.create_fetcher(0, list(range(5)), True, COLLATE, drop_last)
    assert [fetcher.fetch(some).tolist() for some in indices] == batches
    single = dataloader._DatasetKind.create_fetcher(0, list(range(5)), False, lambda sample: sample, False)
    assert single.fetch(3) == 3


@pytest.mark.parametrize(("drop_last", "batches"), [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])])
def test_fetchers_in_order(drop_last, batches):
    fetcher = dataloader._DatasetKind.create_fetcher(1, Counting(), True, COLLATE, drop_last)
    found = []
    with pytest.raises(StopIteration):
        while True:
            found.append(fetcher.fetch([None, None]).tolist())
    assert found == batches and fetcher.ended
    with pytest.raises(StopIteration):
        fetcher.fetch([None])
    single = dataloader._DatasetKind.create_fetcher(1, Counting(), False, lambda sample: sample, False)
    assert [single.fetch(None) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(StopIteration):
        single.fetch(None)


def test_fetchers_do_not_start_a_dataset_anew():
    class OneIterator(Counting):
        def __iter__(self):
            self.samples = super().__iter__()
            return self

        def __next__(self):
            return next(self.samples)

    fetcher = dataloader._DatasetKind.create_fetcher(1, OneIterator(), True, COLLATE, False)
    assert [fetcher.fetch([None, None]).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4]]


class Doubling(dataloader._BaseDataLoaderIter):
    """An iterator of a library: it reads by a fetcher, and may begin anew."""

    def __init__(self, loader):
        super().__init__(loader)
        self.begun = 0
        self._fetcher = dataloader._DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _reset(self, loader, first_iter=False):
        self.begun += 1  # not yet there where the base is made
        super()._reset(loader, first_iter)

    def _next_data(self):
        return 2 * self._fetcher.fetch(self._next_index())


class OwnLoader(DataLoader):
    def __init__(self, dataset, **options):
        super().__init__(dataset, **options)
        self._dataset_kind = dataloader._DatasetKind.Map

    def _get_iterator(self):
        return Doubling(self)


def test_iterators_of_libraries():
    loader = OwnLoader(list(range(3)), batch_size=2)
    iterator = iter(loader)
    assert [batch.tolist() for batch in iterator] == [[0, 2], [4]] and iterator._num_yielded == 2
    iterator._reset(loader)
    assert next(iterator).tolist() == [0, 2] and iterator._num_yielded == iterator.begun == 1
    assert (iterator._num_workers, iterator._timeout, iterator._world_size, iterator._rank) == (0, 0, 1, 0)
    assert isinstance(iterator._base_seed, int) and loader.check_worker_number_rationality() is None
    with pytest.raises(NotImplementedError):
        next(dataloader._BaseDataLoaderIter(loader))


def test_iterable_datasets_have_a_sampler_of_nothing():
    sampler = DataLoader(Counting()).sampler
    assert isinstance(sampler, dataloader._InfiniteConstantSampler)
    assert next(iter(sampler)) is None


def test_messages_and_signals_of_workers(monkeypatch):
    worker, signals = torch.utils.data._utils.worker, torch.utils.data._utils.signal_handling
    assert (
        worker._ResumeIteration() == worker._ResumeIteration(None)
        and worker._IterableDatasetStopIteration(2).worker_id == 2
    )
    watchdog = worker.ManagerWatchdog()
    assert watchdog.is_alive()
    monkeypatch.setattr(os, "getppid", lambda: -1)
    assert not watchdog.is_alive()
    signals._set_worker_pids(1, [2])
    signals._remove_worker_pids(1)
    info = worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=None)
    monkeypatch.setattr(worker, "_worker_info", info)
    assert torch.utils.data.get_worker_info() is info
    assert torch.utils.data._utils.python_exit_status is False


def test_shares_of_pipes(monkeypatch):
    class Sharded(MapDataPipe):
        def apply_sharding(self, count, index):
            self.share = count, index

        def is_shardable(self):
            return True

    pipe, called = Sharded(), []
    worker = torch.utils.data._utils.worker
    monkeypatch.setattr(worker, "_worker_info", worker.WorkerInfo(1, 2, 0, pipe))
    dataloader._sharding_worker_init_fn(called.append, 3, 2, 1)
    assert pipe.share == (6, 5) and called == [1]


def test_wrapped_pipes():
    place = importlib.import_module("cygrad.utils.data.datapipes.datapipe")
    assert place is datapipes
    wrapped = place._MapDataPipeSerializationWrapper([4, 5])
    assert (wrapped[1], len(wrapped)) == (5, 2)
    wrapped = place._IterDataPipeSerializationWrapper([4, 5])
    assert (list(wrapped), len(wrapped)) == ([4, 5], 2)
