"""Scatter, scatter-add and scatter-reduce on GPUs; takes the arguments of `_kernels/cpu/indexing/scatter.py`.

Index values are not checked, which would have to wait for the GPU: out-of-bounds indices are ignored when adding, and
wrap around modulo the length when reading or writing.
"""

import math
from typing import Any

import numpy as np

from cygrad._kernels.cpu.base.half_sums import sum_type
from cygrad._kernels.device.cupy_library import as_number, cupy, is_array, switches
from cygrad._kernels.device.gpu_forms import half_as_float32
from cygrad._kernels.gpu.base.arrays import moved
from cygrad._kernels.gpu.launch.elementwise_program import elementwise
from cygrad._kernels.gpu.launch.program import Program

_ATOMIC = "fdilqILQ"  # dtype chars with atomic additions: CUDA's, and CuPy's from its header
_HEADER = "#include <cupy/atomics.cuh>\n"
MOST_SUMS = 4  # sums in float32 for each value that is added; with more of them, sorting the values is cheaper
_ROW = "long long k = i / width, column = i % width, row = index[k];"
_ARGUMENTS = "raw int64 index, raw T values, int64 count, int64 width"

_add = elementwise(
    "add_rows",
    _ARGUMENTS,
    "raw T out",
    f"{_ROW} if (row >= 0 && row < count) atomicAdd(&out[row * width + column], values[i]);",
    _HEADER,
)

# The place of element i in an array that differs from the index's in one length only: `length` instead of `taken`.
_PLACE = """long long row = index[i], line = i / (taken * inner),
    place = row >= 0 && row < length ? (line * length + row) * inner + i % inner : -(1LL << 62);"""
_ALONG = "raw int64 index, int64 taken, int64 length, int64 inner"
_add_along = elementwise(
    "add_along",
    f"{_ALONG}, raw T values",
    "raw T out",
    f"{_PLACE} if (place >= 0) atomicAdd(&out[place], values[i]);",
    _HEADER,
)
_places = Program(
    "places_along",
    f"""
    extern "C" __global__ void places_along(const T* index, whole taken, whole length, whole inner, T* out,
                                            whole count) {{
        EACH_OF(i, count) {{ {_PLACE} out[i] = place; }}
    }}""",
    ("int64",),
)

# The first of the rows with the same target adds up all of them, in order.
_add_in_order = elementwise(
    "add_rows_in_order",
    f"{_ARGUMENTS}, raw int64 order, int64 items",
    "raw T out",
    f"""{_ROW}
    if (row >= 0 && row < count && (k == 0 || index[k - 1] != row)) {{
        W sum = out[row * width + column];
        for (; k < items && index[k] == row; k++) sum = sum + W(values[order[k] * width + column]);
        out[row * width + column] = T(sum);
    }}""",
)


def add_rows(out, index, values):
    """Add row i of `values` to row `index[i]` of `out`, a C-contiguous matrix; out-of-bounds rows are ignored."""
    if out.dtype.kind == "c":  # as pairs of reals
        values = cupy().ascontiguousarray(values, out.dtype)
        out = out.view(out.real.dtype)
        values = values.view(out.dtype)
    index = cupy().ascontiguousarray(index, np.int64).reshape(-1)
    values = cupy().ascontiguousarray(values, out.dtype)
    count, width = out.shape
    if values.size != index.size * width:  # kernels would read out of bounds
        raise ValueError(f"{index.size} rows of {width} elements, but {values.size} elements in all")
    if not values.size or not out.size:
        return
    wide = sum_type(out.dtype)
    if wide != out.dtype and not switches.in_order and out.size <= MOST_SUMS * values.size:
        sums = out.astype(wide)
        add_rows(sums, index, values)
        out[...] = sums.astype(out.dtype)  # rounded once
        return
    if out.dtype.char in _ATOMIC and not switches.in_order:
        _add(index, values, count, width, out, size=values.size)
        return
    order = cupy().argsort(index).astype(np.int64, copy=False)
    _add_in_order(index[order], values, count, width, order, index.size, out, size=values.size)


def index_add(a, axis, index, source, alpha=1):
    """Return a copy of `a` with `alpha` times slice i of `source` along an axis added at `index[i]`."""
    if a.ndim == 0:
        return index_add(a.reshape(1), 0, index, source.reshape(1), alpha).reshape(())
    if alpha != 1:
        source = source * source.dtype.type(alpha)
    out = cupy().array(a.swapaxes(0, axis), order="C")
    source = cupy().ascontiguousarray(source.swapaxes(0, axis))
    width = math.prod(out.shape[1:])
    add_rows(out.reshape(len(out), width), index, source.reshape(len(source), width))
    return cupy().ascontiguousarray(out.swapaxes(0, axis)) if axis else out


