"""Indexing by CuPy's rules: out-of-range indices in index arrays wrap around; masks synchronize where CuPy counts."""

import numpy as np

from . import compute, state


class Index:
    """An index with its device arrays replaced by NumPy arrays.

    `has_mask` and `is_basic` classify it; `arrays` are the device arrays in it.
    """

    def __init__(self, array, slices, writes=False):
        ndarray = compute.ndarray_class()
        parts = list(slices) if type(slices) is tuple else [slices]
        self.arrays, self.has_mask, self.is_basic = [], False, True
        used = sum(self._dimensions(part) for part in parts)
        if used > array.ndim:
            raise IndexError("too many indices for array")
        if sum(part is Ellipsis for part in parts) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        self._read = {}  # by position: integers on the device, and the length that they are wrapped at
        masks, axis = 0, 0
        for i, part in enumerate(parts):
            if part is Ellipsis:
                axis += array.ndim - used
                continue
            if isinstance(part, ndarray):
                self.arrays.append(part)
                host = part._a
            elif isinstance(part, (list, np.ndarray)):
                host = np.asarray(part) if len(part) else np.zeros(np.shape(part), np.int32)
                state.transfer("to device", host.nbytes)
            elif isinstance(part, (bool, np.bool_)):
                host = np.asarray(part)
            else:
                axis += self._dimensions(part)
                continue
            self.is_basic = False
            if host.dtype.kind == "b":
                masks += 1
                self.has_mask = True
                for size, expected in zip(host.shape, array.shape[axis:]):
                    if size != expected:
                        raise IndexError(
                            f"Boolean array with shape {host.shape} cannot be used for an array of shape {array.shape}"
                        )
            elif host.dtype.kind in "iu":
                if array.shape[axis] == 0 and host.size:
                    if writes:
                        raise AssertionError("CuPy would write to an index modulo 0, which is anywhere in memory")
                    raise IndexError("cannot do a non-empty take from an empty axes.")
                self._read[i] = host, max(array.shape[axis], 1)
            else:
                raise IndexError(
                    f"arrays used as indices must be of integer or boolean type. (actual: {host.dtype.type})"
                )
            parts[i] = host
            axis += self._dimensions(host)
        if masks > 1:
            raise NotImplementedError("CuPy takes no more than one boolean array in an index")
        self._parts = parts

    @property
    def host(self):
        """The index with NumPy arrays; a replay reads them anew. CuPy wraps them, as the device cannot raise."""
        wrapped = {i: numbers % length if numbers.size else numbers for i, (numbers, length) in self._read.items()}
        return tuple(wrapped.get(i, part) for i, part in enumerate(self._parts))

    @staticmethod
    def _dimensions(part):
        if part is None or part is Ellipsis:
            return 0
        if isinstance(part, (bool, np.bool_)):
            return 0
        if isinstance(part, (list, np.ndarray)):
            part = np.asarray(part)
        dtype = getattr(part, "dtype", None)
        return part.ndim if dtype is not None and dtype.kind == "b" else 1


def host_index(array, slices):
    return Index(array, slices).host


def taken(array, slices):
    """Return `array[slices]`."""
    index = Index(array, slices)
    if index.is_basic:
        # With an ellipsis, NumPy returns a view even if all indices are integers.
        host = index.host if any(part is Ellipsis for part in index.host) else (*index.host, Ellipsis)
        return compute.view(array._a[host], array)
    if index.has_mask:
        state.synchronize("indexing with a boolean array")
    refuse_other_devices([array, *index.arrays])
    return compute.run("getitem", lambda a, *_: np.array(a[index.host]), [array, *index.arrays])


def refuse_other_devices(arrays):
    found = compute.Arguments()
    found.arrays = list(arrays)
    found.check_device()


def put(array, slices, value):
    """Do `array[slices] = value`."""
    index = Index(array, slices, writes=True)
    ndarray = compute.ndarray_class()
    if isinstance(value, np.ndarray) and index.is_basic:  # a fill value
        if value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        value = value.item()
    if not isinstance(value, (ndarray, bool, int, float, complex, np.generic)):
        raise TypeError(f"Unsupported type {type(value)}")
    if index.has_mask:
        state.synchronize("assigning under a boolean array")
    if isinstance(value, ndarray) and value.dtype.kind == "c" and array.dtype.kind != "c":
        compute.warn_of_parts()

    def write(a, value, *_):
        if isinstance(value, np.ndarray):
            value = (value.real if a.dtype.kind != "c" else value).astype(a.dtype)
        a[index.host] = value

    compute.run("setitem", write, [array, value, *index.arrays])


# The dtypes that have atomic operations.
ATOMIC = {
    "add": "int32 int64 float16 float32 float64 uint32 uint64",
    "subtract": "int32 uint32",
    "maximum": "int32 int64 float32 float64 uint32 uint64",
    "minimum": "int32 int64 float32 float64 uint32 uint64",
    "bitwise_and": "int32 int64 uint32 uint64",
    "bitwise_or": "int32 int64 uint32 uint64",
    "bitwise_xor": "int32 int64 uint32 uint64",
}


def scatter(ufunc, array, slices, value):
    """Implement `cupy.add.at` and the like."""
    index = Index(array, slices, writes=True)
    name = ufunc.__name__
    if index.has_mask:
        state.synchronize(f"cupy.{name}.at with a boolean array")
    if not index.is_basic and array.dtype.name not in ATOMIC[name].split():
        raise TypeError(f"cupy.{name}.at only supports {', '.join(ATOMIC[name].split())} as data type")

    def write(a, value, *_):
        # Convert the value first, as CuPy does.
        ufunc.at(a, index.host, np.asarray(value).astype(a.dtype))

    compute.run(f"{name}.at", write, [array, value, *index.arrays])
