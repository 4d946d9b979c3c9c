"""Max pooling: the largest element of each window of an image, and its flat index into the image.

The first of equal elements wins; of several NaN, the last.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np

import cygrad._kernels.cpu.image.patches as patches
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.arrays import dense, new_array, private
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.image.window_geometry import SCRATCH, Geometry
from cygrad._kernels.cpu.indexing.indexing import gather
from cygrad._kernels.device.dispatch import dispatching

_FEW = 1 << 14  # elements; up to this, NumPy's call overhead exceeds our loops, even though those also find positions


def lowest(dtype):
    """A value that no number is below."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def planes_of(x, dims):
    """Merge all but the last `dims` dimensions."""
    return np.ascontiguousarray(x).reshape(-1, *x.shape[x.ndim - dims :])


def of_windows(x, where, with_places):
    """Return (largest elements, their positions or None) for windows of one size, without copying the windows."""
    if patches.has_loops(x) and x.size and suits(where):
        shape = x.shape[: x.ndim - len(where.size)] + where.size
        values, places = new_array(shape, x.dtype.num), new_array(shape, patches.PLACES.num)
        patches.largest(dense(x), values, places, where.whole)
        return values, places
    is_worth_it = with_places or x.size <= _FEW  # for NumPy, positions are most of the work
    parts = parts_of_volumes(where) if len(where.size) == 3 and x.size and is_worth_it else None
    if parts and patches.has_loops(x):
        return of_volumes(x, *parts)
    return _of_windows(x, where, with_places)


@lru_cache(256)
def parts_of_volumes(where):
    """Split 3D windows into those of each plane and those along depth; None if the loops do not support them.

    The depth windows slide over matrices whose columns are the results of the planes.
    """
    columns = math.prod(where.size[1:])
    planes = Geometry(*(numbers[1:] for numbers in where.numbers))
    depth = Geometry(*((number, one) for (number, *_), one in zip(where.numbers, (columns, 1, columns, 1, 1, 0))))
    return (planes, depth) if suits(planes) and suits(depth) else None


