"""Sparse tensors: expressions of each kind must give what PyTorch gives, parts and errors included."""

import re
import warnings

import numpy as np
import pytest

import cygrad
from helpers import class_of, first_line

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
# PyTorch warns, once, that it checks no invariants, and that compressed layouts are in beta state.
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:Sparse (invariant|[BC]S[CR] tensor):UserWarning")]

SETUP = """
t = torch.tensor
i = t([[0, 1, 1, 0], [2, 0, 2, 2]])
d = torch.arange(6.0).reshape(2, 3)
def s(): return torch.sparse_coo_tensor(i, t([3.0, 4.0, 5.0, 1.0]), (2, 3))
def c(): return s().to_sparse_csr()
def h(): return torch.sparse_coo_tensor([[0, 1, 0]], torch.arange(6.0).reshape(3, 2), (3, 2))
def v(): return t([3.0, 4.0, 5.0, 1.0], requires_grad=True)
def of(values): return torch.sparse_coo_tensor(i, values, (2, 3))
def grad(function, *leaves):
    leaves = [leaf.requires_grad_() for leaf in leaves]
    function(*leaves).backward()
    return [leaf.grad for leaf in leaves]
"""

CREATION = """
s()
s().coalesce()
s().is_coalesced(), s().coalesce().is_coalesced()
s().indices()
s().values()
s()._indices(), s()._values()
s().to_dense()
s().layout, s().is_sparse, s().is_sparse_csr, s().sparse_dim(), s().dense_dim(), s()._nnz(), s().shape, s().dtype
s().device, s().ndim, s().numel(), len(s()), s().size(1), s().nelement(), s().element_size(), s().is_cuda, s().is_meta
d.layout, d.is_sparse, d.is_sparse_csr, d.sparse_dim(), d.dense_dim()
d._nnz()
d._indices()
d.indices()
d.values()
d.coalesce()
d.is_coalesced()
d.crow_indices()
d.ccol_indices()
d.to_dense()
torch.sparse_coo_tensor(i, t([1.0, 2, 3, 4]))
torch.sparse_coo_tensor(i, [1, 2, 3, 4])
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.5, 2.5])
torch.sparse_coo_tensor((2, 3))
torch.sparse_coo_tensor((2, 3), dtype=torch.float64)
torch.sparse_coo_tensor(size=(2, 3))
torch.sparse_coo_tensor(i, t([1.0, 2, 3, 4]), (2, 2), check_invariants=True)
torch.sparse_coo_tensor(-i, t([1.0, 2, 3, 4]), (2, 3), check_invariants=True)
torch.sparse_coo_tensor(i, t([1.0, 2, 3, 4]), (2, 3), is_coalesced=True, check_invariants=True)
torch.sparse_coo_tensor(i, t([1.0, 2, 3, 4]), (2, 3, 4))
torch.sparse_coo_tensor(i, t([1.0, 2, 3]), (2, 3))
torch.sparse_coo_tensor(i, t(1.0), (2, 3))
torch.sparse_coo_tensor(i.float(), t([1.0, 2, 3, 4]), (2, 3))
torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0))
torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0), (2, 3))
torch.sparse_coo_tensor(torch.zeros(0, 1, dtype=torch.long), t([3.0]), ())
torch.sparse_coo_tensor(i, t([1.0, 2, 3, 4]), (2, 3), requires_grad=True)
torch.sparse_coo_tensor(i, t([1.0, 2, 3, 4]), (2, 3), dtype=torch.int64)
torch.sparse_coo_tensor([[0, 1]], [True, False])
torch.sparse_coo_tensor([[0, 1]], [1 + 2j, 3])
h(), h().coalesce(), h().to_dense(), h().sparse_dim(), h().dense_dim()
torch.zeros_like(s()), torch.empty_like(s())
torch.zeros(2, 3, layout=torch.sparse_coo)
torch.empty(2, 3, layout=torch.sparse_coo)
torch.zeros(2, 3, layout=torch.sparse_csr)
s().new_zeros(2, 2), s().new_empty(2, 2)
torch.eye(3).to_sparse(), torch.eye(3).to_sparse(1)
torch.eye(3).to_sparse(3)
torch.ones(2, 3, 4).to_sparse(2)
t(3.0).to_sparse()
torch.eye(3).to_sparse(layout=torch.strided)
torch.eye(3).to_sparse_coo()
s().to_sparse(1)
h().to_sparse(2)
d.sparse_mask(s().coalesce())
d.sparse_mask(s())
s().sparse_mask(torch.sparse_coo_tensor([[0], [2]], [9.0], (2, 3)).coalesce())
d.sparse_mask(d)
torch.ones(2, 4).sparse_mask(s())
s().sparse_resize_((3, 4), 2, 0)
s().sparse_resize_and_clear_((3, 4), 2, 0)
s().sparse_resize_((1, 4), 2, 0)
torch.tensor(s()), torch.as_tensor(s())
s().cpu(), s().double(), s().to(torch.int32), s().to(d), s().type(), s().long().type()
s().bool(), s().clone(), s().detach()
d.to(s().double()), d.type_as(s().double()), d.expand_as(s()), d.t().reshape_as(s()), d.is_same_size(s())
torch.is_tensor(s()), torch.is_floating_point(s()), torch.is_complex(s()), torch.numel(s())
s().detach_(), s().requires_grad_().detach().requires_grad
s().zero_()
s().copy_(s())
d.copy_(s())
torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc
"""

