"""Functions that run in a context: what decorators made of context managers return."""

import functools
import inspect


def in_context(factory, func):
    """Wrap a function so that each call runs in the context that `factory()` returns.

    A generator or coroutine runs in one whenever it is resumed, and in none while it waits. Raises RuntimeError for a
    class.
    """
    if inspect.isclass(func):
        raise RuntimeError(
            f"Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have "
            f"the context manager applied; additionally, decorating a class at definition-site will prevent use of the "
            f"identifier as a conventional type.  To specify which methods to decorate, decorate each of them "
            f"individually: {func}"
        )
    if inspect.isasyncgenfunction(func):
        return _async_generator(func, factory)
    if inspect.iscoroutinefunction(func):
        return _coroutine(func, factory)
    if inspect.isgeneratorfunction(func):
        return _generator(func, factory)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        with factory():
            return func(*args, **kwargs)

    return wrapper


def _steps(inner, factory):
    """Drive a generator or coroutine so that each of its steps runs in a context, but no suspension does."""
    resume = functools.partial(inner.send, None)
    while True:
        try:
            with factory():
                produced = resume()
        except StopIteration as stop:
            return stop.value
        try:
            received = yield produced
            resume = functools.partial(inner.send, received)
        except GeneratorExit:
            with factory():
                inner.close()
            raise
        except BaseException as error:
            resume = functools.partial(inner.throw, error)


def _generator(func, factory):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return (yield from _steps(func(*args, **kwargs), factory))

    return wrapper


class _Awaitable:
    """Awaits a coroutine step by step in contexts."""

    def __init__(self, inner, factory):
        self.inner, self.factory = inner, factory

    def __await__(self):
        return _steps(self.inner, self.factory)


def _coroutine(func, factory):
    @functools.wraps(func)
    async def wrapper(*args, **kwargs):
        return await _Awaitable(func(*args, **kwargs), factory)

    return wrapper


def _async_generator(func, factory):
    @functools.wraps(func)
    async def wrapper(*args, **kwargs):
        inner = func(*args, **kwargs)
        step = inner.__anext__()
        try:
            while True:
                try:
                    produced = await _Awaitable(_run(step), factory)
                except StopAsyncIteration:
                    return
                try:
                    received = yield produced
                    step = inner.asend(received)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step = inner.athrow(error)
        finally:
            await _Awaitable(_run(inner.aclose()), factory)

    return wrapper


async def _run(awaitable):
    return await awaitable
