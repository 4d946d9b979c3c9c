"""What runs in a call: the Python functions, and what they call in C.

A call is watched by `sys.setprofile`, which costs time, so only the first calls of a compiled function are. From what
ran follows what the call reads of Python (`_state.py`), and whether it does something that a replay would leave out.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cygrad
from cygrad._core.replay.returns.returned import Numbers
from cygrad._core.replay.situation import resting_collector
from cygrad._kernels.device import cupy_library

_NUMPY = os.path.join(os.path.dirname(os.path.abspath(np.__file__)), "")
_OF_ERRSTATE = np.errstate.__enter__.__code__.co_filename
_PACKAGES = os.path.join("", "site-packages", "")
_LIBRARIES = (os.path.join(os.path.dirname(os.path.abspath(os.__file__)), ""), _NUMPY, "<frozen ")
_OURS = os.path.join(os.path.dirname(os.path.abspath(cygrad.__file__)), "")

# The folders and files of the package whose Python code keeps nothing between calls but what guards see.
_KEEPING_NOTHING = (
    *(
        "__init__.py",
        "_VF",
        "_core",
        "_custom_ops.py",
        "_higher_order_ops",
        "_kernels",
        "_library.py",
        "_ops",
        "_tensor",
    ),
    *("amp", "as_torch", "autograd", "compiler", "distributions", "fft.py", "func", "functional.py", "library"),
    *("linalg.py", "nested", "nn", "ops", "optim", "overrides", "return_types.py", "signal", "sparse.py", "special.py"),
    *("types.py", "utils/__init__.py", "utils/_foreach_utils.py", "utils/checkpoint.py", "utils/gradients.py"),
    *("utils/hooks.py", "utils/interop.py"),
)
# Of these, functions that change what later calls do, or tell what the program can not.
_CHANGING = {
    "_core/runtime/settings.py": None,
    "_core/runtime/memory_stats.py": None,
    "_core/runtime/threads.py": ("set_num_threads", "set_num_interop_threads"),
    "_core/tensor/tensor_str.py": None,
    "_core/types/dtypes.pyx": ("set_default_dtype",),
    "_ops/random/generator.py": (
        *("clone_state", "get_offset", "get_state", "initial_seed", "manual_seed", "seed", "set_offset", "set_state"),
    ),
    "autograd/anomaly_mode.py": ("set_anomaly_enabled",),
    "compiler/__init__.py": ("set_default_backend", "set_stance", "reset"),
}
# Functions of other files that only tell what the program knows, too.
_ASKING = frozenset(
    [
        ("cuda/graphs.py", "is_current_stream_capturing"),
        ("cuda/devices.py", "is_available"),
        ("__future__.py", "get_swap_module_params_on_conversion"),
        ("_functorch/vmap.py", "are_others"),
    ]
)
# Methods of tensors, and functions, that are compiled and hand values or memory to Python or to others.
_HANDING_OUT = frozenset(
    "__array__ __deepcopy__ __dlpack__ __reduce__ __reduce_ex__ _version data_ptr from_dlpack is_set_to numpy"
    " set_default_dtype share_memory_ storage to_dlpack untyped_storage".split()
)

# Functions of `builtins` that neither read nor change anything but their arguments.
_PURE_BUILTINS = frozenset(
    "__build_class__ abs all any ascii bin callable chr delattr divmod format getattr hasattr hash hex isinstance"
    " issubclass iter len max min next oct ord pow repr round setattr sorted sum".split()
) - {"__build_class__"}
_PURE_MODULES = frozenset(
    "_abc _bisect _collections _functools _heapq _operator _sre _struct cmath itertools math operator".split()
)
_PURE_OWNERS: tuple[type, ...] = (
    bool, bytearray, bytes, complex, dict, float, frozenset, int, list, object, property, range, set, slice, str, super,
    tuple, type, type({}.keys()), type({}.values()), type({}.items()), type(iter(())), type(iter([])),
    types.GeneratorType, types.MappingProxyType, BaseException, np.ndarray, np.generic, np.ufunc, np.dtype,
    getattr(getattr(np, "_core", None), "_multiarray_umath", np).__dict__.get("_array_converter", np.ndarray),
)  # fmt: skip
_HANDING_OUT_ARRAYS = frozenset("tofile dump dumps fromfile frombuffer from_dlpack".split())
_CHANGING_NUMPY = frozenset(
    "seterrobj set_typeDict set_datetimeparse_function _set_numpy_warn_if_no_mem_policy".split()
)
_DYNAMIC = frozenset(
    "getattr setattr hasattr delattr vars dir attrgetter methodcaller __dict__ __getattribute__".split()
)

# Names by which programs reach the groups of an optimizer, and functions of the package that hand on what these hold.
_GROUPS = frozenset(("param_groups", "__getstate__", "state_dict"))
_READING_GROUPS = frozenset(("optim/optimizer.py", name) for name in ("__getstate__", "__repr__", "state_dict"))


class Reason(NamedTuple):
    """What prevents replaying, where, and how to fix it."""

    text: str
    site: tuple[str, int] | None = None
    remedy: str = ""

    def __str__(self) -> str:
        return self.text if self.site is None else f"{self.text}, at {located(self.site)}"


def located(site: tuple[str, int]) -> str:
    """Return "file:line: text of the line"."""
    import linecache  # needed only for texts

    line = linecache.getline(*site).strip()
    return f"{site[0]}:{site[1]}" + (f": {line}" if line else "")


def impurity(function: Any) -> str | None:
    """Return the name of a function in C if it may read or change more than its arguments, else None."""
    name = getattr(function, "__name__", "?")
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or getattr(type(owner), "__module__", None) or ""
    if owner is None or isinstance(owner, types.ModuleType):
        kind = getattr(function, "__objclass__", None)  # of a method of a class, taken from the class
        if kind is not None:
            return _of_class(kind, name)
        module = module.removeprefix("builtins.")
        if module == "builtins":
            return None if name in _PURE_BUILTINS else name
        if _is_ours(module):
            return name if name in _HANDING_OUT else None
        if module in ("numpy", "numpy._core._multiarray_umath"):
            return name if name in _HANDING_OUT_ARRAYS or name in _CHANGING_NUMPY else None
        return None if module in _PURE_MODULES else f"{module}.{name}"
    return _of_class(owner if isinstance(owner, type) else type(owner), name)


def _of_class(kind: type, name: str) -> str | None:
    if name in _HANDING_OUT_ARRAYS:
        return f"{kind.__module__}.{kind.__qualname__}.{name}"
    for base in kind.__mro__:
        if base.__module__ == "collections" or base in _PURE_OWNERS and base is not object:
            return None
        if _is_ours(base.__module__):
            return name if name in _HANDING_OUT else None
    if name.startswith("__") or kind is object:  # what a class inherits from object
        return None
    return f"{kind.__module__}.{kind.__qualname__}.{name}"


def _is_ours(module: str | None) -> bool:
    return module is not None and (module in ("cygrad", "torch") or module.startswith("cygrad."))


def is_of_numpy(code: types.CodeType) -> bool:
    """Whether a function is NumPy's."""
    return code.co_filename.startswith(_NUMPY)


