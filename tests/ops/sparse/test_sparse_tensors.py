"""Sparse tensors: elements and gradients compared with dense tensors, and with SciPy."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import cygrad as torch
from helpers import fails


def dense(seed=0, shape=(4, 5), dtype=np.float64):
    rng = np.random.default_rng(seed)
    return torch.from_numpy((rng.normal(size=shape) * (rng.random(shape) < 0.4)).astype(dtype))


LAYOUTS = {
    "coo": lambda x: x.to_sparse(),
    "hybrid": lambda x: x.to_sparse(1),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 5)),
    "bsc": lambda x: x.to_sparse_bsc((4, 1)),
    "doubled": lambda x: (
        torch.cat([x.to_sparse(), x.to_sparse()]).index_select(0, torch.arange(4)) / 2 + (x / 2).to_sparse()
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(layout):
    x = dense()
    s = LAYOUTS[layout](x)
    assert s.layout is not torch.strided and s.shape == x.shape and s.dtype is x.dtype
    assert torch.allclose(s.to_dense(), x)
    for other in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.clone(), s.detach()):
        assert other.layout is s.layout and other.to_dense().equal(s.to_dense())


@pytest.mark.parametrize("goal", ["coo", "csr", "csc", "bsr"])
@pytest.mark.parametrize("start", ["coo", "csr", "csc", "bsr", "bsc"])
def test_conversions(start, goal):
    x = dense(1)
    assert LAYOUTS[goal](LAYOUTS[start](x)).to_dense().equal(x)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "hybrid"])
@pytest.mark.parametrize("other", [(5, 3), (5,)])
def test_products(layout, other):
    x, y = dense(2), dense(3, other) + 1
    s = LAYOUTS[layout](x)
    assert torch.allclose(s @ y, x @ y)
    g = dense(4, (x @ y).shape) + 1
    for product in (lambda a, b: a @ b, lambda a, b: torch.sparse.mm(a, b.reshape(5, -1)).reshape(g.shape)):
        a, b = s.detach().requires_grad_(), y.clone().requires_grad_()
        (product(a, b) * g).sum().backward()
        c, d = x.clone().requires_grad_(), y.clone().requires_grad_()
        ((c @ d) * g).sum().backward()
        assert torch.allclose(b.grad, d.grad)
        mask = torch.ones(4, 5, dtype=torch.bool) if a.grad.layout is torch.strided else a.grad.to_dense() != 0
        assert torch.allclose(a.grad.to_dense()[mask], c.grad[mask])
        assert bool(mask[x != 0].all())


def test_product_from_the_left():
    x, y = dense(5), dense(6, (3, 4)) + 1
    assert torch.allclose(y @ x.to_sparse(), y @ x)
    assert torch.allclose(y @ x.to_sparse_csr(), y @ x)


def test_products_of_sparse_matrices():
    scipy = pytest.importorskip("scipy.sparse")
    x, y = dense(7), dense(8, (5, 6))
    expected = (scipy.csr_matrix(x.numpy()) @ scipy.csr_matrix(y.numpy())).toarray()
    for a, b in ((x.to_sparse(), y.to_sparse()), (x.to_sparse_csr(), y.to_sparse_csr())):
        np.testing.assert_allclose((a @ b).to_dense().numpy(), expected)
        a, b = a.requires_grad_(), b.requires_grad_()
        (a @ b).to_dense().square().sum().backward()
        c, d = x.clone().requires_grad_(), y.clone().requires_grad_()
        (c @ d).square().sum().backward()
        assert torch.allclose(a.grad.to_dense(), c.grad * (x != 0))
        assert torch.allclose(b.grad.to_dense(), d.grad * (y != 0))


GRADIENTS = {
    "to_dense": lambda s: s.to_dense().square().sum(),
    "coalesce": lambda s: s.coalesce().values().pow(3).sum(),
    "mul": lambda s: (s * 3).to_dense().square().sum(),
    "mul dense": lambda s: (s * (dense(9) + 2)).to_dense().square().sum(),
    "mul sparse": lambda s: (s * s).to_dense().square().sum(),
    "add": lambda s: (s + s * 2).to_dense().square().sum(),
    "add dense": lambda s: (dense(9) + s).square().sum(),
    "transposed": lambda s: (s.t().to_dense() * dense(10, (5, 4))).sum(),
    "cat": lambda s: torch.cat([s, s * 2], 1).to_dense().square().sum(),
    "select": lambda s: s[1].to_dense().square().sum(),
    "index_select": lambda s: s.index_select(1, torch.tensor([2, 0, 2])).to_dense().square().sum(),
    "slice": lambda s: s[1:3].to_dense().square().sum(),
    "sum": lambda s: s.sum(),
    "sum over": lambda s: torch.sparse.sum(s, 0).to_dense().square().sum(),
    "softmax": lambda s: (torch.sparse.softmax(s, 1).to_dense() * dense(11)).sum(),
    "log_softmax": lambda s: (torch.sparse.log_softmax(s, 0).to_dense() * dense(11)).sum(),
    "sin": lambda s: s.sin().to_dense().square().sum(),
    "pow": lambda s: (s**2).to_dense().square().sum(),
    "mm": lambda s: (s @ (dense(12, (5, 2)) + 1)).square().sum(),
    "csr": lambda s: s.to_sparse_csr().to_dense().square().sum(),
    "bsr": lambda s: s.to_sparse_bsr((2, 1)).to_dense().square().sum(),
    "mask": lambda s: dense(13).sparse_mask(s).mul(s).to_dense().sum(),
    "unsqueeze": lambda s: s.unsqueeze(1).to_dense().square().sum(),
    "norm": lambda s: s.norm(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_values(name):
    """Against differences, for coordinates that occur twice and are not in order."""
    indices = torch.tensor([[1, 3, 0, 1, 2, 1], [4, 0, 2, 4, 2, 1]])
    values = torch.tensor([1.5, -0.7, 0.4, 0.9, -1.2, 2.0], dtype=torch.float64, requires_grad=True)
    function = GRADIENTS[name]

    def of_values(v):
        return function(torch.sparse_coo_tensor(indices, v, (4, 5)))

    assert torch.autograd.gradcheck(of_values, (values,))


@pytest.mark.parametrize("name", ["to_dense", "mul dense", "softmax", "mm", "sum over"])
def test_second_gradients_of_values(name):
    indices = torch.tensor([[1, 3, 0, 2], [4, 0, 2, 2]])
    values = torch.tensor([1.5, -0.7, 0.4, -1.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(
        lambda v: GRADIENTS[name](torch.sparse_coo_tensor(indices, v, (4, 5))), (values,)
    )


def test_parameters():
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(dense().to_sparse())
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    torch.sparse.mm(module.weight, torch.ones(5, 1, dtype=torch.float64)).sum().backward()
    before = module.weight.to_dense()
    torch.optim.SGD(module.parameters(), 0.5).step()
    assert torch.allclose(module.weight.to_dense(), before - 0.5 * (before != 0))
    again = copy.deepcopy(module)
    assert isinstance(again.weight, torch.nn.Parameter) and again.weight.to_dense().equal(module.weight.to_dense())


def test_dense_parameters_meet_sparse_tensors_in_operators():
    w, s = torch.nn.Parameter(torch.ones(4, 5, dtype=torch.float64)), dense().to_sparse()
    assert (w + s).equal(s.to_dense() + 1)
    assert (w - s).equal(1 - s.to_dense())
    assert (w * s).to_dense().equal(s.to_dense())
    assert (w @ s.t()).equal(torch.ones(4, 5, dtype=torch.float64) @ s.to_dense().t())
    with torch.no_grad():
        w += s
        w -= s * 2
    assert torch.allclose(w.detach(), 1 - s.to_dense())


def test_writing_in_place():
    s = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        s.mul_(2)
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    t = torch.sparse_coo_tensor([[0, 1]], values)
    version = t._version
    t.mul_(3)
    assert t._version == version + 1
    t.to_dense().sum().backward()
    assert values.grad.tolist() == [3.0, 3.0]


def test_wrong_indices_are_found():
    for indices in ([[0, 9]], [[-1, 0]]):
        with pytest.raises(RuntimeError, match="found negative index|size is inconsistent"):
            torch.sparse_coo_tensor(indices, [1.0, 2.0], (3,))
    for bounds, plain in (([0, 2, 1], [0, 1]), ([0, 1, 2], [0, 7]), ([0, 1, 9], [0, 1])):
        with pytest.raises(RuntimeError, match="is not satisfied"):
            torch.sparse_csr_tensor(bounds, plain, [1.0, 2.0], (2, 2))


def test_invariants_are_a_context_a_decorator_and_a_switch():
    checks = torch.sparse.check_sparse_tensor_invariants
    assert not checks.is_enabled()
    with checks():
        assert checks.is_enabled()
        with checks(False):
            assert not checks.is_enabled()
        with pytest.raises(RuntimeError, match="cannot set is_coalesced"):
            torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], is_coalesced=True)
    assert not checks.is_enabled()

    @checks()
    def decorated():
        return checks.is_enabled()

    assert decorated() and not checks.is_enabled()


def test_early_names():
    with pytest.warns(UserWarning, match="SparseTensor"):
        s = torch.sparse.FloatTensor(torch.tensor([[0, 1]]), torch.tensor([1.0, 2.0]), torch.Size([3]))
    assert s.to_dense().tolist() == [1.0, 2.0, 0.0]
    assert isinstance(s, torch.sparse.FloatTensor) and not isinstance(s, torch.sparse.DoubleTensor)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_vmap_and_derivatives_take_sparse_tensors():
    a, b = dense(), torch.from_numpy(np.random.default_rng(1).normal(size=(3, 5, 2)))
    s = a.to_sparse()

    def product(x):
        return torch.sparse.mm(s, x)

    np.testing.assert_allclose(torch.vmap(product)(b).numpy(), (a @ b).numpy())
    of_energy = torch.vmap(torch.func.grad(lambda x: product(x).pow(2).sum() / 2))(b)
    np.testing.assert_allclose(of_energy.numpy(), (a.t() @ a @ b).numpy())
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        found = jacobian(product)(b[0])
        np.testing.assert_allclose(found.numpy(), np.einsum("ij,kl->ikjl", a.numpy(), np.eye(2)))
    (gradient,) = torch.func.vjp(lambda x: torch.sparse.mm(x, b[0]), s)[1](torch.ones(4, 2, dtype=torch.float64))
    expected = np.broadcast_to(b[0].sum(1).numpy(), (4, 5)) * (a.numpy() != 0)
    np.testing.assert_allclose(gradient.to_dense().numpy(), expected)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_vmap_over_sparse_tensors():
    a = dense(shape=(3, 4, 5))
    np.testing.assert_allclose(torch.vmap(torch.sparse.sum)(a.to_sparse()).numpy(), a.numpy().sum((1, 2)))
    np.testing.assert_allclose(torch.vmap(lambda x: x * 2)(a.to_sparse()).to_dense().numpy(), 2 * a.numpy())


def test_moves_of_dimensions():
    a = dense(shape=(2, 3, 4))
    s = a.to_sparse()
    for source, destination in ((0, -1), ((0, 1), (1, 2)), ((2, 0), (0, 1))):
        assert s.movedim(source, destination).to_dense().equal(a.movedim(source, destination))
    with pytest.raises(RuntimeError, match="repeated dim in `source`"):
        s.movedim((0, 0), (0, 1))
    with pytest.raises(RuntimeError, match="Invalid source or destination dims"):
        s.movedim((0, 1), (0,))
    assert s.transpose_(0, 2) is s and s.to_dense().equal(a.transpose(0, 2))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_zeros_like_store_nothing(layout):
    s = dense().to_sparse(layout=layout)
    for zeros in (torch.zeros_like(s), s.clone().zero_()):
        assert zeros.layout is layout and zeros._nnz() == 0 and zeros.shape == s.shape
        assert not zeros.to_dense().any()


def test_template_for_a_size():
    s = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))
    assert s.resize_as_sparse_(torch.sparse_coo_tensor((5,))).shape == (5,) and s._nnz() == 2
    with pytest.raises(RuntimeError, match="shrinking the size of sparse dimensions"):
        s.resize_as_sparse_(torch.sparse_coo_tensor((3,)))
    with pytest.raises(RuntimeError, match="layouts of the tensors"):
        s.resize_as_sparse_(torch.ones(5))


def test_bytes():
    s = torch.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0])
    assert s.nbytes == 3 * 8 + 2 * 8 + 2 * 4
    with pytest.raises(RuntimeError, match="nbytes is not defined for sparse tensors"):
        s.to_sparse_coo().nbytes  # noqa: B018


def test_gradcheck_of_stored_values():
    s = dense().to_sparse().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: s.to_dense().sin(), s, masked=True)
    with pytest.raises(torch.autograd.GradcheckError):
        torch.autograd.gradcheck(_cut, s, masked=True)
    assert not torch.autograd.gradcheck(_cut, s, masked=True, raise_exception=False)
    assert torch.autograd.gradcheck(lambda s: s.to_dense(masked_grad=False).sin(), s)


def _cut(s):
    x = s.to_dense()
    return x * x.detach()


@pytest.mark.parametrize("name", ["to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"])
def test_gradients_that_are_not_masked(name):
    arguments = (2,) if "_bs" in name else ()
    x = getattr(torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 0]]), name)(*arguments).requires_grad_()
    incoming = torch.tensor([[0.0, 0, 2, 0], [0, 0, 3, 4]])
    x.to_dense(masked_grad=False).backward(incoming)
    assert x.grad.layout is x.layout and x.grad.to_dense().equal(incoming)
    (found,) = torch.autograd.grad(x.to_dense(masked_grad=False), x, incoming * 0)
    assert found._nnz() == 0 and found.to_dense().equal(incoming * 0)


def test_one_number_for_both_sizes_of_blocks():
    x = torch.eye(4).to_sparse_bsr(2)
    assert x.values().shape == (2, 2, 2) and x.to_sparse_bsr(2) is x
    assert torch.eye(4).to_sparse(layout=torch.sparse_bsc, blocksize=4).values().shape == (1, 4, 4)


def test_a_note_that_a_tensor_is_coalesced():
    x = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], requires_grad=True)
    y = x.detach()
    assert y._coalesced_(True) is y and y.indices().tolist() == [[0, 2]] and not x.is_coalesced()
    assert not y._coalesced_(False).is_coalesced() and y._version == 2
    twice = torch.sparse_coo_tensor([[1, 1]], [1.0, 2.0])
    with fails(RuntimeError, "_coalesced_(): the coordinates are out of order or occur several times"):
        twice._coalesced_(True)
    assert not twice.is_coalesced() and twice._version == 0
    with fails(
        NotImplementedError, "Could not run 'aten::_coalesced_' with arguments from the 'SparseCsrCPU' backend..."
    ):
        torch.eye(2).to_sparse_csr()._coalesced_(True)


def test_data_of_another_layout():
    dense, sparse, rows = torch.ones(2, 2), torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()
    line = "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
    for x, value in itertools.permutations([dense, sparse, rows], 2):
        with fails(RuntimeError, line):
            x.data = value
    assert dense.equal(torch.ones(2, 2)) and sparse.to_dense().equal(torch.eye(2)) and dense._version == 0
    sparse.data = torch.ones(2, 2).to_sparse()
    assert sparse._nnz() == 4


@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_memory_formats_are_for_dense_tensors(convert):
    x = convert(torch.eye(2))
    for make in (torch.empty_like, torch.zeros_like):
        with pytest.raises(RuntimeError, match="memory format option is only supported by strided tensors"):
            make(x, memory_format=torch.preserve_format)
    with pytest.raises(RuntimeError, match="unsupported memory format option ChannelsLast"):
        x.clone(memory_format=torch.channels_last)
