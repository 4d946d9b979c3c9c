"""What asynchronous collectives return."""

import time
from datetime import timedelta

from cygrad.distributed._c10d.engines.engine import FINISHED, give_way
from cygrad.distributed._c10d.errors import DistBackendError
from cygrad.futures import Future

__all__ = ["Work"]

_LOOKS = 100  # at what may be finished in a moment, before others are told that this process waits


class Work:
    """A collective that is under way: `wait` for it before the tensors are used.

    It moves on while someone waits, or asks whether it is finished; tensors that had to be copied are written then.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> work = dist.all_reduce(x, async_op=True)
    >>> work.wait(), work.is_completed(), work.is_success(), work.exception()
    (True, True, True, None)
    >>> work.result()
    [tensor([1., 2.])]
    >>> work.synchronize(), work.block_current_stream()
    (None, None)
    >>> work.get_future().wait(), work.get_future_result().wait()
    ([tensor([1., 2.])], 0)
    >>> work.source_rank()
    Traceback (most recent call last):
        ...
    RuntimeError: sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call.
    >>> work.abort()
    >>> dist.destroy_process_group()
    """

    def __init__(self, tensors=(), handles=(), finish=(), watch=None, timeout=None, ranks=None):
        self._tensors, self._handles, self._finish = list(tensors), list(handles), list(finish)
        self._watch, self._timeout, self._ranks = watch, timeout, ranks
        self._is_done, self._error, self._source = False, None, None

    def wait(self, timeout=None):
        """Wait until it is finished; returns True. Raises DistBackendError if it fails or lasts too long.

        timeout: a `timedelta`; by default the one of the group.
        """
        if not self._is_done:
            self._guarded(self._look)
        if not self._is_done:
            if self._watch is not None:
                self._watch.begin()
            self._guarded(self._wait, self._timeout if timeout is None else timeout.total_seconds())
            if self._watch is not None and self._error is None:
                self._watch.end()
        if self._error is not None:
            raise self._error
        return True

    def _test(self):
        for handle in self._handles:
            if not handle.test():
                return False
        return True

    def _look(self):
        for _ in range(_LOOKS):
            if self._test():
                return True
            give_way()
        return False

    def _limit(self, timeout):
        """Let `wait` wait for this `timedelta` at most, unless it is told otherwise."""
        self._timeout = timeout.total_seconds()

    def _wait(self, timeout):
        begin = time.monotonic()
        for handle in self._handles:
            left = None if timeout is None else max(0.0, begin + timeout - time.monotonic())
            handle.wait(left, self._watch)
        return True

    def _guarded(self, move, *args):
        """Move on; what goes wrong is kept, and what is finished is written. A timeout leaves it as it is."""
        try:
            if move(*args):
                for finish in self._finish:
                    finish()
                for handle in self._handles:
                    if self._source is None:
                        self._source = handle.source()
                if self._watch is not None:
                    self._watch.finished()
                self._end()
        except TimeoutError as error:
            timeout = args[0]
            raise DistBackendError(
                f"Timed out waiting {timeout * 1000:.0f}ms for the collective to complete"
                + (f"\n  {error}" if str(error) else "")
                + (f"\n{self._watch.table()}" if self._watch is not None else "")
            ) from None
        except Exception as error:
            self._error = error
            self._end()

    def _end(self):
        self._is_done, self._handles, self._finish = True, [], []

    def is_completed(self):
        """Whether it is finished, with success or not; moves it on."""
        if not self._is_done:
            self._guarded(self._test)
        return self._is_done

    def is_success(self):
        """Whether it is finished with success."""
        return self.is_completed() and self._error is None

    def exception(self):
        """The error it failed with, or None."""
        return self._error

    def result(self):
        """The tensors that hold the result."""
        return self._tensors

    def synchronize(self):
        """Wait for it."""
        self.wait()

    def block_current_stream(self):
        """Wait for it."""
        self.wait()

    def abort(self):
        """Give it up."""
        for handle in self._handles:
            handle.abort()
        if not self._is_done:
            self._error = DistBackendError("the collective was aborted")
            self._end()

    def source_rank(self):
        """The rank in the group that sent the tensor. Raises RuntimeError unless it was received."""
        if self._source is None:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return self._source

    def get_future(self):
        """Return a `torch.futures.Future` of the list of tensors that hold the result."""
        return _future_of(self, self._tensors)

    def get_future_result(self):
        """Return a `torch.futures.Future` of how it ended: 0 for success."""
        return _future_of(self, 0)


def finished(tensors=()):
    """A `Work` with nothing left to do."""
    return Work(tensors, [FINISHED])


def joined(works, tensors):
    """Several as one, with these tensors as its result."""
    return Work(tensors, [_OfWork(work) for work in works])


class _OfWork:
    """A `Work` as a transfer of another."""

    def __init__(self, work):
        self._work = work

    def test(self):
        done = self._work.is_completed()
        if done and self._work.exception() is not None:
            raise self._work.exception()
        return done

    def wait(self, timeout=None, watch=None):
        try:
            self._work.wait(None if timeout is None else timedelta(seconds=timeout))
        except DistBackendError as error:
            if self._work.exception() is None:
                raise TimeoutError(str(error)) from None  # it is still under way
            raise

    def abort(self):
        self._work.abort()

    def source(self):
        return None


def _future_of(work, result):
    """The future moves the collective on while someone waits for it, or for what follows from it."""
    future: Future = Future()
    work_error = work.exception

    def advance(is_blocking):
        if future._is_done:
            return
        if is_blocking:
            try:
                work.wait()
            except Exception:
                if work_error() is None:
                    raise  # too long: it is still under way
        if work.is_completed():
            if future._is_done:
                return
            future.set_result(result) if work_error() is None else future.set_exception(work_error())

    future._advance = advance
    advance(False)
    return future
