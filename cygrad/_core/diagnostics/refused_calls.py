"""Second attempt at calls that Python or Cython refused: accepts NumPy's names and scalars, words errors as PyTorch."""

import inspect
import re
import sys
from contextlib import suppress

import numpy as np

from cygrad._core.diagnostics.call_spelling import as_called, is_method_call
from cygrad._core.errors import messages
from cygrad._core.errors.spelling import suggestion
from cygrad._core.graph.opdef import ELSEWHERE, facts_of, registry
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry.signatures import signatures

OTHER_NAMES = {
    "axis": "dim",
    "axis0": "dim0",
    "axis1": "dim1",
    "keepdims": "keepdim",
    "x2": "other",
    "other": "src",
    "element": "elements",
    "test_element": "test_elements",
}
NO_TENSOR = re.compile(r"must be (Number|float), not Tensor$|invalid combination of arguments")
FIRST = ("input", "self", "x", "a", "x1")
VARIADIC = 4 | 8  # inspect.CO_VARARGS, CO_VARKEYWORDS
NOT_A_TENSOR = re.compile(r"Argument '(\w+)' has incorrect type \(expected .*Tensor, got (.*)\)")
# The required kind of an argument, by name, valid for all functions that have such an argument
KINDS = {
    **dict.fromkeys(
        """accumulate align_corners assume_unique ceil_mode center count_include_pad density descending equal_nan
        full_matrices hermitian include_self invert keepdim largest left log_input log_target normalized onesided
        out_int32 pivot return_complex right scale_grad_by_freq sparse stable train training transpose unbiased
        unitriangular with_replacement wrap zero_infinity""".split(),
        "bool",
    ),
    **dict.fromkeys("eps margin momentum atol rtol base delta".split(), "float"),
    **dict.fromkeys("groups num_groups storage_offset diagonal decimals minlength ignore_index".split(), "int"),
}
ABOUT_ARGUMENTS = re.compile(r"(\w+)\(\)(: argument '| got an unexpected | got multiple | takes )")
BY_POSITION = re.compile(r"argument '(\w+)' \(position \d+\)")
UNKNOWN_NAME = re.compile(r" got an unexpected keyword argument '(\w+)'$")
OF_NO_TYPE = re.compile(r"dtype must be a torch.dtype, not ")


def look_again(function, values, names, kind, error):
    """Decide what to do after a call with these values failed; the last ones were passed by the keywords `names`.

    Return a 1-tuple with the result of a corrected call, the text of a TypeError, or None to keep the error as it is.
    """
    if kind.__name__ == "NoShape":  # which elements of its own would answer: those that a class holds
        from cygrad._core.registry import dispatch  # which few programs need

        return dispatch.answered(function, values, names)
    if "loat8_" in str(error):
        from cygrad._core.diagnostics.float8_errors import reworded  # which few programs need

        other = reworded(_plain(function).__name__, values, names, error)
        if other is not None:
            raise other from None
    found = _answer(function, values, names, kind, error)
    if isinstance(found, tuple) or (found is None and not issubclass(kind, TypeError)):
        return found
    text = str(error) if found is None else found
    if "out" not in (names or ()):  # an in-place form has words of its own
        call = Call.of(function, values, names)
        text = as_called(text, call.plain, call.title, values)
        if call.is_overloaded_alias(text.partition("()")[0]) and "() received" not in text:
            text = as_called(call.fits_none(), call.plain, call.title, values)
    unknown = UNKNOWN_NAME.search(text)
    if unknown:
        text += suggestion(unknown[1], [*inspect.signature(function).parameters])
    return None if text == str(error) else text


def _plain(function):
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _answer(function, values, names, kind, error):
    found = answer_of_objects(function, values, names)
    if found is not None:
        return found
    call = Call.of(function, values, names)
    plain, title, arguments = call.plain, call.title, call.arguments
    code = plain.__code__
    names = names or ()
    given = len(call.placed)
    if not issubclass(kind, TypeError):
        return call.misfit()
    if any(name not in arguments for name in names):
        known = tuple(_known(name, arguments, given, names) for name in names)
        if known != names:
            return (function(*values[:given], **dict(zip(known, values[given:]))),)
    text = str(error)
    if call.fact("takes_ints") and given > 2 and all(_is_int(value) for value in values[1:given]):
        return (function(values[0], values[1:given], **call.named),)
    if call.fact("alpha_by_position") and len(values) == given == 3 and not isinstance(values[1], Tensor):
        return (function(*values[:2], alpha=values[2]),)
    former = call.in_former_order()
    if former is not None:
        tensors, factors, rest = former
        return (function(*tensors, **factors, **rest),)
    required = arguments[: code.co_argcount - len(plain.__defaults__ or ())]
    missing = [f'"{name}"' for name in required[given:] if name not in names]
    if missing and not code.co_flags & VARIADIC and not call.fact("in_python"):
        if call.is_of_several():
            return call.fits_none()
        plural = "s" * (len(missing) == 1)  # as in PyTorch
        return f"{title}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}"
    # Convert NumPy scalars first; tensors among the values may then be accepted
    why = "" if any(isinstance(value, np.generic) for value in values) else text
    simple = [_simple(value, why) for value in values]
    if any(a is not b for a, b in zip(simple, values)):
        with suppress(TypeError):
            return (function(*simple[:given], **dict(zip(names, simple[given:]))),)
    return call.words(text)


