"""`GradBucket`: gradients that are reduced together, as communication hooks receive them."""

__all__ = ["GradBucket"]


class GradBucket:
    """Gradients of one dtype, one after the other in one flat tensor."""

    def __init__(self, bucket, count):
        self._bucket, self._is_last = bucket, bucket.index == count - 1
        self._buffer = bucket.data

    def index(self):
        """The bucket's number; it is the same in each iteration once the first is over."""
        return self._bucket.index

    def buffer(self):
        """All gradients in one flat tensor."""
        return self._buffer

    def set_buffer(self, buffer):
        """Take another tensor for all gradients."""
        self._buffer = buffer

    def gradients(self):
        """The gradients: views of the buffer, with the shapes of the parameters."""
        parts = self._buffer.split(self._bucket.sizes)
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._bucket.parameters)]

    def parameters(self):
        """The parameters."""
        return list(self._bucket.parameters)

    def is_last(self):
        """Whether no bucket follows in this iteration."""
        return self._is_last
