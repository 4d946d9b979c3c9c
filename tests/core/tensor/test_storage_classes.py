"""The classes of storages, and tensors on files."""

import copy
import os
import pickle
import struct
import subprocess
import sys
import weakref

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


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_storages_share_their_memory(kind):
    dtype, other = KINDS[kind], torch.int64 if kind != "Long" else torch.int32
    x = torch.tensor([1, 0, 1], dtype=dtype)
    for storage in (x.untyped_storage(), x._typed_storage()):
        for made in (
            torch.tensor(storage, dtype=dtype),
            torch.as_tensor(storage, dtype=dtype),
            x.new(storage),
            torch.empty(0, dtype=dtype).set_(storage),
        ):
            assert torch.equal(made, x) and made.dtype is dtype and made.data_ptr() == x.data_ptr()
    assert torch.storage._dtype_to_storage_type_map()[dtype] == f"{kind}Storage"
    assert torch.storage._storage_type_to_dtype_map()[f"{kind}Storage"] is dtype
    wanted = f"Expected a Storage of type {other.type_name} or an UntypedStorage, but got {dtype.type_name}"
    with fails(RuntimeError, wanted):
        torch.tensor(x._typed_storage(), dtype=other)
    with fails(RuntimeError, f"Expected a Storage of type ... but got type {dtype.type_name} for argument 1 'storage'"):
        torch.empty(0, dtype=other).set_(x._typed_storage())


def test_bytes_without_a_dtype_are_whole_numbers():
    assert torch.tensor(torch.tensor([7, 8]).untyped_storage()).tolist() == [7, 8]
    assert torch.tensor(torch.UntypedStorage([1, 0, 0, 0, 0, 0, 0, 0, 9])).tolist() == [1]


@pytest.mark.parametrize("make", [torch.UntypedStorage, torch.TypedStorage], ids=["untyped", "typed"])
def test_storages_without_elements(make):
    found = [make(*content, device="meta") for content in ((), (0,), (3,), ([1, 2],))]
    assert [len(each) for each in found] == [0, 0, 3, 2] and {each.device.type for each in found} == {"meta"}
    storage = found[2]
    assert storage.data_ptr() == 0 and repr(storage).startswith("...\n")
    for read in (storage.tolist, lambda: storage[0], lambda: found[0][0], storage.untyped().tolist):
        with fails(NotImplementedError, "Not available for 'meta' device type"):
            read()
    for moved in (storage.cpu, lambda: make(3).copy_(storage)):
        with fails(NotImplementedError, "Cannot copy out of meta tensor; no data!..."):
            moved()
    with fails(RuntimeError, "_share_fd_: only available on CPU"):
        storage.share_memory_()
    assert len(storage.resize_(10)) == 10


def test_storages_are_objects_of_the_program():
    x = torch.ones(3)
    storage = x.untyped_storage()
    storage.note = "kept"
    gone = weakref.ref(storage)
    assert storage.note == "kept" and gone() is storage and isinstance(storage, torch._C.StorageBase)
    assert storage._cdata == x[1:].untyped_storage()._cdata == x._typed_storage()._cdata
    assert storage._cdata != torch.ones(3).untyped_storage()._cdata
    twin = copy.copy(storage)
    assert twin.tolist() == storage.tolist() and twin.data_ptr() != storage.data_ptr()
    del storage
    assert gone() is None
    with fails(IndexError, "index 3 out of range for storage of size 3"):
        torch.UntypedStorage(3)[3]


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


def test_bytes_in_either_order():
    numbers = struct.pack(">3f", 1, 2, 3)
    assert torch.FloatStorage.from_buffer(numbers, "big").tolist() == [1, 2, 3]
    assert torch.FloatStorage.from_buffer(numbers, byte_order="big", count=1, offset=4).tolist() == [2]
    assert torch.TypedStorage.from_buffer(numbers, "big", dtype=torch.float32)[2] == 3
    assert torch.UntypedStorage.from_buffer(b"abcd", "big", dtype=torch.int16).tolist() == list(b"badc")
    assert torch.ByteStorage.from_buffer(b"abcd").tolist() == list(b"abcd")
    assert torch.BoolStorage.from_buffer(bytes([0, 1, 2]), "native").tolist() == [False, True, True]
    assert torch.ComplexFloatStorage.from_buffer(struct.pack(">2f", 1, 2), "big").tolist() == [1 + 2j]
    shorts = torch.tensor([1, 2, 3], dtype=torch.int16)
    assert shorts[1:].untyped_storage().byteswap(torch.int16) is None and shorts.tolist() == [256, 512, 768]
    pairs = torch.tensor([1 + 2j], dtype=torch.complex64)
    pairs.untyped_storage().byteswap(torch.complex64)
    assert pairs.view(torch.uint8).tolist() == list(struct.pack(">2f", 1, 2))


