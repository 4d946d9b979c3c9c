"""Publishes rows: binds entry points to the package namespace and to Tensor."""

import re
import sys
from functools import update_wrapper
from types import FunctionType

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.opdef import (
    FUNCTION_ONLY,
    INPLACE,
    METHOD_ONLY,
    PRIVATE,
    check_function,
    entries_by_ufunc,
    facts_of,
    is_seen,
    standing_before,
    twin,
    ufuncs_by_name,
    unpublished,
)
from cygrad._core.graph.record import apply1
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.signatures import BY_NAME, Call, Shown, hides_signature, plain_of

PACKAGE = "cygrad"
VAR_POSITIONAL = 4  # inspect.CO_VARARGS
ANY = 2**31 - 1  # number of positional arguments
DOC_IN_PLACE = """In-place form of `{0}`: writes the result into this tensor and returns it.

    Same arguments and gradient. Raises RuntimeError if the result has another shape or does not fit into the dtype, and
    for a leaf that requires grad.

    {1}"""


def published(module, others):
    """Return the entry points of a family: {name: function} for the package, and the same for the methods of Tensor.

    The methods' names are stored in the module as `published_methods`.

    `module` is a family's namespace (`globals()`): every row whose entry point it contains is bound. Functions without
    a row (those composed of other ops) are listed in the module's `composite` dictionary {name: flags}; methods that
    differ from the function of the same name in its `methods` {name: function}; extra checks of in-place forms in its
    `in_place_checks` {name: function}; what an in-place form shows for the example of the function, if that is another
    result, in its `in_place_results` {name: text}. `others` are functions that the package publishes under these names.
    """
    from cygrad._core.registry.autocast import guard  # which imports this module

    guard(module, others)
    functions = {}
    methods = {}
    looked_at = {}
    checks, results = module.get("in_place_checks", {}), module.get("in_place_results", {})
    rows = {name: (row.flags, row) for name, row in unpublished.items() if name in module}
    rows.update({name: (flags, None) for name, flags in module.get("composite", {}).items()})
    for name, (flags, row) in rows.items():
        entry = module[name]
        names = (name,)
        if row is not None:
            row.entry = entry
            del unpublished[name]
            names += row.aliases
        if flags & PRIVATE:
            continue
        looked_at[entry] = module[name] = entry = _checked(entry, row if facts_of["direct"].get(name) else None)
        for ufunc in ufuncs_by_name.get(name, ()):
            entries_by_ufunc.setdefault(getattr(np, ufunc), entry)
        for public in names:
            if not flags & METHOD_ONLY:
                functions[public] = entry
            if not flags & FUNCTION_ONLY:
                methods[public] = entry
            if flags & INPLACE:
                methods[public + "_"] = in_place = _in_place_form(entry, public + "_", checks.get(name))
                in_place.__doc__ = _doc_in_place(entry, name, public, results.get(name))
                if not flags & METHOD_ONLY:
                    functions[public + "_"] = in_place
    for entries, more in ((methods, module.get("methods", {})), (functions, others)):
        for name, entry in more.items():
            if entry not in looked_at:
                looked_at[entry] = _checked(entry)
            entries[name] = looked_at[entry]
    functions = _apart(functions, "", ())
    methods = _apart(methods, "Tensor.", {*functions.values()})
    for owner, entries in (("", functions), ("Tensor.", methods)):
        for name, entry in entries.items():
            _locate(entry, owner + name)
    for entry in {*functions.values(), *methods.values()}:
        if not isinstance(entry, FunctionType) and hasattr(entry, "__dict__"):
            entry.__call__ = Call(entry)
    module["published_methods"] = tuple(methods)
    return functions, methods


def _apart(entries, owner, others):
    """Return the entries as objects that have their names, and of which none is among `others`.

    `__torch_function__` tells a method from the function, and an alias from the name it stands for.
    """

    def is_apart(name, entry):
        return entry not in others and getattr(entry, "__name__", name) == name

    return {name: entry if is_apart(name, entry) else _form(entry, owner, name) for name, entry in entries.items()}


