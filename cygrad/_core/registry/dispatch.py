"""Modes and classes that receive ops below autograd: PyTorch's `__torch_dispatch__`.

Note [Dispatch]
---------------
Ops call each other in C and compute before anybody is asked. So an op is dispatched where its result is recorded
(`record.pyx`), after its kernel has run and before the result gets its history: the modes of the thread, the innermost
first, and then the classes of its operands are asked for the result. What they return takes the place of what the
kernel made, and the history is that of the op here, so that gradients are computed by the same rules, whose ops are
dispatched in turn. When a handler calls the op with the arguments that it received, the result of the kernel is handed
over, and nothing runs twice; with others the op runs anew. An op that writes has written already: the old elements are
put back while it is asked, and the call by the handler brings the new ones.

The ops that PyTorch would have run in place of one here, and their arguments, are found by `translator`, the module
`cygrad.ops._dispatch`, which is imported when the first mode is entered or the first class is made. Until then nothing
is asked: functions test flags of their operands and of the thread that they test anyway.

While a handler runs, nothing is recorded, the mode is not in the thread's stack, and no `__torch_function__` is called.
"""

from _thread import _local
from contextlib import contextmanager
from typing import Any

import numpy as np

from cygrad._core.graph.internals import attributes_of, of_class, own_array, same_array, tensor_of
from cygrad._core.graph.observers import dispatch_ops, set_dispatching
from cygrad._core.graph.opdef import has_modes, is_taken, registry, show_rules
from cygrad._core.graph.tensor import Tensor, dispatch_calls
from cygrad._core.runtime.thread_state import NO_GRAD, is_forward, set_forward, set_modes

translator: Any = None  # the module that says which ops of PyTorch's an op stands for


class _Thread(_local):
    def __init__(self):
        self.modes = []  # the innermost last
        self.pending = None  # the call that a handler has received
        self.disabled = False  # whether classes are not asked


_thread = _Thread()


def modes():
    """Return the list of this thread's modes, the innermost last."""
    return _thread.modes


def push(mode):
    """Make `mode` the innermost mode of this thread."""
    begin()
    _thread.modes.append(mode)
    set_dispatching(len(_thread.modes))


def pop():
    """Remove the innermost mode of this thread, and return it. Raises IndexError if there is none."""
    mode = _thread.modes.pop()
    set_dispatching(len(_thread.modes))
    return mode


@contextmanager
def without_modes():
    """In the block, no mode sees ops; the block receives the modes, the innermost last."""
    outer, _thread.modes = _thread.modes, []
    set_dispatching(0)
    try:
        yield outer
    finally:
        _thread.modes = outer
        set_dispatching(len(outer))


@contextmanager
def without_classes():
    """In the block, neither modes nor classes see ops."""
    before, _thread.disabled = _thread.disabled, True
    try:
        with without_modes():
            yield
    finally:
        _thread.disabled = before


@contextmanager
def unseen():
    """In the block, ops that are parts of another op are shown to nobody."""
    if translator is None:
        yield
        return
    with without_classes():
        yield


def begin():
    """Have ops dispatched; called for the first mode and the first class."""
    show_rules(_rule)
    dispatch_ops(_results, _before_change, _change)
    dispatch_calls(copy_of_class, _call)
    global translator
    if translator is None:
        translator = registry.names_of_ops()


class Pending:
    """A call that a handler has received, and how it goes on if the handler makes that very call."""

    __slots__ = ("args", "func", "go_on", "is_used", "kwargs")

    def __init__(self, func, args, kwargs, go_on):
        self.func, self.args, self.kwargs, self.go_on, self.is_used = func, args, kwargs, go_on, False

    def is_called(self, func, args, kwargs):
        """Whether this is the call that the handler has received, which it makes for the first time."""
        return (
            not self.is_used
            and func is self.func
            and len(args) == len(self.args)
            and kwargs.keys() == self.kwargs.keys()
            and all(map(_is_same, args, self.args))
            and all(_is_same(kwargs[name], self.kwargs[name]) for name in kwargs)
        )


def _is_same(a, b):
    if a is b:
        return True
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return False
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_is_same, a, b))
    return type(a) is type(b) and a == b


def taken_up(func, args, kwargs):
    """Return the result, in a tuple, of a call of an op if it is the one that the running handler received; or None."""
    pending = _thread.pending
    if pending is None or not pending.is_called(func, args, kwargs):
        return None
    pending.is_used, _thread.pending = True, None
    try:
        return (pending.go_on(),)
    finally:
        _thread.pending = pending


def _dispatches(value):
    return isinstance(value, Tensor) and getattr(type(value), "_results_keep_class", True) == "dispatches"


def _flat(values):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _flat(value)
        else:
            yield value


def classes_among(args, kwargs):
    """Return one value per class with `__torch_dispatch__`: left to right, subclasses before their bases."""
    found: list = []
    for value in _flat((*args, *kwargs.values())):
        if _dispatches(value) and all(type(value) is not type(other) for other in found):
            before = (i for i, other in enumerate(found) if issubclass(type(value), type(other)))
            found.insert(next(before, len(found)), value)
    return found


@contextmanager
def quietly():
    """In the block, nothing is recorded, and no `__torch_function__` is called."""
    modes_before, forward = set_modes(NO_GRAD), set_forward(False)
    taken, seen = is_taken(True), has_modes(False)
    try:
        yield
    finally:
        set_modes(modes_before)
        set_forward(forward)
        is_taken(taken)
        has_modes(seen)


