"""Numbers that captured steps of optimizers compute in main memory: rates, counts of steps, and what follows from them.

Note [Host numbers]
-------------------
A graph launches its kernels with the arguments of the captured call. So, while a compiled step is captured, numbers
that an optimizer computes in main memory are passed in GPU memory instead, and computed anew for each launch:

    Absent      stands for the array of each tensor in main memory, which the graph could not read anew. Whatever reads
                it raises an error, and the step is not captured. Only counts of steps and other scalars of optimizers
                are known here.
    Number      a setting of an optimizer, which a group's dictionary holds
    Counted     a count of steps, after it was raised
    Recipe      the numbers of a launch, and how they follow from those

`refresh` computes all of it on copies, `send` writes it to the GPU, `commit` keeps the new counts.
"""

from _thread import get_ident
from typing import Any

import numpy as np

from cygrad._kernels.cpu.optim.formulas import shared_numbers
from cygrad._kernels.device.followed import current_work as following
from cygrad._kernels.device.followed import follow as follow
from cygrad._kernels.gpu.launch.program import Program
from cygrad._kernels.gpu.runtime.graph_capture import current

_MOST = 10  # numbers of a recipe
_UNLIKE = "parameters that were updated together have different counts of steps"
_SEND = Program(
    "send_numbers",
    """
extern "C" __global__ void send_numbers(double* out, double a0, double a1, double a2, double a3, double a4, double a5,
                                        double a6, double a7, double a8, double a9) {
    const double given[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9};
    EACH_OF(i, 10) out[i] = given[i];
}
""",
)


class Changed(Exception):
    """A number is no longer such that the captured step would do the same with it."""


class Absent:
    """Stands for an array in main memory while a step is captured."""

    def __init__(self, array):
        self.held = array
        self.dtype, self.shape, self.ndim, self.size = array.dtype, array.shape, array.ndim, array.size


class Number(float):
    """A setting of an optimizer: `read()` returns what it is now, or raises `Changed`.

    `place` is (dictionary, key). `is_used`: it ends in a `Recipe`.
    """

    read: Any
    place: Any
    is_used = False

    def now(self, copies):
        """Return what it is now."""
        return self.read()


class Counted(float):
    """A count of steps, in an array."""

    array: Any

    def now(self, copies):
        """Return what it is now; `copies` hold the arrays that were changed so far."""
        return float(copies[id(self.array)][1])


class Recipe(tuple):
    """The numbers of a launch: what `function` makes of what `sources` are now. `sent` holds them on the GPU."""

    function: Any
    sources: Any
    sent: Any = None

    def __hash__(self):
        return hash((tuple(self), tuple(map(id, self.sources))))

    def __eq__(self, other):
        return (
            isinstance(other, Recipe)
            and tuple(self) == tuple(other)
            and [id(s) for s in self.sources] == [id(s) for s in other.sources]
        )

    def prepare(self, copies):
        """Compute the numbers for the next launch."""
        self.next = tuple(map(float, self.function(*[_now(s, copies) for s in self.sources])))

    def on_gpu(self):
        """Return the array that holds the numbers, for a kernel that is being captured."""
        if self.sent is None:
            capture = current()
            with capture.beside():
                self.sent = capture.uploaded_numbers(np.array([*self, *[0.0] * (_MOST - len(self))]))
        return self.sent

    def send(self):
        """Write the numbers to the GPU."""
        if self.sent is not None:
            numbers = *self.next, *[0.0] * (_MOST - len(self.next))
            _SEND.launch(self.sent.dtype, 1, 32, (self.sent, *numbers))


class _Count:
    """That arrays of counts are raised."""

    def __init__(self, arrays):
        self.arrays = arrays

    def prepare(self, copies):
        for array in self.arrays:
            copies.setdefault(id(array), (array, array.copy()))[1][...] += 1


class _Shared:
    """What `shared_numbers` computes from scalars, which it changes.

    `scalars` are those of parameters that are alike.
    """

    def __init__(self, name, options, scalars, flags):
        self.name, self.options, self.scalars, self.flags = name, options, [scalars], flags

    def prepare(self, copies):
        found = {self.of(scalars, copies) for scalars in self.scalars}
        if len(found) > 1:
            raise Changed(_UNLIKE)
        self.numbers = found.pop()

    def of(self, scalars, copies):
        """Return the numbers for one parameter."""
        own = [copies.setdefault(id(array), (array, array.copy()))[1] for array in scalars]
        return shared_numbers(self.name, [_now(option, copies) for option in self.options], own, *self.flags)


