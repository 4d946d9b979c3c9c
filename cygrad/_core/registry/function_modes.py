"""Modes: objects whose `__torch_function__` receives every call of a public function in a block of their thread.

Note [Modes]
------------
A mode sees what a class that overrides calls would see (Note [Overriding] in `torch_function.py`), whatever the
arguments are. The innermost mode receives a call; while it handles it, it is not in the thread's stack, so that the
function that it calls goes on to the mode outside it, and at last to the function itself. As long as no thread has a
mode, functions test the pointer that they test for classes (`checked_call.h`), and operators a flag (`tensor.pyx`).
Modes do not see what rules and hooks call in a backward pass.
"""

import sys
from _thread import _local, allocate_lock
from contextlib import contextmanager

from cygrad._core.graph.opdef import has_modes, is_in_pass, let_override
from cygrad._core.graph.tensor import watch


class _Stack(_local):
    """The modes of a thread, the innermost last."""

    def __init__(self):
        self.modes = []


_thread = _Stack()
_lock = allocate_lock()
_entered = 0  # how many modes there are in all threads
# An entry for each class and mode that overrides calls. Short functions in Python test this list, since a compiled
# function in front of them would take a tenth of their time.
asked: list[bool] = []


def modes():
    """Return the list of this thread's modes, the innermost last."""
    return _thread.modes


def push(mode):
    """Make `mode` the innermost mode of this thread."""
    global _entered
    from cygrad._core.registry import torch_function  # which imports this module

    with _lock:
        if not _entered:
            torch_function.show_attributes(True)
        _entered += 1
        asked.append(True)
        let_override(torch_function.classes, torch_function.hand_over)
        watch_operators(torch_function.classes)
    _thread.modes.append(mode)
    has_modes(True)


def pop():
    """Remove the innermost mode of this thread, and return it. Raises IndexError if there is none."""
    global _entered
    from cygrad._core.registry import torch_function  # which imports this module

    mode = _thread.modes.pop()
    has_modes(bool(_thread.modes))
    with _lock:
        _entered -= 1
        asked.pop()
        if not _entered:
            watch_operators(torch_function.classes)
            torch_function.show_attributes(False)
            if not torch_function.classes:
                let_override(None, torch_function.hand_over)
    return mode


@contextmanager
def without_innermost():
    """In the block, the innermost mode sees no calls; the block receives it."""
    mode = _thread.modes.pop()
    before = has_modes(bool(_thread.modes))
    try:
        yield mode
    finally:
        _thread.modes.append(mode)
        has_modes(before)


@contextmanager
def without_modes():
    """In the block, no mode sees calls."""
    outer, _thread.modes = _thread.modes, []
    before = has_modes(False)
    try:
        yield
    finally:
        _thread.modes = outer
        has_modes(before)


def ask(function, types, args, kwargs):
    """Return what the innermost mode makes of a call; NotImplemented if there is none, or it returns that."""
    if not has_modes():
        return NotImplemented
    with without_innermost() as mode:
        handler = mode.__torch_function__
        if isinstance(getattr(handler, "__self__", None), type):
            raise RuntimeError(
                "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain "
                "method"
            )
        return handler(function, types, args, kwargs)


def watch_operators(classes):
    """Have the operators of tensors ask the modes, and these classes for their objects."""
    watch(see, bool(_entered), classes)


def see(name, args, **kwargs):
    """Return, in a tuple, what a mode or a class makes of a call of Tensor's method `name`; None if nobody sees it."""
    torch_function = sys.modules["cygrad._core.registry.torch_function"]
    if has_modes():
        if is_in_pass():
            return None
        function = torch_function.function_of(name)
        if torch_function.is_operator(name):
            return (torch_function.ask_operator(function, args, kwargs),)
        return (torch_function.call(function, args, kwargs),)
    return None if kwargs else torch_function.answer_operator(name, args)
