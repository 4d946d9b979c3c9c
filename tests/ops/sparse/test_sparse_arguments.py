"""Arguments and results of calls with sparse tensors: what is written into, sizes, and what is refused."""

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


HYBRID = torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 2), (2, 2))


def test_zeros_and_empty_into_sparse_tensors():
    for make in (torch.zeros, torch.empty):
        out = DENSE.to_sparse()
        assert make((3, 2), out=out, requires_grad=True) is out
        assert (out.shape, out._nnz(), out.requires_grad) == ((3, 2), 0, True)
        assert make(3, 2, out=DENSE.to_sparse_csr()).layout is torch.sparse_csr
    for call, message in (
        (lambda out: torch.zeros(2, out=out, dtype=torch.int64), "^dtype Long does not match dtype of out parameter"),
        (lambda out: torch.zeros(2, out=out, layout=torch.strided), "^layout Strided does not match layout of out"),
        (lambda out: torch.ones(2, out=out), "^full.* is not implemented for sparse layout"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call(DENSE.to_sparse())


def test_copies_do_not_change_the_size():
    target = DENSE.to_sparse()
    with pytest.raises(RuntimeError, match=r"size \[1, 2\]"):
        target.copy_(DENSE[:1].to_sparse())
    assert torch.equal(target.to_dense(), DENSE)
    assert torch.sparse_coo_tensor((2, 2)).resize_as_(DENSE.to_sparse())._nnz() == 0


def test_whether_few_values_are_coalesced_is_kept():
    for x in (torch.sparse_coo_tensor((2, 2)), torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2))):
        assert x.is_coalesced()
        x._coalesced_(False)
        assert not (x.is_coalesced() or x.clone().is_coalesced() or x.detach().is_coalesced() or (x * 2).is_coalesced())
        assert x.coalesce().is_coalesced()
        with pytest.raises(RuntimeError, match="^asin_ requires coalesced input"):
            x.asin_()


def test_sums_with_tensors_without_values():
    none = torch.sparse_coo_tensor((2, 2), dtype=torch.float64)
    for found, expected in ((HYBRID + none, 1), (none + HYBRID, 1), (none - HYBRID, -1), (HYBRID - none, 1)):
        assert found.dtype is torch.float64 and (found.to_dense() == expected).all()
    with pytest.raises(RuntimeError, match="^add: expected 'self' and 'other' to have same density, but 'self' has 1"):
        HYBRID + DENSE.to_sparse()


def test_one_number_as_values():
    weight = torch.tensor(3.0, requires_grad=True)
    x = torch.sparse_coo_tensor([[0], [1]], weight)
    assert x.to_dense().tolist() == [[0, 3]]
    (x.to_dense() * 2).sum().backward()
    assert weight.grad == 2


def test_the_old_way_to_make_sparse_tensors():
    x = DENSE.to_sparse()
    indices, values = torch.tensor([[0], [1]]), torch.tensor([2.0])
    assert x.new(indices, values).shape == (1, 2) and x.new(indices, values, (3, 3)).to_dense()[0, 1] == 2
    assert (x.new().shape, x.new(2, 3).shape) == ((0,), (2, 3))
    with pytest.raises(TypeError, match="^new.. received an invalid combination of arguments"):
        x.new(x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: torch.empty_like(x, memory_format=torch.preserve_format), RuntimeError, "memory format option is"),
        (lambda x: torch.cat([x, HYBRID]), RuntimeError, "All tensors must have the same .* 2, 0, but .* has 1, 1"),
        (lambda x: x // x, RuntimeError, "Sparse floor division requires a scalar or zero-dim"),
        (lambda x: 3 // x, RuntimeError, "Sparse floor division requires a scalar or zero-dim"),
        (lambda x: torch.sparse_coo_tensor((2**40, 2**40)), RuntimeError, "numel: integer multiplication overflow"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call(DENSE.to_sparse())


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("dtype", [torch.int16, torch.float32, torch.uint8])
def test_differences_of_unsigned_numbers_have_the_dtype_of_the_result(layout, dtype):
    first, second = DENSE.to(dtype) + 1, DENSE.to(torch.uint8)
    sparse = getattr(second, layout)()
    expected = first - second
    assert torch.equal(first - sparse, expected)
    assert torch.equal((getattr(first, layout)() - sparse).to_dense(), expected)
    assert torch.equal(first.clone().sub_(sparse), expected)
    if layout == "to_sparse_csr":
        assert torch.equal(first.to_sparse_csr() - second, expected)


@pytest.mark.parametrize("first", ["to_sparse", "to_sparse_csr", "to_dense"])
def test_alpha_has_the_kind_of_the_result(first):
    second = DENSE.long().to_sparse_csr() if first == "to_sparse_csr" else DENSE.long().to_sparse()
    integers = getattr(DENSE.long(), first)()
    for alpha, message in ((2.5, "For integral input tensors, argument alpha"), (True, "Boolean alpha only supported")):
        with pytest.raises(RuntimeError, match=f"^{message}"):
            torch.add(integers, second, alpha=alpha)
    found = torch.add(getattr(DENSE, first)(), second, alpha=2.5)
    assert torch.equal(found.to_dense(), DENSE * 3.5)


def test_dense_tensors_like_sparse_ones_have_a_memory_format():
    x = torch.zeros(2, 3, 4, 5).to_sparse()
    for make in (torch.empty_like, torch.zeros_like):
        found = make(x, layout=torch.strided, memory_format=torch.channels_last, requires_grad=True)
        assert found.stride() == (60, 1, 15, 3) and found.requires_grad
        assert make(x, layout=torch.strided, memory_format=torch.preserve_format).is_contiguous()
