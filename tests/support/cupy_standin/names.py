"""What the real CuPy has: `names.json`, and calls checked against its parameters."""

import functools
import inspect
import json
from pathlib import Path

RECORDED = json.loads(Path(__file__).with_name("names.json").read_text("utf-8"))
MODULES = RECORDED["modules"]
CLASSES = RECORDED["classes"]


@functools.cache
def signature(text):
    """The signature that a text like `(a, axis=None)` gives."""
    return inspect.signature(eval(f"lambda {text[1:-1]}: None", {}))


def checked(name, text, function):
    """`function`, which takes what CuPy's takes and nothing else."""
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
    """A function that CuPy has and the stand-in does not do."""

    def call(*args, **kwargs):
        raise NotImplementedError(f"CuPy has {name}, which its stand-in for tests does not do yet")

    call.__name__ = name.rpartition(".")[2]
    return call