ARITHMETIC = """
s() + s()
s().coalesce() + s().coalesce()
(s() + torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2], (2, 3))).to_dense()
s().coalesce() + torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2], (2, 3)).coalesce()
s() - s()
s() * s()
s() * s().coalesce()
s().coalesce() * torch.sparse_coo_tensor([[0, 1], [2, 1]], [1.0, 2], (2, 3)).coalesce()
s() * 2
2 * s()
s() / 2
s().long() / 2
s().long() * 1.5
s() + 1
1 + s()
s() + d
d + s()
s() - d
d - s()
s() * d
d * s()
s() * torch.full((3,), 2.0)
s() * torch.ones(2, 2)
s() * torch.ones(5, 2, 3)
s() / d
s() / t(2.0)
s() * t(2.0)
s() / s()
-s()
abs(s())
s() ** 2
s().pow(-1)
s().pow(0)
2 ** s()
s() // 2
s() % 2
s() == s()
s() > 0
torch.add(s(), s(), alpha=2)
torch.add(d, s(), alpha=2)
torch.add(s(), 1)
torch.add(torch.ones(2, 2), s())
torch.ones(3) + s()
s() + torch.sparse_coo_tensor((2, 4))
s() * torch.sparse_coo_tensor((2, 4))
s() + s().double()
s() + s().long()
(h() + h()).to_dense()
h() + s()
h() * torch.ones(2)
s().add_(s()), s().mul_(2), s().div_(2), s().neg_(), s().sub_(s())
d.clone().add_(s()), d.clone().add_(s(), alpha=3), d.clone().sub_(s()), d.clone().mul_(s())
s().coalesce().sqrt_(), s().coalesce().abs_()
s().sqrt_()
s().sin(), s().tanh(), s().sqrt(), s().relu(), s().floor(), s().sign(), s().log1p(), s().expm1(), s().erf()
s().isnan(), s().isinf(), s().signbit(), s().square(), s().trunc(), s().round(), s().deg2rad(), s().asin()
torch.sin(s()), torch.neg(s()), torch.square(s()), torch.nn.functional.relu(s())
s().cos()
s().exp()
torch.exp(s())
s().sigmoid()
s().max()
s().mean()
s().norm(), s().norm(1), torch.norm(s())
s().norm(2, 0)
s().any()
torch.softmax(s(), 1)
torch.equal(s(), s())
torch.where(s().bool(), d, d)
s().item()
float(s())
bool(s())
s().numpy()
s().tolist()
s().view(3, 2)
s().reshape(3, 2)
s().flatten()
s().expand(2, 2, 3)
s().contiguous()
s().is_contiguous(), s().stride()
s().storage()
s().data_ptr()
torch.linalg.norm(s())
"""