def test_bytes_that_do_not_fit():
    with fails(ValueError, "buffer size (3) must be a multiple of element size (4)"):
        torch.FloatStorage.from_buffer(b"abc", "native")
    with fails(ValueError, "invalid byte_order 'middle' (expected 'big', 'little', or 'native')"):
        torch.FloatStorage.from_buffer(b"abcd", "middle")
    with fails(RuntimeError, "function missing required argument 'byte_order' (pos 2)"):
        torch.FloatStorage.from_buffer(b"abcd")
    with fails(RuntimeError, "argument 'dtype' cannot be None"):
        torch.UntypedStorage.from_buffer(b"abcd", "native")
    with fails(RuntimeError, "from_buffer: 'dtype' can only be specified in..."):
        torch.ByteStorage.from_buffer(b"abcd", dtype=torch.uint8)
    with fails(ValueError, "buffer has only 16 elements after offset 0, but specified a size of 3"):
        torch.LongStorage.from_buffer(bytes(16), "native", count=3)
    for offset in (-1, 17):
        with fails(ValueError, "offset must be non-negative and no greater than buffer length..."):
            torch.LongStorage.from_buffer(bytes(16), "native", offset=offset)
    with fails(RuntimeError, "the length of data is not a multiple of 2"):
        torch.UntypedStorage(5).byteswap(torch.int16)


def test_names_of_types():
    untyped, typed = (torch.ones(2).untyped_storage(), torch.TypedStorage([1.0, 2.0], dtype=torch.float32))
    assert (untyped.type(), typed.type()) == ("torch.storage.UntypedStorage", "torch.FloatStorage")
    assert typed.type("torch.FloatStorage") is typed and untyped.type(torch.UntypedStorage) is untyped
    assert typed.type(torch.IntStorage).dtype is torch.int32 and typed.type("torch.LongStorage").tolist() == [1, 2]
    assert typed.pickle_storage_type() == "FloatStorage"
    with fails(TypeError, "invalid type: torch.float32"):
        typed.type(torch.float32)


def test_files_have_names(tmp_path):
    path = str(tmp_path / "numbers")
    shared = torch.FloatStorage.from_file(path, True, 2)
    assert (shared.filename, shared.tolist()) == (path, [0, 0])
    assert torch.FloatStorage.from_file(path, False, 2).filename is None and torch.UntypedStorage(2).filename is None
    with fails(RuntimeError, "from_file can only be called on derived classes"):
        torch.TypedStorage.from_file(path, True, 2)


def test_sharing_moves_the_tensor():
    x = torch.tensor([1.0, 2.0, 3.0])
    part = x[1:]
    storage = part.untyped_storage()
    assert storage.share_memory_() is storage and storage.is_shared()
    assert x.is_shared() and part.is_shared()
    part[0] = 5
    assert x.tolist() == [1, 5, 3] and part.storage_offset() == 1
    assert storage.data_ptr() == x.data_ptr() and storage.nbytes() == 12
    alone = torch.UntypedStorage([1, 2, 3])
    assert alone.share_memory_().is_shared() and alone.tolist() == [1, 2, 3]


def test_typed_storage_names_its_bytes():
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        typed = torch.ones(2).storage()
    assert typed._untyped_storage.data_ptr() == typed.data_ptr() and typed._untyped_storage.nbytes() == 8


def test_the_class_of_a_tensor():
    assert torch.ones(2).storage_type() is torch.FloatStorage
    assert torch.ones(2, dtype=torch.bool).storage_type() is torch.BoolStorage
    assert torch.ones(2, dtype=torch.uint16).storage_type() is torch.TypedStorage


def test_names_are_known_where_bfloat16_has_not_been_used():
    program = """
import cygrad as torch
storage = torch.ones(2)._typed_storage()
assert storage._pickle_storage_type() == "FloatStorage"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_methods_without_a_warning():
    storage = torch.FloatStorage(4, _internal=True)
    storage._setitem(slice(0, 2), 3)
    assert (storage._size(), storage._nbytes(), storage._element_size()) == (4, 16, 4)
    assert storage._getitem(1) == 3 and storage._dtype is torch.FloatStorage._dtype is torch.float32
    assert storage._data_ptr() == storage.data_ptr() and not storage._is_shared()
    assert sys.getsizeof(torch.FloatStorage(100)) - sys.getsizeof(torch.FloatStorage(0)) == 400