def answer_of_objects(function, values, names):
    """Return, in a tuple, what objects that are no tensors make of a failed call; None if there are none."""
    lists = (value if type(value) in (tuple, list) else (value,) for value in values)
    if not any(_may_override(item) for items in lists for item in items):
        return None
    from cygrad._core.registry.torch_function import call_of_objects  # which few programs need

    return call_of_objects(function, values, names)


def _may_override(value):
    """Whether this is not a tensor, but an instance of a class that overrides calls."""
    return not isinstance(value, Tensor) and hasattr(type(value), "__torch_function__")


def _title(function):
    """Return PyTorch's name for a function in error texts, which may include its namespace."""
    name, family = function.__name__, function.__module__.rpartition(".")[2]
    if family == "fourier":
        return f"fft_{name}"
    row = dict.get(registry, name)
    # Elementwise functions that are public elsewhere than in the package and Tensor are in torch.special
    is_special = row is not None and row.flags & ELSEWHERE == ELSEWHERE and ".elementwise." in function.__module__
    return f"special_{name}" if is_special else name


class Call:
    """A refused call: the function, PyTorch's name for it, its argument names, and the values passed."""

    def __init__(self, plain, title, arguments, placed, named):
        self.plain, self.title, self.arguments = plain, title, arguments
        self.placed, self.named = placed, named

    @staticmethod
    def of(function, values, names):
        """Create a call from these values; the last ones were passed by keywords, if any."""
        plain = _plain(function)
        code = plain.__code__
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = len(values) - len(names or ())
        return Call(plain, _title(plain), arguments, values[:given], dict(zip(names or (), values[given:])))

    def fact(self, fact, default=None):
        """Return a fact that the op's row or function states; see opdef.pyx."""
        return facts_of[fact].get(self.plain.__name__, default)

    def words(self, text):
        """Return the text of a TypeError as PyTorch words it, or None if it is the same."""
        if text.endswith(" received an invalid combination of arguments"):  # the text of `messages.fits_none`
            return self.fits_none()
        if text.startswith("not a number: ") and "alpha" in self.named:
            return self.wrong("alpha", "Number")
        about = ABOUT_ARGUMENTS.match(text)
        if about and about[1] == self.plain.__name__ and "failed to unpack" not in text and self.is_of_several():
            return self.fits_none()
        match = NOT_A_TENSOR.match(text)
        if match:
            wrong = match[1] if match[1] in self.arguments else "out"
            return f"{self.title}(): argument '{wrong}' must be Tensor, not {match[2]}"
        if OF_NO_TYPE.match(text) and "dtype" in self.arguments:
            return self.wrong("dtype", "torch.dtype")
        if not about:
            return self.misfit()
        if about[1] != self.plain.__name__ or self.fact("in_python"):
            return None
        found = self.title + text.removeprefix(about[1])
        found = re.sub(r"but (\d+) positional arguments \(and .*\) were", r"but \1 were", found)
        found = found.replace("multiple values for keyword argument", "multiple values for argument")  # Cython's text
        match = BY_POSITION.search(found)
        if match and match[1] in self.named:
            found = found.replace(match[0], f"argument '{match[1]}'")
        return found

    def in_former_order(self):
        """Return (tensors, factors by name, other keywords) of a call with factors before their operands, or None.

        Early PyTorch allowed this order; a deprecation warning is issued. The operands may be passed by keyword. Rows
        state which tensors are multiplied, the orders in which factors (n) and `input` (t) may precede them, and the
        names of the factors. Methods of sums of products begin with `input`, functions with `beta`; `input` may be a
        number.
        """
        multiplied, orders, names = map(str.split, self.fact("arguments_first", ("", "", "")))
        last_ones = [*names[1:], *multiplied]  # these may be passed by keyword
        by_name = [name for name in last_ones if name in self.named]
        if by_name != last_ones[len(last_ones) - len(by_name) :] or any(name in self.named for name in names[:1]):
            return None
        placed = (*self.placed, *(self.named[name] for name in by_name))
        before, last = placed[: -len(multiplied)], placed[-len(multiplied) :]
        order = "".join("n" if isinstance(value, (int, float, complex)) else "t" for value in before)
        if order not in orders or len(last) > 1 and not all(isinstance(value, Tensor) for value in last):
            return None
        order = order.replace("nn", "tn") if "nn" in orders else order
        in_place = "out" in self.named and self.named["out"] is self.placed[0]
        if order[0] == "t" and "nt" in orders:
            if is_method_call(sys._getframe(3), len(self.placed) + len(self.named) - in_place) is False:
                return None
        given = iter(names)
        old = [f"Number {next(given)}" if kind == "n" else "Tensor input" for kind in order]
        tensors = [f"Tensor {name}" for name in multiplied]
        new = ["Tensor input", *tensors, "*", *(f"Number {name} = 1" for name in names)]
        messages.former_order(self.title + "_" * in_place, ", ".join(old + tensors), ", ".join(new))
        factors = [value for value, kind in zip(before, order) if kind == "n"]
        rest = {name: value for name, value in self.named.items() if name not in by_name}
        return (before[order.index("t")], *last), dict(zip(names, factors)), rest

    def misfit(self):
        """Return the error text for the first argument whose kind does not fit its name, or None."""
        if self.fact("in_python") or self.title.startswith("linalg_"):  # where some numbers may be tensors
            return None
        for name, value in [*zip(self.arguments, self.placed), *self.named.items()]:
            wanted = KINDS.get(name)
            if wanted and not _FITS[wanted](value) and not (value is None and self.default(name) is None):
                return self.wrong(name, wanted)
        return None

    def default(self, name):
        """Return the default of an argument; True if it has none."""
        defaults = self.plain.__defaults__ or ()
        places = self.arguments[: self.plain.__code__.co_argcount]
        by_place = dict(zip(places[len(places) - len(defaults) :], defaults))
        return (by_place | (self.plain.__kwdefaults__ or {})).get(name, True)

    def wrong(self, name, wanted):
        """Return the error text for an argument of the wrong type."""
        if self.is_of_several():
            return self.fits_none()
        if name in self.named:
            return str(messages.wrong_keyword(self.title, name, wanted, self.named[name]))
        place = self.arguments.index(name)
        return str(messages.wrong_type(self.title, name, place + 1, wanted, self.placed[place]))

    def is_of_several(self):
        """Whether PyTorch tries several signatures for this number of arguments."""
        named = [name for name, value in self.named.items() if name != "out" or value is not self.placed[0]]
        counts = self.fact("overloads")
        return counts is not None and str(len(self.placed) + len(named)) not in counts

    def is_overloaded_alias(self, name):
        """Whether this alias of the function has several signatures in PyTorch although the function has one."""
        return self.fact("overloaded_aliases", False) and name in registry[self.plain.__name__].aliases

    def fits_none(self):
        """Return the error text for arguments that fit none of several signatures."""
        return str(messages.no_such_call(self.title, self.placed, self.named, signatures(self.plain, KINDS)))


def _is_int(value):
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _is_float(value):
    if isinstance(value, Tensor):
        return not (value.ndim or value.requires_grad)
    return isinstance(value, (int, float, np.number))


_FITS = {"bool": lambda value: isinstance(value, bool), "int": _is_int, "float": _is_float}


def _simple(value, text):
    """Convert NumPy scalars, tensors where `text` requires a number, and bytes to plain Python values."""
    if isinstance(value, np.generic):
        number = value.item()
        return value if isinstance(number, np.generic) else number  # longdouble has no Python equivalent
    if isinstance(value, Tensor) and NO_TENSOR.search(text) and not value.ndim and not value.requires_grad:
        return value.item()
    if isinstance(value, complex) and not value.imag and text.endswith("not complex"):
        return value.real
    return value.decode() if isinstance(value, bytes) and value.isascii() else value


def _known(name, arguments, given, names):
    """Return this function's name for an argument passed under a name that it does not have."""
    other = OTHER_NAMES.get(name)
    if name in FIRST:
        other = "input" if "input" in arguments or not arguments or given else arguments[0]
    return other if name not in arguments and other in arguments and other not in names else name