def is_of_named_tuple(namespace: dict[str, Any]) -> bool:
    """Whether globals are those that `collections.namedtuple` gives the constructor that it writes."""
    return namespace.keys() == {"__builtins__", "__name__", "_tuple_new"} and namespace["_tuple_new"] is tuple.__new__


def is_ours(code: types.CodeType) -> bool:
    """Whether a function is the package's."""
    return code.co_filename.startswith(_OURS)


def _is_called_by_us(frame: types.FrameType) -> bool:
    """Whether a function is the package's, one of Python or NumPy that the package calls, or the GPU library's."""
    if _is_called_by_gpu_library(frame):
        return True
    outer: types.FrameType | None = frame
    while outer is not None:
        file = outer.f_code.co_filename
        if file.startswith(_OURS):
            return True
        if not file.startswith(_LIBRARIES) or _PACKAGES in file and not file.startswith(_NUMPY):
            return False
        outer = outer.f_back
    return False


def _is_of_errstate(frame: types.FrameType) -> bool:
    """Whether a block of `numpy.errstate` is made, begins or ends; compiled code of the package has such blocks."""
    code = frame.f_code
    return code.co_filename == _OF_ERRSTATE and code.co_name in ("__init__", "__enter__", "__exit__")


def _reads_numbers(frame: types.FrameType) -> bool:
    """Whether a function of the package runs because a number is read that the step returns."""
    outer: types.FrameType | None = frame
    while outer is not None and is_ours(outer.f_code):
        if outer.f_code is Numbers.collect.__code__:
            return True
        outer = outer.f_back
    return False


def _puts_back(code: types.CodeType) -> bool:
    """Whether a function asks for the state of a generator only to put it back, which would be a reason by itself."""
    return is_ours(code) and code.co_qualname in ("Draws.__init__", "note_draw")


def _is_called_by_gpu_library(frame: types.FrameType) -> bool:
    """Whether a function is the GPU library's, or called by it.

    Compiled code of the package, which has no frame, calls that library, too. A program that calls it itself reaches it
    by a name, which is then a reason not to replay.
    """
    folders = cupy_library.folders()
    outer: types.FrameType | None = frame if folders else None
    while outer is not None and not outer.f_code.co_filename.startswith(_OURS):
        if outer.f_code.co_filename.startswith(folders):
            return True
        outer = outer.f_back
    return False


