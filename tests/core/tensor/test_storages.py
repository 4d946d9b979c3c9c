"""Storage objects, and tensors redirected to other memory with `set_`."""

import copy
import pickle

import pytest

import cygrad as torch


def test_storage_is_the_memory_of_the_base():
    x = torch.arange(6.0)
    part = x[2:4]
    whole = part.untyped_storage()
    assert whole.data_ptr() == x.data_ptr() and whole.nbytes() == len(whole) == 24
    assert whole == x.untyped_storage() and whole != x.clone().untyped_storage()
    assert {x.untyped_storage(), whole} == {whole}
    assert torch.is_storage(whole) and not torch.is_storage(x)
    assert whole.device == x.device and not whole.is_cuda and not whole.is_shared()
    assert whole.tolist()[4:8] == [0, 0, 128, 63]
    assert isinstance(whole, torch.UntypedStorage) and isinstance(whole, torch.storage.UntypedStorage)


def test_storages_are_pickled_and_copied():
    whole = torch.arange(3.0)[1:].untyped_storage()
    typed = torch.IntStorage([3, 4])
    for storage in (whole, typed):
        for made in (pickle.loads(pickle.dumps(storage)), copy.deepcopy(storage)):
            assert type(made) is type(storage) and made.tolist() == storage.tolist()
            assert made.data_ptr() != storage.data_ptr()
    assert isinstance(pickle.loads(pickle.dumps(typed)), torch.IntStorage)


def test_typed_storage_has_elements():
    x = torch.arange(6.0).view(2, 3).T
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        memory = x.storage()
    assert memory.tolist() == [0, 1, 2, 3, 4, 5]
    assert memory.size() == 6 and memory.dtype is torch.float32 and memory.element_size() == 4
    memory[1] = 7.0
    assert x[1, 0] == 7 and memory[1] == 7 and memory.untyped().nbytes() == 24
    memory.copy_(memory.clone().fill_(2.0))
    assert (x == 2).all()
    assert repr(memory[:2]) == " 2.0\n 2.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 2]"


def test_weights_that_are_tied_are_found():
    embedding, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    head.weight = embedding.weight
    places = {p.untyped_storage().data_ptr() for m in (embedding, head) for p in m.state_dict().values()}
    assert len(places) == 1


def test_storages_keep_their_size():
    memory = torch.zeros(3).untyped_storage()
    assert memory.resize_(12) is memory
    with pytest.raises(RuntimeError, match="not resizable\n  .*changes the size of a tensor"):
        memory.resize_(0)


def test_set_shares_memory():
    x, y = torch.zeros(2), torch.arange(6.0)
    version = x._version
    assert x.set_(y) is x and x.shape == (6,) and x._version == version + 1
    y += 1
    assert x.tolist() == y.tolist()
    assert x.set_().shape == (0,) and y.shape == (6,)
    assert x.set_(y, 1, (2, 2), (1, 2)).tolist() == [[2, 4], [3, 5]]
    assert x.set_(y.untyped_storage()).tolist() == y.tolist()
    assert x.set_(y.untyped_storage(), 4).tolist() == [5, 6]
    weight = torch.nn.Parameter(torch.zeros(3))
    with torch.no_grad():
        weight.set_(y)
    (weight * 2).sum().backward()
    assert weight.grad.tolist() == [2] * 6
    weight.data.set_(torch.zeros(1))
    assert weight.shape == (6,)  # `.data` is a different tensor


def test_wrong_calls_of_set():
    x, y = torch.zeros(2), torch.ones(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="^Could not set tensor of type double to a tensor of type float$"):
        x.set_(y)
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place"):
        torch.zeros(2, requires_grad=True).set_(x)
    with pytest.raises(RuntimeError, match="view"):
        x[1:].set_(x)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.set_(x.untyped_storage(), 0, (9,))
    with pytest.raises(TypeError, match="must be Tensor or Storage, not int"):
        x.set_(3)
    assert x.tolist() == [0, 0]