PRODUCTS = """
s() @ torch.ones(3, 2)
torch.ones(2, 2) @ s()
s() @ torch.ones(3)
torch.ones(2) @ s()
s() @ s().t()
torch.mm(s(), torch.ones(3, 2)), torch.matmul(s(), torch.ones(3, 2)), torch.mv(s(), torch.ones(3))
torch.sparse.mm(s(), torch.ones(3, 2))
torch.sparse.mm(s(), s().t())
torch.sparse.mm(torch.ones(2, 3), torch.ones(3, 2))
torch.sparse.mm(torch.ones(2, 2), s())
torch.sparse.mm(s(), torch.ones(2, 2))
torch.sparse.mm(s(), s())
torch.mm(s(), torch.ones(3, 2).double())
s() @ torch.ones(2, 2)
torch.mv(s(), torch.ones(2))
torch.bmm(torch.stack([s(), s()]), torch.ones(2, 3, 2))
torch.bmm(s(), torch.ones(2, 2))
torch.sparse.mm(s(), torch.ones(3, 2), "sum")
torch.sparse.mm(c(), torch.ones(3, 2), "mean")
torch.sparse.mm(c(), torch.ones(3, 2), "amax")
torch.sparse.mm(c(), torch.ones(3, 2), "amin")
torch.sparse.addmm(torch.ones(2, 2), s(), torch.ones(3, 2), beta=2, alpha=3)
torch.addmm(torch.ones(2, 2), s(), torch.ones(3, 2), beta=2, alpha=3)
torch.sparse.addmm(torch.ones(2), s(), torch.ones(3, 2))
torch.sparse.addmm(torch.ones(2, 3), s(), torch.ones(3, 2))
torch.dsmm(s(), torch.ones(3, 2)), torch.hspmm(s(), torch.ones(3, 2))
torch.spmm(s(), torch.ones(3, 2)), torch.hsmm(s(), torch.ones(3, 2))
torch.smm(s(), torch.ones(3, 2))
torch.sspaddmm(torch.eye(2).to_sparse(), s(), torch.ones(3, 2))
torch.sparse.sampled_addmm(torch.eye(3).to_sparse_csr(), d.t(), torch.ones(2, 3), alpha=2, beta=3)
torch.sparse.sampled_addmm(torch.eye(3).to_sparse(), d.t(), torch.ones(2, 3))
torch.nn.functional.linear(torch.ones(2, 3), s())
torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), t([0, -1, 2]), (3, 4))
torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), t([0, -1, 2]), (3, 4), torch.sparse_csr)
torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), t([0, 0, 2]), (3, 4))
torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), t([0, 2]), (3, 4))
torch.sparse.spdiags(torch.arange(3.0), t(0), (3, 4))
"""

SHAPES = """
s().t(), s().T, s().mT, s().transpose(0, 1), s().permute(1, 0), s().transpose(0, 0)
h().transpose(0, 1)
h().permute(1, 0)
h().t()
s().transpose(0, 2)
s()[0], s()[1, 2], s()[:, 1], s()[None], s()[-1]
s()[5]
s()[0, 0, 0]
s()[t([0, 0])]
s().select(0, 1), s().select(1, 2), h().select(1, 0), h()[0], h()[0, 1], h()[:, 0]
s().select(0, 5)
s().index_select(1, t([2, 0])), s().index_select(0, t([1, 1])), h().index_select(1, t([1]))
s().index_select(0, t([5]))
s().index_select(2, t([1]))
s().narrow_copy(0, 0, 1), s().narrow_copy(1, 0, 2).to_dense()
s().narrow_copy(0, 0, 3)
s().unbind(), list(s())
s().unsqueeze(0), s().unsqueeze(2), h().unsqueeze(2), h().unsqueeze(0)
torch.cat([s(), s()]), torch.cat([s(), s()], 1), torch.cat([h(), h()], 1), torch.cat([h(), h()])
torch.cat([s(), d])
torch.cat([d, s()])
torch.cat([s(), torch.sparse_coo_tensor((2, 4))])
torch.stack([s(), s()]), torch.stack([s(), s()], 1), torch.stack([s(), s()], 2), torch.hstack([s(), s()])
s().sum(), s().sum(0), s().sum(1), s().sum((0, 1)), s().sum(0, keepdim=True), torch.sum(s(), dtype=torch.float64)
torch.sparse.sum(s()), torch.sparse.sum(s(), 0), torch.sparse.sum(s(), (0, 1)), torch.sparse.sum(h(), 1)
torch.sparse.sum(h(), 0), torch.sparse.sum(h(), (0, 1)), torch.sparse.sum(s(), dim=0, dtype=torch.float64)
torch.sparse.sum(s(), 5)
torch.sparse.sum(s(), (0, 0))
torch.sparse.sum(d, 0)
torch.sparse.softmax(s(), 0), torch.sparse.softmax(s(), 1), torch.sparse.softmax(h(), 1), torch.sparse.softmax(h(), 0)
torch.sparse.log_softmax(s(), 0), torch.sparse.log_softmax(s(), 1), torch.sparse.log_softmax(h(), 0)
torch.sparse.softmax(s(), 2)
torch.sparse.softmax(s().long(), 1)
torch.sparse.softmax(s(), 1, dtype=torch.float64)
torch.sparse.softmax(d, 0)
"""

