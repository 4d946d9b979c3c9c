"""Sparse tensors in files, and damaged ones."""

import pytest

import cygrad as torch
from cygrad.serialization import _rebuilding as rebuilding


@pytest.mark.parametrize("new", [True, False], ids=["zip", "before 1.6"])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_round_trip(layout, new, tmp_path):
    blocks = {"blocksize": (2, 1)} if "bs" in layout else {}
    x = torch.eye(4).to_sparse(layout=getattr(torch, layout), **blocks)
    file = tmp_path / "x.pt"
    torch.save({"x": x, "p": torch.nn.Parameter(x)}, file, _use_new_zipfile_serialization=new)
    found = torch.load(tmp_path / "x.pt")
    assert repr(found["x"]) == repr(x)
    assert isinstance(found["p"], torch.nn.Parameter) and found["p"].requires_grad
    assert found["p"].layout is x.layout


class Damaged:
    """Is written as a sparse tensor with an index out of bounds."""

    def __init__(self, x):
        self.layout, self.parts = x.layout, x.__reduce_ex__(2)[1][1]

    def __reduce_ex__(self, protocol):
        indices, *rest = self.parts
        return rebuilding._rebuild_sparse_tensor, (self.layout, (torch.full_like(indices, 9), *rest))


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("new", [True, False], ids=["zip", "before 1.6"])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_damaged_files(layout, new, trusted, tmp_path):
    x = torch.eye(2).to_sparse(layout=getattr(torch, layout))
    torch.save(Damaged(x), tmp_path / "x.pt", _use_new_zipfile_serialization=new)
    with pytest.raises(RuntimeError, match="do not fit together"):
        torch.load(tmp_path / "x.pt", weights_only=not trusted)


def test_uncoalesced_tensors_stay_so(tmp_path):
    x = torch.sparse_coo_tensor([[1, 1]], [1.0, 2.0])
    torch.save(x, tmp_path / "x.pt")
    found = torch.load(tmp_path / "x.pt")
    assert not found.is_coalesced() and found._nnz() == 2 and found.to_dense().tolist() == [0.0, 3.0]


@pytest.mark.parametrize(
    "data",
    [
        (torch.tensor([[9]]), torch.ones(1), (2,), False),
        (torch.tensor([[-1]]), torch.ones(1), (2,), False),
        (torch.tensor([[1, 0]]), torch.ones(2), (2,), True),
        (torch.tensor([[0]]), torch.ones(2), (2,), False),
    ],
)
def test_damaged_coordinates(data):
    with pytest.raises(RuntimeError, match="do not fit together"):
        rebuilding._rebuild_sparse_tensor(torch.sparse_coo, data)


def test_damaged_lines():
    with pytest.raises(RuntimeError, match="do not fit together"):
        rebuilding._rebuild_sparse_tensor(
            torch.sparse_csr, (torch.tensor([0, 5]), torch.tensor([0]), torch.ones(1), (1, 1))
        )
    with pytest.raises(TypeError, match="no sparse layout"):
        rebuilding._rebuild_sparse_tensor(torch.strided, (torch.ones(1), torch.ones(1), torch.ones(1), (1,)))
    with pytest.raises(ValueError, match="there is no layout"):
        rebuilding._get_layout("torch.sparse_xyz")
