"""Descriptions of the lengths that dimensions of arguments may have: plain data, which a program states in advance."""

import inspect

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


class _DimHint:
    """What is known of a dimension without a name: `Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC`, with limits if called.

    >>> import cygrad
    >>> hint = cygrad.export.Dim.DYNAMIC(min=2, max=64)
    >>> hint
    DimHint(DYNAMIC, min=2, max=64)
    >>> x = cygrad.ones(3, 2)
    >>> program = cygrad.export.export(cygrad.nn.ReLU(), (x,), dynamic_shapes=((hint, cygrad.export.Dim.STATIC),))
    >>> program.module()(cygrad.ones(5, 2)).shape
    torch.Size([5, 2])
    """

    def __init__(self, kind, min=None, max=None):
        self.type, self.min, self.max = kind, min, max

    def __call__(self, min=None, max=None):
        if self.min is not None or self.max is not None:
            raise TypeError(f"'{type(self).__name__}' object is not callable")
        return _DimHint(self.type, min, max)

    def __repr__(self):
        limits = [f"{name}={value}" for name, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"DimHint({', '.join([self.type, *limits])})"


class Dim:
    """The length of a dimension that several arguments share, by its name, within limits.

    `2 * Dim("n") + 1` is the length that follows from another one. Raises AssertionError for a name that is no
    identifier, or if `min` is above `max`.

    >>> import cygrad
    >>> batch = cygrad.export.Dim("batch", min=2, max=16)
    >>> batch, 2 * batch + 1
    (Dim('batch', max=16), 2*batch + 1)
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name, *, min=None, max=None):
        self.min = 0 if min is None else min
        self.max = float("inf") if max is None else max
        if self.max < self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name

    def _derived(self, name, fn):
        return _DerivedDim(name, self, fn)

    def __add__(self, other):
        _require_int("+", other)
        return self._derived(f"{self.__name__} + {other}", lambda n: n + other)

    def __sub__(self, other):
        _require_int("-", other)
        return self._derived(f"{self.__name__} - {other}", lambda n: n - other)

    def __mul__(self, other):
        _require_int("*", other)
        if other <= 0:
            raise NotImplementedError(f"Attempted to multiply {self.__name__} by {other}, where a positive integer was "
                                      "expected.")  # fmt: skip
        return self._derived(f"{other}*{self.__name__}", lambda n: n * other)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self):
        limits = [f"min={self.min}"] if self.min not in (0, 2) else []
        limits += [f"max={self.max}"] if self.max != float("inf") else []
        return f"Dim({', '.join([repr(self.__name__), *limits])})"


class _DerivedDim(Dim):
    """A length that follows from that of another dimension, `root`, by the function `fn`."""

    def __init__(self, name, root, fn):
        self.__name__, self.root, self.fn = name, root, fn
        self.min, self.max = fn(root.min), fn(root.max)

    def _derived(self, name, fn):
        return _DerivedDim(name, self.root, lambda n: fn(self.fn(n)))

    def __repr__(self):
        return self.__name__


def _require_int(sign, other):
    if type(other) is not int:
        raise NotImplementedError(f"Attempted to use `{sign}` with a Dim and {other}, where an integer was expected.")


def dims(*names, min=None, max=None):
    """Return a `Dim` for each name, all with the same limits.

    >>> import cygrad
    >>> batch, length = cygrad.export.dims("batch", "length", min=2)
    >>> batch, length
    (Dim('batch'), Dim('length'))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Descriptions of dimensions by the tensors that they belong to; `export` takes it as `dynamic_shapes`.

    >>> import cygrad
    >>> x = cygrad.ones(3, 2)
    >>> shapes = cygrad.export.ShapesCollection()
    >>> shapes[x] = {0: cygrad.export.Dim("batch")}
    >>> program = cygrad.export.export(cygrad.nn.ReLU(), (x,), dynamic_shapes=shapes)
    >>> program.module()(cygrad.ones(5, 2)).shape
    torch.Size([5, 2])
    """

    def __init__(self):
        self._shapes = {}

    def __setitem__(self, t, shape):
        self._shapes[id(t)] = shape

    def __getitem__(self, t):
        return self._shapes.setdefault(id(t), {})

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """Return {parameter of `m`: the descriptions of its tensors, nested as they are} for the arguments of a call.

        >>> import cygrad
        >>> x = cygrad.ones(3, 2)
        >>> shapes = cygrad.export.ShapesCollection()
        >>> shapes[x] = {0: cygrad.export.Dim("batch")}
        >>> shapes.dynamic_shapes(cygrad.nn.ReLU(), (x,))
        {'input': {0: Dim('batch')}}
        """
        return _mapped(lambda value: self._shapes.get(id(value)), _by_parameter(m, args, kwargs))


class AdditionalInputs:
    """The arguments of further calls, which show the lengths that vary; `export` takes it as `dynamic_shapes`.

    >>> import cygrad
    >>> more = cygrad.export.AdditionalInputs()
    >>> more.add((cygrad.ones(5, 2),))
    >>> program = cygrad.export.export(cygrad.nn.ReLU(), (cygrad.ones(3, 2),), dynamic_shapes=more)
    >>> program.module()(cygrad.ones(7, 2)).shape
    torch.Size([7, 2])
    """

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        """Add the arguments of one call. Raises AssertionError unless they are a tuple and a dictionary."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m, args, kwargs=None):
        """Return {parameter of `m`: for each tensor a tuple of `Dim.DYNAMIC` where its length varies, or else None}.

        Raises ValueError if the calls do not have the same structure.

        >>> import cygrad
        >>> more = cygrad.export.AdditionalInputs()
        >>> more.add((cygrad.ones(5, 2),))
        >>> more.dynamic_shapes(cygrad.nn.ReLU(), (cygrad.ones(3, 2),))
        {'input': (DimHint(DYNAMIC), None)}
        """
        return _mapped(_varying, *(_by_parameter(m, *each) for each in [(args, kwargs), *self._examples]))

    def verify(self, ep):
        """Check that an exported program takes all of these arguments, without running it.

        Raises RuntimeError if their number, structure, dimensions or lengths are others.

        >>> import cygrad
        >>> more = cygrad.export.AdditionalInputs()
        >>> more.add((cygrad.ones(5, 2),))
        >>> more.verify(cygrad.export.export(cygrad.nn.ReLU(), (cygrad.ones(3, 2),), dynamic_shapes=more))
        """
        for args, kwargs in self._examples:
            kwargs = kwargs or {}
            paths = {id(value): path for path, value in _leaves("*args", args)}
            for name, given in kwargs.items():
                paths.update((id(value), path) for path, value in _leaves(repr(name), given))
            for name, t in ep._program.bound(args, kwargs).items():
                _check_lengths(paths[id(t)], t.shape, ep._shapes[name][1])


def _leaves(path, value):
    """Yield (how PyTorch's errors name its place, the value) for each value in nested lists and dictionaries."""
    if isinstance(value, (list, tuple, dict)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(f"{path}[{key!r}]", item)
    else:
        yield path, value


def _check_lengths(path, shape, wanted):
    """Raise RuntimeError unless a tensor has the lengths that a program was exported for; None stands for any."""
    if len(shape) != len(wanted):
        shown = ", ".join("*" if length is None else str(length) for length in wanted)
        raise RuntimeError(
            f"Unexpected number of dimensions in input at {path}.shape (expected torch.Size([{shown}]), got {shape})"
        )
    for dim, (length, expected) in enumerate(zip(shape, wanted)):
        if expected is not None and length != expected:
            raise RuntimeError(
                f"Expected input at {path}.shape[{dim}] to be equal to {expected}, but got {length}. If you meant for "
                "this dimension to be dynamic, please re-export and specify dynamic_shapes (e.g. with Dim.DYNAMIC)"
            )


def resolved(shapes, m, args, kwargs):
    """Return what `export` was given as `dynamic_shapes` as plain descriptions of the arguments' dimensions."""
    if isinstance(shapes, (ShapesCollection, AdditionalInputs)):
        return shapes.dynamic_shapes(m, args, kwargs)
    return shapes


def _by_parameter(m, args, kwargs):
    return dict(inspect.signature(getattr(m, "forward", m)).bind(*args, **(kwargs or {})).arguments)


def _mapped(function, first, *others):
    """Return nested lists and dictionaries with `function(value, ...)` in place of the values at each place."""
    if isinstance(first, (list, tuple, dict)):
        keys = list(first) if isinstance(first, dict) else range(len(first))
        for other in others:
            if type(other) is not type(first) or len(other) != len(first):
                raise ValueError(f"the calls differ in their structure: {type(first)}, but got {type(other)}")
        found = {key: _mapped(function, *(each[key] for each in (first, *others))) for key in keys}
        made = getattr(type(first), "_make", type(first))  # a named tuple takes its values one by one
        return found if isinstance(first, dict) else made(found.values())
    return function(first, *others)


def _varying(first, *others):
    """Return a hint for each dimension of a tensor whose length is not the same in all calls."""
    lengths = [getattr(each, "shape", None) for each in (first, *others)]
    if lengths[0] is None:
        return None
    return tuple(Dim.DYNAMIC if len(set(each)) > 1 else None for each in zip(*lengths, strict=True))
