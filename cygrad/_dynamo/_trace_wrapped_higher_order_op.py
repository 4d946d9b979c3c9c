"""What programs use so that compilers trace indexing under `vmap`."""

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """A block in which an index may hold 0-dim tensors that `vmap` has batched. Here it always may."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
