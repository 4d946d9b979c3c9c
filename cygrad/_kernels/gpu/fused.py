"""Kernels of our own on GPUs: made when first called, compiled by CuPy, which keeps them on disk.

Note [Launches]
---------------
CuPy's `ElementwiseKernel` and ufuncs look at types, shapes and strides anew at each call, which takes longer than all
the rest of a recorded op. So where the arrays are dense, alike in shape and of one floating-point type, the same text
is launched as a kernel of plain pointers, which is looked up by the type alone; all else goes the other way. It reads
and writes 16 bytes at once where all arrays begin at a multiple of that.
"""

from typing import Any

from cygrad._kernels.gpu import library
from cygrad._kernels.gpu.library import cupy, switches
from cygrad._kernels.gpu.programs import FLOATS, MOST_BLOCKS, THREADS, Program

# What a type is computed in: half precision in single. `W` is that of `T`, the type of the elements.
_WIDE = """
template <typename T> struct wide { typedef T type; };
template <> struct wide<float16> { typedef float type; };
template <> struct wide<bfloat16> { typedef float type; };
"""
_BODY = """
struct alignas(16) Pack {{ T v[16 / sizeof(T)]; }};
__device__ inline void copy(void* to, const void* from) {{ *(uint4*)to = *(const uint4*)from; }}
extern "C" __global__ void {name}({given}, T* made, whole count) {{
    const int each = 16 / sizeof(T);
    const bool is_aligned = !(({addresses} | (size_t)made) % 16);
    EACH_OF(group, (count + each - 1) / each) {{
        const whole start = group * each;
        if (is_aligned && start + each <= count) {{
            Pack {packs}, pack_made;
            {copies}
            #pragma unroll
            for (int k = 0; k < each; k++) {{
                {read_packs}
                {operation};
                pack_made.v[k] = {out};
            }}
            copy(made + start, &pack_made);
        }} else {{
            for (whole i = start; i < count && i < start + each; i++) {{
                {read}
                {operation};
                made[i] = {out};
            }}
        }}
    }}
}}
"""
_THREADS, _OF_BLOCK = (THREADS,), 16 * THREADS  # bytes


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
        out, arrays = outputs.split()[1], [name for kind, name in kinds if kind == "T"]
        types = {"T": "const T* {0}_of", "float64": "double {0}"}

        def each(text, joined=" "):
            return joined.join(text.format(name) for name in arrays)

        return preamble + _BODY.format(
            name=f"cygrad_{self.__name__}",
            given=", ".join(types[kind].format(name) for kind, name in kinds),
            addresses=each("(size_t){0}_of", " | "),
            packs=each("pack_{0}", ", "),
            copies=each("copy(&pack_{0}, {0}_of + start);"),
            read_packs=each("const T {0} = pack_{0}.v[k];") + f" T {out};",
            read=each("const T {0} = {0}_of[i];") + f" T {out};",
            operation=operation,
            out=out,
        )

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
        dtype, shape = first.dtype, first.shape
        if not first.flags.c_contiguous:
            return None
        for x in operands[1 : self._arrays]:
            if type(x) is not ndarray or x.dtype != dtype or x.shape != shape or not x.flags.c_contiguous:
                return None
        kernel = self._by_type.get(dtype.num)
        if kernel is None or self._library_of_types is not library._found:
            if dtype.name not in FLOATS or not switches.own_launches:
                return None
            self._library_of_types = library._found
            kernel = self._by_type[dtype.num] = self._program.kernel(dtype)
        out = ndarray(shape, dtype)
        count = out.size
        if count:
            blocks = -(-count * dtype.itemsize // _OF_BLOCK)
            kernel((blocks if blocks < MOST_BLOCKS else MOST_BLOCKS,), _THREADS, (*operands, out, count))
        return out


def elementwise(name, inputs, outputs, operation, preamble=""):
    """The function; see `Elementwise`."""
    return Elementwise(name, inputs, outputs, operation, preamble)
