"""Recovers the source text of the call that changed a tensor in place, so that errors can suggest a replacement.

An op may run under a different name than it was called by: `w.multiply_(2)` runs `mul_`, and so does dropout with
`inplace=True`. The site of a change is the innermost line outside this package, so the function called there is one of
ours: a function, a method, or a module.
"""

import ast
from dataclasses import dataclass

from cygrad._core.errors.sites import expression

_MODULES = {"F", "torch", "cygrad", "nn", "functional", "init", "special"}  # usual namespaces of functions


@dataclass
class Call:
    """A call as written in the user's source."""

    text: str
    name: str  # name of the function, e.g. 'dropout'
    changed: ast.expr | None  # the expression of the tensor that the call changes
    is_told: bool  # `inplace=True` was passed by keyword
    has_out: bool

    def of(self, wrapped):
        """Return the text of the call with the changed expression replaced by `wrapped(it)`; None if it is unknown."""
        changed = self.changed
        own = None if changed is None else ast.get_source_segment(self.text, changed)
        if changed is None or own is None:
            return None
        source = self.text.encode()  # columns count bytes
        start, end = source[: changed.col_offset], source[changed.end_col_offset :]
        return start.decode() + wrapped(own) + end.decode()


def call_at(place):
    """Return the call at a site; None for an operator, or if the source is unavailable."""
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
    """Whether the function is a method of the tensor that it changes, rather than part of a module."""
    owner = function.value
    return function.attr.endswith("_") and getattr(owner, "attr", getattr(owner, "id", None)) not in _MODULES


def name_of_change(op_name, place):
    """Return the name under which the op was called at that site, e.g. 'dropout(inplace=True)' for 'mul_'."""
    call = call_at(place)
    if call is None or call.name == op_name:
        return op_name
    if call.is_told:
        return f"{call.name}(inplace=True)"
    if call.has_out:
        return f"{call.name}(out=)"
    return call.name if call.name.endswith("_") and call.name != "_" else op_name
