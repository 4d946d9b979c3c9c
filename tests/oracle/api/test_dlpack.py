"""Memory sharing with PyTorch through DLPack, in both directions."""

import pytest

import cygrad

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")

NAMES = "bool uint8 int8 int16 int32 int64 bfloat16 float16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)], ids=str)
def test_no_copy(name, shape):
    for maker, taker in ((cygrad, torch), (torch, cygrad)):
        t = maker.zeros(shape, dtype=getattr(maker, name))
        for other in (taker.from_dlpack(t), taker.from_dlpack(maker.utils.dlpack.to_dlpack(t))):
            assert str(other.dtype) == str(t.dtype) and tuple(other.shape) == shape
            assert other.stride() == t.stride() or not t.numel()
            assert other.device.type == "cpu"
            assert other.data_ptr() == t.data_ptr() or not t.numel()
            other.fill_(1)
            assert t.all()
            t.fill_(0)


def test_views():
    for maker, taker in ((cygrad, torch), (torch, cygrad)):
        t = maker.arange(12.0).reshape(3, 4).t()[1::2]
        other = taker.from_dlpack(t)
        assert other.stride() == t.stride() and other.tolist() == t.tolist()
        other[0, 0] = 7
        assert t[0, 0] == 7


def test_what_requires_grad():
    for maker, taker in ((cygrad, torch), (torch, cygrad)):
        with pytest.raises(BufferError, match="Can't export tensors that require gradient, use tensor.detach()"):
            taker.from_dlpack(maker.ones(2, requires_grad=True))
        assert taker.from_dlpack(maker.ones(2, requires_grad=True).detach()).tolist() == [1, 1]


def test_devices_have_the_same_numbers():
    ours, theirs = cygrad.utils.dlpack.DLDeviceType, torch.utils.dlpack.DLDeviceType
    assert {kind.name: kind.value for kind in ours} == {kind.name: int(kind) for kind in theirs}
    assert cygrad.zeros(1).__dlpack_device__() == tuple(map(int, torch.zeros(1).__dlpack_device__()))
