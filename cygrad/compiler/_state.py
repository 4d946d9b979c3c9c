"""What a step reads of Python: a guard on everything that its functions can reach.

Starting at the function, its arguments and the functions that ran, `Survey` follows names: globals, closures, defaults,
attributes, items. It follows a name only if a function that ran mentions it, or if names are computed. Each container
is checked (`Guard`), each object of a kind that cannot be compared is a reason not to replay: nothing is assumed.
"""

from __future__ import annotations

import abc
import dis
import functools
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cygrad import Tensor
from cygrad.__future__ import get_swap_module_params_on_conversion
from cygrad._core.replay.guards.state import Guard, are_same, attributes_of, is_made_in_python
from cygrad._core.replay.guards.walk import LEAVES, Walk
from cygrad._core.runtime.settings import _Switches
from cygrad._core.types.device import default_device, defaults
from cygrad._kernels.device.cupy_library import switches
from cygrad._kernels.gpu.runtime.matmul_precision import Precision
from cygrad._ops.random.source import Source
from cygrad.compiler._watching import Reason, Watch, impurity, is_of_named_tuple, is_of_numpy, is_ours
from cygrad.func._batching import has_other_steps
from cygrad.nn import Module
from cygrad.nn.modules._use import global_hooks
from cygrad.optim import optimizer as optimizers

_MOST = 20_000  # objects that are looked at
_LARGEST = 1 << 16  # bytes of an array of NumPy that are compared
_UNCHANGING = ("dtype", "device", "layout", "memory_format", "finfo", "iinfo", "qscheme")
_CONTAINERS = (dict, list, tuple, set, frozenset, deque)
_PLAIN_CONTAINERS = frozenset(_CONTAINERS)  # of these very types, which hold nothing else
_FOLLOWED_TYPES = (object, dict, list, tuple, set, frozenset, int, float, complex, str, bytes, BaseException, type)
_OWN_NAMES = frozenset(vars(Module()))


