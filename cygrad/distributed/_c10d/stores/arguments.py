"""Checks of what methods of stores are given, so that a wrong argument fails in the call, not far away."""

from datetime import timedelta
from functools import wraps
from inspect import signature

__all__ = ["checked", "refused"]


def _is_text(value):
    return isinstance(value, (str, bytes))


def _are_names(values):
    return isinstance(values, (list, tuple)) and all(isinstance(each, str) for each in values)


def _are_texts(values):
    return isinstance(values, (list, tuple)) and all(map(_is_text, values))


_KINDS = {
    "key": (lambda value: isinstance(value, str), "a str"),
    "keys": (_are_names, "a list of str"),
    "values": (_are_texts, "a list of str or bytes"),
    **dict.fromkeys(("value", "expected_value", "desired_value"), (_is_text, "a str or bytes")),
    "amount": (lambda value: isinstance(value, int), "an int"),
    "timeout": (lambda value: value is None or isinstance(value, timedelta), "a datetime.timedelta"),
}


def checked(method, like=None):
    """Let a method raise TypeError for arguments that are not what their names say: its own, or those of another."""
    names = list(signature(like or method).parameters)[1:]

    @wraps(method)
    def call(self, *args, **kwargs):
        for name, value in (*zip(names, args), *kwargs.items()):
            is_right, kind = _KINDS.get(name, (None, ""))
            if is_right is not None and not is_right(value):
                raise refused(method.__name__, f"`{name}` must be {kind}, got {value!r}")
        return method(self, *args, **kwargs)

    return call


def refused(name, what, kind="function"):
    """The error for wrong arguments."""
    return TypeError(f"{name}(): incompatible {kind} arguments. The following argument types are supported:\n  {what}")
