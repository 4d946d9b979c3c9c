"""The result classes of `Tensor.untyped_storage()` and `Tensor.storage()`."""

from cygrad._ops.shape.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
