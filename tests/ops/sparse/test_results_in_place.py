"""Results of calls with sparse tensors that are written into others."""

import pytest

import cygrad as torch

DENSE = torch.tensor([[0.0, 1.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: torch.neg(x, out=out),
        lambda x, out: torch.sin(x, out=out),
        lambda x, out: torch.mul(x, 2, out=out),
        lambda x, out: torch.add(x, x, out=out),
    ],
)
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_out_without_elements_takes_any_size(call, layout):
    x, out = getattr(DENSE, layout)(), getattr(torch.empty(0, 3), layout)()
    assert call(x, out) is out
    assert torch.equal(out.to_dense(), call(DENSE, None))
    with pytest.raises(RuntimeError, match="Expected out tensor to have size"):
        call(x, getattr(torch.ones(3, 3), layout)())


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_"])
@pytest.mark.parametrize("layout", ["to_dense", "to_sparse"])
def test_integers_do_not_take_sparse_floats(name, layout):
    target = getattr(DENSE.long(), layout)()
    with pytest.raises(RuntimeError, match="[Cc]an't .* result type Float .* output .*Long|result type Float can't be"):
        getattr(target, name)(DENSE.to_sparse())
    assert torch.equal(target.to_dense(), DENSE.long())
    assert getattr(target, name)(DENSE.long().to_sparse()).dtype is torch.int64


def test_sums_and_products_name_the_operation():
    for name, operation in (("add_", "add"), ("sub_", "add"), ("mul_", "mul")):
        expected = f"^Can't convert result type Float to output Long in {operation} operation"
        with pytest.raises(RuntimeError, match=expected):
            getattr(DENSE.long().to_sparse(), name)(DENSE.to_sparse())


def test_float_power():
    for x in (DENSE, DENSE.long(), DENSE.to(torch.complex64)):
        found = torch.float_power(x.to_sparse(), 2)
        assert found.is_sparse and torch.equal(found.to_dense(), torch.float_power(x, 2))


def test_addmv():
    matrix, vector = DENSE.to_sparse_csr(), torch.tensor([1.0, 2.0])
    assert torch.addmv(vector, matrix, vector, beta=2, alpha=3).tolist() == [8, 28]
    target = vector.clone()
    assert target.addmv_(matrix, vector) is target and target.tolist() == [3, 10]
