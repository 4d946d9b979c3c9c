"""Indexing on GPUs with the stand-in: device of the indices, out-of-range indices, synchronization."""

import cupy_standin
import numpy as np
import pytest

import cygrad


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def on_gpu(values, dtype=np.float32):
    return cygrad.tensor(np.asarray(values, dtype)).cuda()


def values(t):
    return t.detach().cpu().tolist()


def test_indices_in_the_memory_of_the_cpu():
    x = on_gpu([[1, 2], [3, 4], [5, 6]]).requires_grad_()
    assert values(x[cygrad.tensor([2, 0])]) == [[5, 6], [1, 2]]
    assert values(x[cygrad.tensor([True, False, True]), 1]) == [2, 6]
    (x[cygrad.tensor([2, 2])] * 2).sum().backward()
    assert values(x.grad) == [[0, 0], [0, 0], [4, 4]]
    y = on_gpu([1, 2, 3])
    y[cygrad.tensor([0, 2])] = on_gpu([8, 9])
    assert values(y) == [8, 2, 9]


def test_a_tensor_on_the_cpu_takes_no_index_on_a_gpu():
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
        cygrad.ones(3)[on_gpu([0], np.int64)]


def test_what_is_not_there_counts_modulo_the_length_or_is_left_out():
    x = on_gpu([1, 2, 3])
    assert values(x[on_gpu([4, -1], np.int64)]) == [2, 3]
    assert values(x.index_add(0, on_gpu([0, 7], np.int64), on_gpu([1, 1]))) == [2, 2, 3]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, index, y: x.index_copy(0, index, y),
        lambda x, index, y: x.index_put((index,), y),
        lambda x, index, y: x.scatter(0, index[:, None], y[:, :1]),
        lambda x, index, y: x.scatter(0, index[:, None], 1.0),
    ],
)
def test_nothing_is_written_where_there_are_no_places(write):
    x, index = cygrad.zeros(0, 2, device="cuda"), on_gpu([0, 5], np.int64)
    with pytest.raises((IndexError, RuntimeError)):
        write(x, index, cygrad.ones(2, 2, device="cuda"))
    assert write(x, index[:0], cygrad.ones(0, 2, device="cuda")).shape == (0, 2)


def test_half_precision_that_cupy_has_no_function_for():
    x = on_gpu([3, 1, 2]).to(cygrad.bfloat16)
    assert x.argmax().dtype is cygrad.int64 and x.argmax().item() == 0 and x.argmin().item() == 1
    assert values(x.cumprod(0)) == [3, 3, 6]


def test_sums_in_one_order():
    index, added = on_gpu([2, 0, 2, 2], np.int64), on_gpu([1, 2, 3, 4])
    cygrad.use_deterministic_algorithms(True)
    try:
        assert values(on_gpu([0, 0, 0]).index_add(0, index, added)) == [2, 0, 8]
    finally:
        cygrad.use_deterministic_algorithms(False)
    assert values(on_gpu([0, 0, 0]).index_add(0, index, added)) == [2, 0, 8]


@pytest.mark.parametrize(
    "name, args",
    [
        ("sort", ()),
        ("topk", (2,)),
        ("median", ()),
        ("cummax", (0,)),
        ("logcumsumexp", (0,)),
        ("cumsum", (0,)),
        ("max", ()),
    ],
)
def test_nothing_waits_for_the_gpu(name, args):
    x = on_gpu([3, 1, 2]).requires_grad_()
    with cupy_standin.watch() as seen:
        found = getattr(x, name)(*args)
        (found if isinstance(found, cygrad.Tensor) else found[0]).sum().backward()
    assert not seen.synchronizations


def test_gathering_and_scattering_do_not_wait_for_the_gpu():
    x, index = on_gpu([3, 1, 2]).requires_grad_(), on_gpu([2, 2, 0], np.int64)
    with cupy_standin.watch() as seen:
        (x.gather(0, index) + x[index] + x.index_select(0, index) + x.take(index)).sum().backward()
        x.detach().scatter_add(0, index, x.detach()).masked_fill(index > 0, 0.0)
    assert not seen.synchronizations
    assert values(x.grad) == [4, 0, 8]
