"""Names for the values of a graph that are valid in Python and unique."""

import builtins
import keyword
import re
from math import inf, nan
from typing import Any, NamedTuple

import cygrad

_ILLEGAL = re.compile("[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*)_(\d+)$")


class _CustomBuiltin(NamedTuple):
    """A global that generated code may use without asking: the statement that imports it, and the object."""

    import_str: str
    obj: Any


# Arguments in generated code are written as their `repr`, which uses these names.
_custom_builtins: dict[str, _CustomBuiltin] = {
    "inf": _CustomBuiltin("from math import inf", inf),
    "nan": _CustomBuiltin("from math import nan", nan),
    "NoneType": _CustomBuiltin("NoneType = type(None)", type(None)),
    "torch": _CustomBuiltin("import cygrad as torch", cygrad),
    "device": _CustomBuiltin("from cygrad import device", cygrad.device),
}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Let generated code refer to an object by a name of its own."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


class _Namespace:
    """The names in use: each belongs to one object or to none."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._used: set[str] = set()
        self._count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return `candidate`, or a name made from it that is legal and not in use. If `obj` has a name, return that."""
        if obj is not None and id(obj) in self._names:
            return self._names[id(obj)]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base = candidate
        if candidate in self._used or self._is_illegal(candidate, obj):
            numbered = _NUMBERED.match(candidate)
            base = numbered[1] if numbered else candidate
            number = self._count.get(base, 0)
            while candidate in self._used or self._is_illegal(candidate, obj):
                number += 1
                candidate = f"{base}_{number}"
            self._count[base] = number
        self._used.add(candidate)
        if obj is not None:
            self.associate_name_with_obj(candidate, obj)
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object the name by which `create_name` will know it."""
        self._names[id(obj)] = name
        self._used.add(name)

    def _rename_object(self, obj: Any, name: str) -> None:
        self.associate_name_with_obj(name, obj)

    @staticmethod
    def _is_illegal(name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        for known in (vars(builtins), {key: value.obj for key, value in _custom_builtins.items()}):
            if name in known:
                return obj is None or known[name] is not obj
        return False