def add_at(out, axis, index, source, to_zeros=False):
    """Add each element of `source` to contiguous `out` at its own position, except for `index` along the axis."""
    if to_zeros:
        out.fill(0)
    if index.ndim == 0 or out.ndim == 0:
        places, values = index.reshape(-1), source.reshape(-1)[: index.size]
    else:
        values = source[tuple(slice(0, n) for n in index.shape)]
        if _added_along(out, axis, index, values):
            return out
        places, values = flat_positions(out.shape, axis, index).reshape(-1), values.reshape(-1)
    add_rows(out.reshape(-1, 1), places, values.reshape(-1, 1))
    return out


def _added_along(out, axis, index, values):
    """Add the values in any order by one launch, if that is allowed and the shapes fit; return whether it is done."""
    if switches.in_order or not _fits(out.shape, axis, index):
        return False
    wide = sum_type(out.dtype)
    if out.dtype.char not in _ATOMIC and (wide == out.dtype or out.size > MOST_SUMS * values.size):
        return False
    if index.size and out.size:
        sums = out if out.dtype.char in _ATOMIC else out.astype(wide)
        index, values = cupy().ascontiguousarray(index, np.int64), cupy().ascontiguousarray(values, sums.dtype)
        _add_along(index, *_lengths(out.shape, axis, index), values, sums, size=index.size)
        if sums is not out:
            out[...] = sums.astype(out.dtype)  # rounded once
    return True


def _fits(shape, axis, index):
    """Whether the shape of an index differs from this one along the axis at most."""
    return index.shape[:axis] == shape[:axis] and index.shape[axis + 1 :] == shape[axis + 1 :]


def _lengths(shape, axis, index):
    return index.shape[axis], shape[axis], math.prod(shape[axis + 1 :])


def scatter_add(a, axis, index, source):
    """Return a copy of `a` with each element of `source` added at its position, except for `index` along the axis."""
    return add_at(a.copy("C"), axis, index, source)


def scattered(shape, axis, index, source):
    """`scatter_add` to zeros of this shape."""
    return add_at(cupy().zeros(shape, source.dtype), axis, index, source)


def write_at(out, index, values):
    """Assign `out[index] = values`. Raises IndexError for nonempty indices into an empty dimension of `out`.

    CuPy takes indices modulo the length; for a length of 0 they could point anywhere in memory.
    """
    if out.size:
        out[index] = values
    else:  # every index value is out of bounds; NumPy raises for zeros, too
        np.empty(out.shape, bool)[tuple(np.zeros(i.shape, np.intp) if is_array(i) else i for i in index)]


def scatter(out, axis, index, source):
    """Write each element of `source`, or one number, into `out` at its position, except for `index` along the axis."""
    source = as_number(source)
    is_many = is_array(source) and source.ndim
    if out.ndim <= 1 or index.ndim == 0:
        values = source.reshape(-1)[: index.size] if is_many else source
        write_at(out.reshape(out.shape or (1,)), (index.reshape(-1),), values)
        return
    write_along(out, index, source[tuple(slice(0, n) for n in index.shape)] if is_many else source, axis)


def write_along(out, index, values, axis):
    """Write values, or one value, into `out` at their own positions, except for `index` along the axis."""
    if index.size:
        write_at(out, places_along(index, axis), values)


def places_along(index, axis):
    """Return the full index of `out` in all dimensions, given the one along an axis."""
    others = cupy().indices(index.shape, np.int64) if index.ndim == 1 else _grid(index.shape)
    return tuple(index if d == axis else own for d, own in enumerate(others))


def _grid(shape):
    return [cupy().arange(n).reshape((-1,) + (1,) * (len(shape) - 1 - d)) for d, n in enumerate(shape)]


_LOOPS = {"prod": "old * value", "amax": "old >= value || old != old ? old : value",
          "amin": "old <= value || old != old ? old : value"}  # fmt: skip

# One thread per target, which combines all its values in order.
_reductions = {
    name: elementwise(
        f"scatter_{name}",
        "raw int64 index, raw T values, int64 count, raw int64 order, int64 items, bool with_own",
        "raw T out",
        f"""long long k = i, row = index[i];
        if (row >= 0 && row < count && (k == 0 || index[k - 1] != row)) {{
            W old = with_own ? out[row] : values[order[k++]];
            for (; k < items && index[k] == row; k++) {{ W value = values[order[k]]; old = {step}; }}
            out[row] = T(old);
        }}""",
    )
    for name, step in _LOOPS.items()
}