def ask(func, args, kwargs, compute):
    """Return what the modes, and then the classes of the arguments, make of a call of an op; or else `compute()`."""
    with quietly():
        return _ask_modes(func, args, kwargs, compute, len(_thread.modes))


def _ask_modes(func, args, kwargs, compute, remaining):
    if not remaining:
        return _ask_classes(func, args, kwargs, compute)
    all_modes = _thread.modes
    mode, _thread.modes = all_modes[remaining - 1], all_modes[: remaining - 1]
    set_dispatching(remaining - 1)
    before = _thread.pending
    _thread.pending = Pending(func, args, kwargs, lambda: _ask_modes(func, args, kwargs, compute, remaining - 1))
    try:
        types = tuple(map(type, classes_among(args, kwargs)))
        handler = getattr(func, "dispatch", {}).get(type(mode))
        if handler is not None:
            return handler(mode, func, types, args, kwargs)
        found = mode.__torch_dispatch__(func, types, args, kwargs)
    finally:
        _thread.pending = before
        _thread.modes = all_modes
        set_dispatching(len(all_modes))
    return _ask_modes(func, args, kwargs, compute, remaining - 1) if found is NotImplemented else found


def _ask_classes(func, args, kwargs, compute):
    asked = [] if _thread.disabled else classes_among(args, kwargs)
    if not asked:
        return compute()
    before = _thread.pending
    _thread.pending = Pending(func, args, kwargs, compute)
    types: tuple[Any, ...] = tuple(map(type, asked))
    try:
        for kind in types:
            handler = getattr(func, "dispatch", {}).get(kind)
            if handler is not None:
                return handler(kind, func, types, args, kwargs)
            found = kind.__torch_dispatch__(func, types, args, kwargs)
            if found is not NotImplemented:
                return found
    finally:
        _thread.pending = before
    kinds = "".join(f"\n  - tensor subclass {kind}" for kind in types)
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{func}'; all __torch_dispatch__ handlers returned NotImplemented:"
        f"\n{kinds}"
    )


def is_asked(args, kwargs):
    """Whether a mode, or a class of the arguments, sees a call of an op."""
    return bool(_thread.modes) or (not _thread.disabled and bool(classes_among(args, kwargs)))


def answered(function, values, names):
    """Return, in a tuple, the result of a call that needs elements, by the class of an operand that has none; or None.

    The last of the values were passed by the keywords `names`. The result has no history.
    """
    given = len(values) - len(names or ())
    args, kwargs = values[:given], dict(zip(names or (), values[given:]))
    op = None if translator is None or not classes_among(args, kwargs) else translator.op_of(function)
    return None if op is None else (ask(op, args, kwargs, lambda: op(*args, **kwargs)),)


# -- called from where ops are recorded; see observers.pyx and tensor.pyx --


def _results(done, arrays):
    """Return the results of an op as tensors, or None if nobody is asked."""
    if is_forward() and _has_samples(done):
        return None
    if not _thread.modes and _thread.disabled:
        return None
    made = tuple(a if isinstance(a, Tensor) else tensor_of(a) for a in arrays)
    found = translator.results(done, made)
    if found is None:
        return None
    return tuple(_fresh(t, done.inputs) for t in found)


def _has_samples(done):
    from cygrad._core.transforms.forward_mode import has_samples  # needed only for forward mode or vmap

    return any(isinstance(t, Tensor) and has_samples(t) for t in _flat((done.inputs, done.args)))


def _fresh(t, inputs):
    """Return a tensor that may get a history: `t`, or another one on its memory if it has one or is an operand."""
    if not isinstance(t, Tensor):
        raise TypeError(f"__torch_dispatch__ returned {type(t).__name__} in place of a Tensor")
    if t.requires_grad or any(t is value for value in _flat(inputs)):
        return copy_of_class(t)
    return t


def _before_change(done):
    """Return what is needed to dispatch a write after it; None if nobody is asked."""
    if is_forward() and _has_samples(done):
        return None
    if not _thread.modes and _thread.disabled:
        return None
    array = own_array(done.outs[0])
    return (array.copy(),) if type(array) is np.ndarray else ()


def _change(done, former):
    """Dispatch a write that has taken place."""
    out = done.outs[0]
    array = own_array(out)
    if not former or former[0].shape != array.shape:
        translator.change(done, lambda: out)
        return
    new = array.copy()
    array[...] = former[0]

    def write():
        array[...] = new
        return out

    try:
        translator.change(done, write)
    except BaseException:
        array[...] = new  # the version counts it
        raise


def copy_of_class(t):
    """Return another tensor of the class of `t`, on the same memory and with the same attributes, without history."""
    if not _dispatches(t):
        return same_array(t)
    new = of_class(type(t), t, False)
    for name, value in attributes_of(t).items():
        if name != "_is_param":  # what is made of a parameter is none
            setattr(new, name, value)
    for kind in type(t).__mro__:
        slots = kind.__dict__.get("__slots__", ()) if issubclass(kind, Tensor) and kind is not Tensor else ()
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(t, name) and name not in ("__dict__", "__weakref__"):
                setattr(new, name, getattr(t, name))
    return new


def _rule(node, row, grad):
    """Return the gradients of a node's inputs by an op of PyTorch's; NotImplemented if its rule is to find them."""
    return translator.rule(node, row, grad)


def value_of(t):
    """Return the only element of a tensor as a Python number, which no mode or class sees."""
    with without_classes():
        return own_array(t).item()


def _call(name, t, out):
    """Return the result of `detach`, `clone`, `ones_like` or `item`, whose result `out` is, if it has one yet."""
    return translator.call(name, t, out)
