"""`GradBucket`: gradients that are reduced together, as communication hooks receive them."""

import cygrad

__all__ = ["GradBucket"]


class GradBucket:
    """Gradients of one dtype, one after the other in one flat tensor."""

    def __init__(self, index, parameters, is_last):
        self._index, self._parameters, self._is_last = index, parameters, is_last
        self._buffer = cygrad.cat([parameter.grad.detach().reshape(-1) for parameter in parameters])

    def index(self):
        """The bucket's number; it is the same in each iteration."""
        return self._index

    def buffer(self):
        """All gradients in one flat tensor."""
        return self._buffer

    def set_buffer(self, buffer):
        """Take another tensor for all gradients."""
        self._buffer = buffer

    def gradients(self):
        """The gradients: views of the buffer, with the shapes of the parameters."""
        parts = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._parameters)]

    def parameters(self):
        """The parameters."""
        return list(self._parameters)

    def is_last(self):
        """Whether no bucket follows in this iteration."""
        return self._is_last

    def write(self, reduced):
        """Write the reduced gradients to the parameters' `.grad`."""
        self._buffer = reduced.detach()
        with cygrad.no_grad():
            for parameter, gradient in zip(self._parameters, self.gradients()):
                parameter.grad.copy_(gradient)