def of_volumes(x, planes, depth):
    """`of_windows` in three dimensions: first within planes, then across. This keeps the order among equal elements.

    Processes a few volumes at a time, since the results of planes are larger than those of volumes.
    """
    shape = (*x.shape[:-3], depth.size[0], *planes.size)
    volumes = x.reshape(-1, *x.shape[-3:])
    found = (
        new_array((len(volumes), *shape[-3:]), x.dtype.num),
        new_array((len(volumes), *shape[-3:]), patches.PLACES.num),
    )
    step = max(1, chunks.SIZE * len(volumes) // x.size)
    for start in range(0, len(volumes), step):
        part = slice(start, start + step)
        values, places = of_windows(volumes[part], planes, True)
        values, at = of_windows(values.reshape(-1, *depth.image), depth, True)
        at = at.reshape(len(at), -1)
        inside = gather(places.reshape(len(at), -1), 1, at)
        inside += at // depth.image[1] * math.prod(planes.image)
        for out, one in zip(found, (values, inside)):
            out[part] = one.reshape(-1, *shape[-3:])
    return tuple([out.reshape(shape) for out in found])


@lru_cache(256)
def suits(where):
    """Whether the compiled loops support these windows."""
    is_apart = max(where.dilation) > 1 and any(where.low)
    return len(where.size) <= 2 and 0 < math.prod(where.image) < 1 << 31 and not is_apart


@silent
def _of_windows(x, where, with_places):
    """`of_windows` by NumPy."""
    dims = len(where.size)
    planes, shape = planes_of(x, dims), (*x.shape[: x.ndim - dims], *where.size)
    values = np.full((len(planes), *where.size), lowest(x.dtype), x.dtype)
    places = np.empty(values.shape, np.int64) if with_places else None
    taps = list(where.taps())  # few, even if the window is far larger than the image
    joins = [(number, there, here) for number, (_, there, here) in enumerate(taps)]
    step = max(1, SCRATCH // 4 // max(1, math.prod(where.image) * x.itemsize))
    origins, shifts = places_of_taps(where, [tap for tap, _, _ in taps])
    for start in range(0, len(planes), step):
        block, best = planes[start : start + step], values[start : start + step]
        for _, there, here in joins:
            part = best[(slice(None), *there)]
            np.maximum(part, block[(slice(None), *here)], out=part)
        if places is not None:
            np.add(shifts.take(first_taps(block, best, joins)), origins, out=places[start : start + step])
    if places is not None and max(where.dilation) > 1 and any(where.low):  # windows may be entirely padding
        np.clip(places, 0, math.prod(where.image) - 1, out=places)
    return values.reshape(shape), None if places is None else places.reshape(shape)


def first_taps(block, best, joins):
    """The index of the join that each maximum comes from; the number of joins for windows that are entirely padding."""
    count = len(joins)
    kind = np.uint8 if count <= 255 else np.int64
    left = np.zeros(best.shape, kind)  # number of joins from the first match on
    for tap, there, here in joins:
        where = (slice(None), *there)
        equal = (block[(slice(None), *here)] == best[where]).view(np.uint8)
        np.maximum(left[where], equal * kind(count - tap), out=left[where])
    taps = kind(count) - left
    if best.dtype.kind == "f" and np.isnan(best).any():
        for tap, there, here in joins:
            np.copyto(taps[(slice(None), *there)], tap, where=np.isnan(block[(slice(None), *here)]))
    return taps


def places_of_taps(where, taps):
    """Return (flat index of each window's tap 0, possibly outside the image; offset of each of `taps` from it, then
    0).
    """
    origins: Any = np.zeros((), np.int64)
    shifts = [0] * (len(taps) + 1)
    for d in range(len(where.size)):
        step = math.prod(where.image[d + 1 :])
        origins = origins[..., None] + (np.arange(where.size[d]) * where.stride[d] - where.low[d]) * step
        inner = math.prod(where.kernel[d + 1 :])
        for i, tap in enumerate(taps):  # tap numbers may be too large for NumPy integers
            shifts[i] += tap // inner % where.kernel[d] * where.dilation[d] * step
    return origins, np.array(shifts)


@silent
def of_places(x, dims, indices):
    """`of_windows` for windows given by tables: for each dimension the positions (results, taps) that a window reads.

    The last taps of a window may repeat an earlier one. Each plane may have its own table (planes, results, taps).
    """
    planes = planes_of(x, dims)
    image = planes.shape[1:]
    flat = planes.reshape(len(planes), math.prod(image))
    own = indices[0].ndim == 3
    size = tuple(table.shape[-2] for table in indices)
    taps = math.prod(table.shape[-1] for table in indices)
    values = np.empty((len(planes), math.prod(size)), x.dtype)
    places = np.empty(values.shape, np.int64)
    shape = (*x.shape[: x.ndim - dims], *size)
    if not values.size:
        return values.reshape(shape), places.reshape(shape)
    if patches.has_loops(planes) and flat.size and taps:
        tables = [table if own else table[None] for table in indices]
        none = np.zeros((len(tables[0]), 1, 1), np.int64)
        cubes = planes.reshape(len(planes), *(1,) * (3 - dims), *image)
        patches.largest_of_places(cubes, values, places, [none] * (3 - dims) + tables)
        return values.reshape(shape), places.reshape(shape)
    taken = flat_windows([table[:1] if own else table[None] for table in indices], image)
    step = max(1, SCRATCH // 16 // max(1, math.prod(size) * taps * (x.itemsize + 8 * own)))
    for start in range(0, len(planes), step):
        part = slice(start, start + step)
        if own:
            taken = flat_windows([table[part] for table in indices], image)
        found = np.take_along_axis(flat[part, None], taken, -1)
        chosen = found.argmax(-1)
        if x.dtype.kind == "f":
            is_nan = np.isnan(found)
            if is_nan.any():
                last = found.shape[-1] - 1 - is_nan[..., ::-1].argmax(-1)
                chosen = np.where(is_nan.any(-1), last, chosen)
        values[part] = np.take_along_axis(found, chosen[..., None], -1)[..., 0]
        places[part] = np.take_along_axis(taken, chosen[..., None], -1)[..., 0]
    return values.reshape(shape), places.reshape(shape)


def flat_windows(tables, image):
    """The flat indices (planes, windows, taps) of windows in an image."""
    windows = np.zeros((1, 1, 1), np.int64)
    for d, table in enumerate(tables):
        step = math.prod(image[d + 1 :])
        windows = windows[:, :, None, :, None] + table[:, None, :, None, :] * step
        planes, *size = windows.shape
        windows = windows.reshape(planes, size[0] * size[1], size[2] * size[3])
    return windows


def unpooled(planes, places, count):
    """Scatter the elements of planes into zeros (planes, count); the last of several at one position wins."""
    out = np.zeros((len(planes), count), planes.dtype)
    step = max(1, len(planes) * chunks.SIZE // max(planes.size, 1))  # NumPy builds index arrays for all dimensions
    for start in range(0, len(planes) if planes.size else 0, step):
        part = slice(start, start + step)
        np.put_along_axis(out[part], private(places[part]), planes[part], 1)
    return out


dispatching(globals(), "of_windows of_places unpooled")
