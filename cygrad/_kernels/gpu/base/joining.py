"""Joins of arrays on GPUs, in one launch for each eight arrays, whatever their layouts."""

from functools import lru_cache
from math import gcd, prod

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, current_device
from cygrad._kernels.device.launch import Kernel
from cygrad._kernels.gpu.launch.program import Program

_MOST, _DIMS, _THREADS, _MOST_BLOCKS = 8, 6, 256, 1 << 16
_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4"}

# Elements are moved in units of up to 16 bytes, of which lengths and strides are multiples. A row of the grid copies an
# array, in the order of the result.
_JOIN = Program(
    "join",
    """
struct Joined { whole total[MOST], place[MOST], length[MOST][DIMS], stride[MOST][DIMS], step[DIMS]; };
extern "C" __global__ void join(UNIT* out, const UNIT* a0, const UNIT* a1, const UNIT* a2, const UNIT* a3,
                                const UNIT* a4, const UNIT* a5, const UNIT* a6, const UNIT* a7, Joined g) {
    const int which = blockIdx.y;
    const UNIT* from = which < 4 ? which < 2 ? which ? a1 : a0 : which == 2 ? a2 : a3
                                 : which < 6 ? which == 4 ? a4 : a5 : which == 6 ? a6 : a7;
    UNIT* to = out + g.place[which];
    const whole *length = g.length[which], *stride = g.stride[which];
    EACH_OF(i, g.total[which]) {
        whole left = i, source = 0, target = 0;
        #pragma unroll
        for (int d = DIMS - 1; d >= 0; d--) {
            if (d < DIMS - 1 && !left) break;
            const whole next = quotient(left, length[d]), index = left - next * length[d];
            source += index * stride[d];
            target += index * g.step[d];
            left = next;
        }
        to[target] = from[source];
    }
}
""",
    ("uint8",),
)
_TYPE = np.dtype(np.uint8)
_kernels: dict = {}


def joined(arrays, axis, shapes, strides):
    """Return arrays of one type, on the current GPU, joined along an axis in C order; None if this kernel cannot.

    `shapes` and `strides` are to be used in place of the arrays' own.
    """
    dtype, alignment = arrays[0].dtype, 16
    for a in arrays:
        alignment |= a.data.ptr
    found = _plan(shapes, strides, axis % len(shapes[0]), dtype.itemsize, alignment & -alignment)
    if found is None:
        return None
    shape, unit, launches = found
    out = cupy().empty(shape, dtype)
    for first, grid, numbers in launches:
        given = arrays[first : first + _MOST]
        _kernel(unit)(grid, (_THREADS,), (out, *given, *[None] * (_MOST - len(given)), numbers))
    return out


def _kernel(unit):
    key = unit, current_device()
    found = _kernels.get(key)
    if found is None:
        macros = {"UNIT": _WORDS[unit], "MOST": _MOST, "DIMS": _DIMS}
        found = _kernels[key] = Kernel(_JOIN.kernel(_TYPE, **macros))
    return found


@lru_cache(256)
def _plan(shapes, strides, axis, itemsize, alignment):
    """Return (shape of the result, bytes of a unit, launches: (first array, grid, the content of `Joined`)) or None."""
    if itemsize not in _WORDS or any(stride < 0 for of_one in strides for stride in of_one):
        return None
    shape = list(shapes[0])
    shape[axis] = sum(own[axis] for own in shapes)
    steps = [prod(shape[d + 1 :]) * itemsize for d in range(len(shape))]
    kept = _runs(shapes, strides, steps, axis)
    if len(kept) > _DIMS:
        return None
    unit = alignment
    for own, stride in zip(shapes, strides):
        if prod(own):
            last = kept[-1]
            is_dense = stride[last[-1]] == itemsize
            unit = gcd(unit, prod(own[d] for d in last) * itemsize if is_dense else itemsize)
            for run in kept[:-1]:
                if prod(own[d] for d in run) > 1:
                    unit = gcd(unit, stride[run[-1]])
    unit = gcd(unit, steps[kept[-2][-1]]) if len(kept) > 1 else unit
    unit = max(unit, 1)
    if unit < itemsize:
        return None
    return tuple(shape), unit, _launches(shapes, strides, steps, axis, kept, unit, itemsize)


def _runs(shapes, strides, steps, axis):
    """Return the dimensions in groups that can be walked through as one, in all arrays and in the result."""
    groups: list[list[int]] = []
    for d in range(len(steps)):
        before = groups[-1] if groups else None
        is_one = before is not None and all(
            stride[before[-1]] == own[d] * stride[d] for own, stride in zip(shapes, strides) if prod(own)
        )
        if is_one and d != axis:
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _launches(shapes, strides, steps, axis, groups, unit, itemsize):
    """Return the launches; lengths, strides and places are in units."""
    launches, place = [], 0
    for first in range(0, len(shapes), _MOST):
        numbers = np.zeros(1, np.dtype([(name, np.int64, size) for name, size in _FIELDS]))
        table = numbers[0]
        table["length"][:] = 1
        pad = _DIMS - len(groups)
        for k, group in enumerate(groups):
            table["step"][pad + k] = steps[group[-1]] // unit
        table["step"][-1] = 1
        most = 0
        for i, (own, stride) in enumerate(zip(shapes[first : first + _MOST], strides[first : first + _MOST])):
            lengths = [prod(own[d] for d in group) for group in groups]
            table["place"][i] = place // unit
            place += own[axis] * steps[axis]
            if not prod(lengths):
                continue
            for k, group in enumerate(groups):
                table["length"][i, pad + k] = lengths[k]
                table["stride"][i, pad + k] = stride[group[-1]] // unit
            if stride[groups[-1][-1]] == itemsize or lengths[-1] == 1:
                table["length"][i, -1] = lengths[-1] * itemsize // unit
                table["stride"][i, -1] = 1
            table["total"][i] = prod(map(int, table["length"][i]))
            most = max(most, int(table["total"][i]))
        if most:
            rows = min(_MOST, len(shapes) - first)
            launches.append((first, (min(-(-most // _THREADS), _MOST_BLOCKS), rows), numbers))
    return launches


_FIELDS = (
    ("total", (_MOST,)),
    ("place", (_MOST,)),
    ("length", (_MOST, _DIMS)),
    ("stride", (_MOST, _DIMS)),
    ("step", (_DIMS,)),
)
