"""Conversions between floating-point types on GPUs: of one array, or of many in one launch.

CuPy's `astype` inspects its arguments in Python and reads element by element; autocast converts something before nearly
every product. A thread here converts four neighbors at a time.
"""

from typing import Any

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, current_device, name_of, switches
from cygrad._kernels.device.launch import Kernel
from cygrad._kernels.gpu.launch.program import Program
from cygrad._kernels.gpu.runtime.graph_capture import used

_THREADS, _PACK = 128, 4  # threads of a block, and neighboring elements that a thread converts at once
_OF_BLOCK = 4 * _PACK * _THREADS  # elements
_MOST = 96  # arrays of a launch: their table is passed by value, in at most 4 KB
_ALIGNMENT = 256  # bytes, of each result in the memory they share

# Pairs of types. NumPy rounds float64 to half precision in one step, which W, a float, would do in two.
_NARROW = "float16", "bfloat16", "float32"
_PAIRS = {(a, b) for a in _NARROW for b in _NARROW if a != b} | {("float32", "float64"), ("float64", "float32")}
_WORDS = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float", "float64": "double"}

_TEXT = """
#include <cupy/carray.cuh>
#include <cupy/float16.cuh>
#include <cupy/bfloat16.cuh>
typedef RESULT U;
struct alignas(sizeof(T) * PACK < 16 ? sizeof(T) * PACK : 16) From { T v[PACK]; };
struct alignas(sizeof(U) * PACK < 16 ? sizeof(U) * PACK : 16) To { U v[PACK]; };
__device__ inline U converted(T x) { return U(W(x)); }

// Elements from `start` on, at most as many as a block converts.
__device__ inline void convert(const T* from, U* to, whole start, whole count) {
    const int here = count - start < OF_BLOCK ? (int)(count - start) : OF_BLOCK;
    from += start;
    to += start;
    if (here == OF_BLOCK && !((size_t)from % sizeof(From)) && !((size_t)to % sizeof(To))) {
        From given[4];
        #pragma unroll
        for (int p = 0; p < 4; p++) given[p] = *(const From*)(from + (p * THREADS + (int)threadIdx.x) * PACK);
        #pragma unroll
        for (int p = 0; p < 4; p++) {
            To made;
            #pragma unroll
            for (int k = 0; k < PACK; k++) made.v[k] = converted(given[p].v[k]);
            *(To*)(to + (p * THREADS + (int)threadIdx.x) * PACK) = made;
        }
    } else {
        for (int i = threadIdx.x; i < here; i += THREADS) to[i] = converted(from[i]);
    }
}
"""
_CONVERT = Program(
    "convert_array",
    _TEXT
    + """
extern "C" __global__ void convert_array(const T* from, U* to, whole count) {
    convert(from, to, blockIdx.x * (whole)OF_BLOCK, count);
}
""",
)
_CONVERT_EACH = Program(
    "convert_each",
    _TEXT
    + """
// Arrays, the places of the results in elements, sizes, and the first block of each array and of one more.
struct Arrays { const T* from[MOST]; whole place[MOST], size[MOST], block[MOST + 1]; };
extern "C" __global__ void convert_each(U* to, Arrays all, whole count) {
    int low = 0, high = (int)count;  // this block's array is at least `low` and before `high`
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (all.block[middle] <= blockIdx.x) low = middle;
        else high = middle;
    }
    convert(all.from[low], to + all.place[low], (blockIdx.x - all.block[low]) * (whole)OF_BLOCK, all.size[low]);
}
""",
)
_TABLE = np.dtype([("numbers", np.int64, (4 * _MOST + 1,))])
_compiled: dict[Any, Kernel] = {}


def _kernel(program, dtype, to, **macros):
    """Return the kernel for these types, kept by their numbers."""
    key = program.name, dtype.num, to.num, current_device()
    found = _compiled.get(key)
    if found is None:
        macros |= {"RESULT": _WORDS[to.name], "PACK": _PACK, "THREADS": _THREADS, "OF_BLOCK": _OF_BLOCK}
        found = _compiled[key] = Kernel(program.kernel(dtype, **macros))
    return found


def takes(dtype, to):
    """Whether there is a kernel for this conversion."""
    return (name_of(dtype), name_of(to)) in _PAIRS and switches.own_launches


def converted(a, dtype):
    """Return an array of the current GPU converted to `dtype`, in its memory order."""
    if not takes(a.dtype, dtype):
        return a.astype(dtype, copy=False)
    out = cupy().empty(a.shape, dtype) if a.flags.c_contiguous else _in_order(a, dtype)
    if out is None:
        return a.astype(dtype, copy=False)
    if a.size:
        _kernel(_CONVERT, a.dtype, dtype)((-(-a.size // _OF_BLOCK),), (_THREADS,), (a, out, a.size))
    return out


def _in_order(a, dtype):
    """Return an uninitialized array whose elements lie as those of `a`; None if there are gaps between those."""
    out = cupy().empty_like(a, dtype)
    size, to_size = a.itemsize, out.itemsize
    fits = all(n == 1 or s * to_size == t * size for n, s, t in zip(a.shape, a.strides, out.strides))
    return out if fits else None


def converted_together(arrays, dtype):
    """Convert C-ordered arrays of one type, on the current GPU, into memory that they share; in one launch, if few."""
    used(arrays)
    found = []
    step = _ALIGNMENT // dtype.itemsize
    for first in range(0, len(arrays), _MOST):
        given = arrays[first : first + _MOST]
        table, blocks, places, end = np.zeros((4, _MOST), np.int64), [0], [], 0
        for a in given:
            places.append(end)
            end += -(-a.size // step) * step
            blocks.append(blocks[-1] + -(-a.size // _OF_BLOCK))
        count = len(given)
        table[0, :count] = [a.data.ptr for a in given]
        table[1, :count] = places
        table[2, :count] = [a.size for a in given]
        numbers = np.append(table[:3].reshape(-1), np.zeros(_MOST + 1, np.int64))
        numbers[3 * _MOST : 3 * _MOST + count + 1] = blocks
        room = cupy().empty(end, dtype)
        if blocks[-1]:
            kernel = _kernel(_CONVERT_EACH, given[0].dtype, dtype, MOST=_MOST)
            kernel((blocks[-1],), (_THREADS,), (room, numbers.view(_TABLE), count))
        found += [room[place : place + a.size].reshape(a.shape) for place, a in zip(places, given)]
    return found
