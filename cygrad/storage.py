"""The classes of what `Tensor.untyped_storage()` and `Tensor.storage()` give."""

from cygrad._ops.shape.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
