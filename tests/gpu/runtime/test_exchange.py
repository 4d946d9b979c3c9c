"""Exchange of GPU arrays with other libraries on shared memory, also before cygrad has loaded CuPy."""

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.device import cupy_library


class Foreign:
    """An object that supports only the protocol."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self.array = array


@pytest.fixture(params=[True, False], ids=["loaded", "not loaded"])
def array(cupy, request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(cupy_library, "_found", None)
    return cupy.arange(6.0).reshape(2, 3).T


@pytest.mark.parametrize("take", [torch.as_tensor, torch.asarray, torch.from_dlpack])
def test_arrays_of_cupy_are_taken_as_they_are(take, array):
    x = take(array)
    assert x.device == torch.device("cuda:0")
    assert (x.shape, x.stride(), x.data_ptr()) == ((3, 2), (1, 3), array.data.ptr)
    x[0, 1] = 50
    assert array[0, 1].item() == 50
    array[:] = 7
    assert x.sum().item() == 42


@pytest.mark.parametrize("take", [torch.as_tensor, torch.asarray])
def test_what_has_the_protocol_is_taken_as_it_is(take, array):
    x = take(Foreign(array))
    assert (x.shape, x.stride(), x.data_ptr()) == ((3, 2), (1, 3), array.data.ptr)
    assert take(Foreign(array), device="cpu").tolist() == x.tolist()
    assert take(Foreign(array), dtype=torch.int32).dtype == torch.int32


@pytest.mark.parametrize("wrap", [lambda array: array, Foreign])
def test_tensor_copies(wrap, array):
    x = torch.tensor(wrap(array))
    assert x.is_cuda
    assert x.data_ptr() != array.data.ptr
    assert x.tolist() == array.get().tolist()
    assert not torch.tensor(wrap(array), device="cpu").is_cuda


def test_others_take_tensors(cupy):
    x = torch.arange(6.0, device="cuda").reshape(2, 3).t()
    for take in (cupy.asarray, cupy.from_dlpack, lambda t: cupy.asarray(Foreign(t))):
        array = take(x)
        assert (array.shape, array.data.ptr) == ((3, 2), x.data_ptr())
        np.testing.assert_array_equal(array.get(), x.cpu().numpy())
    assert not hasattr(x.cpu(), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="^Can't get __cuda_array_interface__ on Variable that requires grad"):
        x.requires_grad_().__cuda_array_interface__  # noqa: B018


def test_storages_and_views_by_steps_on_a_gpu(cupy):
    x = torch.arange(6.0, device="cuda").view(2, 3)
    memory = x[1].untyped_storage()
    assert memory.is_cuda and memory.data_ptr() == x.data_ptr() and memory.nbytes() == 24
    assert (x[1].storage_offset(), x[1].as_strided((2, 2), (2, 1), 1).tolist()) == (3, [[1, 2], [3, 4]])
    assert torch.zeros(0, device="cuda").set_(memory, 1, (2, 2)).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(RuntimeError, match='^Attempted to set the storage of a tensor on device "cpu" to a storage on'):
        torch.zeros(0).set_(memory)


def test_complex_numbers_begin_at_multiples_of_their_size(cupy):
    numbers = cupy.arange(7, dtype="float32")
    odd, even = (torch.from_dlpack(numbers[start : start + 4]).view(2, 2) for start in (1, 2))
    with pytest.raises(RuntimeError, match="Tensor must have a storage_offset divisible by 2"):
        torch.view_as_complex(odd)
    assert torch.view_as_complex(even).tolist() == [2 + 3j, 4 + 5j]