class HostWork:
    """What a captured step does in main memory. `is_watched`: the step runs as written, and is only looked at."""

    def __init__(self, is_watched=False):
        self.is_watched, self.numbers, self.actions = is_watched, [], []
        self.copies: dict[int, Any] = {}
        self._shared: dict[Any, Any] = {}  # what `shared_numbers` has returned
        self.missed = ""
        self._thread = get_ident()

    def is_here(self):
        """Whether this thread is the one whose step is captured."""
        return self._thread == get_ident()

    @property
    def arrays(self):
        """The arrays that the step changes."""
        return [array for array, _ in self.copies.values()]

    @property
    def places(self):
        """(dictionary, key) of the numbers that are read anew: of those that all end in recipes."""
        bad = {(id(n.place[0]), n.place[1]) for n in self.numbers if not n.is_used}
        found = {(id(n.place[0]), n.place[1]): n.place for n in self.numbers}
        return [place for key, place in found.items() if key not in bad]

    def number(self, value, place, read):
        """Return a setting as a number that is followed."""
        found = Number(value)
        found.place, found.read = place, read
        self.numbers.append(found)
        return found

    def _do(self, action):
        self.actions.append(action)
        action.prepare(self.copies)

    def count(self, absents):
        """Count a step, and return the new counts."""
        arrays = [absent.held for absent in absents]
        if any(a.ndim or a.dtype != np.float32 for a in arrays):
            raise TypeError("counts of steps must be scalars of float32")
        self._do(_Count(arrays))
        found = []
        for array in arrays:
            count = Counted(self.copies[id(array)][1])
            count.array = array
            found.append(count)
        return found

    def shared_numbers(self, name, options, scalars, *flags):
        """`shared_numbers` of scalars that are absent, or, while the step runs as written, there."""
        if self.is_watched:
            for option in options:
                _use(option)
            return shared_numbers(name, options, scalars, *flags)
        arrays = [absent.held for absent in scalars]
        before = tuple(self.copies.get(id(a), (a, a))[1].tobytes() for a in arrays)
        key = name, flags, before, tuple(map(_identity, options))
        if key in self._shared and not any(id(a) in self.copies for a in arrays):
            action, found = self._shared[key]
            action.scalars.append(arrays)
            action.of(arrays, self.copies)
            for option in options:
                _use(option)
            return found
        action = _Shared(name, options, arrays, flags)
        self._do(action)
        found = self.recipe(lambda *_: action.numbers, options)
        self._shared[key] = action, found
        return found

    def recipe(self, function, sources):
        """Return what `function` makes of `sources`: numbers, and lists of numbers that are alike."""
        for source in sources:
            _use(source)
        values = [_value(source) for source in sources]
        if self.is_watched:
            return function(*values)
        found = Recipe(map(float, function(*values)))
        found.function, found.sources = function, tuple(sources)
        self.actions.append(found)
        return found

    # -- launches --

    def refresh(self):
        """Compute everything for the next launch; return False if the captured step does not fit any more."""
        copies: dict[int, Any] = {}
        try:
            for action in self.actions:
                action.prepare(copies)
        except Changed as reason:
            self.missed = str(reason)
            return False
        self.copies = copies
        return True

    def send(self):
        """Write the numbers to the GPU."""
        for action in self.actions:
            if isinstance(action, Recipe):
                action.send()

    def commit(self):
        """Keep the new counts."""
        for array, copy in self.copies.values():
            array[...] = copy

    def is_as_done(self):
        """Whether the arrays are as `commit` would leave them."""
        return all(array.tobytes() == copy.tobytes() for array, copy in self.copies.values())


def recipe(function, sources):
    """Return what `function` makes of `sources`: a `Recipe` while a step is captured, otherwise numbers."""
    work = following()
    return function(*map(_value, sources)) if work is None else work.recipe(function, sources)


def _use(source):
    if isinstance(source, Number):
        source.is_used = True


def _identity(source):
    return (id(source.place[0]), source.place[1], float(source)) if isinstance(source, Number) else source


def _value(source):
    return source[0] if isinstance(source, list) else source


def _now(source, copies):
    if isinstance(source, list):
        found = {_now(each, copies) for each in source}
        if len(found) > 1:
            raise Changed(_UNLIKE)
        return found.pop()
    return source.now(copies) if isinstance(source, (Number, Counted)) else source
