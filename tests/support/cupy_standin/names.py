"""The API of the real CuPy, from `names.json`, and checks of calls against its parameters."""

import functools
import inspect
import json
from pathlib import Path

RECORDED = json.loads(Path(__file__).with_name("names.json").read_text("utf-8"))
MODULES = RECORDED["modules"]
CLASSES = RECORDED["classes"]


@functools.cache
def signature(text):
    """Parse a signature such as `(a, axis=None)`."""
    return inspect.signature(eval(f"lambda {text[1:-1]}: None", {}))


def checked(name, text, function):
    """Wrap `function` to accept exactly the arguments of CuPy's version."""
    expected = signature(text)

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            expected.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__signature__ = expected
    return call


def lacking(name):
    """A function that CuPy has and the stand-in does not implement."""

    def call(*args, **kwargs):
        raise NotImplementedError(f"CuPy has {name}, which its stand-in for tests does not do yet")

    call.__name__ = name.rpartition(".")[2]
    return call
