"""Kernels of our own on GPUs: made when first called, compiled by CuPy, which keeps them on disk.

Note [Launches]
---------------
CuPy's `ElementwiseKernel` and ufuncs look at types, shapes and strides anew at each call, which takes longer than all
the rest of a recorded op. So where the arrays are dense, alike in shape and of one floating-point type, the same text
is launched as a kernel of plain pointers, which is looked up by the type alone; all else goes the other way.
"""

from typing import Any

from cygrad._kernels.gpu import library
from cygrad._kernels.gpu.library import cupy, switches
from cygrad._kernels.gpu.programs import FLOATS, MOST_BLOCKS, THREADS, Program

# What a type is computed in: half precision in single. `W` is that of `T`, the type of the elements.
_WIDE = """
template <typename T> struct wide { typedef T type; };
template <> struct wide<float16> { typedef float type; };
"""
_BODY = """
extern "C" __global__ void %s(%s, T* made, whole count) {
    EACH_OF(i, count) {
        %s
        %s
        made[i] = %s;
    }
}
"""


class Elementwise:
    """A function of arrays of floating-point numbers in one pass.

    `inputs`, `outputs` and `operation` are those of CuPy's `ElementwiseKernel`; the type of the elements is `T`, and
    `W` the one to compute in. Where all of them are raw, the function wants `size=`.
    """

    def __init__(self, name, inputs, outputs, operation, preamble=""):
        self.__name__ = name
        self._given = inputs, outputs, operation, preamble
        self._kernel: Any = None
        self._library: Any = None  # whose kernels these are
        self._library_of_types: Any = None
        kinds = [part.split() for part in inputs.split(",")]
        self._arrays = sum(kind[0] == "T" for kind in kinds)
        plain = all(len(kind) == 2 and kind[0] in ("T", "float64") for kind in kinds)
        self._is_direct = plain and outputs.split()[0] == "T" and "," not in outputs
        self._is_direct &= all(kind[0] == "T" for kind in kinds[: self._arrays]) and self._arrays > 0
        self._by_type: dict = {}
        self._program: Any = Program(f"cygrad_{name}", self._text(kinds)) if self._is_direct else None

    def _text(self, kinds):
        _, outputs, operation, preamble = self._given
        out = outputs.split()[1]
        types = {"T": "const T* {0}_of", "float64": "double {0}"}
        given = ", ".join(types[kind].format(name) for kind, name in kinds)
        read = " ".join([*(f"const T {name} = {name}_of[i];" for kind, name in kinds if kind == "T"), f"T {out};"])
        return preamble + _BODY % (f"cygrad_{self.__name__}", given, read, f"{operation};", out)

    def __call__(self, *operands, **how):
        """The result, or None where the kernel writes into an array that it is given."""
        if self._is_direct and not how and len(operands) >= self._arrays:
            found = self.launched(operands)
            if found is not None:
                return found
        if self._library is not cupy():
            inputs, outputs, operation, preamble = self._given
            text = f"typedef typename wide<T>::type W;\n{operation}"
            self._library = cupy()
            self._kernel = cupy().ElementwiseKernel(
                inputs, outputs, text, f"cygrad_{self.__name__}", preamble=_WIDE + preamble
            )
        return self._kernel(*operands, **how)

    def launched(self, operands):
        """The result for arrays and then numbers, or None if they are not alike, or not dense."""
        ndarray = library._found.ndarray
        first = operands[0]
        if type(first) is not ndarray:
            return None
        dtype, shape, count = first.dtype, first.shape, first.size
        for x in operands[: self._arrays]:
            if type(x) is not ndarray or x.dtype != dtype or x.shape != shape or not x.flags.c_contiguous:
                return None
        kernel = self._by_type.get(dtype.num)
        if kernel is None or self._library_of_types is not library._found:
            if dtype.name not in FLOATS or not switches.own_launches:
                return None
            self._library_of_types = library._found
            kernel = self._by_type[dtype.num] = self._program.kernel(dtype)
        out = ndarray(shape, dtype)
        if count:
            kernel((min(-(-count // THREADS), MOST_BLOCKS),), (THREADS,), (*operands, out, count))
        return out


def elementwise(name, inputs, outputs, operation, preamble=""):
    """The function; see `Elementwise`."""
    return Elementwise(name, inputs, outputs, operation, preamble)
