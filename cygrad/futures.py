"""`torch.futures`: values that arrive later, as asynchronous collectives and remote calls return them."""

import threading
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that arrives later, or an error. Threads may wait for it, and functions may be called when it is there.

    >>> from cygrad.futures import Future
    >>> future = Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(21)
    >>> doubled.wait()
    42
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._finished = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Any] = []
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Whether the value, or an error, is there."""
        return self._finished.is_set()

    def wait(self) -> T:
        """Wait until the value is there, and return it or raise the error."""
        self._finished.wait()
        return self._outcome()

    def value(self) -> T:
        """Return the value or raise the error. Raises RuntimeError if neither is there yet."""
        if not self.done():
            raise RuntimeError("Future is not completed: call `wait()` for its value")
        return self._outcome()

    def _outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Any) -> "Future[Any]":
        """Return a future of `callback(self)`, which is called once this future is done."""
        after: Future[Any] = Future()

        def finish(done: Any) -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:
                after.set_exception(error)

        self.add_done_callback(finish)
        return after

    def add_done_callback(self, callback: Any) -> None:
        """Call `callback(self)` once this future is done, at once if it is."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: T) -> None:
        """Give the future its value. Raises RuntimeError if it has one."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give the future an error, which `wait` raises."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError("Future can only be marked completed once: it has a value or an error already")
            self._value, self._error = value, error
            self._finished.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def collect_all(futures: "list[Future[Any]]") -> "Future[list[Future[Any]]]":
    """Return a future of the list of `futures`, which is done once all of them are."""
    together: Future[list[Future[Any]]] = Future()
    lock, left = threading.Lock(), len(futures)

    def count(_: Any) -> None:
        nonlocal left
        with lock:
            left -= 1
            is_last = left == 0
        if is_last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return together


def wait_all(futures: "list[Future[Any]]") -> list[Any]:
    """Wait for all `futures`, and return their values. Raises the first error among them."""
    return [future.wait() for future in collect_all(futures).wait()]
