"""What passes between two neighbouring stages: activations in one direction, gradients in the other."""

import pickle
from collections import deque

import cygrad
from cygrad.distributed._c10d.point_to_point import isend, recv

__all__ = ["Channel", "LocalChannel"]


class Channel:
    """Messages to or from a stage in another process.

    A message is a number, shapes and dtypes if they are not those of the message before (then the number is how long
    their text is, else 0), and tensors. Sending does not wait, so that no order of a schedule ends in a deadlock.
    """

    def __init__(self, group, peer, tag, device):
        self._group, self._peer, self._tag, self._device = group, peer, tag, device
        self._kinds: list = []  # shape, dtype and whether it requires grad, of each tensor of the last message
        self._under_way: list = []

    def send(self, tensors):
        """Begin to send tensors."""
        kinds = [(tuple(each.shape), each.dtype, each.requires_grad) for each in tensors]
        text = pickle.dumps(kinds) if kinds != self._kinds else b""
        self._kinds = kinds
        self._begin(cygrad.tensor([len(text)]))
        if text:
            self._begin(cygrad.frombuffer(bytearray(text), dtype=cygrad.uint8))
        for each in tensors:
            self._begin(each.detach().contiguous())

    def _begin(self, tensor):
        tensor = tensor.to(self._device)
        self._under_way.append((isend(tensor, group=self._group, tag=self._tag, group_dst=self._peer), tensor))

    def receive(self):
        """Wait for the next tensors; returns new leaves, which require grad if those that were sent did."""
        (length,) = self._next((1,), cygrad.int64).tolist()
        if length:
            self._kinds = pickle.loads(bytes(self._next((length,), cygrad.uint8).tolist()))
        found = [self._next(shape, dtype) for shape, dtype, _ in self._kinds]
        for each, (_, _, needs_grad) in zip(found, self._kinds, strict=True):
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

    def send(self, tensors):
        """Pass tensors on."""
        self._waiting.append([each.detach().requires_grad_(each.requires_grad) for each in tensors])

    def receive(self):
        """The next tensors, as new leaves."""
        return self._waiting.popleft()

    def finish(self):
        """Drop what a step that failed has left."""
        self._waiting.clear()
