"""The classes of what `Tensor.untyped_storage()` and `Tensor.storage()` give."""

from cygrad._ops.storages import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
