"""Classes that override calls of public functions: PyTorch's `__torch_function__`.

Note [Overriding]
-----------------
An object that is not a tensor makes a function fail. Therefore only failing calls are checked for such objects
(`refused_calls.py`), and operators with an invalid operand (`operators.py`). Tensors of a subclass would not fail: when
the first class that defines `__torch_function__` is created, the functions of the package and the methods start to
check the types of their arguments (`checked_call.h`); until then they test one pointer. Operators, and methods that are
no ops, bypass this check, so the class gets its own versions that dispatch to it. A method is another object than the
function of the same name, as in PyTorch, and does the same (`_form` in `publish.py`). Inside a call that was passed on
to `Tensor.__torch_function__`, dispatch is disabled. Modes come first: Note [Modes] in `function_modes.py`.
"""

import sys
from functools import wraps
from typing import Any

from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import bind
from cygrad._core.graph.opdef import has_modes, is_in_pass, is_taken, let_override
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry import function_modes
from cygrad._core.registry.disabled import disabled

classes: set[type] = set()  # the classes that override calls of tensors' functions; kept alive

# Operators, and the methods that they call
_OPERATORS = {
    **{name: name for name in "add mul sub matmul ne lt le gt ge neg abs".split()},
    "truediv": "div",
    "mod": "remainder",
    "pos": "positive",
    "radd": "add",
    "rmul": "mul",
    "rand": "bitwise_and",
    "ror": "bitwise_or",
    "rxor": "bitwise_xor",
    "iadd": "add_",
    "isub": "sub_",
    "imul": "mul_",
    "itruediv": "div_",
    "ifloordiv": "floor_divide_",
    "imod": "remainder_",
}
_THEMSELVES = """pow ipow invert and or xor rsub rtruediv floordiv rfloordiv rmod rpow rmatmul lshift rshift rlshift
rrshift eq getitem setitem repr len bool int float complex index contains format iand ior ixor ilshift
irshift""".split()
# Python asks the operators of a subclass first, on the right of a tensor, too; PyTorch's subclasses lack these
_FORWARD = {
    **{f"__r{name}__": name for name in ("add", "sub", "mul", "matmul")},
    "__rtruediv__": "div",
    "__rfloordiv__": "__floordiv__",
    "__rmod__": "remainder",
    "__rpow__": "__pow__",
    "__rlshift__": "__lshift__",
    "__rrshift__": "__rshift__",
    "__rand__": "__and__",
    "__ror__": "__or__",
    "__rxor__": "__xor__",
}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
symbols = {  # of the operators that have a reflected form
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "** or pow()",
    "matmul": "@",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
_WITH_OTHERS = {*symbols, *_COMPARISONS, "eq", "ne", *(mark + name for mark in "ri" for name in symbols)}
# Methods that the class gets its own versions of, and the function that `__torch_function__` receives
_METHODS = {
    **{f"__{name}__": method for name, method in _OPERATORS.items()},
    **{f"__{name}__": f"__{name}__" for name in _THEMSELVES},
    **{name: name for name in "backward detach item dim size stride numel requires_grad_ retain_grad detach_".split()},
    **{name: name for name in ("register_hook", "register_post_accumulate_grad_hook")},
}


# Attributes that modes and classes see as the functions `Tensor.<name>.__get__`, `__set__` and `__delete__`
_ATTRIBUTES = """T mT H mH shape ndim dtype device layout grad grad_fn requires_grad is_leaf data _base _version _grad
output_nr is_cuda is_cpu is_meta is_sparse is_sparse_csr is_quantized is_mkldnn is_xpu is_mps is_nested real imag
is_ipu is_maia is_mtia is_vulkan is_xla itemsize nbytes names name retains_grad volatile _backward_hooks
_post_accumulate_grad_hooks grad_dtype""".split()


def function_of(name):
    """Return the function that `__torch_function__` receives for a call of Tensor's method `name`."""
    return getattr(Tensor, _METHODS.get(name, name))


class Handling:
    """Context manager for the time in which a class handles a call: its functions are not dispatched to it again."""

    _level = 1

    def __enter__(self):
        self._before = is_taken(self._level)

    def __exit__(self, *error):
        is_taken(self._before)


class DisableTorchFunctionSubclass(Handling):
    """Context manager in which functions of subclass tensors run without dispatching to `__torch_function__`.

    Their results are plain tensors.

    >>> import cygrad
    >>> class Silent(cygrad.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return "nothing"
    >>> x = cygrad.ones(2).as_subclass(Silent)
    >>> x + 1
    'nothing'
    >>> with cygrad.DisableTorchFunctionSubclass():
    ...     print((x + 1).tolist())
    [2.0, 2.0]
    """

    _level = 2


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Context manager in which neither subclasses nor modes receive calls.

    >>> import cygrad
    >>> class Silent(cygrad.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         return "nothing"
    >>> with Silent():
    ...     print(cygrad.ones(2))
    ...     with cygrad.DisableTorchFunction():
    ...         print(cygrad.ones(2))
    nothing
    tensor([1., 1.])
    """

    _level = 3

    def __enter__(self):
        super().__enter__()
        self._modes = function_modes.without_modes()
        self._modes.__enter__()

    def __exit__(self, *error):
        self._modes.__exit__(None, None, None)
        super().__exit__(*error)


class EnableTorchFunction:
    """Object that has functions dispatched to classes again, as long as it lives."""

    def __init__(self):
        self._before = is_taken(0)

    def __del__(self):
        is_taken(self._before)


def _is_foreign(value):
    """Whether a value is a tensor of PyTorch itself, which does not support the functions here."""
    torch = sys.modules.get("torch")
    return isinstance(value, getattr(torch, "Tensor", ()))


def overrides(value):
    """Whether the class of a value overrides calls."""
    if isinstance(value, Tensor) or type(value) in classes:
        return type(value) in classes and not is_taken()
    return getattr(type(value), "__torch_function__", None) is not None and not _is_foreign(value)


def overriders(values):
    """Return one value per overriding class, in dispatch order: left to right, subclasses before their bases."""
    found: list = []
    for value in values:
        if overrides(value) and all(type(value) is not type(other) for other in found):
            before = (i for i, other in enumerate(found) if issubclass(type(value), type(other)))
            found.insert(next(before, len(found)), value)
    return found


def _flat(values):
    for value in values:
        yield from value if _is_list(value) else (value,)


def _is_list(value):
    """Whether a value holds operands; tuples with names may be operands themselves."""
    return isinstance(value, (tuple, list)) and not hasattr(type(value), "__torch_function__")


def ask(function, values, args, kwargs):
    """Return the result of the mode, or the first class of these values, that handles a call, or NotImplemented."""
    asked = overriders(values)
    types = tuple(map(type, asked))
    function = getattr(function, "published", function)
    result = function_modes.ask(function, types, args, kwargs)
    if result is not NotImplemented:
        return result
    for value in asked:
        handler = value.__torch_function__
        if getattr(handler, "__self__", None) is value and handler is not disabled:
            _warn_of_plain_method(function)
        result = handler(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def _warn_of_plain_method(function):
    module = sys.modules.get("cygrad.nn.functional")
    is_in_python = getattr(module, getattr(function, "__name__", ""), None) is function  # in PyTorch
    warn(
        "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please "
        "define it as a classmethod.",
        DeprecationWarning if is_in_python else UserWarning,
    )


_COPYING = ("tensor", "as_tensor", "asarray")  # functions that modes are asked for, but no classes of programs
_UNPACKING = ("einsum",)  # functions that hand over the operands of a list one by one, as PyTorch does


def call(function, args, kwargs, relevant=None):
    """Same for all arguments and items of lists, or for `relevant` values; TypeError instead of NotImplemented."""
    if getattr(function, "__name__", "") in _UNPACKING and len(args) == 2 and _is_list(args[1]):
        args = (args[0], *args[1])
    values = list(_flat((*args, *kwargs.values())) if relevant is None else relevant)
    result = ask(function, values, args, kwargs)
    if result is NotImplemented:
        name = _full_name(function)
        modes = [f"\n  - mode object {mode}" for mode in function_modes.modes()[-1:]]
        kinds = "".join([*modes, *(f"\n  - tensor subclass {type(value)}" for value in overriders(values))])
        raise TypeError(
            f"Multiple dispatch failed for 'torch.{name}'; all __torch_function__ handlers returned NotImplemented:\n"
            f"{kinds}"
        )
    return result


def _is_of_package(value):
    """Whether a value is a tensor of a class of the package, such as a sparse one."""
    return isinstance(value, Tensor) and type(value) in classes and type(value).__module__.startswith("cygrad")


def _full_name(function):
    """Return the name of a function after "torch."; that of a method or of an attribute begins with its class."""
    name = getattr(function, "__name__", function)
    attribute = getattr(getattr(function, "__self__", None), "__name__", None)
    if name in ("__get__", "__set__", "__delete__") and attribute is not None:
        return f"Tensor.{attribute}.{name}"
    return f"Tensor.{name}" if getattr(Tensor, str(name), None) is function else name


def hand_over(function, values, names):
    """Dispatch a call to the class of one of its values; the last values were passed by the keywords `names`."""
    given = len(values) - len(names or ())
    args, kwargs = values[:given], dict(zip(names or (), values[given:]))
    if has_modes() and is_in_pass():
        with function_modes.without_modes():
            return function(*args, **kwargs)
    if getattr(function, "__name__", "") in _COPYING and not any(map(_is_of_package, values)):
        if not has_modes():
            with Handling():
                return function(*args, **kwargs)
        return call(function, args, kwargs, ())
    return call(function, args, kwargs)


def answer(function, *args, **kwargs):
    """Return, in a tuple, what a mode or a class makes of a call; None if nobody overrides it. See `asked`."""
    if not has_modes() and not any(map(overrides, args)):
        return None
    return (hand_over(function, (*args, *kwargs.values()), tuple(kwargs)),)


def is_operator(name):
    """Whether Python tries the other operand if this method of Tensor returns NotImplemented."""
    return name.strip("_") in _WITH_OTHERS


def ask_operator(function, operands, kwargs):
    """What a mode or a class makes of an operator; NotImplemented after a TypeError, as in PyTorch: then Python asks
    the other operand, or compares by identity.
    """
    try:
        return ask(function, operands, operands, kwargs)
    except TypeError:
        return NotImplemented


def answer_operator(name, operands):
    """Return, in a tuple, what a class makes of an operator of Tensor; None if no class overrides it.

    Raises TypeError if Python has nobody else to ask.
    """
    if not any(map(overrides, _flat(operands))):
        return None
    if name in ("__getitem__", "__setitem__"):
        return (call(function_of(name), operands, {}),)
    found = ask(function_of(name), operands, operands, {})
    if found is NotImplemented and all(isinstance(value, Tensor) for value in operands):
        _refuse(name.strip("_"), *operands)
    return (found,)


_REFLECTED = {"lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__"}


def _refuse(name, a, b):
    """Raise the TypeError that Python raises for an operator, unless there are other ways to answer it."""
    back = _REFLECTED.get(name, f"__r{name}__" if name in symbols else "")
    own = getattr(type(b), back, None)
    if own is not None and own is not getattr(Tensor, back) and not getattr(own, "is_asking", False):
        return  # the other operand's class has a method of its own for this, which Python calls next
    if name in _COMPARISONS:
        kinds = f"'{type(a).__name__}' and '{type(b).__name__}'"
        raise TypeError(f"'{_COMPARISONS[name]}' not supported between instances of {kinds}")
    if name not in symbols:
        a, b, name = b, a, name.removeprefix("r")
    if name in symbols:
        kinds = f"'{type(a).__name__}' and '{type(b).__name__}'"
        raise TypeError(f"unsupported operand type(s) for {symbols[name]}: {kinds}")


def call_of_objects(function, values, names):
    """Return the result, in a tuple, of a failed call whose non-tensor objects override it; else None."""
    if not any(map(overrides, _flat(values))):
        return None
    if names and names[-1] == "out" and values[-1] is values[0]:  # of an in-place form: see `checked_call.h`
        function = getattr(Tensor, f"{function.__name__}_", function)
        values, names = values[:-1], names[:-1]
    return (hand_over(function, values, names),)


# -- subclasses of Tensor --


def _of_class(result, cls):
    """Convert the tensors among the results of a function to a class."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)(_of_class(one, cls) for one in result)
    return result


def call_plainly(cls, func, types, args, kwargs):
    """Implements `Tensor.__torch_function__`."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with Handling():
        found = func(*args, **(kwargs or {}))
    is_as_it_is = getattr(getattr(func, "__self__", None), "__name__", None) in _AS_THEY_ARE
    return found if is_as_it_is else _of_class(found, cls)


def begin_asking(cls):
    """Have functions ask a class before they look at its objects: a subclass of Tensor, or a class of proxies."""
    if cls not in classes:
        function_modes.asked.append(True)
    classes.add(cls)
    let_override(classes, hand_over)
    function_modes.watch_operators(classes)


def begin_overriding(cls):
    """Let a subclass of Tensor override calls."""
    begin_asking(cls)
    _show_attributes_of(cls)
    for name, method in _METHODS.items():
        plain = getattr(Tensor, name)
        if getattr(cls, name) is plain:
            setattr(cls, name, _asking(plain, getattr(Tensor, method)))
    if cls.__iter__ is Tensor.__iter__:
        cls.__iter__ = _iterate


def _iterate(self):
    """Return an iterator over the parts of a tensor along its first dimension, which are of the tensor's class."""
    if not self.dim():
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


# -- attributes --
#
# They are read often, and by C code as fields. So nothing stands before them until there is a mode or a class; then the
# type, or the class, gets properties that ask first.


class _Seen(property):
    """An attribute that modes and classes are asked for; `plain` is the attribute itself."""

    def __init__(self, name, plain):
        super().__init__(self._get, self._set, self._delete, getattr(plain, "__doc__", None))
        self.__name__, self.plain = name, plain

    def _is_plain(self, tensor):
        if has_modes():
            return is_in_pass()
        return type(tensor) not in classes or is_taken()

    def _get(self, tensor):
        return self.plain.__get__(tensor) if self._is_plain(tensor) else call(self.__get__, (tensor,), {})

    def _set(self, tensor, value):
        if self._is_plain(tensor):
            self.plain.__set__(tensor, value)
        else:
            call(self.__set__, (tensor, value), {})

    def _delete(self, tensor):
        if self._is_plain(tensor):
            self.plain.__delete__(tensor)
        else:
            call(self.__delete__, (tensor,), {})


_seen: dict = {}  # {name: what stands before an attribute of Tensor while there are modes}


_AS_THEY_ARE = ("grad", "_grad", "_base")  # attributes whose tensors keep their class


def show_attributes(shown):
    """Let modes see the attributes of tensors, or end that."""
    if not _seen:
        for name in _ATTRIBUTES:
            getattr(Tensor, name, None)  # imports those that are there on first use
        own = vars(Tensor)
        _seen.update({name: _Seen(name, own[name]) for name in _ATTRIBUTES if name in own})
    bind({name: seen if shown else seen.plain for name, seen in _seen.items()})


def _show_attributes_of(cls):
    for name in _ATTRIBUTES:
        plain = getattr(cls, name, None)
        if hasattr(plain, "__get__") and plain is getattr(Tensor, name, None):
            setattr(cls, name, _Seen(name, getattr(plain, "plain", plain)))


def _asking(plain, method):
    asks_others = is_operator(plain.__name__)
    forward = _FORWARD.get(plain.__name__)

    @wraps(plain)
    def asking(*args, **kwargs):
        if is_taken() and not has_modes():
            return plain(*args, **kwargs)
        if not asks_others:
            return call(method, args, kwargs)
        function = method
        if forward is not None and len(args) == 2 and isinstance(args[1], Tensor):
            function, args = getattr(Tensor, forward), args[::-1]
        return ask_operator(function, args, kwargs)

    found: Any = asking
    found.is_asking = True
    if plain.__name__.startswith("__"):
        del found.__wrapped__  # a method in C, for which there may be no signature
    return found
