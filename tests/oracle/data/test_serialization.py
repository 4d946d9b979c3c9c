"""Files are exchanged between PyTorch, the safetensors package, and cygrad, in both directions."""

import io
import re
from collections import Counter, OrderedDict, deque
from pickle import UnpicklingError

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors")
from safetensors import torch as format_of_torch  # noqa: E402

pytestmark = pytest.mark.oracle

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
).split()


def same(ours, theirs):
    """Whether two objects are the same, including tensors of the two libraries."""
    if isinstance(theirs, torch.Tensor):
        assert str(ours.dtype) == str(theirs.dtype) and ours.shape == tuple(theirs.shape)
        assert ours.requires_grad == theirs.requires_grad
        assert isinstance(ours, cygrad.nn.Parameter) == isinstance(theirs, torch.nn.Parameter)
        wide = {"torch.bfloat16": "float32"}.get(str(theirs.dtype))
        a, b = ours.detach(), theirs.detach()
        if wide:
            a, b = a.float(), b.float()
        np.testing.assert_array_equal(a.resolve_conj().numpy(), b.resolve_conj().numpy())
    elif isinstance(theirs, dict):
        assert type(ours) is type(theirs) and list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
        assert getattr(ours, "_metadata", None) == getattr(theirs, "_metadata", None)
    elif isinstance(theirs, (list, tuple)):
        assert type(ours).__name__ == type(theirs).__name__ and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b)
    elif isinstance(theirs, (torch.dtype, torch.device)):
        assert repr(ours) == repr(theirs)
    else:
        assert type(ours) is type(theirs) and ours == theirs


def written_by_torch(value, **options):
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    stream.seek(0)
    return stream


def tensors():
    torch.manual_seed(0)
    found = {name: (torch.rand(3, 4) * 2).to(getattr(torch, name)) for name in DTYPES}
    found |= {"0-dim": torch.tensor(2.5), "empty": torch.zeros(0, 3), "view": torch.arange(9.0)[1::2]}
    found |= {"transposed": torch.rand(3, 4).T, "expanded": torch.ones(1).expand(5), "conj": found["complex64"].conj()}
    return found | {"leaf": torch.rand(2, requires_grad=True), "parameter": torch.nn.Parameter(torch.rand(2))}


@pytest.mark.parametrize("name", tensors())
@pytest.mark.parametrize("mmap", [False, True])
def test_tensors_of_torch(name, mmap, tmp_path):
    value = {name: tensors()[name]}
    torch.save(value, tmp_path / "x.pt")
    loaded = cygrad.load(tmp_path / "x.pt", mmap=mmap)
    same(loaded, value)
    assert loaded[name].is_conj() == value[name].is_conj()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_objects_of_torch(protocol):
    value = {
        "plain": [1, 2.5, "x", None, True, 10**30, (1, 2, 3, 4), {1, 2}, {"a": {}}, OrderedDict(a=1)],
        "rare": [Counter("aab"), bytearray(b"\0\xff"), b"\0\xff", 1j],
        "torch": [torch.Size([1, 2]), torch.float32, torch.bfloat16, torch.device("cpu")],
        ("key", 1): torch.ones(2),
    }
    same(cygrad.load(written_by_torch(value, pickle_protocol=protocol)), value)


def test_shared_memory_stays_shared():
    x = torch.arange(6.0)
    found = cygrad.load(written_by_torch([x, x.view(2, 3).T, x[2:4]]))
    found[0].mul_(2)
    assert found[1].tolist() == (x * 2).view(2, 3).T.tolist()
    assert found[2].tolist() == [4, 6]


def make(library):
    nn = library.nn
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    return model, library.optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)


def train(library, model, optimizer, steps):
    for step in range(steps):
        x = library.tensor(np.random.default_rng(step).standard_normal((16, 3)).tolist())
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def checkpoint(model, optimizer):
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}


@pytest.mark.parametrize("first", ["torch", "cygrad"])
def test_a_run_goes_on_in_the_other_library(first, tmp_path):
    """cygrad continues PyTorch's training, and vice versa through safetensors."""
    theirs = make(torch)
    train(torch, *theirs, 3)
    torch.save(checkpoint(*theirs), tmp_path / "x.pt")
    ours = make(cygrad)
    loaded = cygrad.load(tmp_path / "x.pt")
    same(loaded, checkpoint(*theirs))
    ours[0].load_state_dict(loaded["model"])
    ours[1].load_state_dict(loaded["optimizer"])
    train(cygrad, *ours, 3)
    if first == "cygrad":
        cygrad.save(ours[0].state_dict(), tmp_path / "x.safetensors")
        theirs[0].load_state_dict(format_of_torch.load_file(tmp_path / "x.safetensors"))
    else:
        train(torch, *theirs, 3)
    for a, b in zip(ours[0].state_dict().values(), theirs[0].state_dict().values()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


def test_safetensors_of_the_package():
    value = {name: tensor.detach().contiguous() for name, tensor in tensors().items() if name != "complex128"}
    del value["conj"], value["parameter"]
    content = format_of_torch.save(value, {"by": "a test"})
    found = cygrad.load(io.BytesIO(content))
    assert set(found) == set(value)
    for name in value:
        same(found[name], value[name])


def test_the_package_reads_what_cygrad_writes(tmp_path):
    theirs = {name: tensor.detach() for name, tensor in tensors().items() if name not in ("complex128", "parameter")}
    ours = cygrad.load(written_by_torch(theirs))
    cygrad.save(ours, tmp_path / "x.safetensors")
    found = format_of_torch.load_file(tmp_path / "x.safetensors")
    for name in theirs:
        same(ours[name], found[name])
    with safetensors.safe_open(tmp_path / "x.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
    nested = {"model": {"w": ours["float32"]}, "steps": [ours["int64"], 3]}
    cygrad.save(nested, tmp_path / "x.safetensors")
    found = format_of_torch.load_file(tmp_path / "x.safetensors")
    assert set(found) == {"model.w", "steps.0"}
    same(ours["float32"], found["model.w"])


def test_modules_are_refused_and_the_error_says_how_to_load_them():
    for value in (torch.nn.Linear(2, 1), {"a": deque()}):
        with pytest.raises(UnpicklingError) as ours:
            cygrad.load(written_by_torch(value))
        with pytest.raises(UnpicklingError) as theirs:
            torch.load(written_by_torch(value))
        assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]
        wanted = re.search("Unsupported global: .*", str(theirs.value))[0]
        assert wanted in str(ours.value)
        del ours, theirs
