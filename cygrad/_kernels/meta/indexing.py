"""Shapes and layouts that result from indexing and reshaping, without reading elements."""

import math

import numpy as np

from cygrad._kernels.meta.errors import no_shape


def plain(key):
    """Return an index as a tuple, with masks in main memory converted to positions."""
    key = key if isinstance(key, tuple) else (key,)
    found: list = []
    for part in key:
        if isinstance(part, list):
            part = np.asarray(part)
        if _kind(part) == "b":
            if not isinstance(part, np.ndarray):
                raise no_shape("nonzero")
            found += part.nonzero() if part.ndim else [part]
        else:
            found.append(part)
    return tuple(found)


def _kind(part):
    return part.dtype.kind if hasattr(part, "dtype") and hasattr(part, "shape") else ""


def _is_array(part):
    """Whether a part of an index selects positions, which takes them out of the layout."""
    return bool(_kind(part)) and (part.shape != () or not isinstance(part, (np.ndarray, np.generic)))


def is_basic(key):
    """Whether an index yields a view."""
    return not any(map(_is_array, key))


def view_of(layout, key):
    """Return the part of a layout that a basic index selects: always a view, since an element would be read."""
    return layout[key if any(part is Ellipsis for part in key) else (*key, Ellipsis)]


def shape_of(shape, key, layout=None):
    """Return the shape of the elements that an index selects, by NumPy's rules for positions among slices."""
    if is_basic(key):
        bare = np.broadcast_to(np.False_, shape) if layout is None else layout
        return view_of(bare, key).shape
    used = sum(part is not None and part is not Ellipsis for part in key)
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    if not any(part is Ellipsis for part in key):
        key = (*key, Ellipsis)
    place = next(i for i, part in enumerate(key) if part is Ellipsis)
    key = (*key[:place], *(slice(None),) * (len(shape) - used), *key[place + 1 :])
    lengths = iter(shape)
    found: list = []
    positions: list = []  # (their place in the key, their shape)
    for i, part in enumerate(key):
        if part is None:
            found.append((i, 1))
        elif isinstance(part, slice):
            found.append((i, len(range(*part.indices(next(lengths))))))
        else:
            next(lengths)
            positions.append((i, np.shape(part)))
    joint = np.broadcast_shapes(*(of for _, of in positions))
    first, last = positions[0][0], positions[-1][0]
    begin = first if last - first + 1 == len(positions) else 0  # they come first unless they are adjacent
    before = [length for i, length in found if i < begin]
    return (*before, *joint, *(length for i, length in found if i >= begin))


def filled_in(shape, size):
    """Return a shape as a tuple of ints, with the length that is -1 computed from the number of elements."""
    shape = tuple(map(int, (shape,) if np.ndim(shape) == 0 else shape))
    if -1 not in shape:
        return shape
    rest = -math.prod(shape)
    if shape.count(-1) > 1 or not rest or size % rest:
        raise ValueError(f"cannot reshape array of size {size} into shape {shape}")
    return tuple(size // rest if length == -1 else length for length in shape)


def reshaped(layout, shape, order="C"):
    """Return a view of a layout in another shape, or None if no strides express it."""
    if order == "F":
        found = reshaped(layout.T, shape[::-1])
        return None if found is None else found.T
    if not layout.size:
        return None
    strides = []
    old = [(length, step) for length, step in zip(layout.shape, layout.strides) if length != 1]
    new = [length for length in shape if length != 1]
    # From the last axis on: axes that follow each other without gaps form a run, which new axes have to fill.
    while old:
        run, step = old.pop()
        inner, filled = step, 1
        while old and old[-1][1] == run * inner:
            run *= old.pop()[0]
        while filled < run:
            length = new.pop()
            strides.append(filled * step)
            filled *= length
        if filled != run:
            return None
    every, steps, step = [], iter(strides), layout.itemsize
    for length in reversed(shape):
        every.append(next(steps) if length != 1 else step)
        step = every[-1] * length
    return np.lib.stride_tricks.as_strided(layout, shape, every[::-1])
