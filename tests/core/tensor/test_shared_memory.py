"""Tensors in memory shared with forked processes; pinned memory, which is not available."""

import gc
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn

pytestmark = pytest.mark.interpreter


def add_one(tensors):
    for tensor in tensors:
        tensor += 1


def in_a_fork(function, *args):
    process = multiprocessing.get_context("fork").Process(target=function, args=args)
    process.start()
    process.join(60)
    assert process.exitcode == 0


# Python 3.12 and later warn about forks in multithreaded programs; cygrad's pool survives them.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_changes_what_is_shared_and_nothing_else():
    shared, other = torch.zeros(3), torch.zeros(3)
    assert shared.share_memory_() is shared
    assert shared.is_shared() and shared[1:].is_shared() and not other.is_shared()
    in_a_fork(add_one, [shared, other])
    assert shared.tolist() == [1.0, 1.0, 1.0] and other.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_module_trained_in_a_fork():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    parameters, before = list(model.parameters()), [p.detach().clone() for p in model.parameters()]
    model(torch.ones(4, 2)).sum().backward()
    assert model.share_memory() is model
    assert all(a is b for a, b in zip(parameters, model.parameters()))
    tensors = [*parameters, *model.buffers(), *(p.grad for p in parameters)]
    assert all(tensor.is_shared() for tensor in tensors)

    def train():
        torch.optim.SGD(model.parameters(), lr=1.0).step()

    in_a_fork(train)
    for parameter, old in zip(parameters, before):
        assert torch.allclose(parameter.detach(), old - parameter.grad)


SPAWNED = """
import multiprocessing, os, pickle
import cygrad as torch

def train(model, parts):
    for part in parts:
        part += 1
    model(torch.ones(4, 2)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=1.0).step()

if __name__ == "__main__":
    model, base, other = torch.nn.Linear(2, 1).share_memory(), torch.zeros(2, 3).share_memory_(), torch.zeros(2)
    before = [p.detach().clone() for p in model.parameters()]
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=train, args=(model, [base[1], base.t()[2], other]))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert base.tolist() == [[0, 0, 1], [1, 1, 2]] and other.tolist() == [0, 0]
    assert all(torch.allclose(p.detach(), old - 4) for p, old in zip(model.parameters(), before))
    assert torch.equal(pickle.loads(pickle.dumps(base)), base)

    import resource, warnings

    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    many = [torch.zeros(1).share_memory_() for _ in range(99)]
    assert all(t.is_shared() for t in many) and len(os.listdir("/proc/self/fd")) < 40
    process = context.Process(target=print, args=(many[-1],))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        process.start()
    process.join(60)
    assert ["is copied for a new process" in str(w.message) for w in caught] == [True]
"""


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files without names")
def test_a_spawned_process_changes_what_is_shared(tmp_path):
    (tmp_path / "program.py").write_text(SPAWNED)
    subprocess.run([sys.executable, tmp_path / "program.py"], check=True)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files without names")
def test_files_of_shared_memory_are_closed():
    gc.collect()  # left over from other tests
    before = len(os.listdir("/proc/self/fd"))
    shared = torch.zeros(3).share_memory_()
    assert len(os.listdir("/proc/self/fd")) > before
    del shared
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(2.5),
        lambda: torch.zeros(0, 3),
        lambda: torch.arange(6).view(2, 3).t(),
        lambda: torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last) + 1,
        lambda: torch.tensor([True, False]),
        lambda: torch.tensor([1 + 2j]),
        lambda: torch.ones(3, requires_grad=True) * 2,
    ],
)
def test_everything_but_the_place_stays(make):
    tensor, like = make(), make()
    if tensor._base is not None:
        tensor, like = tensor.detach().clone(), like.detach().clone()
    tensor.share_memory_()
    assert (tensor.dtype, tensor.stride(), tensor.requires_grad) == (like.dtype, like.stride(), like.requires_grad)
    assert torch.equal(tensor, like) and tensor.is_shared()
    assert tensor.share_memory_().data_ptr() == tensor.data_ptr()
    assert not tensor.clone().is_shared()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("take", [lambda x: x[1:, ::2], lambda x: x.t(), lambda x: x.flatten()[5:], lambda x: x[3:]])
def test_a_view_takes_its_base_along(take):
    base = torch.arange(12.0).reshape(3, 4).clone()
    view = take(base)
    assert view.share_memory_() is view and view._base is base
    assert view.is_shared() and base.is_shared() and view.tolist() == take(base).tolist()
    in_a_fork(add_one, [view])
    expected = torch.arange(12.0).reshape(3, 4)
    take(expected).add_(1)
    assert base.equal(expected) and view.equal(take(base))
    view.mul_(2)
    assert take(base).equal(view)


def test_a_view_into_strided_memory_is_refused():
    base = torch.from_numpy(np.arange(12.0).reshape(3, 4)[:, ::2])
    with pytest.raises(RuntimeError, match="share the memory of its base first"):
        base[1:].share_memory_()
    assert not base.is_shared()


def test_a_mapped_file_is_not_shared(tmp_path):
    torch.save({"x": torch.ones(100)}, tmp_path / "file")
    assert not torch.load(tmp_path / "file")["x"].is_shared()
    assert not torch.from_numpy(np.ones(3)).is_shared()


def test_nothing_is_pinned():
    x = torch.ones(2)
    assert not x.is_pinned() and not x.is_pinned("cuda")
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        x.pin_memory()
    with pytest.raises(RuntimeError, match="CPU device type not an accelerator"):
        x.pin_memory("cpu")
