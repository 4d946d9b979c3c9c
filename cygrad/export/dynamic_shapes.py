"""Descriptions of the lengths that dimensions of arguments may have: plain data, which a program states in advance."""

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


class _DimHint:
    """What is known of a dimension without a name: `Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC`, with limits if called."""

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
    """Return a `Dim` for each name, all with the same limits."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Descriptions of dimensions by the tensors that they belong to."""

    def __init__(self):
        self._shapes = {}

    def __setitem__(self, t, shape):
        self._shapes[id(t)] = shape

    def __getitem__(self, t):
        return self._shapes.setdefault(id(t), {})

    def __len__(self):
        return len(self._shapes)


class AdditionalInputs:
    """Further arguments from which it shows which lengths vary."""

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        """Add the arguments of one call. Raises AssertionError unless they are a tuple and a dictionary."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))
