"""Our own C++ kernels that are not elementwise, compiled once for each element type.

In the source text of a program, `T` is the element type and `W` the type it is computed in: float for half precision.
Arrays are passed as pointers and must be contiguous, integers as `long long`, other numbers as `double`. CuPy compiles
a program at its first launch and caches the binary on disk.
"""

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, current_device, is_array, name_of
from cygrad._kernels.device.launch import Kernel
from cygrad._kernels.gpu.runtime.graph_capture import current, kept, place, uploaded

_HALF = "#include <cupy/carray.cuh>\n#include <cupy/{0}.cuh>\ntypedef {0} T;\ntypedef float W;\n"
_TYPES = {
    "float32": "typedef float T;\ntypedef float W;\n",
    "float64": "typedef double T;\ntypedef double W;\n",
    "float16": _HALF.format("float16"),
    "bfloat16": _HALF.format("bfloat16"),
}
_WHOLE = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
}
_TYPES |= {name: f"typedef {word} T;\ntypedef {word} W;\n" for name, word in _WHOLE.items()}

_SHARED = """
typedef long long whole;
// Every element of a grid, whatever its size.
#define EACH_OF(i, count) \\
    for (whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x; i < (count); i += gridDim.x * (whole)blockDim.x)
// Of numbers that are not negative; to divide those of 32 bits takes a fifth of the time.
__device__ inline whole quotient(whole a, whole b) {
    return (a | b) >> 32 ? a / b : (whole)((unsigned)a / (unsigned)b);
}
__device__ inline whole rest(whole a, whole b) { return a - quotient(a, b) * b; }
__device__ inline float infinity(float) { return __int_as_float(0x7f800000); }
__device__ inline double infinity(double) { return __longlong_as_double(0x7ff0000000000000LL); }
__device__ inline float nothing(float) { return __int_as_float(0x7fffffff); }
__device__ inline double nothing(double) { return __longlong_as_double(0x7fffffffffffffffLL); }
"""

FLOATS = ("float16", "bfloat16", "float32", "float64")
# Options of the compiler: round each product, so that joined kernels have the bits of single ones.
EXACT = ("--fmad=false",)
THREADS = 256
MOST_BLOCKS = 1 << 20
_UNASKED = 48 << 10  # bytes of shared memory that a block may have without an opt-in


class Program:
    """A kernel named like the function in its text, which is `extern "C" __global__ void name(...)`.

    `types` are the supported element types. `text` may use macros, whose values are given at launch. `options` are the
    compiler's.
    """

    def __init__(self, name, text, types=FLOATS, options=()):
        self.name, self.text, self.types, self.options = name, text, types, options
        self._compiled: dict = {}

    def takes(self, *arrays):
        """Whether all these arrays have one type, and it is supported. None is ignored."""
        names = {name_of(a.dtype) for a in arrays if a is not None}
        return len(names) == 1 and names.pop() in self.types

    def kernel(self, dtype, **macros):
        """Return CuPy's kernel for a type."""
        defined = "".join(f"#define {macro} {value}\n" for macro, value in macros.items())
        return cupy().RawKernel(f"{defined}{_TYPES[dtype.name]}{_SHARED}{self.text}", self.name, self.options)

    def launch(self, dtype, blocks, threads, args, shared=0, **macros):
        """Launch it on a grid of `blocks` blocks with `threads` threads each; an integer gives a one-dimensional size.

        `shared` is the number of bytes of dynamic shared memory per block, in addition to what the text declares.
        """
        key = (dtype.num, current_device(), shared > _UNASKED, *macros.items())
        kernel = self._compiled.get(key)
        if kernel is None:
            kernel = self.kernel(dtype, **macros)
            if shared > _UNASKED:
                kernel.max_dynamic_shared_size_bytes = shared
            kernel = self._compiled[key] = Kernel(kernel)
        kernel(
            blocks if isinstance(blocks, tuple) else (blocks,),
            threads if isinstance(threads, tuple) else (threads,),
            args,
            shared,
        )

    def over(self, dtype, count, args, **macros):
        """Launch it with one thread per element, or per several elements if `count` is very large."""
        if count:
            self.launch(dtype, min(-(-count // THREADS), MOST_BLOCKS), THREADS, args, **macros)


def of_type(a, dtype):
    """Return the array on the GPU, contiguous and of this type; None for None."""
    if a is None or (is_array(a) and a.dtype == dtype and a.flags.c_contiguous):
        return a
    return cupy().ascontiguousarray(a.astype(dtype, copy=False))


def wide_type(dtype):
    """Return the type that elements of a type are computed in."""
    return cupy().dtype("float32") if dtype.itemsize == 2 else dtype


_LARGEST, _MOST = 1 << 16, 256  # bytes of the largest cached array, and the number of cached arrays
_kept: dict = {}


def on_gpu(array):
    """Return a constant NumPy array on the current GPU; small ones are cached by content.

    GPU arrays and None are returned unchanged.
    """
    if array is None or not isinstance(array, np.ndarray):
        return array
    if array.nbytes > _LARGEST:
        return uploaded(array)
    key = place(), array.shape, array.dtype.char, array.tobytes()
    found = _kept.pop(key, None)
    if found is None:
        found = uploaded(array)
        if current() is not None:
            return found
        if len(_kept) >= _MOST:
            _kept.pop(next(iter(_kept)), None)
    _kept[key] = found  # now the last in insertion order, hence the last to be evicted
    return kept(found)