class Watch:
    """The functions that ran in a call: `codes` of the user's with the globals of each, `names` they use."""

    def __init__(self) -> None:
        self.codes: dict[int, tuple[types.CodeType, dict[str, Any]]] = {}
        self.names: set[str] = set()
        self.own_names: set[str] = set()  # that the package's functions use
        self.is_dynamic = False  # attributes are also used by names that are computed
        self._has_read_groups = False
        self.reasons: list[Reason] = []
        self._known: set[int] = set()
        self._kept: list[Any] = []  # so that an address stands for one object

    @property
    def reads_groups(self) -> bool:
        """Whether something that ran may have read the options of an optimizer's groups, besides its step."""
        return self._has_read_groups or self.is_dynamic or not _GROUPS.isdisjoint(self.names)

    @property
    def sees_grads(self) -> bool:
        """Whether something that ran may look at the `grad` of a tensor."""
        return self.is_dynamic or any("grad" in names for names in (self.names, self.own_names))

    @property
    def reads_grads(self) -> bool:
        """Whether the user's functions may look at the `grad` of a tensor."""
        return self.is_dynamic or "grad" in self.names

    def covers(self, other: Watch) -> bool:
        """Whether all functions that ran in another call ran in this one, too."""
        return (
            other.codes.keys() <= self.codes.keys() and other.names <= self.names and other.own_names <= self.own_names
        )

    def note(self, text: str, remedy: str = "", frame: types.FrameType | None = None) -> None:
        """Add a reason, at the line of the user's code that is running."""
        while frame is not None and is_ours(frame.f_code):
            frame = frame.f_back
        site = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        reason = Reason(text, site, remedy)
        if reason not in self.reasons:
            self.reasons.append(reason)
            if len(self.reasons) == _MOST_REASONS:  # the call will not be replayed: let it run at its own speed
                sys.setprofile(None)

    def run(self, call: Callable[[], Any]) -> Any:
        """Call a function, and watch what runs."""
        _thread.watch = self
        with resting_collector():  # finalizers of what others have left are no part of the call
            sys.setprofile(self._see)
            try:
                return call()
            finally:
                sys.setprofile(None)
                _thread.watch = None

    def _see(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if event == "call":
            if id(frame.f_code) not in self._known:
                self._see_function(frame)
        elif event == "c_call" and not _is_called_by_us(frame) and not _is_of_errstate(frame):
            name = impurity(argument)
            if name is not None:
                self.note(f"`{name}` is called, whose effect or result a replay cannot know", _REMEDY_CALL, frame)
            elif getattr(argument, "__name__", "") in _DYNAMIC:
                self.is_dynamic = True

    def _see_function(self, frame: types.FrameType) -> None:
        code = frame.f_code
        if not is_ours(code):
            if _is_of_errstate(frame) or is_of_named_tuple(frame.f_globals) or _is_called_by_us(frame):
                return
            self._known.add(id(code))
            self._kept.append(code)
            self.codes[id(code)] = code, frame.f_globals
            self.names.update(code.co_names)
            self.is_dynamic = self.is_dynamic or not _DYNAMIC.isdisjoint(code.co_names)
            if code.co_flags & _ASYNCHRONOUS:
                self.note("a coroutine runs", frame=frame)
            return
        place = code.co_filename[len(_OURS) :].replace(os.sep, "/")
        if place.startswith(_FOR_CAPTURES):
            self._known.add(id(code))
            self._kept.append(code)
            return
        if _reads_numbers(frame):
            return
        self.own_names.update(code.co_names)
        is_schedule = place.startswith("optim/lr_scheduler/") and code.co_name != "noted"
        if is_schedule or (place, code.co_name) in _READING_GROUPS:
            self._has_read_groups = True
        changing = _CHANGING.get(place, ())
        is_known = place.startswith(_KEEPING_NOTHING) or (place, code.co_name) in _ASKING
        if code.co_name == "get_state" and frame.f_back is not None and _puts_back(frame.f_back.f_code):
            return
        if not is_known or changing is None or code.co_name in changing:
            self.note(f"`{code.co_qualname}` of cygrad is called, which keeps or tells more than tensors", "", frame)
        else:
            self._known.add(id(code))  # the others are looked at each time: each line gets its reason
            self._kept.append(code)


# Code that knows nothing of programs, and of which other parts run while a call is captured.
_FOR_CAPTURES = (
    *("_kernels/tape/", "_kernels/gpu/", "_kernels/device/", "_core/engine/streams.py", "_library.py"),
    *("_core/replay/returns/returned.py", "_core/replay/returns/flows.py"),
)

_MOST_REASONS = 16
_REMEDY_CALL = "do it outside of the compiled function"
_ASYNCHRONOUS = 0x80 | 0x200  # CO_COROUTINE, CO_ASYNC_GENERATOR


class _Thread(threading.local):
    watch: Watch | None = None


_thread = _Thread()


def current_watch() -> Watch | None:
    """Return what watches this thread, or None."""
    return _thread.watch
