"""Memory sharing with NumPy through DLPack in both directions and through buffers; read-only memory stays read-only."""

import numpy as np
import pytest

import cygrad as torch
from helpers import fails

pytestmark = pytest.mark.interpreter

DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_both_ways_without_copying(dtype):
    t = torch.ones(2, 3).to(dtype)
    array = np.from_dlpack(t)
    assert np.shares_memory(array, t.numpy()) and array.dtype == dtype.numpy
    for source in (array, t, t.__dlpack__(), torch.utils.dlpack.to_dlpack(t)):
        back = torch.from_dlpack(source)
        if not back.numpy().flags.writeable:  # NumPy 2.0 marks foreign memory read-only
            assert source is array and np.lib.NumpyVersion(np.__version__) < "2.1.0"
            continue
        assert back.data_ptr() == t.data_ptr() and back.dtype is dtype and back.shape == t.shape
        back.zero_()
        assert not t.any()
        t.fill_(1)
    copied = torch.from_dlpack(t, copy=True)
    assert copied.data_ptr() != t.data_ptr()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, 3).t(),
        lambda: torch.zeros(4, 6)[::2, 1::2],
        lambda: torch.zeros(3, 1).expand(3, 2),
        lambda: torch.zeros(0, 3),
        lambda: torch.zeros(()),
    ],
)
def test_layouts(make):
    t = make()
    for found in (torch.from_dlpack(t), torch.from_numpy(np.from_dlpack(t))):
        assert found.shape == t.shape
        assert found.stride() == t.stride() or not t.numel()
        assert found.data_ptr() == t.data_ptr() or not t.numel()


def test_memory_outlives_its_maker():
    t = torch.from_dlpack(np.arange(1000.0))
    assert t.sum() == 499500
    array = np.from_dlpack(torch.arange(1000))
    assert array.sum() == 499500
    capsule = torch.arange(5).__dlpack__()
    assert torch.from_dlpack(capsule).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_read_only_stays_read_only():
    array = np.zeros(3)
    array.flags.writeable = False
    made = [
        torch.from_numpy(array),
        torch.as_tensor(array),
        torch.asarray(array),
        torch.frombuffer(b"1234", dtype=torch.int8),
    ]
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        made += [torch.from_dlpack(array), torch.from_dlpack(torch.from_numpy(array))]
        assert not np.from_dlpack(torch.from_numpy(array)).flags.writeable
    with pytest.raises(BufferError):
        torch.from_numpy(array).__dlpack__()
    for t in made:
        before = t.tolist()
        for write in (
            lambda t: t.fill_(1),
            lambda t: t.zero_(),
            lambda t: t.add_(1),
            lambda t: t.copy_(torch.ones(t.shape).to(t.dtype)),
            lambda t: t[0:2].mul_(2),
            lambda t: t.__setitem__(0, 1),
            lambda t: np.add(t, t, out=t),
            lambda t: np.add.at(t, [0], 1),
            lambda t: torch.add(t, t, out=t),
            lambda t: t.random_(0, 3),
        ):
            with pytest.raises((RuntimeError, ValueError)) as caught:
                write(t)
            assert "read-only" in str(caught.value)
        assert t.tolist() == before and not t.numpy().flags.writeable


def test_buffers():
    t = torch.zeros(2, 2)
    view = memoryview(t.numpy())
    assert view.format == "f" and view.shape == (2, 2) and not view.readonly
    view[0, 1] = 4.0
    assert t[0, 1] == 4
    data = bytearray(8)
    shared = torch.frombuffer(data, dtype=torch.float32)
    shared[1] = 1.0
    assert bytes(data[4:]) == np.float32(1).tobytes()


@pytest.mark.parametrize(
    "call, error, line",
    [
        (
            lambda t: t.requires_grad_().__dlpack__(),
            BufferError,
            "Can't export tensors that require gradient, use tensor.detach()",
        ),
        (
            lambda t: torch.from_dlpack(t.requires_grad_()),
            BufferError,
            "Can't export tensors that require gradient, use tensor.detach()",
        ),
        (lambda t: t.__dlpack__(stream="a"), TypeError, "stream must be ``int`` or ``none``"),
        (lambda t: t.__dlpack__(stream=1), AssertionError, "stream should be None on cpu."),
        (lambda t: t.__dlpack__(dl_device=(2, 0)), BufferError, "this tensor is on the CPU, ..."),
        (lambda t: torch.from_dlpack(3), RuntimeError, "from_dlpack received an invalid capsule. ..."),
        (lambda t: torch.utils.dlpack.to_dlpack(3), TypeError, "to_dlpack(): argument 'tensor' ..."),
        (lambda t: torch.from_dlpack(np.zeros(3)[::-1]), ValueError, "At least one stride in the given numpy ..."),
        (lambda t: torch.from_dlpack(OnGPU()), BufferError, "the memory is on the device (2, 0), not on the CPU"),
    ],
)
def test_bad_input(call, error, line):
    with fails(error, line):
        call(torch.zeros(3))


class OnGPU:
    def __dlpack__(self, **options):
        raise AssertionError("asked for")

    def __dlpack_device__(self):
        return 2, 0


def test_a_capsule_is_taken_once():
    capsule = torch.zeros(3).__dlpack__()
    torch.from_dlpack(capsule)
    with fails(RuntimeError, "from_dlpack received an invalid capsule. ..."):
        torch.from_dlpack(capsule)


class Old:
    """A library that does not know DLPack versions."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


def test_older_libraries():
    t = torch.zeros(3)
    torch.from_dlpack(Old(t)).fill_(2)
    assert t.tolist() == [2, 2, 2]


def test_taken_by_other_functions():
    t = torch.zeros(3)
    for made in (torch.as_tensor(Old(t)), torch.asarray(Old(t)), torch.asarray(t.__dlpack__())):
        assert made.data_ptr() == t.data_ptr()
    for made in (torch.tensor(Old(t)), torch.asarray(Old(t), copy=True), torch.as_tensor(Old(t), dtype=torch.int32)):
        assert made.data_ptr() != t.data_ptr() and made.tolist() == [0, 0, 0]
    assert torch.asarray(Old(t), dtype=torch.float64).dtype is torch.float64
    data = bytearray(8)
    torch.asarray(data, dtype=torch.int32)[1] = 1
    assert data[4] == 1
