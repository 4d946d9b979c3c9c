"""Finds out how a refused call was written in the program: as a method or function, and by which alias."""

import dis
import re
import sys
from types import FrameType

from cygrad._core.graph.opdef import facts_of, registry

_TAKES = re.compile(r"takes (\d+) positional arguments but (\d+) were given")
_TAKES_ITSELF = re.compile(r"takes 1 positional argument but (\d+) were given")
_NESTED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|<[^<>]*>")  # a tuple, a list or a class among arguments
_POSITION = re.compile(r"argument '(\w+)' \(position \d+\)")


def as_called(text, plain, title, values):
    """Rephrase an error of the function `plain` to match the program's call with these values.

    A method does not count the tensor itself among its arguments; an alias is called by its own name.
    """
    frame: FrameType | None = sys._getframe(2)
    # Skip the wrappers of autocast.
    while frame is not None and frame.f_globals.get("__name__") == "cygrad._core.registry.autocast":
        frame = frame.f_back
    shown, bracket, _ = text.partition("()")
    spellings = facts_of["spellings"].get(shown, {})
    is_own = shown == title or plain.__name__ in spellings
    if frame is None or not bracket or not is_own or frame.f_globals.get("__name__", "").startswith("cygrad."):
        return text
    before = _instructions(frame)
    is_method = is_method_call(frame, len(values))
    if is_method is None:
        return text
    row = dict.get(registry, plain.__name__)
    names = {shown: shown, **spellings}
    if row is not None and title == plain.__name__ == shown:
        names.update(zip(row.aliases, row.aliases))
    loaded = (one.argval for one in reversed(before) if one.opname[:4] == "LOAD" and isinstance(one.argval, str))
    name = next((names[name] for name in loaded if name in names), shown)
    family = next(loaded, "")
    if not is_method and family in ("special", "linalg") and not name.startswith(family):
        name = f"{family}_{name}"
    text = name + text.removeprefix(shown)
    arguments = plain.__code__.co_varnames[: plain.__code__.co_argcount]
    if name != shown and "axis0" in arguments:
        text = text.replace("argument 'dim", "argument 'axis")
    match = _POSITION.search(text)
    if match and match[1] in arguments:
        place = arguments.index(match[1]) + (not is_method)
        text = text.replace(match[0], f"argument '{match[1]}' (position {place})")
    if not is_method:
        return text
    takes_none = _TAKES_ITSELF.search(text)
    if takes_none and plain.__code__.co_kwonlyargcount <= ("out" in plain.__code__.co_varnames):
        return f"TensorBase.{name}() takes no arguments ({int(takes_none[1]) - 1} given)"
    return _without_self(text, len(values))


def _instructions(frame):
    """Return the instructions of a frame up to the call in progress."""
    return [one for one in dis.get_instructions(frame.f_code) if one.offset <= frame.f_lasti]


def is_method_call(frame, count):
    """Whether the call in progress in a frame, with `count` values, is a method call.

    None for a call with unpacked arguments, which may or may not include the tensor itself.
    """
    call = _instructions(frame)[-1]
    return call.arg == count - 1 if call.opname in ("CALL", "CALL_KW") else None


def _without_self(text, count):
    """Remove the first of `count` arguments from the text, if the text lists them all."""
    given = _NESTED.sub("", text.partition("got (")[2]).partition(")")[0]
    if given.count(",") + 1 == count:
        text = re.sub(r"got \(Tensor(?:, )?", "got (", text, count=1)
        text = re.sub(r"\n \* \(Tensor (?:input|self)(?:, )?", r"\n * (", text)
    text = re.sub(r"got \((\w+=[^)]*[^ ])\)", r"got (\1, )", text, count=1)  # as in PyTorch, if all have keywords
    return takes_one_less(text)


def takes_one_less(text):
    """Do not count the tensor itself in an error about too many arguments."""
    match = _TAKES.search(text)
    if match and match[1] != "1":
        plural = "s" * (match[1] != "2")
        count = f"takes {int(match[1]) - 1} positional argument{plural} but {int(match[2]) - 1} were given"
        text = text.replace(match[0], count.replace("but 1 were", "but 1 was"))
    return text
