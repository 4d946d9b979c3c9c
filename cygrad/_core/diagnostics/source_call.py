"""What the user has written where a tensor is changed in place, for errors that tell what to write instead.

An op may run under another name than it was called by: `w.multiply_(2)` is `mul_`, and so is what dropout does when it
is told `inplace=True`. The site of a change is the innermost line outside of this package, so what is called there is
ours: a function, a method, or a module.
"""

import ast
from dataclasses import dataclass

from cygrad._core.errors.sites import expression

_MODULES = {"F", "torch", "cygrad", "nn", "functional", "init", "special"}  # what functions are usually taken from


@dataclass
class Call:
    """A call in the user's words."""

    text: str
    name: str  # of what is called, as 'dropout'
    changed: ast.expr | None  # the tensor that it changes
    is_told: bool  # `inplace=True`, by keyword
    has_out: bool

    def of(self, wrapped):
        """The text of the call, with `wrapped` of what it changes; None where that cannot be told."""
        changed = self.changed
        own = None if changed is None else ast.get_source_segment(self.text, changed)
        if changed is None or own is None:
            return None
        source = self.text.encode()  # columns count bytes
        start, end = source[: changed.col_offset], source[changed.end_col_offset :]
        return start.decode() + wrapped(own) + end.decode()


def call_at(place):
    """The call that stands at a place, or None: an operator, or a text that can not be had."""
    text = expression(*place).strip()
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(call, ast.Call):
        return None
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    function = call.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    if isinstance(function, ast.Attribute) and _is_method(function) and "inplace" not in keywords:
        changed: ast.expr | None = function.value
    else:
        changed = keywords.get("out", call.args[0] if call.args else keywords.get("input"))
    return Call(text, name, changed, "inplace" in keywords, "out" in keywords)


def _is_method(function):
    """Does what is called belong to the tensor that it changes, rather than to a module of functions?"""
    owner = function.value
    return function.attr.endswith("_") and getattr(owner, "attr", getattr(owner, "id", None)) not in _MODULES


def name_of_change(op_name, place):
    """The name by which the op that changes a tensor was called there, as 'dropout(inplace=True)' for 'mul_'."""
    call = call_at(place)
    if call is None or call.name == op_name:
        return op_name
    if call.is_told:
        return f"{call.name}(inplace=True)"
    if call.has_out:
        return f"{call.name}(out=)"
    return call.name if call.name.endswith("_") and call.name != "_" else op_name
