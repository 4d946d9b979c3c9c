"""Ufuncs: NumPy's arithmetic with CuPy's loops, promotion and restrictions."""

import numpy as np

from . import compute, names

try:
    import ml_dtypes

    bfloat16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:
    bfloat16 = None


def dtype_of(char):
    return bfloat16 if char == "E" else np.dtype(char)


def kind_of(dtype):
    """The position of a dtype in NEP 50's order of kinds."""
    return {"b": 0, "i": 1, "u": 1, "c": 3}.get(dtype.kind, 2)


def weak_kind(value):
    return {bool: 0, int: 1, float: 2, complex: 3}[type(value)]


class ufunc:
    """`cupy.ufunc`."""

    def __init__(self, name, described, function):
        self.name = f"cupy_{name}"
        self.__name__ = name
        self.nin = described["nin"]
        self.nout = described["nout"]
        self.nargs = self.nin + self.nout
        self.types = [loop for loop in described["loops"].split() if "E" not in loop or bfloat16 is not None]
        self._loops = [[[dtype_of(c) for c in part] for part in loop.split("->")] for loop in self.types]
        self._function = function
        self._found = {}  # loops by dtypes

    def __repr__(self):
        return f"<ufunc '{self.name}'>"

    def _operand(self, value):
        if isinstance(value, compute.ndarray_class()) or type(value) in (bool, int, float, complex):
            return value
        if isinstance(value, np.generic):
            return value
        raise TypeError(f"Unsupported type {type(value)}")

    def _loop(self, ins, dtype):
        """The dtypes of inputs and outputs in the first loop that accepts the inputs."""
        if dtype is not None:
            dtype = np.dtype(dtype)
            for in_types, out_types in self._loops:
                if all(out == dtype for out in out_types):
                    return in_types, out_types
            raise TypeError(f"No loop matching the specified signature was found for ufunc {self.name}")
        key = tuple([x.dtype if hasattr(x, "dtype") else type(x) for x in ins])
        if key not in self._found:
            self._found[key] = self._first_loop(ins)
        return self._found[key]

    def _first_loop(self, ins):
        strong = [x.dtype for x in ins if hasattr(x, "dtype")]
        given = [self._as_seen(x, strong) for x in ins]
        for in_types, out_types in self._loops:
            if all(self._fits(x, t) for x, t in zip(given, in_types)):
                return in_types, out_types
        kinds = ", ".join(str(getattr(x, "dtype", type(x).__name__)) for x in ins)
        raise TypeError(f"Wrong type ({kinds}) of arguments for {self.name}")

    @staticmethod
    def _as_seen(x, strong):
        """Treat a Python scalar of a higher kind than all arrays as a value of that kind's dtype."""
        if hasattr(x, "dtype") or weak_kind(x) <= max(map(kind_of, strong)):
            return x
        return np.zeros((), np.result_type(*[d if d != bfloat16 else np.dtype("f") for d in strong], x))

    @staticmethod
    def _fits(x, loop):
        if hasattr(x, "dtype"):
            return np.can_cast(x.dtype, loop, "safe")
        return weak_kind(x) <= kind_of(loop)

    def __call__(self, *args, out=None, dtype=None, casting="same_kind", **wrong):
        if wrong:
            raise TypeError(f"Wrong arguments {wrong}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(f"Wrong number of arguments for '{self.name}'")
        ins, outs = [self._operand(x) for x in args[: self.nin]], list(args[self.nin :])
        if out is not None:
            if outs:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            outs = list(out) if isinstance(out, tuple) else [out]
        for o in outs:
            if o is not None and not isinstance(o, compute.ndarray_class()):
                raise TypeError(f"Output arguments type must be cupy.ndarray, not {type(o)}")
        in_types, out_types = self._loop(ins, dtype)
        outs += [None] * (self.nout - len(outs))
        for o, t in zip(outs, out_types):
            if o is not None and not np.can_cast(t, o.dtype, casting):
                raise TypeError(f"Cannot cast ufunc '{self.name}' output from {t!r} to {o.dtype!r} with '{casting}'")
        results = compute.run(self.name, lambda i, o: self._computed(i, o, in_types, out_types), [ins, outs])
        return results[0] if self.nout == 1 else tuple(results)

    def _computed(self, ins, outs, in_types, out_types):
        cast = [converted(x, t) for x, t in zip(ins, in_types)]
        results = self._function(*cast)
        results = list(results) if self.nout > 1 else [results]
        shape = np.broadcast_shapes(*[np.shape(r) for r in results], *[o.shape for o in outs if o is not None])
        for i, (result, o, t) in enumerate(zip(results, outs, out_types)):
            result = np.asarray(result)
            if any(np.may_share_memory(result, x) for x in ins if isinstance(x, np.ndarray)) and self.name not in VIEWS:
                result = result.copy()
            if o is None:
                results[i] = result.astype(t, copy=False)
            else:
                if o.shape != shape:
                    raise ValueError(f"Out shape is mismatched: {o.shape} and {shape}")
                np.copyto(o, result.astype(t, copy=False), casting="unsafe")
                results[i] = o
        return results

    # --- Methods -------------------------------------------------------------------------------

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        only(self.name, "reduce", "cupy_add", "cupy_multiply")
        kwargs = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
        return compute.run(f"{self.name}.reduce", getattr(np, self.__name__).reduce, [array], kwargs)

    def accumulate(self, array, axis=0, dtype=None, out=None):
        only(self.name, "accumulate", "cupy_add", "cupy_multiply")
        kwargs = {"axis": axis, "dtype": dtype, "out": out}
        return compute.run(f"{self.name}.accumulate", getattr(np, self.__name__).accumulate, [array], kwargs)

    def reduceat(self, array, indices, axis=0, dtype=None, out=None):
        only(self.name, "reduceat", "cupy_add")
        if not isinstance(array, compute.ndarray_class()):
            raise TypeError("array must be of cupy.ndarray")
        kwargs = {"axis": axis, "dtype": dtype, "out": out}
        return compute.run(f"{self.name}.reduceat", np.add.reduceat, [array, indices], kwargs)

    def at(self, a, indices, b=None):
        from . import indexing

        only(self.name, "at", *(f"cupy_{name}" for name in indexing.ATOMIC))
        indexing.scatter(getattr(np, self.__name__), a, indices, b)

    def outer(self, A, B, **kwargs):
        A, B = A[(Ellipsis, *[None] * B.ndim)], B
        return self(A, B, **kwargs)


VIEWS = ("cupy_real", "cupy_imag")


def only(name, method, *allowed):
    if name not in allowed:
        raise NotImplementedError(f"`{name}.{method}` is not supported yet")


def converted(x, dtype):
    if isinstance(x, (np.ndarray, np.generic)):
        x = np.asarray(x)
        if dtype == bfloat16 and bfloat16 is not None:
            return x.astype(dtype).astype(np.float32)
        return x.astype(dtype, copy=False)
    if dtype == bfloat16 and bfloat16 is not None:
        return np.asarray(x, dtype).astype(np.float32)
    if dtype.kind in "iu" and not isinstance(x, bool):
        info = np.iinfo(dtype)
        if not info.min <= x <= info.max:
            raise OverflowError(f"Python integer {x} out of bounds for {dtype}")
    return np.asarray(x, dtype)


def made(module, name, function):
    return ufunc(name, names.MODULES[module][name], function)