COMPRESSED = """
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [1.0, 2, 3], (2, 3))
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [1.0, 2, 3])
torch.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], [1.0, 2, 3], (2, 3))
torch.sparse_bsr_tensor([0, 1, 2], [0, 1], torch.ones(2, 2, 2), (4, 4))
torch.sparse_bsc_tensor([0, 1, 2], [0, 1], torch.ones(2, 2, 2), (4, 4))
torch.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [1.0, 2, 3], (2, 3), layout=torch.sparse_csr)
torch.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [1.0, 2, 3], (2, 3))
torch.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [1.0, 2, 3], (2, 3), layout=torch.sparse_coo)
torch.sparse_csr_tensor([0, 1, 2], [2, 0, 2], [1.0, 2, 3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([1, 1, 3], [2, 0, 2], [1.0, 2, 3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 3], [1.0, 2, 3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3], [2, 2, 0], [1.0, 2, 3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3], [2, 0], [1.0, 2, 3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 4, 3], [2, 0, 1], [1.0, 2, 3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [1.0, 2], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3, 3], [2, 0, 2], [1.0, 2, 3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [1.0, 2, 3], (3,), check_invariants=True)
torch.sparse_csr_tensor(t([0, 1, 3]).int(), t([2, 0, 2]), [1.0, 2, 3], (2, 3), check_invariants=True)
torch.sparse_csr_tensor(t([0, 1, 3]).int(), t([2, 0, 2]).int(), [1.0, 2, 3], (2, 3)).crow_indices()
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [1.0, 2, 3], (2, 3), dtype=torch.float64, requires_grad=True)
torch.sparse_csr_tensor([[0, 1, 3], [0, 1, 3]], [[2, 0, 2], [0, 1, 2]], [[1.0, 2, 3], [1.0, 2, 3]], (2, 2, 3))
c(), c().to_sparse_csc(), c().to_sparse_coo(), c().to_sparse_bsr((1, 3)), c().to_dense(), s().to_sparse_csc()
torch.eye(4).to_sparse_bsr((2, 2)), torch.eye(4).to_sparse_bsc((2, 2)), torch.eye(3).to_sparse(layout=torch.sparse_csr)
torch.eye(3).to_sparse_bsr((2, 2))
torch.eye(3).to_sparse(layout=torch.sparse_bsr)
d.to_sparse_bsr((1, 3)), d.to_sparse_bsc((2, 1)), d.to_sparse_csc()
torch.stack([torch.eye(3), torch.eye(3)]).to_sparse_csr()
c().values(), c().crow_indices(), c().col_indices(), c()._nnz(), c().sparse_dim(), c().dense_dim(), c().is_sparse_csr
c().indices()
c().coalesce()
c().ccol_indices()
c().to_sparse_csc().ccol_indices(), c().to_sparse_csc().row_indices(), c().to_sparse_csc().is_sparse
c().t(), c().transpose(0, 1), c()[0], c()[0, 0], c().select(1, 0), c().to_sparse_csc().t()
c() @ torch.ones(3, 2), c() @ torch.ones(3), torch.ones(2, 2) @ c()
(c() @ c().t()).to_dense()
torch.eye(4).to_sparse_bsr((2, 2)) @ torch.ones(4, 2), c().to_sparse_csc() @ torch.ones(3, 2)
c() + c(), c() * 2, c() * c(), -c(), c() * torch.full((2, 3), 2.0), d + c(), c() + d, c().abs(), c().sin()
c().sum(), c().sum(1, keepdim=True), c().sum(0, keepdim=True)
c().sum(0)
torch.sparse.sum(c())
c().numpy()
c().stride()
c().clone(), c().double(), c().detach(), c().cpu()
c().zero_().to_dense(), c().mul_(2), c().neg_(), c().sin_()
d.sparse_mask(c())
"""

