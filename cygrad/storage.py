"""The memory of tensors: the results of `Tensor.untyped_storage()` and `Tensor.storage()`, and PyTorch's older classes.

`FloatStorage` and its kind are names for `TypedStorage` with one dtype: calling them makes one, and `isinstance` asks
for the dtype.

>>> import cygrad
>>> storage = cygrad.FloatStorage([1.0, 2.0])
>>> type(storage).__name__, isinstance(storage, cygrad.FloatStorage), isinstance(storage, cygrad.LongStorage)
('TypedStorage', True, False)
"""

import functools
from typing import Any

import cygrad
from cygrad._ops.shape.storage import StorageBase, TypedStorage, UntypedStorage
from cygrad._ops.shape.storage_bytes import DTYPES

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage"]


class _LegacyStorageMeta(type):
    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype and instance.device.type == "cpu"


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """A storage of one dtype: called with nothing, a size, a sequence, or `wrap_storage`."""

    __slots__ = ()

    def __new__(cls, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None) -> Any:
        given = len(args) + (wrap_storage is not None)
        if given > 1 or dtype is not None or device is not None:
            raise RuntimeError(_wrong(cls))
        if args and (isinstance(args[0], (cygrad.Tensor, StorageBase, TypedStorage)) or isinstance(args[0], float)):
            raise TypeError(_wrong(cls))
        if wrap_storage is not None:
            return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype)
        return TypedStorage(*args, dtype=cls.dtype)


def _wrong(cls: type) -> str:
    return (
        f"<class 'torch.{cls.__name__}'>.__new__ received an invalid combination of arguments. Expected one of:\n"
        "  no arguments, a size, a sequence of numbers, or wrap_storage=UntypedStorage"
    )


@functools.cache
def _dtype_to_storage_type_map() -> dict[Any, str]:
    return {getattr(cygrad, kind): f"{name}Storage" for name, kind in DTYPES.items()}


@functools.cache
def _storage_type_to_dtype_map() -> dict[str, Any]:
    return {name: kind for kind, name in _dtype_to_storage_type_map().items()}


_DOC = """A storage of {dtype}: called with nothing, a size, a sequence, or `wrap_storage`. Prefer `UntypedStorage`.

    Raises TypeError for a tensor, RuntimeError for other arguments.

    >>> import cygrad
    >>> storage = cygrad.{name}(2)
    >>> len(storage), storage.dtype
    (2, torch.{dtype})
    """


def __getattr__(name: str) -> Any:
    kind = DTYPES.get(name.removesuffix("Storage"))
    if kind is None or not name.endswith("Storage"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    namespace = {
        "__slots__": (),
        "__module__": "cygrad",
        "dtype": getattr(cygrad, kind),
        "_of_class": getattr(cygrad, kind),
        "__doc__": _DOC.format(name=name, dtype=kind),
    }
    globals()[name] = found = _LegacyStorageMeta(name, (_LegacyStorage,), namespace)
    return found
