"""Zip files in the format of `torch.save`, built by hand so that they can be corrupted in any way."""

import io
import pickle
import zipfile
from typing import NamedTuple


class Name(NamedTuple):
    """A global, `module.name`."""

    module: str
    name: str


class Call(NamedTuple):
    """A call of a global."""

    function: object
    arguments: tuple


class FromOutside(NamedTuple):
    """A persistent id."""

    arguments: tuple


class _Pickler(pickle._Pickler):
    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Name):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, Call):
            self.save(obj.function)
            self.save(obj.arguments)
            self.write(pickle.REDUCE)
        elif isinstance(obj, FromOutside):
            self.save(obj.arguments)
            self.write(pickle.BINPERSID)
        else:
            super().save(obj, save_persistent_id)


def pickled(value):
    """Pickle a value with protocol 2, as PyTorch does."""
    stream = io.BytesIO()
    _Pickler(stream, 2).dump(value)
    return stream.getvalue()


def storage(kind, key, length, location="cpu"):
    """The pickled form of a storage."""
    return FromOutside(("storage", Name("torch", kind), key, location, length))


def tensor(memory, size, stride, offset=0, requires_grad=False):
    """The pickled form of a tensor."""
    arguments = (memory, offset, size, stride, requires_grad, Call(Name("collections", "OrderedDict"), ()))
    return Call(Name("torch._utils", "_rebuild_tensor_v2"), arguments)


def archive(program, records=(), compression=zipfile.ZIP_STORED, root="archive", byteorder=b"little"):
    """The bytes of a file; `records` maps keys to the contents of storages."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        file.writestr(f"{root}/data.pkl", program if isinstance(program, bytes) else pickled(program))
        file.writestr(f"{root}/byteorder", byteorder)
        for key, memory in dict(records).items():
            file.writestr(f"{root}/data/{key}", memory)
    return stream.getvalue()
