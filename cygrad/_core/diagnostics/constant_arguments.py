"""The error of a call that reads a tensor that requires grad as a plain number, which would end its gradient.

PyTorch takes tensors for numbers, such as `eps`, if they have one element and do not require grad.
"""

import sys
from types import FrameType

from cygrad._core.errors import messages
from cygrad._core.errors.sites import is_ours

_OPS = "cygrad._ops."
_NUMBERS = frozenset("alpha beta fill_value lambd max min negative_slope ord threshold value".split())
# They make a new leaf of the values, as in PyTorch
_COPIES = frozenset("as_tensor asarray linspace logspace new_tensor tensor".split())


def check_not_argument(t):
    """Raise TypeError if `t` was passed to the public function that is now reading its value."""
    frame: FrameType | None = sys._getframe(1)
    found = None
    while frame is not None and is_ours(frame.f_code):
        if frame.f_globals.get("__name__", "").startswith(_OPS):
            found = _argument(frame, t) or found
        frame = frame.f_back
    if found is not None and found[0] not in _COPIES:
        raise _error(*found)


def _argument(frame, t):
    """Return the names of a function and of the argument that is or holds `t`, the latter's position, and its value."""
    code, values = frame.f_code, frame.f_locals
    for place, name in enumerate(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        value = values.get(name)
        if value is t or type(value) in (tuple, list) and any(item is t for item in value):
            return code.co_name, name, place + 1 if place < code.co_argcount else 0, value
    return None


def _error(function, name, position, value):
    kind = "Number" if name in _NUMBERS else "float"  # PyTorch's words
    if type(value) in (tuple, list):
        kind = f"tuple of {kind.lower()}s without tensors that require grad"
    if position:
        return messages.wrong_type(function, name, position, kind, value)
    return messages.wrong_keyword(function, name, kind, value)
