"""`gradcheck` and `gradgradcheck` of tensors on a GPU: all checks run, and faults are found."""

import pytest

import cygrad as torch
from cygrad.autograd import Function, GradcheckError, gradcheck, gradgradcheck


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def operand(*shape, dtype=torch.float64):
    return torch.rand(shape, dtype=dtype, device="cuda", requires_grad=True)


class Wrong(Function):
    """Twice the input, with a gradient of three times the incoming one."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


@pytest.mark.parametrize("how", [
    {}, {"fast_mode": True}, {"check_forward_ad": True}, {"check_batched_grad": True},
    {"check_forward_ad": True, "check_batched_forward_grad": True}, {"check_undefined_grad": True},
])  # fmt: skip
def test_right_gradients(how):
    x, w = operand(3, 2), operand(2, 2)
    before = x.detach().clone()
    assert gradcheck(lambda x, w: ((x @ w).tanh().sum(1), x * x), (x, w), **how)
    assert torch.equal(x.detach(), before), "moved elements are put back"


def test_second_and_complex_gradients():
    assert gradgradcheck(lambda x: (x * x).exp().sum(0), (operand(2, 2),))
    assert gradcheck(lambda z: (z * z).abs(), (operand(2, dtype=torch.complex128),), check_forward_ad=True)
    assert gradcheck(lambda x: x * x, (operand(),))


@pytest.mark.parametrize("fast", [False, True])
def test_a_wrong_gradient(fast):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(Wrong.apply, (operand(3),), fast_mode=fast)
    assert caught.value.verdict == "wrong formula"