@half_as_float32
def scatter_reduce(a, axis, index, source, reduce, include_self):
    """Return a copy of `a` with the elements of `source` reduced into the positions that `scatter` would write."""
    out = a.copy("C")
    if index.ndim == 0 or a.ndim == 0:
        places, values = index.reshape(-1), source.reshape(-1)[: index.size]
    else:
        places = flat_positions(a.shape, axis, index).reshape(-1)
        values = source[tuple(slice(0, n) for n in index.shape)].reshape(-1)
    if not places.size:
        return out
    places, values, flat = cupy().ascontiguousarray(places, np.int64), values.astype(a.dtype), out.reshape(-1)
    if reduce in _LOOPS:
        order = cupy().argsort(places).astype(np.int64, copy=False)
        _reductions[reduce](
            places[order], values, flat.size, order, places.size, bool(include_self), flat, size=places.size
        )
        return out
    if not include_self:
        write_at(flat, (places,), 0)
    add_rows(out.reshape(-1, 1), places, values.reshape(-1, 1))
    if reduce == "mean":
        counts = cupy().full(flat.size, bool(include_self), np.result_type(a.real.dtype, np.float32))
        add_rows(counts.reshape(-1, 1), places, cupy().ones((places.size, 1), counts.dtype))
        counts = cupy().maximum(counts, 1).astype(a.real.dtype, copy=False)
        divide = cupy().floor_divide if a.dtype.kind in "iu" else cupy().divide
        out = divide(flat, counts).astype(a.dtype, copy=False).reshape(a.shape)
    return out


def index_copy(out, axis, index, source):
    """Write `source`, or its slices, into the slices `index` (a vector) of `out` along an axis."""
    write_at(out.reshape(out.shape or (1,)), (slice(None),) * axis + (index,), as_number(source))


def flat_positions(shape, axis, index):
    """Return flat positions, in an array of `shape`, of the elements at `index` along an axis; negative if outside."""
    if shape and _fits(shape, axis, index):
        places = cupy().empty(index.shape, np.int64)
        if index.size:
            given = cupy().ascontiguousarray(index, np.int64), *_lengths(shape, axis, index), places, index.size
            _places.over(places.dtype, index.size, given)
        return places
    own: Any = None
    step = 1
    length = shape[axis] if shape else 1
    for d in range(len(shape) - 1, -1, -1):
        if d == axis:
            along = cupy().where((index >= 0) & (index < length), index.astype(np.int64) * step, np.int64(-(2**62)))
        else:
            places = (cupy().arange(index.shape[d]) * step).reshape((-1,) + (1,) * (len(shape) - 1 - d))
            own = places if own is None else own + places
        step *= shape[d]
    return along if own is None else along + own


# -- by index tensors --


def joined_indices(indices, device):
    """Return (broadcast integer indices, all on one GPU; the dimensions they index). Waits if one is a mask.

    `indices` may contain arrays in host memory.
    """
    plain, dims, d = [], [], 0
    for index in indices:
        if index is None:
            d += 1
            continue
        index = moved(index, device)
        for part in index.nonzero() if index.dtype.kind == "b" else (index,):
            plain.append(part)
            dims.append(d)
            d += 1
    if len(plain) > 1:
        plain = cupy().broadcast_arrays(*plain)
    return plain, dims


def index_sum(values, shape, indices):
    """Return zeros of `shape` with `values` added where fancy indexing with `indices` would have read them."""
    plain, dims = joined_indices(indices, values.device.id)
    places: Any = None
    for index, d in zip(plain, dims):
        index = index.astype(np.int64, copy=False)
        index = cupy().where(index < 0, index + shape[d], index)
        if len(dims) > 1:  # otherwise `add_rows` ignores out-of-bounds indices
            index = index % max(shape[d], 1)
        places = index if places is None else places * shape[d] + index
    lengths = tuple(shape[d] for d in dims)
    others = tuple(length for d, length in enumerate(shape) if d not in dims)
    width = math.prod(others)
    out = cupy().zeros((math.prod(lengths), width), values.dtype)
    if is_together(dims) and dims[0] > 0:  # adjacent index dimensions keep their place in the result
        values = cupy().moveaxis(values, range(dims[0], dims[0] + places.ndim), range(places.ndim))
    add_rows(out, places.reshape(-1), values.reshape(places.size, width))
    out = out.reshape(lengths + others)
    return out if dims[-1] == len(dims) - 1 else cupy().ascontiguousarray(cupy().moveaxis(out, range(len(dims)), dims))


def is_together(dims):
    """Whether dimensions, in ascending order, are adjacent."""
    return dims[-1] - dims[0] == len(dims) - 1


def index_shape(shape, plain, dims):
    """Return the shape of what these indices read from an array of `shape`."""
    others = [length for d, length in enumerate(shape) if d not in dims]
    place = dims[0] if is_together(dims) else 0
    return (*others[:place], *plain[0].shape, *others[place:])
