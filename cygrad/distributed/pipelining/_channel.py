"""What passes between two neighbouring stages: activations in one direction, gradients in the other."""

import pickle
from collections import deque

import cygrad
from cygrad.distributed._c10d.point_to_point import isend, recv

__all__ = ["Channel", "LocalChannel", "PipeliningShapeError"]


class PipeliningShapeError(RuntimeError):
    """A stage has other outputs for one microbatch than for those before."""


class Channel:
    """Messages to or from a stage in another process.

    Each message has as many tensors of the same shapes and dtypes; the first one in training, and in evaluation, says
    which. Sending does not wait, so that the order of a schedule cannot end in a deadlock.
    """

    def __init__(self, group, peer, tag, device):
        self._group, self._peer, self._tag, self._device = group, peer, tag, device
        self._kinds: dict = {}  # whether in training: shape, dtype and whether it requires grad, of each tensor
        self._under_way: list = []

    def send(self, tensors, in_training):
        """Begin to send tensors."""
        kinds = [(tuple(each.shape), each.dtype, each.requires_grad) for each in tensors]
        known = self._kinds.setdefault(in_training, kinds)
        if known is kinds:
            text = cygrad.frombuffer(bytearray(pickle.dumps(kinds)), dtype=cygrad.uint8)
            self._begin(cygrad.tensor([text.numel()]))
            self._begin(text)
        if known != kinds:
            raise PipeliningShapeError(
                f"a stage sends {kinds}, after {known}\n"
                "  to fix it: give all steps batches of one size, which the number of microbatches divides"
            )
        for each in tensors:
            self._begin(each.detach().contiguous())

    def _begin(self, tensor):
        tensor = tensor.to(self._device)
        self._under_way.append((isend(tensor, group=self._group, tag=self._tag, group_dst=self._peer), tensor))

    def receive(self, in_training):
        """Wait for the next tensors; returns new leaves, which require grad if those that were sent did."""
        if in_training not in self._kinds:
            (length,) = self._next((1,), cygrad.int64).tolist()
            self._kinds[in_training] = pickle.loads(bytes(self._next((length,), cygrad.uint8).tolist()))
        found = [self._next(shape, dtype) for shape, dtype, _ in self._kinds[in_training]]
        for each, (_, _, needs_grad) in zip(found, self._kinds[in_training], strict=True):
            each.requires_grad_(needs_grad)
        return found

    def _next(self, shape, dtype):
        tensor = cygrad.empty(shape, dtype=dtype, device=self._device)
        recv(tensor, group=self._group, tag=self._tag, group_src=self._peer)
        return tensor

    def finish(self):
        """Wait until all has been sent."""
        for work, _ in self._under_way:
            work.wait()
        self._under_way.clear()


class LocalChannel:
    """Messages between two stages in this process."""

    def __init__(self):
        self._waiting: deque = deque()

    def send(self, tensors, in_training):
        """Pass tensors on."""
        self._waiting.append([each.detach().requires_grad_(each.requires_grad) for each in tensors])

    def receive(self, in_training):
        """The next tensors, as new leaves."""
        return self._waiting.popleft()

    def finish(self):
        """Drop what a step that failed has left."""
        self._waiting.clear()
