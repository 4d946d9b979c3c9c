"""The gradient of a dense tensor that is made sparse: products with dense matrices give all of its elements one."""

import pytest

import cygrad as torch

W = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, -1.0]])
B = torch.arange(6.0).view(3, 2)
KINDS = ["to_sparse", "to_sparse_csr", "to_sparse_csc"]


def gradients(f, convert):
    w, b = W.clone().requires_grad_(), B.clone().requires_grad_()
    f(convert(w), b).square().sum().backward()
    return w.grad, b.grad


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x, b: x @ b,
        lambda x, b: torch.mm(x, b),
        lambda x, b: torch.addmm(torch.ones(2, 2), x, b, alpha=3),
        lambda x, b: b[:2] @ x,
        lambda x, b: b[:2].t() @ x,
        lambda x, b: x.t() @ b[:2],
        lambda x, b: x.T @ b[:2, 0],
        lambda x, b: x.mT.transpose(0, 1) @ b,
        lambda x, b: b[:2].t() @ x.adjoint().adjoint(),
        lambda x, b: torch.nn.functional.linear(b.t(), x),
    ],
)
def test_products(f, kind):
    for ours, dense in zip(gradients(f, lambda w: getattr(w, kind)()), gradients(f, lambda w: w)):
        torch.testing.assert_close(ours, dense)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_mm_keeps_the_coordinates(kind):
    (ours, _), (dense, _) = gradients(torch.sparse.mm, lambda w: getattr(w, kind)()), gradients(torch.mm, lambda w: w)
    torch.testing.assert_close(ours, torch.where(W == 0, 0.0, dense))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_second_derivatives(kind, dtype):
    w, b = W.to(dtype).requires_grad_(), B.to(dtype).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda w, b: b[:2].t() @ getattr(w, kind)() @ b, (w, b))
    assert torch.autograd.gradgradcheck(lambda w, b: getattr(w, kind)().t() @ b[:2], (w, b))


@pytest.mark.parametrize("kind", KINDS)
def test_dense_operand(kind):
    w, left = W.double(), torch.ones(2, 2).double()
    assert torch.autograd.gradcheck(lambda y: (y @ getattr(w.detach(), kind)()).square(), (left.requires_grad_(),))
