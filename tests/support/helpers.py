"""Shared helpers: leaves, exact error messages, source lines of the calling test."""

import contextlib
import inspect
import re
import sys
import threading

import pytest

import cygrad as torch


def leaf(*values, dtype=None):
    """Return a 1-dim leaf that requires grad, with these elements."""
    return torch.tensor(list(values), dtype=dtype or torch.float32, requires_grad=True)


def scalar(value, dtype=None):
    """Return a 0-dim leaf that requires grad."""
    return torch.tensor(value, dtype=dtype or torch.float32, requires_grad=True)


def first_line(error):
    return str(error).split("\n", 1)[0]


def class_of(error):
    """The name of an error's class; for classes of `cygrad.errors`, the name of the PyTorch class they extend."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ != torch.errors.__name__)


@contextlib.contextmanager
def fails(exception, line):
    """Check that the block raises `exception` with `line` as the first line of its message.

    Three dots in `line` match any text (addresses, hints). Unlike with `pytest.raises`, the error is released
    immediately, and the test's tensors with it.
    """
    found = None
    try:
        yield
    except exception as error:
        found = first_line(error)
        # "During handling of the above exception, another exception occurred" would show an error of our own first.
        chained = None if error.__suppress_context__ or error.__context__ is None else repr(error.__context__)
    if found is None:
        pytest.fail(f"no {exception.__name__} was raised, instead of {line!r}")
    pattern = ".*".join(re.escape(part) for part in line.split("..."))
    assert re.fullmatch(pattern, found), f"{found!r} is not {line!r}"
    assert chained is None, f"the error was raised while {chained} was handled"


def kind(node):
    """The name of a node without the namespace that PyTorch prefixes to special ones."""
    return None if node is None else node.name().rsplit(":", 1)[-1]


def kinds(node):
    """The names of the nodes that `node` points to, `None` for a missing edge."""
    return [kind(child) for child, _ in node.next_functions]


def in_thread(function, *args):
    """Run `function` in a thread of its own and return its result or raise its exception."""
    outcome = {}

    def body():
        try:
            outcome["result"] = function(*args)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=body)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "the thread hangs"
    if "error" in outcome:
        raise outcome["error"]
    return outcome.get("result")


def in_threads(functions):
    """Run all functions concurrently, one thread each, started together; return results in order."""
    together = threading.Barrier(len(functions))
    results = [None] * len(functions)
    errors = []

    def body(index, function):
        try:
            together.wait()
            results[index] = function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(index, function)) for index, function in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def line_marked(mark, depth=1):
    """A pattern for the `file:line` of the caller's source line that ends in `# <mark>`."""
    code = sys._getframe(depth).f_code
    lines, start = inspect.getsourcelines(code)
    found = [start + i for i, text in enumerate(lines) if text.rstrip().endswith(f"# {mark}")]
    assert len(found) == 1, f"{len(found)} lines are marked {mark!r}"
    name = re.escape(code.co_filename.rsplit("/", 1)[-1])
    return rf"\S*{name}:{found[0]}\b"
