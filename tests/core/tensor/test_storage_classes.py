"""The classes of storages, and tensors on files."""

import os
import pickle

import numpy as np
import pytest

import cygrad as torch
from helpers import fails

KINDS = {
    "Bool": torch.bool,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Short": torch.int16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Half": torch.float16,
    "Float": torch.float32,
    "Double": torch.float64,
    "ComplexFloat": torch.complex64,
    "ComplexDouble": torch.complex128,
}


@pytest.mark.parametrize("kind", KINDS)
def test_classes_of_one_dtype(kind):
    cls = getattr(torch, f"{kind}Storage")
    assert cls.dtype is KINDS[kind] and cls is getattr(torch.storage, f"{kind}Storage")
    made = cls([1, 0])
    assert type(made) is torch.TypedStorage and made.dtype is KINDS[kind] and made.tolist() == [1, 0]
    assert isinstance(made, cls) and len(cls(3)) == 3 and len(cls()) == 0
    assert not isinstance(made, torch.LongStorage if kind != "Long" else torch.IntStorage)
    wrapped = cls(wrap_storage=made.untyped())
    assert wrapped == made and wrapped.data_ptr() == made.data_ptr()
    assert isinstance(torch.ones(2, dtype=KINDS[kind])._typed_storage(), cls)
    assert pickle.loads(pickle.dumps(cls)) is cls


def test_base_of_untyped_storages():
    storage = torch.ones(2).untyped_storage()
    assert isinstance(storage, torch.StorageBase) and not isinstance(torch.ones(2), torch.StorageBase)
    assert torch.UntypedStorage([1, 2]).tolist() == [1, 2] and torch.UntypedStorage(3).nbytes() == 3
    assert torch.TypedStorage([1, 2], dtype=torch.int32).nbytes() == 8
    with fails(RuntimeError, "Cannot directly construct StorageBase; subclass it and then construct that"):
        torch.StorageBase()
    with fails(RuntimeError, "torch.UntypedStorage(): Expected a sequence type, but got float"):
        torch.UntypedStorage(3.0)
    with fails(RuntimeError, "torch.UntypedStorage(): the size must not be negative, but is -1"):
        torch.UntypedStorage(-1)
    with fails(
        TypeError, "<class 'torch.FloatStorage'>.__new__ received an invalid combination of arguments. Expected one of:"
    ):
        torch.FloatStorage(torch.ones(2))
    with fails(
        RuntimeError,
        "<class 'torch.FloatStorage'>.__new__ received an invalid combination of arguments. Expected one of:",
    ):
        torch.FloatStorage(1, 2)


def test_names_of_layouts_and_formats():
    assert torch.legacy_contiguous_format is torch.contiguous_format
    assert repr(torch.jagged) == "torch.jagged" and torch.jagged != torch.strided
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.zeros(2, layout=torch.jagged)


def test_tensors_on_files(tmp_path):
    path = str(tmp_path / "numbers")
    np.arange(4, dtype=np.float32).tofile(path)
    private = torch.from_file(path, size=3)
    private.add_(1)
    assert private.tolist() == [1, 2, 3] and torch.from_file(path, size=4).tolist() == [0, 1, 2, 3]
    shared = torch.from_file(path, True, 6)
    shared[5] = 7
    assert os.path.getsize(path) == 24 and np.fromfile(path, np.float32).tolist() == [0, 1, 2, 3, 0, 7]
    assert torch.from_file(path, size=2, dtype=torch.int64).dtype is torch.int64
    assert torch.from_file(path, size=0).shape == (0,)
    x = torch.from_file(path, size=2, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [0, 2]


def test_files_that_do_not_fit(tmp_path):
    path = str(tmp_path / "numbers")
    with fails(RuntimeError, f"unable to open file <{path}> in read-only mode: No such file or directory (2)"):
        torch.from_file(path, size=2)
    (tmp_path / "numbers").write_bytes(bytes(10))
    with fails(RuntimeError, f"file <{path}> size <10> is smaller than the required mapping size <12>"):
        torch.from_file(path, size=3)
    with fails(TypeError, "from_file(): argument 'filename' (position 1) must be str, not int"):
        torch.from_file(3)
    with fails(RuntimeError, "tensors constructed from a file cannot be pinned"):
        torch.from_file(path, size=2, pin_memory=True)
    with fails(NotImplementedError, "Could not run 'aten::from_file' with arguments from the 'meta' backend"):
        torch.from_file(path, size=2, device="meta")
    with fails(RuntimeError, f"unable to mmap -4 bytes from file <{path}>: Cannot allocate memory (12)"):
        torch.from_file(path, size=-1)
