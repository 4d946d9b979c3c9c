"""PyTorch's older classes of storages, such as `FloatStorage`: names for `TypedStorage` with one dtype."""

import functools
from typing import Any

from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import dtype_named
from cygrad._ops.shape.storage import StorageBase, TypedStorage
from cygrad._ops.shape.storage_bytes import DTYPES


class _LegacyStorageMeta(type):
    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype and instance.device.type == "cpu"


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """A storage of one dtype: called with nothing, a size, a sequence, or `wrap_storage`."""

    __slots__ = ()

    def __new__(
        cls,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> Any:
        given = len(args) + (wrap_storage is not None)
        if given > 1 or dtype is not None or device is not None:
            raise RuntimeError(_wrong(cls))
        if args and (isinstance(args[0], (Tensor, StorageBase, TypedStorage)) or isinstance(args[0], float)):
            raise TypeError(_wrong(cls))
        if wrap_storage is not None:
            return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype)
        return TypedStorage(*args, dtype=cls.dtype)


def _wrong(cls: type) -> str:
    return (
        f"<class 'torch.{cls.__name__}'>.__new__ received an invalid combination of arguments. Expected one of:\n"
        "  no arguments, a size, a sequence of numbers, or wrap_storage=UntypedStorage"
    )


_DOC = """A storage of {dtype}: called with nothing, a size, a sequence, or `wrap_storage`. Prefer `UntypedStorage`.

    Raises TypeError for a tensor, RuntimeError for other arguments.

    >>> import cygrad
    >>> storage = cygrad.{name}(2)
    >>> len(storage), storage.dtype
    (2, torch.{dtype})
    """


@functools.cache
def storage_class(name: str) -> Any:
    """Return the class of this name; None if there is none."""
    kind = DTYPES.get(name.removesuffix("Storage"))
    if kind is None or not name.endswith("Storage"):
        return None
    dtype = dtype_named(kind)
    namespace = {
        "__slots__": (),
        "__module__": "cygrad",
        "dtype": dtype,
        "_dtype": dtype,
        "_of_class": dtype,
        "__doc__": _DOC.format(name=name, dtype=kind),
    }
    return _LegacyStorageMeta(name, (_LegacyStorage,), namespace)