class Survey(Walk):
    """All that is reachable; `reasons` tell what cannot be checked."""

    def __init__(
        self,
        function: Any,
        objects: list[tuple[str, Any]],
        watch: Watch,
    ) -> None:
        super().__init__(Guard())
        self.reasons: list[Reason] = []
        self._objects, self._watch = objects, watch
        self._names = watch.names
        self._groups: dict[int, list[Any]] = {}  # the list that holds each group of an optimizer
        self._named: dict[int, tuple[str, dict[str, Any], set[str]]] = {}
        self._analysed: set[tuple[int, int]] = set()
        self._site: tuple[str, int] | None = None
        self.follow("", function)
        for text, value in objects:
            self.follow(text, value)
        for text, hooks in _HOOKS_OF_ALL:
            self.follow(text, hooks)
        self._check_settings()
        self._drain()
        self._visit_other_functions()
        for text, owner, names in self._named.values():
            self.guard.named(text, owner, sorted(names))

    def _check_settings(self) -> None:
        """Check the settings of the package that the program does not check itself."""
        for holder in _SETTINGS:
            self.guard.version(holder.__name__, holder)
        if "get_swap_module_params_on_conversion" in self._watch.own_names:
            swaps = get_swap_module_params_on_conversion()
            self.guard.asked("", lambda: _changed_swapping(swaps))
        if "has_other_steps" in self._watch.own_names:
            self.guard.asked("", _replaced_steps)
        if defaults.in_use:  # otherwise no thread has another default device than the CPU
            expected = default_device()
            self.guard.asked("", lambda: None if default_device() == expected else "the default device was changed")

    # -- the walk --

    def _drain(self) -> None:
        if not self.drain(_MOST):
            self.refuse(f"more than {_MOST:,} objects can be reached", "pass what it needs as arguments")

    def refuse(self, text: str, remedy: str = "") -> None:
        """Add a reason not to replay."""
        reason = Reason(text, self._site, remedy)
        if reason not in self.reasons:
            self.reasons.append(reason)

    def visit(self, text: str, value: Any) -> None:
        """Enter what an object holds, or refuse it."""
        kind = type(value)
        if isinstance(value, Tensor):
            self._visit_attributes(text, attributes_of(value), type(value))
        elif kind in _PLAIN_CONTAINERS:
            self._visit_container(text, value)
        elif kind.__module__ in _OF_COMPILED_FUNCTIONS:
            self.follow(text, getattr(value, "function", None))
        elif isinstance(value, types.ModuleType):
            self._visit_module(text, value)
        elif isinstance(value, type):
            self._visit_class(value)
        elif kind is types.FunctionType:
            self._visit_function(text, value)
        elif kind is types.MethodType:
            self.follow(text, value.__func__)
            self.follow(f"{text}.__self__" if text else "self", value.__self__)
        elif kind is types.CellType:
            self._visit_cell(text, value)
        elif isinstance(value, Source):  # a generator: the program looks after what it draws from
            self._visit_type_of(value)
        elif kind in _VISITS:
            _VISITS[kind](self, text, value)
        elif isinstance(value, np.ndarray):
            self._visit_array(text, value)
        elif isinstance(value, np.generic | np.dtype | np.ufunc) or _is_unchanging(value):
            pass
        elif kind in _CALLED_IN_C:
            name = impurity(value)
            if name is not None:
                self.refuse(f"`{name}` is used, whose effect or result a replay cannot know")
        elif _is_compiled_function(value):
            if not _is_of_package(value):
                self.refuse(f"`{text}` is compiled code, whose effect or result a replay cannot know")
        else:
            self._visit_object(text, value)

    def _visit_module(self, text: str, value: types.ModuleType) -> None:
        """A module of Python that is used other than by `module.name`: all names of it that are mentioned anywhere."""
        if _is_ours(value.__name__):
            return
        for name in self._names & value.__dict__.keys() if not self._watch.is_dynamic else list(value.__dict__):
            self.follow(f"{text}.{name}", value.__dict__[name])
        self._note_names(f"{text}.__dict__", value.__dict__, self._names)

    def _visit_class(self, value: type) -> None:
        if type(value) is not type:
            self._visit_type_of(value)
        if not is_made_in_python(value):
            if not _is_ours(value.__module__) and value.__module__ not in _KNOWN_MODULES:
                self.refuse(f"the class `{value.__module__}.{value.__qualname__}` is compiled code")
            return
        if not self.guard.version(value.__qualname__, value):
            self.refuse(f"changes of the class `{value.__qualname__}` cannot be seen")
        for base in value.__mro__:
            if is_made_in_python(base) and not _is_ours(base.__module__):
                for name, member in list(vars(base).items()):
                    is_used = self._watch.is_dynamic or name in self._names
                    for part in _parts_of_member(member):
                        if is_used or self._runs(part):
                            self.follow(f"{base.__qualname__}.{name}", part)

    def _runs(self, function: Any) -> bool:
        return type(function) is types.FunctionType and id(function.__code__) in self._watch.codes

    def _visit_type_of(self, value: Any) -> None:
        self.follow("", type(value))

    def _visit_function(self, text: str, value: types.FunctionType) -> None:
        self.guard.function(text or value.__qualname__, value)
        if is_ours(value.__code__):  # what it calls of the user's is in its cells
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                self.follow(name, cell)
        if not self._runs(value):
            return
        self.follow(f"defaults of {value.__qualname__}", value.__defaults__)
        self.follow(f"defaults of {value.__qualname__}", value.__kwdefaults__)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            self.follow(name, cell)
        if value.__dict__:
            self._visit_attributes(value.__qualname__, value.__dict__, object)
        self._analyse(value.__code__, value.__globals__)

    def _visit_cell(self, text: str, value: types.CellType) -> None:
        self.guard.content(text, value)
        try:
            self.follow(text, value.cell_contents)
        except ValueError:  # empty
            pass

    def _visit_object(self, text: str, value: Any) -> None:
        if isinstance(value, _CONTAINERS):
            self._visit_container(text, value)
        elif not _is_followed(type(value)):
            self.refuse(f"`{text}` is an object of class `{_name_of(type(value))}`, which cannot be compared")
            return
        self._visit_type_of(value)
        if isinstance(value, optimizers.Optimizer) and type(value.param_groups) is list:
            self._groups.update((id(group), value.param_groups) for group in value.param_groups)
        attributes = _dictionary_of(value)
        if attributes is not None:
            self.guard.instance(text, value)
            self._visit_attributes(text, attributes, type(value))
        self._visit_slots(text, value)

    def release(self, values: list[tuple[dict[str, Any], str]]) -> None:
        """Leave out of the guard what replays read anew, if nothing but an optimizer's step reads it.

        `values` are entries of dictionaries. The user's functions reach the groups of an optimizer by its attribute or
        by another way to them, which was then found.
        """
        if self._watch.reads_groups:
            return
        for owner, key in values:
            holder = self._groups.get(id(owner))
            if holder is not None and self.reached_twice.isdisjoint((id(owner), id(holder))):
                self.guard.release(owner, key)

    def still_holds(self, objects: list[tuple[str, Any]]) -> bool:
        """Whether all is as it was, also in the objects among the arguments of another call: they are the same ones."""
        same = len(objects) == len(self._objects) and all(
            are_same(new, old) for (_, new), (_, old) in zip(objects, self._objects)
        )
        return same and self.guard.holds()

    def _visit_attributes(self, text: str, attributes: dict[str, Any], kind: type) -> None:
        whole = _is_ours(kind.__module__) and kind is not Tensor
        if whole or self._watch.is_dynamic:
            self.guard.whole(f"{text}.__dict__", attributes)
            names = set(attributes)
        else:
            names = self._names
            if any(_is_ours(base.__module__) for base in kind.__mro__):  # whose methods use other names
                names = names | self._watch.own_names | _OWN_NAMES
            self._note_names(f"{text}.__dict__", attributes, names)
        for name in names & attributes.keys():
            self.follow(f"{text}.{name}" if text else name, attributes[name])

    def _visit_slots(self, text: str, value: Any) -> None:
        for base in type(value).__mro__:
            if is_made_in_python(base):
                for name, member in vars(base).items():
                    if type(member) is types.MemberDescriptorType and not name.startswith("__"):
                        held = getattr(value, name, _MISSING)
                        path = f"{text}.{name}"
                        self.guard.asked(path, functools.partial(_compare_slot, path, value, name, held))
                        if held is not _MISSING:
                            self.follow(path, held)

    def _visit_container(self, text: str, value: Any) -> None:
        if isinstance(value, dict):
            self.guard.whole(text, value)
            if isinstance(value, OrderedDict):
                self.guard.asked(text, functools.partial(_compare_order, text, value, list(value)))
            self.follow_entries(text, value)
            self.follow(f"{text}.default_factory", getattr(value, "default_factory", None))
            return
        if isinstance(value, list):
            self.guard.items(text, value)
        elif isinstance(value, set) and not value:
            self.guard.empty(text, value)
        elif not isinstance(value, (tuple, frozenset)):
            self.guard.asked(text, functools.partial(_compare_items, text, value, list(value)))
        self.follow_items(text, value)

    def _visit_array(self, text: str, value: np.ndarray) -> None:
        if value.nbytes > _LARGEST or value.dtype.hasobject:
            self.refuse(f"`{text}` is an array of NumPy, which is too large to be compared", "make it a tensor")
        else:
            self.guard.asked(text, functools.partial(_compare_bytes, text, value, _state_of_array(value)))

    # -- the names in functions --

    def _visit_other_functions(self) -> None:
        """Visit functions that ran and were not reached: those made in the call itself."""
        codes = self._watch.codes
        reached = {code for code, _ in self._analysed}
        made = {
            id(constant) for code, _ in codes.values() for constant in code.co_consts if hasattr(constant, "co_code")
        }
        for key, (code, namespace) in codes.items():
            if key in reached:
                continue
            if is_of_numpy(code):  # compiled code of the package calls it, or the walk would have come here
                continue
            if is_of_named_tuple(namespace):
                continue
            if key not in made:
                self._site = code.co_filename, code.co_firstlineno
                self.refuse(f"it was not found how `{code.co_qualname}` was reached", "call it by its name")
                self._site = None
            self._analyse(code, namespace)
            self._drain()

    def _analyse(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """Follow the globals that a function mentions, and names of modules: `a` and `b.c` of `a + b.c(d)`."""
        if (id(code), id(namespace)) in self._analysed:
            return
        self._analysed.add((id(code), id(namespace)))
        for mention in _mentions(code):
            self._site = code.co_filename, mention.line
            if mention.imports:
                module = _imported(mention.chain[0], namespace)
                if module is not None:
                    self.follow(mention.chain[0], module)
                continue
            self._follow_chain(mention, namespace)
        self._site = None

    def _follow_chain(self, mention: _Mention, namespace: dict[str, Any]) -> None:
        name, *attributes = mention.chain
        builtins = namespace.get("__builtins__", {})
        builtins = builtins.__dict__ if isinstance(builtins, types.ModuleType) else builtins
        self._note_names("globals", namespace, {name})
        if name in namespace:
            value = namespace[name]
        elif name in builtins:
            self._note_names("builtins", builtins, {name})
            value = builtins[name]
        else:
            return
        text = name
        while attributes and isinstance(value, types.ModuleType):
            attribute = attributes.pop(0)
            self._note_names(f"{text}.__dict__", value.__dict__, {attribute})
            text = f"{text}.{attribute}"
            value = getattr(value, attribute, None)
        if not (mention.is_called and not attributes and type(value) in _SEEN_WHEN_CALLED):
            self.follow(text, value)

    def _note_names(self, text: str, owner: dict[str, Any], names: set[str]) -> None:
        known = self._named.setdefault(id(owner), (text, owner, set()))
        known[2].update(names)


class _Mention:
    """A global that a function uses, and the attributes right behind it."""

    __slots__ = ("chain", "imports", "is_called", "line")

    def __init__(self, chain: list[str], line: int, is_called: bool, imports: bool) -> None:
        self.chain, self.line, self.is_called, self.imports = chain, line, is_called, imports


def _mentions(code: types.CodeType) -> list[_Mention]:
    """Return the globals that a function mentions. Instructions are read, not executed."""
    found: list[_Mention] = []
    line, last = code.co_firstlineno, None
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOP", "RESUME")]
    for instruction in instructions:
        line = instruction.starts_line if type(instruction.starts_line) is int else _line_of(instruction, line)
        name = instruction.opname
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME", "DELETE_NAME"):
            last = _Mention([instruction.argval], line, "NULL" in instruction.argrepr, False)
            found.append(last)
        elif name in ("LOAD_ATTR", "LOAD_METHOD") and last is not None:
            last.chain.append(instruction.argval)
            last.is_called = last.is_called or name == "LOAD_METHOD" or "NULL" in instruction.argrepr
        elif name == "IMPORT_NAME":
            found.append(_Mention([instruction.argval], line, False, True))
            last = None
        elif name == "PUSH_NULL" and last is not None:
            last.is_called, last = True, None
        else:
            last = None
    return found


def _line_of(instruction: Any, otherwise: int) -> int:
    positions = getattr(instruction, "positions", None)
    return otherwise if positions is None or positions.lineno is None else positions.lineno


def _imported(name: str, namespace: dict[str, Any]) -> Any:
    import sys  # only for modules that are imported inside a function

    return sys.modules.get(name)


_MISSING = object()
# Of these, only what they call matters.
_OF_COMPILED_FUNCTIONS = ("cygrad.compiler._step", "cygrad._core.replay.calls.plans")
_SETTINGS = (defaults, switches, _Switches, Precision)
_HOOKS_OF_ALL = (
    ("the hooks of all modules", global_hooks),
    ("the hooks of all optimizers", optimizers.global_pre_hooks),
    ("the hooks of all optimizers", optimizers.global_post_hooks),
)
_SEEN_WHEN_CALLED = (types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
_CALLED_IN_C = (*_SEEN_WHEN_CALLED, types.WrapperDescriptorType, types.MethodWrapperType)
_KNOWN_MODULES = ("builtins", "numpy", "collections", "types", "_collections", "functools", "itertools")


def _visit_partial(survey: Survey, text: str, value: Any) -> None:
    survey.follow(text, value.func)
    survey.follow(text, value.args)
    survey.follow(text, value.keywords)
    parts = value.func, value.args, value.keywords
    survey.guard.asked(text, lambda: None if all(map(are_same, (value.func, value.args, value.keywords), parts)) else
                       f"{text} was changed")  # fmt: skip


def _visit_registry(survey: Survey, text: str, value: Any) -> None:
    token = abc.get_cache_token()  # changes when a class is registered with any abstract class
    survey.guard.asked(text, lambda: None if abc.get_cache_token() == token else "a class was registered with another")


def _visit_wrapped(survey: Survey, text: str, value: Any) -> None:
    for part in _parts_of_member(value):
        survey.follow(text, part)


def _visit_reference(survey: Survey, text: str, value: Any) -> None:
    """A weak reference, as schedules leave in optimizers, and hooks in modules: to what guards see otherwise."""
    if not isinstance(value(), (optimizers.Optimizer, Module)) or id(value()) not in survey.seen:
        survey.refuse(f"`{text}` is a `weakref.ReferenceType`, whose object may end")


def _visit_nothing(survey: Survey, text: str, value: Any) -> None:
    pass


_VISITS: dict[type, Callable[[Survey, str, Any], None]] = {
    functools.partial: _visit_partial,
    weakref.ReferenceType: _visit_reference,
    type(vars(abc.ABC)["_abc_impl"]): _visit_registry,
    property: _visit_wrapped,
    staticmethod: _visit_wrapped,
    classmethod: _visit_wrapped,
    types.CodeType: _visit_nothing,
    type(vars(Reason)["text"]): _visit_nothing,  # of a field of a named tuple
    types.GetSetDescriptorType: _visit_nothing,  # what they read is visited with their objects
    types.MemberDescriptorType: _visit_nothing,
    types.GenericAlias: _visit_nothing,
    object: _visit_nothing,
}


def _parts_of_member(member: Any) -> Iterator[Any]:
    """Yield the functions behind a property or method of a class, or the member itself."""
    if isinstance(member, property):
        yield from (part for part in (member.fget, member.fset, member.fdel) if part is not None)
    elif isinstance(member, (staticmethod, classmethod)):
        yield member.__func__
    elif isinstance(member, functools.cached_property):
        yield member.func
    else:
        yield member


def _is_ours(module: str | None) -> bool:
    return module is not None and (module in ("cygrad", "torch") or module.startswith("cygrad."))


def _is_of_package(value: Any) -> bool:
    return _is_ours(getattr(value, "__module__", None)) or _is_ours(type(value).__module__)


def _is_unchanging(value: Any) -> bool:
    return _is_ours(type(value).__module__) and type(value).__name__ in _UNCHANGING


def _is_compiled_function(value: Any) -> bool:
    return callable(value) and type(value).__name__ in ("cython_function_or_method", "builtin_function_or_method",
                                                        "fused_cython_function")  # fmt: skip


def _is_followed(kind: type) -> bool:
    """Whether all that an object holds is in its dictionary and slots: no class in C stands behind it."""
    return all(
        is_made_in_python(base) or base in _FOLLOWED_TYPES or _is_ours(base.__module__) for base in kind.__mro__
    ) and (not _is_ours(kind.__module__) or kind.__dictoffset__ != 0 or hasattr(kind, "__slots__"))


def _dictionary_of(value: Any) -> dict[str, Any] | None:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


def _name_of(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# -- what `Guard` has no check for --


def _replaced_steps() -> str | None:
    return "a library has replaced steps of vmap" if has_other_steps() else None


def _changed_swapping(expected: bool) -> str | None:
    is_same = get_swap_module_params_on_conversion() == expected
    return None if is_same else "whether modules swap their parameters was changed"


def _compare_slot(text: str, owner: Any, name: str, expected: Any) -> str | None:
    found = getattr(owner, name, _MISSING)
    return None if are_same(found, expected) else f"{text} was {_brief(expected)} and is {_brief(found)}"


def _brief(value: Any) -> str:
    return "absent" if value is _MISSING else repr(value) if type(value) in LEAVES else f"a {type(value).__qualname__}"


def _compare_order(text: str, owner: Any, expected: list[Any]) -> str | None:
    return None if all(map(are_same, owner, expected)) else f"the order of {text} was changed"


def _compare_items(text: str, owner: Any, expected: list[Any]) -> str | None:
    if len(owner) != len(expected) or not all(map(are_same, owner, expected)):
        return f"{text} was changed"
    return None


def _state_of_array(array: np.ndarray) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.strides, array.tobytes()


def _compare_bytes(text: str, array: np.ndarray, expected: tuple[Any, ...]) -> str | None:
    return None if _state_of_array(array) == expected else f"the array {text} was changed"


def changed_line(watch: Watch, key: Any) -> tuple[str, int] | None:
    """Return the line of a function that ran that assigns to an attribute, global or item with a name, or None.

    If there is none, it is the first line that changes a container.
    """
    for changes in (_assigns_to, _changes_container):
        for code, _ in watch.codes.values():
            line = code.co_firstlineno
            for instruction in dis.get_instructions(code):
                starts = instruction.starts_line
                line = starts if type(starts) is int else _line_of(instruction, line)
                if changes(instruction, key):
                    return code.co_filename, line
    return None


def _assigns_to(instruction: dis.Instruction, key: Any) -> bool:
    is_store = instruction.opname in ("STORE_ATTR", "STORE_GLOBAL", "STORE_NAME", "STORE_DEREF")
    return is_store and instruction.argval == key


def _changes_container(instruction: dis.Instruction, key: Any) -> bool:
    is_call = instruction.opname in ("LOAD_METHOD", "LOAD_ATTR") and instruction.argval in _CHANGING_METHODS
    return is_call or instruction.opname in ("STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR")


_CHANGING_METHODS = frozenset(
    "append extend add update pop insert remove clear setdefault popleft appendleft discard popitem".split()
)
