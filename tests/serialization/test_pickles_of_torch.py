"""Names that only occur in pickles written by PyTorch: tables of functions, and how storages and layouts are made."""

import io
import pickle

import pytest

import cygrad as torch
from cygrad.serialization._names import find


@pytest.mark.parametrize("name", ["tanh", "add", "relu", "softmax", "cat"])
def test_functions_of_the_package(name):
    """A pickle of PyTorch's `torch.tanh` asks a class of its compiled part for the attribute `tanh`."""
    program = b"cbuiltins\ngetattr\n(ccygrad._C\n_VariableFunctionsClass\nV%s\ntR." % name.encode()
    assert pickle.loads(program) is getattr(torch, name)
    assert getattr(find("torch._C", "_VariableFunctionsClass"), name) is getattr(torch, name)


@pytest.mark.parametrize(
    "module, name, of",
    [
        ("_special", "special_expit", "special.expit"),
        ("_linalg", "linalg_norm", "linalg.norm"),
        ("_fft", "fft_rfft2", "fft.rfft2"),
        ("_sparse", "_sparse_mm", "sparse.mm"),
    ],
)
def test_functions_of_modules(module, name, of):
    package, _, own = of.partition(".")
    expected = getattr(getattr(torch, package), own)
    assert find(f"torch._C.{module}", name) is expected
    assert pickle.loads(f"ccygrad._C.{module}\n{name}\n.".encode()) is expected
    assert name in dir(getattr(torch._C, module)) and not hasattr(getattr(torch._C, module), "no_such_name")


def test_no_function_of_that_name():
    with pytest.raises(AttributeError, match="there is no function 'float32'"):
        getattr(torch._C._VariableFunctionsClass, "float32")  # noqa: B009


def test_storages_and_layouts():
    """Python's pickles of PyTorch's tensors contain a file of `torch.save`."""
    file = io.BytesIO()
    torch.save(torch.tensor([1, 2, 3], dtype=torch.uint8).untyped_storage(), file)
    assert list(torch.storage._load_from_bytes(file.getvalue())) == [1, 2, 3]
    assert torch.serialization._get_layout("torch.sparse_csr") is torch.sparse_csr
