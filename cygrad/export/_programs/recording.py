"""Records programs: a mode takes down each call of a public function.

Note [Recording]
----------------
A mode (`TorchFunctionMode`) receives the calls that a program makes with their arguments as written, and not what
these functions call in turn, so each op is seen once, at the level at which other libraries define theirs. What a mode
does not see are attributes that compute, such as `x.T`, and unpacking; the listener of ops (`Listener`) sees these, by
their rows. Tensors are known by identity; one that is not, such as `x.data`, by its memory. All tensors are kept until
the end, so that neither identities nor addresses are used twice.
"""

import enum
import inspect
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor, nn
from cygrad._core.errors.sites import is_ours
from cygrad._core.graph.observers import Listener
from cygrad.export._programs.functions import READS, name_of
from cygrad.export._programs.program import Call, Program, Ref, mapped
from cygrad.overrides import TorchFunctionMode
from cygrad.utils.warning import warn

__all__ = [
    "Recorder",
    "RecordingError",
    "TracerWarning",
    "is_recording",
    "memory_of",
    "record",
    "site_of_user",
    "version_of",
]

_MADE_OF_DATA = {"tensor", "as_tensor", "from_numpy", "asarray", "Tensor.new_tensor", "scalar_tensor", "frombuffer"}
_WARNED = {"tensor", "as_tensor", "from_numpy"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_ROWS = {  # rows of attributes and unpacking: (function, its arguments from those of the row)
    "permute": lambda args: ("Tensor.permute", args[0]),
    "transpose": lambda args: ("transpose", args[:2]),
    "unbind": lambda args: ("unbind", args[1:2]),
    "detach": lambda args: ("Tensor.detach", ()),
    "conj": lambda args: ("conj", ()),
    "real": lambda args: ("real", ()),
    "imag": lambda args: ("imag", ()),
}
_open: list["Recorder"] = []


class TracerWarning(Warning):
    """A warning about a program that a trace does not capture whole, such as a branch on the value of a tensor.

    >>> import cygrad
    >>> import warnings
    >>> def f(x):
    ...     return x * 2 if x.sum() > 0 else x  # a trace has one of the two
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     traced = cygrad.jit.trace(f, cygrad.ones(2))
    >>> any(issubclass(each.category, cygrad.jit.TracerWarning) for each in caught)
    True
    >>> cygrad.jit.TracerWarning.ignore_lib_warnings()
    """

    __module__ = "cygrad.jit"

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silence warnings about the library's own code: there are none."""


class RecordingError(RuntimeError):
    """A program that cannot be recorded."""


def is_recording() -> bool:
    """Whether a program is being recorded."""
    return bool(_open)


def site_of_user() -> str:
    """Return `file:line` of the innermost line that runs outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "an unknown line"


def place_of(t: Tensor) -> tuple[Any, ...] | None:
    """Return what two tensors have in common that are the same elements of the same memory; None without memory."""
    try:
        address = t.data_ptr() if t.numel() else 0
    except (RuntimeError, NotImplementedError):  # sparse tensors, tensors without memory
        return None
    return (address, tuple(t.shape), t.stride(), t.dtype) if address else None


class Recorder(TorchFunctionMode):
    """Takes down the calls made in its block."""

    def __init__(
        self,
        attributes: Mapping[str, Tensor],
        plain: Mapping[str, Tensor],
        warn_of_constants: bool,
        constants_may_require_grad: bool,
        quiet: bool,
    ):
        self.calls: list[Call] = []
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Tensor] = {}
        self.paths: dict[str, str] = {}
        self.quiet = quiet
        self._warn_of_constants, self._constants_may_require_grad = warn_of_constants, constants_may_require_grad
        self._plain = {id(t): path for path, t in reversed([*plain.items()])}
        self._names: dict[int, str] = {}
        self._places: dict[Any, str] = {}
        self._alive: list[Tensor] = []
        self._taken: dict[str, int] = {}
        self._unseen: dict[int, str] = {}  # results of rows that no call explains
        self._depth = 0
        self._listener = Listener(self._heard)
        for name, value in attributes.items():
            if id(value) not in self._names:
                self._learn(value, f"self.{name}")

    def __enter__(self) -> Any:
        _open.append(self)
        self._listener.start()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._listener.stop()
        _open.remove(self)

    # -- names ---------------------------------------------------------------------------------------------

    def _learn(self, t: Tensor, name: str) -> None:
        self._alive.append(t)
        self._names[id(t)] = name
        self.tensors[name] = t
        place = place_of(t)
        if place is not None:
            self._places[place] = name

    def name(self, t: Tensor, wish: str) -> str:
        """Give a tensor a name that is not taken, as fx does: `relu`, `relu_1`."""
        base = "".join(c if c.isalnum() else "_" for c in wish).strip("_") or "value"
        if base == "self":  # the module
            base = "self_"
        count = self._taken.get(base, 0)
        self._taken[base] = count + 1
        name = f"{base}_{count}" if count else base
        if count and name in self.tensors:
            return self.name(t, base + "_")
        self._learn(t, name)
        return name

    def ref(self, t: Tensor) -> Ref:
        """Return the reference to a tensor; one that did not come from the program becomes a constant."""
        name = self._names.get(id(t))
        if name is None:
            name = self._places.get(place_of(t))
        if name is None and id(t) in self._unseen:
            raise RecordingError(
                f"a tensor was computed in a way that cannot be recorded ({self._unseen[id(t)]}) and used at "
                f"{site_of_user()}"
            )
        if name is None:
            if not self._constants_may_require_grad and t.requires_grad:
                raise RuntimeError(
                    "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or "
                    f"input, or detaching the gradient\n  a tensor of shape {tuple(t.shape)} at {site_of_user()}"
                )
            path = self._plain.get(id(t))
            name = self.name(t, path or "constant")
            if path is not None:
                self.paths[name] = path
            with cygrad.no_grad():
                self.constants[name] = t.detach().clone()
        return Ref(name)

    def written(self, value: Any) -> Any:
        """Return arguments as a program holds them. Raises RecordingError for what it cannot hold."""
        if isinstance(value, Tensor):
            return self.ref(value)
        if isinstance(value, (list, tuple)):
            items = [self.written(each) for each in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, dict):
            return {key: self.written(each) for key, each in value.items()}
        if isinstance(value, slice):
            return slice(self.written(value.start), self.written(value.stop), self.written(value.step))
        if isinstance(value, enum.Enum) and isinstance(value.value, (int, str)):
            return value.value
        if type(value) in _PLAIN or isinstance(
            value, (cygrad.dtype, cygrad.device, cygrad.layout, cygrad.memory_format)
        ):
            return value
        if isinstance(value, (bool, int, float, str)):  # their subclasses
            return next(kind(value) for kind in (bool, int, float, str) if isinstance(value, kind))
        if isinstance(value, (np.ndarray, np.generic)):
            plain = np.asarray(value)
            return plain.item() if isinstance(value, np.generic) else self.ref(cygrad.from_numpy(plain.copy()))
        if isinstance(value, type) and hasattr(value, "dtype"):  # torch.FloatTensor
            return value.dtype
        raise RecordingError(f"an argument of type {type(value).__name__} cannot be recorded, at {site_of_user()}")

    # -- calls ---------------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("__get__", "__set__", "__delete__"):  # of an attribute; the listener hears what this runs
            return func(*args)
        kwargs = kwargs or {}
        target = name_of(func)
        if target in READS:
            self._warn_of_read(READS[target], args)
        operands: list[Tensor] = []
        _tensors((kwargs.get("out"), args, kwargs), operands)
        versions = [version_of(t) for t in operands]
        try:
            written = self.written(args), self.written(kwargs)
            problem = None
        except RecordingError as error:
            written, problem = ((), {}), error
        self._depth += 1
        try:
            result = func(*args, **kwargs)
        finally:
            self._depth -= 1
        changed = _distinct([t for t, before in zip(operands, versions) if version_of(t) != before])
        made: list[tuple[tuple[Any, ...], Tensor]] = []
        _results(result, (), made)
        if (made or changed) and target not in READS:
            if target in _MADE_OF_DATA:
                self._note_data(target, made)
            elif problem is not None:
                raise problem
            else:
                self._note(target, func, written, made, changed)
        return result

    def _note(self, target: Any, func: Any, written: Any, made: Any, changed: list[Tensor]) -> None:
        if target is None:
            raise RecordingError(
                f"a call of {getattr(func, '__name__', func)} cannot be recorded, at {site_of_user()}\n"
                "  it is no function of this package"
            )
        known = [self._names.get(id(t)) or self._places.get(place_of(t)) for t in changed]
        names = tuple(dict.fromkeys(name for name in known if name is not None))
        wish = target.rpartition(".")[2].strip("_")
        results = [(path, self.name(t, wish)) for path, t in made]
        self.calls.append(Call(target, written[0], written[1], results, site_of_user(), names))

    def _note_data(self, target: str, made: Any) -> None:
        if self._warn_of_constants and not self.quiet and target in _WARNED:
            warn(
                f"torch.{target} results are registered as constants in the trace. You can safely ignore this "
                "warning if you use this function to create tensors out of constant variables that would be the "
                "same every time you call this function. In any other case, this might cause the trace to be "
                "incorrect.",
                TracerWarning,
            )
        for _, t in made:
            if id(t) not in self._names and place_of(t) not in self._places:
                self.ref(t.detach() if t.is_leaf else t)
                self._names[id(t)] = next(reversed(self.constants))
                self._alive.append(t)

    def _warn_of_read(self, kind: str, args: tuple[Any, ...]) -> None:
        if not self.quiet and any(isinstance(value, Tensor) for value in args):
            warn(
                f"Converting a tensor to a {kind} might cause the trace to be incorrect. We can't record the data "
                "flow of Python values, so this value will be treated as a constant in the future. This means that "
                "the trace might not generalize to other inputs!",
                TracerWarning,
            )

    def _heard(self, done: Any) -> None:
        """An op was recorded; outside a call that the mode has received, it belongs to an attribute."""
        if self._depth:
            return
        row = done.op if isinstance(done.op, str) else done.op.name
        source = next((value for value in done.inputs if isinstance(value, Tensor)), None)
        if row in _ROWS and source is not None:
            target, args = _ROWS[row](done.args)
            several = row == "unbind"
            results = [((i,) if several else (), self.name(t, row)) for i, t in enumerate(done.outs)]
            self.calls.append(Call(target, (self.ref(source), *args), {}, results, site_of_user()))
        elif source is not None:
            for t in done.outs:
                if id(t) not in self._names:
                    self._alive.append(t)
                    self._unseen[id(t)] = row


def _tensors(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _tensors(each, found)
    elif isinstance(value, dict):
        for each in value.values():
            _tensors(each, found)


def _results(value: Any, path: tuple[Any, ...], found: list[tuple[tuple[Any, ...], Tensor]]) -> None:
    if isinstance(value, Tensor):
        found.append((path, value))
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            _results(each, (*path, i), found)
    elif isinstance(value, dict):
        for key, each in value.items():
            _results(each, (*path, key), found)


def _distinct(changed: list[Tensor]) -> list[Tensor]:
    """Return the tensors that a call has changed: of those that share memory, and so a version, the first."""
    found: list[Tensor] = []
    for t in changed:
        if not any(t is other or memory_of(t) == memory_of(other) for other in found):
            found.append(t)
    return found


def memory_of(t: Tensor) -> int:
    """Return what all views of a tensor share; 0 for tensors without memory."""
    try:
        return t.untyped_storage().data_ptr() if t.numel() else 0
    except (RuntimeError, NotImplementedError):
        return 0


def version_of(t: Tensor) -> int:
    """Return the version of a tensor; 0 for one that has none."""
    try:
        return t._version
    except RuntimeError:  # tensors of inference mode
        return 0


# -- whole programs ----------------------------------------------------------------------------------------


def record(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    attributes: Mapping[str, Tensor] | None = None,
    plain: Mapping[str, Tensor] | None = None,
    name: str = "forward",
    constants_may_require_grad: bool = True,
    warn_of_constants: bool = False,
    quiet: bool = False,
    update_buffers: bool = False,
) -> Program:
    """Return the program that a function runs for these arguments.

    `attributes` are the parameters and buffers, by name, and `plain` the other tensors of modules, which become
    constants of these names. The arguments are passed as they are: what the function changes in place is changed.
    `warn_of_constants` warns of tensors made of Python values, `quiet` of nothing. With `update_buffers`, `function` is
    a module, and the program changes a buffer in place that the module sets to another tensor. Raises RecordingError if
    a part of the function cannot be recorded; what the function raises is passed on.
    """
    kwargs = kwargs or {}
    recorder = Recorder(attributes or {}, plain or {}, warn_of_constants, constants_may_require_grad, quiet)
    parameters = []
    for parameter, value in _by_parameter(function, args, kwargs):
        parameters.append((parameter, _entered(recorder, parameter, value)))
    buffers = dict(function.named_buffers(remove_duplicate=False)) if update_buffers else {}
    with recorder:
        output = function(*args, **kwargs)
        structure = recorder.written(output)
    if update_buffers:
        _update(recorder, function, buffers, output)
    program = Program(name, parameters, recorder.calls, structure, recorder.constants, recorder.paths, recorder.tensors)
    program.alive = recorder._alive
    return program


def _entered(recorder: Recorder, name: str, value: Any) -> Any:
    """Give names to the tensors among an argument."""

    def enter(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return recorder.written(value)
        if id(value) in recorder._names and not recorder._names[id(value)].startswith("self."):
            return Ref(recorder._names[id(value)])
        return Ref(recorder.name(value, name))

    return mapped(enter, value)


def _update(recorder: Recorder, module: nn.Module, buffers: Mapping[str, Tensor], output: Any) -> None:
    """Add calls that copy into the buffers what the module has set them to, as PyTorch's programs do."""
    found = dict(module.named_buffers(remove_duplicate=False))
    still_used: list[Tensor] = [*found.values(), *module.parameters()]
    _tensors(output, still_used)
    memory = {memory_of(t) for t in still_used} - {0}
    for path, buffer in buffers.items():
        t = found.get(path)
        if t is buffer:
            continue
        if t is None or t.shape != buffer.shape or t.dtype is not buffer.dtype or t.device != buffer.device:
            raise RecordingError(
                f"the buffer {path!r} is set to {'None' if t is None else 'a tensor of another shape, dtype or device'}"
                "\n  a program can only change the values of a buffer"
            )
        place = place_of(t)
        if place is not None and place == place_of(buffer):  # the same memory
            continue
        if memory_of(buffer) in memory:
            raise RecordingError(
                f"the buffer {path!r} is set to another tensor, but its former one is still in use\n"
                "  a program changes the buffer in place: clone what is returned or kept of it"
            )
        memory |= {memory_of(buffer)} - {0}  # nor may another buffer share it
        own = f"self.{path}"
        recorder.calls.append(Call("Tensor.copy_", (Ref(own), recorder.ref(t)), {}, [], "", (own,)))


def _by_parameter(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return (name of the parameter, argument) pairs."""
    names: list[str] = []
    rest = "arg"
    if hasattr(function, "parameter_names"):  # it runs a program itself
        names += function.parameter_names()
    else:
        try:
            parameters = list(inspect.signature(getattr(function, "forward", function)).parameters.items())
        except (TypeError, ValueError):
            parameters = []
        for name, parameter in parameters:
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                names.append(name)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                rest = name
    further = [f"{rest}_{i}" for i in range(len(args) - len(names))]
    while {*further} & {*names, *kwargs}:
        further = [f"{name}_1" for name in further]
    return [*zip([*names, *further], args), *kwargs.items()]
