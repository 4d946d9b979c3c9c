"""The signatures that `inspect` and errors show, where those of compiled functions do not tell what a call takes.

Cython has no keyword-only arguments in functions that C code calls, too: `checked_call.h` refuses `out` and the factor
before it by position. `...` stands for an argument that was not given where None means something.
"""

import inspect
from types import FunctionType
from typing import Any


class _NotGiven:
    """The default of an argument that may not be None, in signatures."""

    def __repr__(self):
        return "<not given>"


NOT_GIVEN = _NotGiven()
BY_NAME = ("alpha", "out")  # the first of these, and all arguments after it, must be passed by keyword
_BY_NAME = frozenset(BY_NAME)
NUMPY_NAMES = ("axis", "axis0", "axis1", "keepdims")


class Shown(inspect.Signature):
    """The signature of a checked function, made when it is looked at: the package has hundreds of them."""

    __slots__ = ("_made", "_of")
    _made: Any
    _of: Any

    def __init__(self, function, without_out=False):
        self._of, self._made = (function, without_out), None

    @property
    def _parameters(self):
        if self._made is None:
            self._made = inspect.Signature(_taken(*self._of)).parameters
        return self._made

    @property
    def _return_annotation(self):
        return inspect.Signature.empty

    def replace(self, **changes):
        return inspect.Signature(list(self.parameters.values())).replace(**changes)

    def __reduce__(self):
        return inspect.Signature, (list(self.parameters.values()),)


# IPython shows the signature of `__call__` below that of the function if they differ; Cython's is `(*args, **kwargs)`.
# It would show a docstring here, too.
class Call:
    __slots__ = ("_of",)

    def __init__(self, function):
        self._of = function

    @property
    def __signature__(self):
        return inspect.signature(self._of)

    def __call__(self, *args, **kwargs):
        return self._of(*args, **kwargs)

    def __reduce__(self):
        return Call, (self._of,)


def hides_signature(function):
    """Whether the code of a function does not state what a call may pass."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    is_compiled = not isinstance(function, FunctionType)
    return (is_compiled and not _BY_NAME.isdisjoint(code.co_varnames[: code.co_argcount])) or (
        ... in (function.__defaults__ or ()) or ... in (function.__kwdefaults__ or {}).values()
    )


def _taken(function, without_out):
    """Return the parameters of a function as a call from Python may pass them."""
    found, by_name, is_compiled = [], False, not isinstance(plain_of(function), FunctionType)
    for parameter in _of_code(function):
        by_name = by_name or is_compiled and parameter.name in BY_NAME
        if without_out and parameter.name == "out":
            continue
        if by_name and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            parameter = parameter.replace(kind=parameter.KEYWORD_ONLY)
        found.append(parameter.replace(default=NOT_GIVEN) if parameter.default is ... else parameter)
    return found


def plain_of(function):
    """Return the function inside of wrappers."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _of_code(function):
    """Return the parameters of a function as its code states them."""
    function = plain_of(function)
    own = function.__dict__.pop("__signature__", None)
    try:
        return list(inspect.signature(function).parameters.values())
    finally:
        if own is not None:
            function.__signature__ = own


# -- in errors --

_OF_NAMES = {
    **dict.fromkeys("alpha beta value min max exponent dx spacing start end base".split(), "Number"),
    **dict.fromkeys("dim n k m length steps step decimals groups edge_order window_length sections".split(), "int"),
    **dict.fromkeys("correction low high output_size padding_idx low_or_high indices_or_sections".split(), "int"),
    **dict.fromkeys("size source destination stride padding dilation indices".split(), "tuple of ints"),
    **dict.fromkeys("rounding_mode reduce mode side interpolation".split(), "str"),
    **dict.fromkeys("max_norm norm_type rcond".split(), "float"),
    **dict.fromkeys("unbiased sorted requires_grad pin_memory periodic include_last_offset".split(), "bool"),
    **{name: f"torch.{name}" for name in ("dtype", "device", "layout", "memory_format")},
    "generator": "Generator",
    "range": "tuple of floats",
    "ord": "Number",
}
_SEVERAL_DIMS = ("sum", "mean", "squeeze")  # whose `dim` may be several, although its default is not None


def signatures(function, kinds):
    """Return the signatures of a function in the form of PyTorch's errors, one for each way to call it.

    `kinds` are types by name of argument that are known already. What only NumPy names so is left out.
    """
    return [_text(function, form, kinds) for form in forms(_taken(function, False))]


def forms(parameters):
    """Return lists of parameters, one for each way to call a function, without the names that are NumPy's alone."""
    parameters = [p for p in parameters if p.name not in NUMPY_NAMES or p.default is p.empty]
    names = [p.name for p in parameters]
    if "dim_or_other" in names:
        parameters = [p for p in parameters if p.name not in ("dim", "dim_or_other", "other")]
        first, keepdim, *rest = parameters
        shown = [[first], [first, _required("other")], [first, _required("dim"), keepdim]]
        return [[*some, *(rest if len(some) > 1 else ())] for some in shown]
    optional = next((place for place, p in enumerate(parameters) if p.default is NOT_GIVEN), None)
    if optional is None:
        return [parameters]
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    whole = [_required(p.name) if p.default is NOT_GIVEN else p for p in parameters]
    return [[*parameters[:optional], *(p for p in by_name if p.name != "out")], whole]


def _required(name):
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _text(function, parameters, kinds):
    texts, by_name = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not by_name:
            texts.append("*")
            by_name = True
        if p.kind is p.VAR_POSITIONAL:
            texts.append(f"*{p.name}")
            by_name = True
        elif p.kind is p.VAR_KEYWORD:
            texts.append(f"**{p.name}")
        else:
            default = "" if p.default is p.empty else f" = {p.default}"
            texts.append(f"{_type(function, p, kinds)} {p.name}{default}")
    return ", ".join(texts)


def _type(function, parameter, kinds):
    """Return PyTorch's word for the type of an argument."""
    name, default = parameter.name, parameter.default
    if name == "dim" and (default is None or default is parameter.empty and function.__name__ in _SEVERAL_DIMS):
        return "tuple of ints"
    if name in kinds or name in _OF_NAMES:
        return kinds.get(name) or _OF_NAMES[name]
    return {bool: "bool", int: "int", float: "float", str: "str"}.get(type(default), "Tensor")
