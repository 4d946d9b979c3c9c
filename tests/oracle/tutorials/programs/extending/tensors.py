"""Broadcasting, views and copies, memory formats, complex, sparse and masked tensors, indexing."""

import torch, copy, pickle
from shared import told

a = torch.arange(6.0).view(2, 3)
told(lambda: a + torch.ones(2))
told(lambda: a.add_(torch.ones(2, 2, 3)))
told(lambda: torch.broadcast_shapes((2, 1), (3,), (4, 1, 1)))
told(lambda: torch.broadcast_shapes((2,), (3,)))
told(lambda: torch.broadcast_tensors(a, torch.ones(3))[1].stride())
told(lambda: a.expand(4, 3))
told(lambda: a.expand(2, 2, 3).stride())
told(lambda: a.view(4))
told(lambda: a.t().view(6))
told(lambda: a.t().reshape(6))
told(lambda: a.view(-1, -1))
told(lambda: a.view(7, -1))
told(lambda: a.transpose(0, 2))
told(lambda: a.permute(0, 0))
told(lambda: a.permute(0))
told(lambda: a[3])
told(lambda: a[0, 0, 0])
told(lambda: a[:, 5])
told(lambda: a[torch.tensor([0, 5])])
told(lambda: a[torch.tensor([True, False, True])])
told(lambda: a[torch.tensor([0, 1]), torch.tensor([0, 1, 2])])
told(lambda: a["x"])
told(lambda: a[1.5])
told(lambda: a[::-1])
told(lambda: a[None, ..., None].shape)
told(lambda: a[[True, False]])
told(lambda: (a[[0, 1], [1, 2]], a[[[0]]].shape, a[..., [0, 2]]))
told(lambda: a.__setitem__((0,), torch.ones(2)))
told(lambda: a.__setitem__(a > 2, torch.ones(2)))
told(lambda: a.index_select(0, torch.tensor([0.0])))
told(lambda: a.gather(1, torch.tensor([[5]])))
told(lambda: a.scatter(1, torch.tensor([[0, 0], [1, 1]]), 9.0))
told(lambda: a.scatter_reduce(1, torch.tensor([[0, 0, 1], [1, 1, 1]]), a, "amax", include_self=False))
told(lambda: a.scatter_reduce(1, torch.tensor([[0]]), a, "nosuch"))
told(lambda: torch.cat([a, torch.ones(2)]))
told(lambda: torch.cat([]))
told(lambda: torch.cat([a, torch.ones(3, 2)]))
told(lambda: torch.stack([a, torch.ones(3)]))
told(lambda: torch.split(a, 0))
told(lambda: torch.split(a, [1, 2]))
told(lambda: torch.chunk(a, 0))
told(lambda: a.unflatten(1, (2, 2)))
told(lambda: a.squeeze(5))
told(lambda: a.narrow(1, 2, 2))
told(lambda: a.as_strided((2, 2), (1, 1)))
told(lambda: a.as_strided((4, 4), (3, 1)))
told(lambda: a.unfold(1, 2, 1).shape)
told(lambda: a.unfold(1, 4, 1))
told(lambda: a @ a)
told(lambda: torch.mm(a, torch.ones(3)))
told(lambda: torch.bmm(a, a))
told(lambda: torch.dot(a[0], a[:, 0]))
told(lambda: torch.einsum("ij,jk->ik", a, a))
told(lambda: torch.einsum("ij,ij", a))
told(lambda: torch.linalg.inv(a))
told(lambda: torch.linalg.inv(torch.zeros(2, 2)))
told(lambda: torch.linalg.cholesky(-torch.eye(2)))
told(lambda: torch.linalg.solve(torch.ones(2, 2), torch.ones(2)))
told(lambda: a.sum(5))
told(lambda: a.sum((0, 0)))
told(lambda: torch.zeros(0).max())
told(lambda: torch.zeros(0, 3).max(0))
told(lambda: torch.zeros(0).mean())
told(lambda: a.max(1))
told(
    lambda: a.median(),
)
told(lambda: a.topk(4))
told(lambda: a.kthvalue(0))
told(lambda: a.quantile(1.5))
told(lambda: a.quantile(torch.tensor([0.1, 0.9]), dim=1))
told(lambda: torch.arange(0, 5, -1))
told(lambda: torch.linspace(0, 1, -1))
told(lambda: torch.zeros(-1))
told(lambda: torch.zeros(2, "a"))
told(lambda: torch.tensor([[1, 2], [3]]))
told(lambda: torch.tensor(["a"]))
told(lambda: torch.tensor([1, None]))
told(lambda: bool(a))
told(lambda: a.item())
told(lambda: int(torch.tensor([2.7])))
told(lambda: range(torch.tensor(2.5)))
told(lambda: len(torch.tensor(1)))
told(lambda: list(torch.tensor(1)))
told(lambda: torch.tensor(1)[0])
told(lambda: a.nosuch)
told(lambda: torch.nosuch)
told(lambda: a.to("nosuch"))
told(lambda: a.type("torch.IntTensor"))
told(lambda: hash(a) == hash(a))
told(lambda: a == "x")
told(lambda: a < "x")
told(lambda: a + "x")
told(lambda: a + None)
told(lambda: a**None)
told(lambda: 2**a)
told(lambda: torch.where(a > 1, a, 0))
told(lambda: torch.where(a, a, 0))
told(lambda: a.masked_fill(a, 0))
told(lambda: a.clamp())
told(lambda: a.clamp(3, 1))
told(lambda: torch.allclose(a, a.double()))
told(lambda: torch.equal(a, torch.ones(2)))
im = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
print(
    im.stride(),
    im.is_contiguous(),
    im.is_contiguous(memory_format=torch.channels_last),
    (im + 1).stride(),
    im.clone().stride(),
    im.contiguous().stride(),
    torch.empty_like(im).stride(),
    im[:, :1].stride(),
    torch.nn.Conv2d(3, 2, 1)(im).stride(),
)
told(lambda: a.to(memory_format=torch.channels_last))
c = torch.tensor([1 + 2j, -3j])
print(
    c,
    c.real,
    c.imag,
    c.conj(),
    c.conj().is_conj(),
    c.abs(),
    c.angle(),
    torch.view_as_real(c),
    c * c.conj(),
    torch.polar(torch.ones(1), torch.ones(1)),
    c.resolve_conj(),
    torch.fft.fft(c),
)
told(lambda: c < c)
told(lambda: c.max())
told(lambda: c.float())
told(lambda: torch.ones(2).imag)
told(lambda: torch.complex(torch.ones(1), torch.ones(1, dtype=torch.float64)))
told(lambda: c.sort())
told(lambda: c // 2)
s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
print(
    s,
    s.coalesce().indices(),
    s.to_dense(),
    s.to_sparse_csr(),
    (s @ a.t()),
    s.sum(),
    torch.sparse.sum(s, 0),
    (s * 2).to_dense(),
    (s + s).coalesce().values(),
    s.t().shape,
    s.is_coalesced(),
    s._nnz(),
    s.sparse_dim(),
)
told(lambda: s.indices())
told(lambda: s[0])
told(lambda: s + 1)
told(lambda: s.numpy())
print(torch.masked.sum(a, 1, mask=a > 2), torch.masked.softmax(a, 1, mask=a > 2), torch.masked.mean(a, mask=a > 9))
print(
    copy.deepcopy(a) is a,
    pickle.loads(pickle.dumps(a[:, 1])),
    a.new_zeros(1).dtype,
    a.new_tensor([1]).dtype,
    torch.Size([2, 3]).numel(),
    a.shape + (1,),
    a.size(-1),
    a.nbytes,
    a.element_size(),
    a.storage_offset(),
)
print(
    repr(torch.zeros(0, 3)),
    torch.tensor([1e-8, 1e8]),
    torch.tensor([float("nan"), float("inf"), -0.0]),
    torch.ones(1001).sum(),
    torch.arange(1001),
    torch.rand(2, 600).shape,
    torch.tensor([True]),
    torch.tensor(3, dtype=torch.uint8),
    torch.tensor([1.5], requires_grad=True),
    torch.zeros(2, 0, 2),
)