GRADIENTS = """
grad(lambda v: of(v).to_dense().square().sum(), v())
grad(lambda v: of(v).coalesce().values().square().sum(), v())
grad(lambda v: (of(v) * 2).to_dense().square().sum(), v())
grad(lambda v: (of(v) + of(v)).to_dense().square().sum(), v())
grad(lambda v: (of(v) - 3 * of(v)).to_dense().square().sum(), v())
grad(lambda v: (of(v) * d).to_dense().square().sum(), v())
grad(lambda v: (of(v) * of(v)).to_dense().square().sum(), v())
grad(lambda v: of(v).sum(), v())
grad(lambda v: torch.sparse.sum(of(v)), v())
grad(lambda v: torch.sparse.sum(of(v), 0).to_dense().square().sum(), v())
grad(lambda v: torch.sparse.mm(of(v), d.t()).square().sum(), v())
grad(lambda v: (of(v) @ d.t()).square().sum(), v())
grad(lambda v: torch.sparse.softmax(of(v), 1).to_dense().square().sum(), v())
grad(lambda v: torch.sparse.log_softmax(of(v), 1).to_dense().square().sum(), v())
grad(lambda v: of(v).t().to_dense().square().sum(), v())
grad(lambda v: of(v).abs().to_dense().square().sum(), v())
grad(lambda v: of(v).pow(2).to_dense().square().sum(), v())
grad(lambda v: d.add(of(v)).square().sum(), v())
grad(lambda v: torch.sparse.mm(of(v), of(v).t()).to_dense().sum(), v())
grad(lambda x: x.to_dense().square().sum(), s())
grad(lambda x: torch.sparse.mm(x, d.t()).square().sum(), s())
grad(lambda x: torch.sparse.mm(x, d.t()).square().sum(), s().coalesce())
grad(lambda x: (x @ d.t()).square().sum(), s())
grad(lambda x: (x @ torch.arange(3.0)).square().sum(), s())
grad(lambda x: torch.sparse.sum(x), s())
grad(lambda x: x.sum(), s())
grad(lambda x: torch.sparse.sum(x, 1).to_dense().square().sum(), s())
grad(lambda x: x.coalesce().values().sum(), s())
grad(lambda x: (x * d).to_dense().sum(), s())
grad(lambda x: torch.sparse.softmax(x, 1).to_dense().square().sum(), s())
grad(lambda x: x.abs().to_dense().sum(), s())
grad(lambda x: x.to_dense(masked_grad=False).square().sum(), s())
grad(lambda b: torch.sparse.mm(s(), b).square().sum(), torch.arange(6.0).reshape(3, 2))
grad(lambda b: (s() @ b).square().sum(), torch.arange(6.0).reshape(3, 2))
grad(lambda b: (b @ s().t()).square().sum(), torch.arange(6.0).reshape(2, 3))
grad(lambda b: (b + s()).square().sum(), torch.arange(6.0).reshape(2, 3))
grad(lambda b: b.to_sparse().to_dense().square().sum(), torch.arange(6.0).reshape(2, 3))
grad(lambda b: b.to_sparse().sum(), torch.arange(6.0).reshape(2, 3))
grad(lambda b: b.sparse_mask(s().coalesce()).to_dense().square().sum(), torch.arange(6.0).reshape(2, 3))
grad(lambda b: b.to_sparse_csr().to_dense().square().sum(), torch.arange(6.0).reshape(2, 3))
grad(lambda b: torch.sparse.addmm(b, s(), torch.ones(3, 3), beta=2, alpha=3).square().sum(), torch.ones(2, 3))
grad(lambda x: torch.sparse.mm(x, d.t()).square().sum(), c())
grad(lambda x: x.to_dense().square().sum(), c())
grad(lambda x: (x @ torch.ones(3, 2)).sum(), c())
grad(lambda x: x.values().sum(), c())
grad(lambda x: x.sum(), c())
grad(lambda x: torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], x, (2, 3)).to_dense().square().sum(), t([1.0, 2, 3]))
grad(lambda b: (c() @ b).square().sum(), torch.arange(6.0).reshape(3, 2))
grad(lambda w: torch.nn.functional.embedding(t([[1, 2, 1]]), w, sparse=True).sum(), torch.ones(5, 2))
grad(lambda w: torch.nn.functional.embedding(t([[1, 2, 1]]), w, 1, sparse=True).sum(), torch.ones(5, 2))
grad(lambda w: torch.nn.functional.embedding(t([1]), w, None, None, 2, True, True).sum(), torch.ones(5, 2))
grad(lambda w: torch.nn.functional.embedding_bag(t([[1, 2], [0, 1]]), w, sparse=True).sum(), torch.ones(5, 2))
grad(lambda w: torch.nn.functional.embedding_bag(t([[1, 2]]), w, mode="sum", sparse=True, padding_idx=1).sum(), d)
grad(lambda w: torch.nn.functional.embedding_bag(t([[1, 2]]), w, mode="max", sparse=True).sum(), torch.ones(5, 2))
"""
TABLES = {
    "creation": CREATION,
    "arithmetic": ARITHMETIC,
    "products": PRODUCTS,
    "shapes": SHAPES,
    "compressed": COMPRESSED,
    "gradients": GRADIENTS,
}


