"""The memory of tensors: the results of `Tensor.untyped_storage()` and `Tensor.storage()`, and PyTorch's older classes.

`FloatStorage` and its kind are names for `TypedStorage` with one dtype: calling them makes one, and `isinstance` asks
for the dtype.

>>> import cygrad
>>> storage = cygrad.FloatStorage([1.0, 2.0])
>>> type(storage).__name__, isinstance(storage, cygrad.FloatStorage), isinstance(storage, cygrad.LongStorage)
('TypedStorage', True, False)
"""

import functools
import io
from typing import Any

import cygrad
from cygrad._ops.shape.legacy_storages import (  # noqa: F401, libraries look for _LegacyStorage here
    _LegacyStorage,
    storage_class,
)
from cygrad._ops.shape.storage import StorageBase, TypedStorage, UntypedStorage
from cygrad._ops.shape.storage_bytes import DTYPES

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage"]


@functools.cache
def _dtype_to_storage_type_map() -> dict[Any, str]:
    return {getattr(cygrad, kind): f"{name}Storage" for name, kind in DTYPES.items()}


@functools.cache
def _storage_type_to_dtype_map() -> dict[str, Any]:
    return {name: kind for kind, name in _dtype_to_storage_type_map().items()}


def _load_from_bytes(content: bytes) -> Any:
    """Return the storage that Python's pickles of PyTorch's tensors contain, as a file of `torch.save`."""
    return cygrad.load(io.BytesIO(content), weights_only=False)


def __getattr__(name: str) -> Any:
    found = storage_class(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
