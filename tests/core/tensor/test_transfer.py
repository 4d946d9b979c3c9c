"""Tensors that go to other processes through queues and pipes, or as arguments, share their memory where they can."""

import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn
from cygrad.multiprocessing.reductions import StorageWeakRef, fd_id, reduce_tensor
from cygrad.utils.data import DataLoader

pytestmark = [
    pytest.mark.interpreter,
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files without names"),
]

PROGRAM = """
import sys
import cygrad as torch
from cygrad import nn
import cygrad.multiprocessing as mp

def add_and_fill(tensors, answers, *arguments):
    data = tensors.get(timeout=60)
    with torch.no_grad():
        for tensor in arguments:
            tensor.add_(1)
        for tensor in data:
            tensor.fill_(4)
    answers.put([data[0], data[0], torch.ones(3)])

if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    tensors, answers = context.Queue(), context.Queue()
    argument, parts, layer = torch.zeros(2), torch.zeros(4).share_memory_(), nn.Linear(2, 1)
    before = [p.detach().clone() for p in layer.parameters()]
    arguments = tensors, answers, argument, parts[1:], parts[:1], *layer.parameters()
    process = context.Process(target=add_and_fill, args=arguments)
    process.start()
    x, shared, aliased = torch.zeros(5, 5), torch.zeros(2).share_memory_(), torch.zeros(2)
    view = aliased[1:]
    weight, buffer = nn.Parameter(torch.zeros(3)), nn.Buffer(torch.zeros(2))
    scalar, negative = torch.tensor(2.0), torch.zeros(2, dtype=torch.complex64).conj()
    tensors.put([x, shared, weight, buffer, scalar, negative, torch.zeros(0), aliased])
    process.join(60)
    assert process.exitcode == 0
    assert all(t.is_shared() and t.eq(4).all() for t in (x, shared, weight, buffer, scalar))
    assert weight.requires_grad and aliased.tolist() == [0, 0] and view.tolist() == [0]
    first, second, ones = answers.get(timeout=60)  # although their sender has ended
    assert first is second and first.eq(4).all() and ones.tolist() == [1, 1, 1]
    assert parts.tolist() == [1, 1, 1, 1]
    if sys.argv[1] != "fork":
        assert argument.tolist() == [1, 1]
        assert all(torch.equal(p.detach(), old + 1) for p, old in zip(layer.parameters(), before))
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_processes_that_get_tensors_write_to_the_same_memory(method, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    subprocess.run([sys.executable, tmp_path / "program.py", method], check=True, timeout=120)


def sent(value):
    """What arrives of a value in this process."""
    queue = multiprocessing.get_context("fork").SimpleQueue()
    queue.put(value)
    return queue.get()


def test_one_memory_keeps_one_address():
    x = torch.arange(6.0).share_memory_()
    whole, part = sent([x, x[2:]])
    assert whole.data_ptr() == x.data_ptr() and part.data_ptr() == x[2:].data_ptr()
    part.zero_()
    assert x.tolist() == whole.tolist() == [0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.float64, torch.complex64, torch.bfloat16])
def test_everything_but_the_place_stays(dtype):
    x = torch.arange(6).to(dtype).reshape(2, 3).t().contiguous().share_memory_()
    x.label = "name"
    got = sent(x.t())
    assert got.dtype == dtype and got.stride() == (1, 2) and got.equal(x.t()) and sent(x).label == "name"


def test_a_result_of_recorded_ops_is_refused():
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        sent(y)
    assert sent(y.detach()).tolist() == [2, 2]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x[1:],
        lambda x: x.detach(),
        lambda x: x.numpy(),
        lambda x: memoryview(x.numpy()),
    ],
    ids=["view", "alias", "array", "buffer"],
)
def test_memory_that_others_use_is_copied(use):
    x = torch.zeros(3)
    other = use(x)
    got = sent(x)
    got.fill_(1)
    assert not x.is_shared() and x.tolist() == [0, 0, 0] and other is not None


def test_a_storage_is_the_memory_of_the_tensors_beside_it():
    x = torch.arange(3.0).share_memory_()
    storage, tensor = sent([x.untyped_storage(), x])
    assert storage._cdata == tensor.untyped_storage()._cdata == x.untyped_storage()._cdata
    storage.fill_(0)
    assert x.tolist() == [0, 0, 0]


def test_a_graph_keeps_a_tensor_that_has_moved():
    x, weight = torch.arange(3.0), torch.ones(3, requires_grad=True)
    loss = (x * weight).sum()
    assert sent(x).tolist() == [0, 1, 2] and x.is_shared()
    loss.backward()
    assert weight.grad.tolist() == [0, 1, 2]
    weight.grad = None
    got = sent(weight)
    assert got.requires_grad and got.is_leaf and weight.is_shared()


def test_a_plain_pickle_holds_the_elements():
    x = torch.ones(2).share_memory_()
    got = pickle.loads(pickle.dumps(x))
    got.zero_()
    assert x.tolist() == [1, 1] and not got.is_shared()


def test_files_are_closed():
    x = torch.ones(2).share_memory_()
    sent(x)  # starts the thread that hands files over
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        sent(x)
        sent(torch.ones(3))
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_the_error_of_a_sender_that_has_ended():
    _, arguments = reduce_tensor(torch.ones(2))
    arrived, how = arguments[1].__reduce__()
    how[0].detach()  # takes it, so that nothing is left
    with pytest.raises((OSError, EOFError, KeyError)) as caught:
        arrived(*how)
    assert isinstance(caught.value, KeyError) or "send a copy" in caught.value.__notes__[0]


class Squares:
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.tensor(float(i) ** 2)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_workers_of_a_data_loader_send_copies():
    loader = DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context="fork")
    batches = list(loader)
    assert [b.tolist() for b in batches] == [[0, 1], [4, 9]] and not batches[0].is_shared()


def test_names_of_memory():
    x = torch.ones(3)
    name, same = StorageWeakRef(x.untyped_storage()), StorageWeakRef(x[1:].untyped_storage())
    other = torch.ones(3)
    assert name == same and hash(name) == hash(same) and not name.expired()
    assert name != StorageWeakRef(other.untyped_storage())
    del x
    assert name.expired() and same.expired()
    with open(os.devnull) as file, open(os.devnull) as again:
        assert fd_id(file.fileno()) == fd_id(again.fileno())


def test_modules_of_multiprocessing():
    from cygrad import multiprocessing as mp
    from cygrad.multiprocessing import pool, queue
    from cygrad.multiprocessing.spawn import spawn

    assert mp.spawn is spawn and pool.Pool is multiprocessing.pool.Pool
    assert queue.Queue is multiprocessing.queues.Queue and np.all(sent(torch.ones(2)) == 1)
    assert isinstance(sent(nn.Parameter(torch.ones(1))), nn.Parameter)
