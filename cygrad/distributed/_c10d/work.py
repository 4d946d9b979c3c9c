"""What asynchronous collectives return."""

from cygrad.futures import Future

__all__ = ["Work"]


class Work:
    """A collective that is under way: `wait` for it before the tensors are used.

    In a group of one process it is finished when it is returned.
    """

    def __init__(self, tensors=(), source_rank=None):
        self._tensors, self._source_rank = list(tensors), source_rank

    def wait(self, timeout=None):
        """Wait until it is finished; returns True."""
        return True

    def is_completed(self):
        """Whether it is finished, with success or not."""
        return True

    def is_success(self):
        """Whether it is finished with success."""
        return True

    def exception(self):
        """The error it failed with, or None."""
        return None

    def result(self):
        """The tensors that hold the result."""
        return self._tensors

    def synchronize(self):
        """Make the current stream wait for it; does nothing on the CPU."""

    def block_current_stream(self):
        """Make the current stream wait for it; does nothing on the CPU."""

    def source_rank(self):
        """The rank that sent the tensor. Raises RuntimeError unless it was received."""
        if self._source_rank is None:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return self._source_rank

    def get_future(self):
        """Return a `torch.futures.Future` of the list of tensors that hold the result."""
        future: Future = Future()
        future.set_result(self._tensors)
        return future

    def get_future_result(self):
        """Return a `torch.futures.Future` of how it ended: 0 for success."""
        future: Future = Future()
        future.set_result(0)
        return future
