"""Results of calls that may still be running in another thread."""

import sys
from collections.abc import Callable, Iterable
from threading import Condition
from typing import Any, Generic, TypeVar

from cygrad._core.types.device import check_device, device

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that some thread will set, or the error that it met; others wait for it or name functions to call then.

    devices: GPUs that the result will lie on, by number or as devices with an index.

    >>> import cygrad as torch
    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(21)
    >>> doubled.wait()
    42
    """

    def __init__(self, *, devices: Iterable[Any] | None = None) -> None:
        for place in map(device, devices or ()):
            if place.index is None:
                raise ValueError(f"Expected devices to have indices, got {place}")
            check_device(place)
        self._changed = Condition()
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []
        # What moves the work on that the result comes from, where no other thread does: waits for it if given True.
        self._advance: Callable[[bool], None] | None = None

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future\n  to fix it: call wait(), and pickle the result")

    def done(self) -> bool:
        """Whether the result or an error is there.

        >>> import cygrad
        >>> future = cygrad.futures.Future()
        >>> future.done()
        False
        >>> future.set_result(3)
        >>> future.done()
        True
        """
        if self._advance is not None and not self._is_done:
            self._advance(False)
        return self._is_done

    def wait(self) -> T:
        """Wait for the result, and return it; raise the error if there is one.

        >>> import cygrad
        >>> future = cygrad.futures.Future()
        >>> future.set_result("done")
        >>> future.wait()
        'done'
        """
        if self._advance is not None and not self._is_done:
            self._advance(True)
        with self._changed:
            self._changed.wait_for(lambda: self._is_done)
        return self.value()

    def value(self) -> T:
        """Return the result, or raise the error. Raises RuntimeError if neither is there yet.

        >>> import cygrad
        >>> future = cygrad.futures.Future()
        >>> future.set_result(3)
        >>> future.value()
        3
        """
        if not self._is_done:
            raise RuntimeError("the Future is not completed\n  to fix it: call wait(), which waits for the result")
        if self._error is not None:
            raise self._error
        return self._result

    def then(self, callback: "Callable[[Future[T]], S]") -> "Future[S]":
        """Return a future of what `callback(self)` returns once this future is done; at once if it is.

        An error in the callback becomes the RuntimeError of that future.

        >>> import cygrad
        >>> future = cygrad.futures.Future()
        >>> twice = future.then(lambda future: 2 * future.value())
        >>> future.set_result(3)
        >>> twice.wait()
        6
        """
        _check_callable("then", callback)
        following: Future[S] = Future()
        following._advance = self._advance

        def proceed(done):
            try:
                result = callback(done)
            except Exception as error:
                following.set_exception(_of_callback(error))
            else:
                following.set_result(result)

        self._call_when_done(proceed)
        return following

    def add_done_callback(self, callback: "Callable[[Future[T]], None]") -> None:
        """Call `callback(self)` once this future is done; at once if it is. Its errors are only printed.

        >>> import cygrad
        >>> future = cygrad.futures.Future()
        >>> future.add_done_callback(lambda future: print("got", future.value()))
        >>> future.set_result(3)
        got 3
        """
        _check_callable("add_done_callback", callback)

        def proceed(done):
            try:
                callback(done)
            except Exception as error:
                print(_of_callback(error), file=sys.stderr)

        self._call_when_done(proceed)

    def set_result(self, result: T) -> None:
        """Set the result, and call what waits for it. Raises RuntimeError if the future is done already.

        >>> import cygrad
        >>> future = cygrad.futures.Future()
        >>> future.set_result(3)
        >>> future.wait()
        3
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set the error that `wait` raises. Raises AssertionError if `result` is no exception.

        >>> import cygrad
        >>> future = cygrad.futures.Future()
        >>> future.set_exception(ValueError("no such file"))
        >>> future.wait()
        Traceback (most recent call last):
            ...
        ValueError: no such file
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._is_done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._result, self._error, self._is_done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def _call_when_done(self, callback: "Callable[[Future], Any]") -> None:
        with self._changed:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback(self)


def _check_callable(name: str, callback: Any) -> None:
    if not callable(callback):
        raise TypeError(f"{name}(): incompatible function arguments: {type(callback).__name__} is not callable")


def _check_future(future: Any) -> None:
    if future is None:
        raise RuntimeError("Future can't be None")


def _of_callback(error: Exception) -> RuntimeError:
    """Return the error of a future whose callback failed."""
    found = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
    found.__cause__ = error
    return found


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """Return a future of the list `futures` that is done once all of them are; it has the first error, if any.

    >>> import cygrad as torch
    >>> first, second = torch.futures.Future(), torch.futures.Future()
    >>> both = torch.futures.collect_all([first, second])
    >>> first.set_result(1)
    >>> second.set_result(2)
    >>> [future.wait() for future in both.wait()]
    [1, 2]
    """
    futures = list(futures)
    for future in futures:
        _check_future(future)
    found: Future[list[Future]] = Future()
    advances = [future._advance for future in futures if future._advance is not None]
    if advances:
        found._advance = lambda is_blocking: _advance_all(advances, is_blocking)
    missing = list(futures)
    lock = Condition()

    def count(done):
        with lock:
            missing.remove(done)
            is_last = not missing
        if is_last:
            finish()

    def finish():
        error = next((future._error for future in futures if future._error is not None), None)
        if error is None:
            found.set_result(futures)
        else:
            found._finish(None, error)

    for future in futures:
        future._call_when_done(count)
    if not futures:
        finish()
    return found


def _advance_all(advances: list[Callable[[bool], None]], is_blocking: bool) -> None:
    for advance in advances:
        advance(is_blocking)


def wait_all(futures: list[Future]) -> list:
    """Wait for all of these futures, and return the list of their results; raise the first error, if any.

    >>> from cygrad.futures import Future, wait_all
    >>> futures = [Future(), Future()]
    >>> futures[1].set_result("b")
    >>> futures[0].set_result("a")
    >>> wait_all(futures)
    ['a', 'b']
    """
    return [future.wait() for future in collect_all(futures).wait()]