def described(value, is_a_result=True):
    """The visible properties of a value; of a sparse tensor, those of its parts."""
    if isinstance(value, (list, tuple)) and not isinstance(value, (torch.Size, cygrad.Size)):
        return [described(each, is_a_result) for each in value]
    if not isinstance(value, (cygrad.Tensor, torch.Tensor)):
        return re.sub("cygrad", "torch", repr(value))
    about = [str(value.dtype), str(value.layout), tuple(value.shape), value.requires_grad]
    value = value.detach()
    if str(value.layout) == "torch.sparse_coo":
        coalesced = value.is_coalesced() if is_a_result else None  # of gradients, it depends on who holds them
        return [*about, coalesced, *map(numbers, (value._indices(), value._values()))]
    if str(value.layout) in ("torch.sparse_csr", "torch.sparse_bsr"):
        return [*about, *map(numbers, (value.crow_indices(), value.col_indices(), value.values()))]
    if str(value.layout) != "torch.strided":
        return [*about, *map(numbers, (value.ccol_indices(), value.row_indices(), value.values()))]
    return [*about, numbers(value)]


def numbers(tensor):
    array = np.asarray(tensor.numpy())
    array = np.where(np.isnan(array), 777, array) if array.dtype.kind in "fc" else array
    return np.round(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64), 4).tolist()


def outcome(library, expression):
    names = {"torch": library}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(SETUP, names)
        try:
            return described(eval(expression, names), not expression.startswith("grad("))
        except Exception as error:
            return class_of(error), first_line(error).partition(". This could be because")[0].partition(" (=")[0][:120]


def lines(table):
    return [line for line in table.splitlines() if line]


# Where PyTorch refuses sparse tensors of which `vmap` makes samples, or tangents that reach one, cygrad need not.
TRANSFORMS = """
torch.vmap(lambda a: torch.sparse.mm(s(), a))(torch.ones(2, 3, 4))
torch.vmap(lambda a: torch.mv(s(), a))(torch.ones(2, 3))
torch.vmap(lambda a: a * 2)(s()).to_dense()
torch.vmap(lambda a: a.sin())(s().coalesce()).to_dense()
torch.vmap(lambda a: torch.sparse.sum(a))(torch.ones(2, 3, 4).to_sparse())
torch.func.vjp(lambda a: torch.sparse.mm(a, torch.ones(3, 2)), s())[1](torch.ones(2, 2))
torch.func.grad(lambda a: torch.sparse.mm(s(), a).pow(2).sum())(torch.ones(3, 2))
torch.func.grad(lambda a: torch.sparse.sum(a * a))(s()).to_dense()
"""


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("expression", lines(TRANSFORMS))
def test_transforms(expression):
    assert outcome(cygrad, expression) == outcome(torch, expression)


