"""Arrays of dead tensors are reused, but only if nothing else references them."""

import gc
import sys
import sysconfig
import tracemalloc
import weakref

import numpy as np
import pytest
from sanitizing import keeps_memory

import cygrad as torch

pytestmark = pytest.mark.interpreter

with_gil = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="without the GIL no arrays are kept"
)
SHAPE = (7, 5)


def result():
    """A new tensor whose memory comes from the freelist."""
    return torch.empty(SHAPE)


@pytest.fixture(autouse=True)
def nothing_kept():
    torch.empty_cache()


@keeps_memory
@with_gil
def test_the_array_of_a_dead_tensor_is_the_next_result():
    t = result()
    address = t.data_ptr()
    del t
    assert result().data_ptr() == address


@pytest.mark.parametrize("other", [{"size": (5, 7)}, {"size": SHAPE, "dtype": torch.int32}, {"size": (7, 5, 1)}])
def test_another_shape_or_type_gets_another_array(other):
    t = result()
    array = t.numpy().base
    del t
    new = torch.empty(**other)
    assert new.shape == other["size"]
    assert not np.shares_memory(array, new.numpy())


HOLDERS = {
    "array": lambda t: t.numpy(),
    "view": lambda t: t[2:],
    "detached": lambda t: t.detach(),
    "memoryview": lambda t: memoryview(t.numpy()),
    "dlpack": lambda t: np.from_dlpack(t),
    "saved": lambda t: (t * torch.ones(SHAPE, requires_grad=True)).grad_fn,
    "transposed": lambda t: t.numpy().T,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_somebody_holds_is_not_used_again(holder):
    t = result().fill_(3)
    address = t.data_ptr()
    held = HOLDERS[holder](t)
    del t
    others = [result() for _ in range(40)]
    assert address not in {other.data_ptr() for other in others}
    del held
    gc.collect()


def test_read_only_memory_is_not_used_again():
    array = np.zeros(SHAPE, np.float32)
    array.flags.writeable = False
    t = torch.from_numpy(array.copy())
    del t
    for _ in range(40):
        result().fill_(1)
    assert not array.any()


def test_weakly_referenced_arrays_die():
    array = np.empty(SHAPE, np.float32)
    reference = weakref.ref(array)
    t = torch.from_numpy(array)
    del array, t
    assert reference() is None


def test_many_shapes_keep_little():
    tracemalloc.start()
    try:
        for n in range(1, 3000):
            torch.empty(n % 250 + 1, dtype=torch.float32)
        torch.empty_cache()
        before = tracemalloc.get_traced_memory()[0]
        for n in range(1, 3000):
            torch.empty(n % 250 + 1, dtype=torch.float32)
        kept = tracemalloc.get_traced_memory()[0] - before
        assert kept < 1 << 20
        torch.empty_cache()
        assert tracemalloc.get_traced_memory()[0] - before < 1 << 14
    finally:
        tracemalloc.stop()


@with_gil
def test_arrays_in_use_are_told_apart_from_kept_ones():
    tensors = [result().fill_(i) for i in range(100)]
    del tensors[::2]
    fresh = [result().fill_(-1) for _ in range(100)]
    assert [t[0, 0].item() for t in tensors] == list(range(1, 100, 2))
    assert len({t.data_ptr() for t in tensors + fresh}) == 150
    assert sys.getrefcount(fresh[0].numpy().base) == sys.getrefcount(fresh[1].numpy().base)
