"""Functions that run in a context: what decorators made of context managers return."""

import functools
import inspect
import sys


def in_context(factory, func):
    """Wrap a function so that each call runs in the context that `factory()` returns.

    A generator function runs in one whenever it is resumed. Raises RuntimeError for a class.
    """
    if inspect.isclass(func):
        raise RuntimeError(
            f"Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have "
            f"the context manager applied; additionally, decorating a class at definition-site will prevent use of the "
            f"identifier as a conventional type.  To specify which methods to decorate, decorate each of them "
            f"individually: {func}"
        )
    if inspect.isgeneratorfunction(func):
        return _of_generator(factory, func)

    @functools.wraps(func)
    def called_in_context(*args, **kwargs):
        with factory():
            return func(*args, **kwargs)

    return called_in_context


def _of_generator(factory, func):
    @functools.wraps(func)
    def resumed_in_context(*args, **kwargs):
        generator = func(*args, **kwargs)
        send, value = generator.send, None
        while True:
            try:
                with factory():
                    result = send(value)
            except StopIteration as end:
                return end.value
            try:
                send, value = generator.send, (yield result)
            except GeneratorExit:
                with factory():
                    generator.close()
                raise
            except BaseException:
                send, value = generator.throw, sys.exc_info()[1]

    return resumed_in_context