@pytest.mark.parametrize("expression", [line for table in TABLES.values() for line in lines(table)])
def test_as_pytorch(expression):
    assert outcome(cygrad, expression) == outcome(torch, expression)


@pytest.mark.parametrize(
    "expression",
    """s()
s().coalesce().double()
h()
torch.sparse_coo_tensor((2, 3))
s().requires_grad_()
torch.sparse_coo_tensor([[0, 1]], [True, False])
torch.sparse_coo_tensor([[0, 1]], [1e-5, 3.0])
torch.sparse_coo_tensor([[0, 1]], [1 + 2j, 3])
torch.ones(20, 20).to_sparse()
torch.ones(40, 40).to_sparse()
c()
c().requires_grad_()
c().double()
torch.eye(4).to_sparse_bsr((2, 2))
torch.eye(4).to_sparse_bsc((2, 2))
torch.sparse_csr_tensor([[0, 1, 3], [0, 1, 3]], [[2, 0, 2], [0, 1, 2]], [[1.0, 2, 3], [1.0, 2, 3]], (2, 2, 3))
torch.nn.Parameter(s())
of(v())
s().long()""".splitlines(),
)
def test_text(expression):
    texts = []
    for library in (cygrad, torch):
        names = {"torch": library}
        exec(SETUP, names)
        texts.append(repr(eval(expression, names)))
    assert texts[0] == texts[1]


OPTIMIZERS = (
    """SGD Adam AdamW Adagrad RMSprop Adadelta Adamax NAdam RAdam Rprop ASGD LBFGS Adafactor SparseAdam Muon""".split()
)
OPTIONS = [{}, {"momentum": 0.9}, {"weight_decay": 0.1}, {"nesterov": True, "momentum": 0.9}, {"maximize": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, options):
    found = []
    for library in (cygrad, torch):
        w = library.nn.Parameter(library.ones(4, 2))
        values = library.tensor([[1.0, 2], [3, 4], [5, 6]])
        try:
            optimizer = getattr(library.optim, name)([w], lr=0.1, **options)
            for _ in range(3):
                w.grad = library.sparse_coo_tensor(library.tensor([[1, 2, 1]]), values, (4, 2))
                optimizer.step((lambda w=w: (w * w).sum()) if name == "LBFGS" else None)
            found.append(np.round(w.tolist(), 3).tolist())
        except Exception as error:
            found.append((class_of(error), first_line(error)[:60]))
    assert found[0] == found[1]


def test_embedding_is_trained_by_sparse_adam():
    weights = []
    for library in (cygrad, torch):
        layer = library.nn.Embedding(6, 3, sparse=True, padding_idx=2)
        bag = library.nn.EmbeddingBag(6, 3, sparse=True, mode="sum")
        with library.no_grad():
            for each in (layer, bag):
                each.weight.copy_(library.arange(18.0).reshape(6, 3).cos())
        optimizer = library.optim.SparseAdam([*layer.parameters(), *bag.parameters()], lr=0.05)
        for step in range(4):
            optimizer.zero_grad()
            index = library.tensor([[0, 2, 3], [step, 5, 5]])
            (layer(index).square().sum() + bag(index).square().sum()).backward()
            optimizer.step()
        weights.append([layer.weight.detach().numpy(), bag.weight.detach().numpy()])
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-5)


def test_gradients_add_up():
    """Sparse to sparse, sparse to dense, dense to sparse."""
    seen = []
    for library in (cygrad, torch):
        weight = library.nn.Parameter(library.arange(10.0).reshape(5, 2))
        said = []
        for which in "ssdsd":
            rows = library.nn.functional.embedding(library.tensor([1, 3, 1]), weight, sparse=True)
            (rows if which == "s" else weight).square().sum().backward()
            said.append((str(weight.grad.layout), weight.grad.to_dense().tolist()))
        seen.append(said)
    assert seen[0] == seen[1]