def _form(entry, owner, name):
    """Return another object that does what a published function does; the function is its attribute `function_form`."""
    if not isinstance(entry, FunctionType):
        form = twin(entry) if is_seen(entry) else None
    else:
        from cygrad._core.registry.autocast import guarded  # which imports this module

        plain = twin(vars(entry)["__wrapped__"])  # a compiled function that asks autocast first
        del plain.published
        plain.published = form = guarded(plain)
    if form is None:
        return entry
    form.function_form = getattr(entry, "function_form", entry)
    form.__name__, form.__module__, form.__qualname__ = name, PACKAGE, f"{owner}{name}"
    return form


def _checked(entry, direct=None):
    """Return `_made_checked(entry, direct)` with the signature that calls must follow, if its code states another."""
    found, plain = _made_checked(entry, direct), plain_of(entry)
    if hides_signature(plain):
        found.__signature__ = Shown(plain)
    return found


def _made_checked(entry, direct):
    """Return an entry point whose failing calls are re-examined: see `checked_call.h`.

    If it just passes its arguments to `apply1` with the row `direct`, calls with a single tensor bypass it.
    """
    plain = plain_of(entry)
    code = getattr(plain, "__code__", None)
    if code is None:
        return entry
    names = code.co_varnames[: code.co_argcount]
    if not isinstance(plain, FunctionType):
        required = len(names) - len(plain.__defaults__ or ())
        check_function(plain, required, ANY if code.co_flags & VAR_POSITIONAL else _by_position(names))
        return entry
    if hasattr(entry, "asks"):
        return entry
    return update_wrapper(standing_before(entry if direct is None else (entry, apply1, direct)), entry)


def _locate(entry, name):
    """Have a function that its module does not show, such as an in-place form, pickled by its name in the package."""
    home = getattr(entry, "__module__", None)
    if home is None or home == PACKAGE or isinstance(entry, type):
        return
    found = sys.modules.get(home)
    for part in entry.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not entry:
        entry.__module__, entry.__qualname__ = PACKAGE, name


def _by_position(names):
    """Return how many arguments may be passed by position: not `out`, nor the factor before it."""
    return next((place for place, name in enumerate(names) if name in BY_NAME), len(names))


def _of_method(error, name):
    """Rephrase an error of the function for its in-place form, which does not count the tensor itself."""
    if type(error) is not TypeError:
        return error
    from cygrad._core.diagnostics.call_spelling import takes_one_less  # deferred: it imports opdef, which publishes

    text = takes_one_less(re.sub(r"^\w+\(\)", f"{name}()", str(error)))
    text = re.sub(r"\(position (\d+)\)", lambda match: f"(position {int(match[1]) - 1})", text, count=1)
    text = re.sub(r"(, )?out=Tensor(?=[,)])", "", text, count=1)
    return TypeError(re.sub(r"got \(Tensor(, )?", "got (", text, count=1))


def _after(check, entry):
    def checked(input, *, out):
        check(input)
        return entry(input, out=out)

    return checked


def _doc_in_place(entry, name, public, result):
    """Return the docstring of an in-place form, with the example of the function."""
    doc = entry.__doc__ or ""  # None in optimized Python
    example = doc[doc.find(">>> ") :].replace(f".{name}(", f".{public}_(")
    if result is not None:
        example = f"{example[: example.rfind('tensor([')]}{result}\n    "
    return DOC_IN_PLACE.format(public, example)


def _in_place_form(entry, name, check=None):
    entry = entry if check is None else _after(check, entry)

    def unusual(*args, **kwargs):
        if args and isinstance(args[0], TypeError):
            raise _of_method(args[0], name) from None
        if not args:
            if "input" not in kwargs:
                raise TypeError(f'{name}() missing 1 required positional arguments: "input"')
            args = (kwargs.pop("input"),)
        if not isinstance(args[0], Tensor):
            from cygrad._core.diagnostics.refused_calls import answer_of_objects  # deferred: few calls need it

            found = answer_of_objects(form, (*args, *kwargs.values()), tuple(kwargs))
            if found is None:
                raise messages.wrong_type(name, "input", 1, "Tensor", args[0])
            return found[0]
        if "out" in kwargs:
            raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
        return entry(*args, out=args[0], **kwargs)

    form = standing_before((entry, ("out",), Tensor, unusual), True)
    form.__name__ = form.__qualname__ = name
    form.__signature__ = Shown(entry, without_out=True)
    return form
