"""Loading batches with threads and processes: order, seeds, errors, and cleanup."""

import copy
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import cygrad as torch
from cygrad.utils.data import (
    ChainDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    dataloader,
    default_collate,
    get_worker_info,
)
from helpers import fails

# Other packages register start methods of their own.
START_METHODS = [name for name in multiprocessing.get_all_start_methods() if name in ("fork", "forkserver", "spawn")]
CAN_FORK = "fork" in START_METHODS
needs_fork = pytest.mark.skipif(not CAN_FORK, reason="needs fork")
WORKERS = [
    {},
    {"num_workers": 1},
    {"num_workers": 3},
    {"num_workers": 3, "prefetch_factor": 0},
    {"num_workers": 2, "prefetch_factor": 7, "persistent_workers": True},
    pytest.param({"num_workers": 2, "multiprocessing_context": "fork"}, marks=needs_fork),
]
CREWS = [{}, pytest.param({"multiprocessing_context": "fork"}, marks=needs_fork)]

# The threads are those of the BLAS library, which survives a fork.
pytestmark = [
    pytest.mark.interpreter,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture
def sigint():
    """Make Ctrl-C raise KeyboardInterrupt, even if the parent process ignores it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Check that no new threads or processes are left after each test."""
    before = threading.active_count()
    yield
    gc.collect()
    end = time.monotonic() + 5
    while threading.active_count() > before or multiprocessing.active_children():
        assert time.monotonic() < end, (threading.enumerate(), multiprocessing.active_children())
        time.sleep(0.01)


class Noisy(Dataset):
    """Samples with noise, some of which are slow to read."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index % 7 == 0:
            time.sleep(0.005)
        return index + torch.rand(2, dtype=torch.float64)


class Parts(IterableDataset):
    """An iterable dataset in which each worker yields its share of the numbers."""

    def __init__(self, length=10):
        self.length = length

    def __iter__(self):
        info = get_worker_info()
        return iter(range(self.length) if info is None else range(info.id, self.length, info.num_workers))


class OneIterator(IterableDataset):
    """An iterable dataset that is its own iterator: `iter` starts it anew, and its end is final."""

    def __init__(self):
        self.starts, self.left = 0, None

    def __iter__(self):
        self.starts += 1
        assert self.starts == 1, "a second iteration in the middle of the first"
        self.left = list(range(5))
        return self

    def __next__(self):
        assert self.left is not None, "asked for a sample after the last one"
        if self.left:
            return self.left.pop(0)
        self.left = None
        raise StopIteration


class Failing(Dataset):
    def __init__(self, error, where=3):
        self.error, self.where = error, where

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == self.where:
            raise self.error
        return index


# --- Batches ---------------------------------------------------------------------------------------------


def epochs(**options):
    """Return the batches of two epochs, and numbers that the caller draws afterwards."""
    torch.manual_seed(5)
    loader = DataLoader(Noisy(), 3, shuffle=True, **options)
    return [batch.tolist() for _ in range(2) for batch in loader], torch.rand(3).tolist()


@pytest.mark.parametrize("options", WORKERS)
def test_batches_depend_on_the_seed_and_the_number_of_workers_alone(options):
    batches, rest = epochs(**options)
    assert (batches, rest) == epochs(**options)
    assert len(batches) == 14 and batches[:7] != batches[7:]
    assert sorted(int(x) for batch in batches[:7] for x, _ in batch) == list(range(20))


@pytest.mark.parametrize("options", [options for options in WORKERS if options])
def test_workers_draw_from_streams_of_their_own(options):
    """Worker k draws from the stream of the loader's seed plus k; persistent workers go on with it."""
    batches, _ = epochs(**options)
    count, persistent = options["num_workers"], options.get("persistent_workers", False)
    torch.manual_seed(5)
    streams = []
    for epoch in range(2):
        if epoch == 0 or not persistent:
            seed = torch.empty((), dtype=torch.int64).random_().item()
            streams = [torch.Generator().manual_seed(seed + worker) for worker in range(count)]
        order = torch.Generator().manual_seed(torch.empty((), dtype=torch.int64).random_().item())
        indices = torch.randperm(20, generator=order).tolist()
        for number, batch in enumerate(batches[7 * epoch : 7 * epoch + 7]):
            own = streams[number % count]
            expected = [
                (index + torch.rand(2, dtype=torch.float64, generator=own)).tolist()
                for index in indices[3 * number : 3 * number + 3]
            ]
            assert batch == expected


def test_without_workers_samples_draw_from_the_default_stream():
    batches, _ = epochs()
    torch.manual_seed(5)
    torch.empty((), dtype=torch.int64).random_()
    order = torch.Generator().manual_seed(torch.empty((), dtype=torch.int64).random_().item())
    indices = torch.randperm(20, generator=order).tolist()
    drawn = [(index + torch.rand(2, dtype=torch.float64)).tolist() for index in indices]
    assert [x for batch in batches[:7] for x in batch] == drawn


@pytest.mark.parametrize("options", WORKERS)
def test_a_generator_of_ones_own(options):
    def one(seed):
        generator = torch.Generator().manual_seed(seed)
        return [batch.tolist() for batch in DataLoader(range(20), 4, True, generator=generator, **options)]

    before = torch.get_rng_state()
    assert one(1) == one(1) != one(2)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("options", WORKERS)
def test_whole_tensors_are_indexed_at_once(options):
    data = TensorDataset(torch.rand(11, 2), torch.arange(11))
    for dataset in (data, Subset(data, [3, 1, 4, 1, 5, 9]), Subset(Subset(data, [7, 2, 8]), [2, 0])):
        batches = list(DataLoader(dataset, 4, **options))
        expected = [dataset[i] for i in range(len(dataset))]
        for i, batch in enumerate(batches):
            assert type(batch) is list
            for found, column in zip(batch, default_collate(expected[4 * i : 4 * i + 4])):
                assert torch.equal(found, column)


def test_subclasses_of_tensor_dataset_are_asked_for_samples():
    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return (super().__getitem__(index)[0] * 2,)

    class AtOnce(TensorDataset):
        def __getitems__(self, indices):
            return [(-self.tensors[0][i],) for i in indices]

    x = torch.arange(4.0)
    assert next(iter(DataLoader(Doubled(x), 4)))[0].tolist() == [0, 2, 4, 6]
    assert next(iter(DataLoader(AtOnce(x), 4)))[0].tolist() == [0, -1, -2, -3]
    assert next(iter(DataLoader(TensorDataset(x), 2, collate_fn=lambda samples: samples))) == [(x[0],), (x[1],)]


@pytest.mark.parametrize("options", WORKERS)
def test_iterable_datasets(options):
    for dataset, size, last in ((Parts(), 3, False), (Parts(), 3, True), (Parts(), None, False), (Parts(1), 2, False)):
        batches = list(DataLoader(dataset, size, drop_last=last, **options))
        numbers = sorted(x for batch in batches for x in (batch.tolist() if size else [batch]))
        assert numbers == list(range(dataset.length)) if not last else set(numbers) <= set(range(10))
        assert not last or all(len(batch) == 3 for batch in batches)
        loader = DataLoader(dataset, size, drop_last=last, **options)
        assert [list(map(str, loader)) for _ in range(2)] == [list(map(str, batches))] * 2


@pytest.mark.parametrize(("size", "last"), [(2, False), (2, True), (None, False)])
@pytest.mark.parametrize("options", WORKERS)
def test_an_iterable_dataset_that_is_its_own_iterator(options, size, last):
    expected = {(2, False): [[0, 1], [2, 3], [4]], (2, True): [[0, 1], [2, 3]], (None, False): list(range(5))}
    batches = [b if size is None else b.tolist() for b in DataLoader(OneIterator(), size, drop_last=last, **options)]
    assert sorted(batches) == sorted(expected[size, last] * max(1, options.get("num_workers", 0)))


def test_an_iterable_dataset_is_asked_for_its_length_by_len_alone():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    chain = ChainDataset([Stream(), Stream()])
    assert list(DataLoader(chain, batch_size=None)) == [0, 1, 2, 0, 1, 2]
    with pytest.raises(TypeError, match="has no len"):
        len(DataLoader(chain))


@pytest.mark.parametrize("options", WORKERS)
def test_no_samples(options):
    assert list(DataLoader([], **options)) == []
    assert list(DataLoader(Parts(0), 2, **options)) == []
    with fails(ValueError, "num_samples should be a positive integer value, but got num_samples=0"):
        DataLoader([], shuffle=True, **options)


def test_samples_that_do_not_match():
    class TooFew(Dataset):
        def __getitems__(self, indices):
            return indices[1:]

        def __len__(self):
            return 2

    with fails(ValueError, "Nested dataset's output size mismatch. Expected 2, got 1"):
        next(iter(DataLoader(StackDataset(TooFew()), 2)))


def test_a_batch_that_a_dataset_returns_whole():
    class Columns(Dataset):
        def __getitems__(self, indices):
            return torch.tensor(indices), torch.tensor(indices) * 2

        def __len__(self):
            return 3

    batches = list(DataLoader(Columns(), 3, collate_fn=lambda batch: batch))
    assert [[column.tolist() for column in batch] for batch in batches] == [[[0, 1, 2], [0, 2, 4]]]


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_of_programs_that_have_pytorchs_attributes(workers):
    class Loader:
        dataset, collate_fn, _index_sampler = [3, 4, 5], staticmethod(lambda x: -x), [2, 0]
        _dataset_kind, _auto_collation, _IterableDataset_len_called = dataloader._DatasetKind.Map, False, None
        drop_last = persistent_workers = pin_memory = False
        in_order = True
        generator = worker_init_fn = multiprocessing_context = prefetch_factor = None
        timeout, num_workers = 0, workers

    kind = dataloader._MultiProcessingDataLoaderIter if workers else dataloader._SingleProcessDataLoaderIter
    assert list(kind(Loader())) == [-5, -3]


def test_order_of_those_that_are_ready():
    class Slow(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            time.sleep(0.2 * (index == 0))
            return index

    found = [int(x) for x in DataLoader(Slow(), num_workers=2, in_order=False)]
    assert sorted(found) == list(range(6)) and found[0] != 0
    assert [int(x) for x in DataLoader(Slow(), num_workers=2)] == list(range(6))


# --- Workers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crew", CREWS)
def test_workers_know_who_they_are(crew):
    class Who(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            info = get_worker_info()
            assert info.dataset.mark == info.id  # set by `worker_init_fn`
            assert torch.get_num_threads() == (1 if crew else threads_here)
            return info.id, info.num_workers, info.seed - info.id, os.getpid(), threading.get_ident()

    def init(worker):
        assert worker == get_worker_info().id
        get_worker_info().dataset.mark = worker

    threads_here = torch.get_num_threads()
    dataset = Who()
    columns = list(DataLoader(dataset, None, num_workers=2, worker_init_fn=init, **crew))
    ids, counts, seeds, processes, threads = map(list, zip(*columns))
    assert ids == [0, 1] * 3 and set(counts) == {2} and len(set(seeds)) == 1
    assert len(set(processes)) == (2 if crew else 1)
    assert crew or (len(set(threads)) == 2 and threading.get_ident() not in threads)
    assert not hasattr(dataset, "mark") and get_worker_info() is None


@pytest.mark.parametrize("crew", CREWS)
def test_workers_persist(crew):
    class Where(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return os.getpid() if crew else threading.get_ident()

    persistent = DataLoader(Where(), None, num_workers=2, persistent_workers=True, **crew)
    first = list(persistent)
    iterator = iter(persistent)
    assert next(iterator) == first[0]  # an abandoned iteration
    assert list(persistent) == first
    with fails(RuntimeError, "another iteration with the persistent workers of this DataLoader has begun"):
        next(iterator)
    passing = DataLoader(Where(), None, num_workers=2, **crew)
    assert crew == {} or set(passing) != set(passing)


@pytest.mark.parametrize("crew", CREWS)
def test_errors_bring_their_traceback(crew):
    class OfThree(Exception):
        def __init__(self, a, b, c):
            super().__init__(a, b, c)

    kind = "process" if crew else "thread"
    for error, raised in ((ValueError("bad sample"), ValueError), (KeyError("name"), KeyError)):
        for persistent in (False, True):
            loader = DataLoader(Failing(error), num_workers=2, persistent_workers=persistent, **crew)
            with pytest.raises(raised) as info:
                list(loader)
            text = str(info.value)
            assert text.startswith(f"Caught {raised.__name__} in DataLoader worker {kind} 1.\nOriginal Traceback (most")
            assert "in __getitem__\n" in text and "raise self.error" in text and str(error) in text
            del info
    for error in (OfThree(1, 2, 3), SystemExit(3), KeyboardInterrupt()):
        with fails(RuntimeError, f"Caught {type(error).__name__} in DataLoader worker {kind} 1."):
            list(DataLoader(Failing(error), num_workers=2, **crew))


def test_an_iteration_goes_on_after_an_error():
    for options in ({}, {"num_workers": 2, "persistent_workers": True}, {"num_workers": 2}):
        iterator = iter(DataLoader(Failing(ValueError("bad"), 1), **options))
        assert next(iterator) == 0
        with pytest.raises(ValueError, match="bad"):
            next(iterator)
        assert [int(x) for x in iterator] == [2, 3, 4, 5]


def test_an_iteration_is_over_after_its_workers_were_ended():
    iterator = iter(DataLoader(range(9), num_workers=2))
    assert next(iterator) == 0
    iterator._shutdown_workers()
    assert list(iterator) == []


@pytest.mark.parametrize("crew", CREWS)
def test_errors_before_the_first_sample(crew):
    def init(worker):
        raise OSError("no such file")

    kind = "process" if crew else "thread"
    with fails(OSError, f"Caught OSError in DataLoader worker {kind} 0."):
        next(iter(DataLoader(range(3), num_workers=2, worker_init_fn=init, **crew)))

    class NoStart(IterableDataset):
        def __iter__(self):
            raise LookupError("no start")

    for options in ({}, {"num_workers": 2, **crew}):
        with pytest.raises(LookupError, match="no start"):
            list(DataLoader(NoStart(), **options))


def test_errors_of_the_order():
    def indices():
        yield 0
        raise ValueError("no more order")

    for options in ({}, {"num_workers": 2}):
        with fails(ValueError, "no more order"):
            list(DataLoader(range(3), sampler=indices(), **options))
    with fails(IndexError, "Caught IndexError in DataLoader worker thread 0."):
        list(DataLoader([1, 2], sampler=[5], num_workers=1))


@pytest.mark.parametrize("crew", CREWS)
def test_the_time_is_over(crew):
    class Hanging(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            time.sleep(0.7)

    with fails(RuntimeError, "DataLoader timed out after 0.1 seconds"):
        next(iter(DataLoader(Hanging(), num_workers=1, timeout=0.1, **crew)))


@needs_fork
def test_processes_that_die():
    class Dying(Dataset):
        def __init__(self, how):
            self.how = how

        def __len__(self):
            return 4

        def __getitem__(self, index):
            if index == 2:
                self.how()
            return index

    for how, code in ((lambda: os._exit(3), "3"), (lambda: os.kill(os.getpid(), signal.SIGKILL), "-9")):
        with pytest.raises(RuntimeError, match=r"^DataLoader worker \(pid\(s\) \d+\) exited unexpectedly\n") as info:
            list(DataLoader(Dying(how), num_workers=2, multiprocessing_context="fork"))
        assert f"exit codes [{code}]" in str(info.value)
        del info


@needs_fork
def test_batches_that_cannot_be_handed_over():
    loader = DataLoader(range(2), num_workers=1, multiprocessing_context="fork", collate_fn=lambda batch: lambda: batch)
    with pytest.raises(RuntimeError, match="worker process 0, when it handed over a batch"):
        next(iter(loader))


@needs_fork
def test_long_lists_of_indices():
    loader = DataLoader(range(600_000), 100_000, num_workers=2, multiprocessing_context="fork", collate_fn=np.array)
    assert [len(batch) for batch in loader] == [100_000] * 6


# --- Cleanup ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("persistent", [False, True])
def test_abandoned_iterators(crew, persistent):
    before = threading.active_count()
    loader = DataLoader(Noisy(), num_workers=2, persistent_workers=persistent, **crew)
    for number, _ in enumerate(loader):
        if number == 2:
            break
    iterator = iter(loader)
    next(iterator)
    del iterator, loader, _
    assert threading.active_count() == before
    assert not multiprocessing.active_children()


def test_workers_that_cannot_be_started(monkeypatch):
    started = []

    def start(thread, start=threading.Thread.start):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with fails(RuntimeError, "can't start new thread"):
        iter(DataLoader(range(5), num_workers=4))
    assert len(started) == 2 and not any(thread.is_alive() for thread in started)


def test_abandoned_iterators_in_a_circle():
    iterator = iter(DataLoader(Noisy(), num_workers=2))
    next(iterator)
    iterator.itself = iterator
    del iterator
    gc.collect()


def test_samples_are_let_go():
    data = TensorDataset(torch.rand(8, 2))
    for _ in DataLoader(data, 2, num_workers=2):
        pass
    iterator = iter(DataLoader(data, 2, num_workers=2))
    next(iterator)
    copy.copy(data)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("where", ["next", "body"])
def test_ctrl_c(crew, where, sigint):
    class Slow(Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, index):
            time.sleep(0.3 if where == "next" else 0)
            return index

    before = threading.active_count()
    timer = threading.Timer(0.15, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        for _ in DataLoader(Slow(), num_workers=2, **crew):
            time.sleep(5 if where == "body" else 0)
    timer.join()
    gc.collect()
    assert threading.active_count() == before
    assert not multiprocessing.active_children()


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("after", [False, True])
def test_ctrl_c_while_workers_start(crew, after, sigint, monkeypatch):
    starting = multiprocessing.get_context("fork").Process if crew else threading.Thread
    start, came = starting.start, []

    def interrupted(worker):
        if after:
            start(worker)
        os.kill(os.getpid(), signal.SIGINT)
        came.append(worker)
        if not after:
            start(worker)

    monkeypatch.setattr(starting, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        iter(DataLoader(range(10), num_workers=2, **crew))
    assert len(came) == 2, "Ctrl-C was to wait until all workers have started"
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert sum(DataLoader(range(10), None, num_workers=2, **crew)) == 45


def test_workers_can_be_started_in_any_thread():
    sums = []
    thread = threading.Thread(target=lambda: sums.append(sum(DataLoader(range(10), None, num_workers=2))))
    thread.start()
    thread.join()
    assert sums == [45]


PROGRAM = """
import os, sys, time
import cygrad as torch
from cygrad.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 50
    def __getitem__(self, index):
        time.sleep(0.01)
        return index

if __name__ == "__main__":
    context = sys.argv[1] if sys.argv[1] != "threads" else None
    iterator = iter(DataLoader(Numbers(), 2, num_workers=2, multiprocessing_context=context))
    print(next(iterator).tolist(), flush=True)
    if sys.argv[2] == "killed":
        if context:
            print(*[worker.pid for worker in iterator.crew.workers], flush=True)
        os.kill(os.getpid(), 9)
    if sys.argv[2] == "error":
        raise SystemError("end")
"""


@pytest.mark.parametrize("context", ["threads", *START_METHODS])
@pytest.mark.parametrize("end", ["exit", "error", "killed"])
def test_the_program_ends(context, end, tmp_path):
    if end == "killed" and (context == "forkserver" or os.name == "nt"):
        pytest.skip("needs children of the program itself")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, script, context, end]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    first, *pids = ended.stdout.split("\n")
    assert first == "[0, 1]", ended.stderr
    assert (ended.returncode == 0) == (end == "exit")
    assert end != "exit" or ended.stderr == "" or "DeprecationWarning" in ended.stderr
    for pid in pids[0].split():
        assert _ends(int(pid)), f"process {pid} outlives its parent"


@pytest.mark.parametrize("context", START_METHODS)
def test_workers_are_no_ranks_of_mpi(context, monkeypatch):
    names = ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PATH"]
    for name in names[:2]:
        monkeypatch.setenv(name, "1")
    loader = DataLoader(
        names, batch_size=None, num_workers=1, collate_fn=os.getenv, multiprocessing_context=context
    )  # each sample is a variable as a worker sees it
    assert list(loader) == [None, None, os.environ["PATH"]]
    assert [os.environ[name] for name in names[:2]] == ["1", "1"]


def _ends(pid):
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().split(")")[1].split()[0] == "Z":
            return True  # a zombie: it has ended but has not been waited for
        time.sleep(0.01)
    return False


# --- Speed and absence of warnings ---------------------------------------------------------------------------------


def test_small_samples_are_read_fast():
    """The threshold is a hundredth of the measured rate (a million samples per second), so that a busy machine
    passes.
    """
    data = TensorDataset(torch.rand(20_000, 4), torch.arange(20_000))
    start = time.perf_counter()
    count = sum(len(x) for x, _ in DataLoader(data, 64, shuffle=True))
    assert count == 20_000 and count / (time.perf_counter() - start) > 10_000


def test_import_leaves_multiprocessing_out():
    code = "import cygrad.utils.data, sys; list(cygrad.utils.data.DataLoader([1], num_workers=1)); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "cygrad.utils.data._worker" in ended.stdout and "multiprocessing" not in ended.stdout


def test_no_warnings_of_threads():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(DataLoader(range(5), num_workers=64))) == 5


@pytest.mark.parametrize(
    "generic",
    [
        torch.utils.data.DataLoader,
        torch.utils.data.Dataset,
        torch.utils.data.IterableDataset,
        torch.utils.data.ConcatDataset,
        torch.utils.data.ChainDataset,
        torch.utils.data.StackDataset,
        torch.utils.data.Subset,
        torch.utils.data.Sampler,
        torch.utils.data.DistributedSampler,
        torch.nn.DataParallel,
        torch.distributions.Independent,
    ],
)
def test_classes_that_are_generic_in_pytorch_take_a_parameter(generic):
    parametrized = generic[torch.Tensor]
    assert parametrized.__origin__ is generic and parametrized.__args__ == (torch.Tensor,)

    class Own(parametrized):
        pass

    assert issubclass(Own, generic)


def test_a_parametrized_loader_makes_loaders():
    loader = DataLoader[torch.Tensor](range(3), batch_size=2)
    assert type(loader) is DataLoader and [batch.tolist() for batch in loader] == [[0, 1], [2]]
    model = torch.nn.DataParallel[torch.nn.Linear](torch.nn.Linear(2, 1))
    assert model(torch.ones(3, 2)).shape == (3, 1)


class AtOnce(DataLoader):
    """Passes the indices of a batch to the dataset at once, by the properties that PyTorch's loader reads."""

    @property
    def _auto_collation(self):
        return False

    @property
    def _index_sampler(self):
        return self.batch_sampler


@pytest.mark.parametrize("workers", [0, 2])
def test_a_subclass_that_reads_batches_at_once(workers):
    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, indices):
            assert isinstance(indices, list)
            return torch.tensor(indices) ** 2

    loader = AtOnce(Squares(), batch_size=2, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[0, 1], [4, 9], [16]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [tuple, torch.tensor, np.array, list])
def test_batches_of_any_kind_of_indices(kind, workers):
    data = TensorDataset(torch.arange(20.0).view(10, 2))
    order = [[0, 1], [1, 1], [9, 2, 3]]
    loader = DataLoader(data, batch_sampler=[kind(each) for each in order], num_workers=workers)
    assert [batch.tolist() for (batch,) in loader] == [data.tensors[0][each].tolist() for each in order]


def test_weighted_samples_are_drawn_when_the_first_is_asked_for():
    sampler = torch.utils.data.WeightedRandomSampler([0.1, 0.9, 0.4], 8)
    torch.manual_seed(0)
    expected = list(sampler)
    torch.manual_seed(1)
    iterator = iter(sampler)
    torch.manual_seed(0)
    assert list(iterator) == expected


def test_strings_of_numpy_stay_as_they_are():
    strings = np.array(["a", "b"])
    assert torch.utils.data.default_collate(strings) is strings
    assert torch.utils.data.default_collate([np.str_("a"), "b"]) == ["a", "b"]


def test_a_method_of_the_dataset_initialises_its_copy():
    class Numbered(torch.utils.data.Dataset):
        worker = None

        def start(self, worker):
            self.worker = worker

        def __getitem__(self, i):
            return self.worker

        def __len__(self):
            return 4

    data = Numbered()
    found = list(DataLoader(data, num_workers=2, worker_init_fn=data.start))
    assert [batch.tolist() for batch in found] == [[0], [1], [0], [1]] and data.worker is None


def test_the_warning_of_a_wrong_length_mentions_the_workers():
    class Counting(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            return 2

    loader = DataLoader(Counting(), num_workers=1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="but 3 samples have been fetched. For multiprocessing data-loading, this"):
        assert len(list(loader)) == 3
