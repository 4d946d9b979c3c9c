"""`gradcheck` of functions of sparse tensors, and the deprecated functions for Jacobians beside it."""

import pytest

import cygrad as torch
from cygrad.autograd import GradcheckError, gradcheck
from cygrad.autograd.gradcheck import (
    _get_numerical_jacobian,
    _iter_tensors,
    get_analytical_jacobian,
    get_numerical_jacobian,
)
from helpers import fails

LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def sparse(layout, is_full=False, dtype=torch.double):
    """A sparse matrix that stores some of its elements, or all."""
    dense = torch.tensor([[1, 2, 0, 0], [3, 0, 0, 0], [0, 0, 0, 4]], dtype=dtype)
    if is_full:
        dense = dense + 0.5
    sizes = (1, 2) if layout in ("sparse_bsr", "sparse_bsc") else None
    return dense.to_sparse(layout=getattr(torch, layout), blocksize=sizes).requires_grad_()


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_right_gradients_pass(layout, fast_mode):
    x = sparse(layout)
    before = x.detach().to_dense()
    how = {"fast_mode": fast_mode}
    assert gradcheck(lambda x: x.to_dense() ** 2, x, masked=True, **how)
    assert gradcheck(lambda x: x.to_dense(masked_grad=False).exp(), x, **how)
    assert gradcheck(torch.sum, sparse(layout, is_full=True), masked=True, **how)
    assert gradcheck(torch.sum, x, **how)
    assert x.to_dense().equal(before) and x.grad is None


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_that_are_not_stored_count_without_masks(layout, fast_mode):
    error = "Jacobian mismatch for output 0 with respect to input 0,"
    with fails(GradcheckError, error):
        gradcheck(lambda x: x.to_dense(), sparse(layout), fast_mode=fast_mode)


def test_wrong_gradients_are_found():
    def wrong(x):
        y = x.to_dense()
        y.register_hook(lambda g: g * 2)
        return y

    with pytest.raises(GradcheckError) as caught:
        gradcheck(wrong, sparse("sparse_csr"), masked=True)
    assert caught.value.verdict == "wrong formula" and "0.5 times the analytic value" in str(caught.value)


def test_dense_complex_and_repeated():
    dense = torch.rand(3, 4, dtype=torch.double, requires_grad=True)
    assert gradcheck(lambda x, y: x * y.to_dense(), (dense, sparse("sparse_coo")), masked=True)
    z = sparse("sparse_coo", dtype=torch.cdouble)
    assert gradcheck(lambda z: z.to_dense() * (1 + 2j), z, masked=True)
    assert gradcheck(lambda z: z.to_dense() * (1 + 2j), z, masked=True, fast_mode=True)
    twice = torch.sparse_coo_tensor([[1, 0, 1]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 2), dtype=torch.double)
    assert gradcheck(lambda x: x.to_dense() ** 2, twice.requires_grad_(), masked=True)
    assert gradcheck(lambda x: x.to_dense(masked_grad=False) ** 3, twice, fast_mode=True)


def test_results_must_be_dense():
    line = "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of ..."
    with fails(ValueError, line):
        gradcheck(lambda x: x * 2, sparse("sparse_coo"), raise_exception=False)


class _SparseGradient(torch.autograd.Function):
    """Its input, with a gradient that is sparse in `dims` dimensions."""

    @staticmethod
    def forward(ctx, x, dims):
        ctx.dims = dims
        return x.to_dense() if x.is_sparse else x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.to_sparse(ctx.dims), None


def test_layouts_of_gradients():
    x = torch.ones(2, 2, dtype=torch.double, requires_grad=True)
    with fails(GradcheckError, "grad is incorrect layout (torch.sparse_coo is not torch.strided)"):
        gradcheck(lambda x: _SparseGradient.apply(x, 2), x)
    y = x.detach().to_sparse().requires_grad_()
    assert gradcheck(lambda y: _SparseGradient.apply(y, 2), y, masked=True)
    with fails(GradcheckError, "grad is sparse tensor, but has incorrect sparse_dim 1, expected 2"):
        gradcheck(lambda y: _SparseGradient.apply(y, 1), y, masked=True)


# ------------------------------------------------------------------ deprecated names


def linear(x, y):
    return 2 * x + y, x + 2 * y, x > 0


def test_numerical_jacobians():
    x, y = (torch.rand(2, 2, dtype=torch.double, requires_grad=True) for _ in range(2))
    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part of PyTorch's private API"):
        found = get_numerical_jacobian(lambda inputs: linear(*inputs), (x, y), eps=1e-6)
    identity = torch.eye(4, dtype=torch.double)
    assert torch.allclose(found[0], 2 * identity) and torch.allclose(found[1], identity)
    with pytest.warns(FutureWarning):
        (found,) = get_numerical_jacobian(lambda inputs: linear(*inputs), (x, y), target=y, eps=1e-6)
    assert torch.allclose(found, identity)
    assert [len(each) for each in _get_numerical_jacobian(linear, (x, y))] == [2, 2]
    wide = _get_numerical_jacobian(lambda x: x.sum(1), x, eps=1e-6)[0][0]
    assert torch.allclose(wide, torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]], dtype=torch.double))
    z = torch.tensor([1 + 2j], requires_grad=True, dtype=torch.cdouble)
    ((found,),) = _get_numerical_jacobian(lambda z: (z * z.conj()).real, z, eps=1e-6)
    assert torch.allclose(found, 2 * z.detach()[None])
    with fails(
        ValueError, "Expected output to be non-complex. get_numerical_jacobian no longer supports functions ..."
    ):
        _get_numerical_jacobian(lambda z: z, z)
    ((found,),) = _get_numerical_jacobian(
        lambda x: torch.complex(x, 3 * x), x[0].detach().requires_grad_(), eps=1e-6, is_forward_ad=True
    )
    assert torch.allclose(found, (1 + 3j) * torch.eye(2, dtype=torch.cdouble))


def test_analytical_jacobians():
    x, y = (torch.rand(2, 2, dtype=torch.double, requires_grad=True) for _ in range(2))
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part of PyTorch's private API"):
        (first, second), *checks = get_analytical_jacobian((x, y), linear(x, y)[0])
    identity = torch.eye(4, dtype=torch.double)
    assert first.equal(2 * identity) and second.equal(identity) and checks == [True, True, True]
    noisy = x * 1
    noisy.register_hook(lambda g: g + torch.rand_like(g))
    with pytest.warns(FutureWarning):
        assert get_analytical_jacobian(x, noisy)[1] is False


def test_other_gradients_than_one():
    x = torch.ones(1, dtype=torch.double, requires_grad=True)
    for function, arguments in ((get_numerical_jacobian, (sum, (x,))), (get_analytical_jacobian, ((x,), x * 1))):
        line = f"Expected grad_out to be 1.0. {function.__name__} no longer supports values of grad_out != 1.0."
        with pytest.warns(FutureWarning), fails(ValueError, line):
            function(*arguments, grad_out=2.0)


def test_tensors_in_lists():
    x, y = torch.ones(1), torch.ones(1, requires_grad=True)
    assert [id(t) for t in _iter_tensors([x, ("a", [y]), 3])] == [id(x), id(y)]
    assert [id(t) for t in _iter_tensors([x, (y,)], True)] == [id(y)]
