"""Our own elementwise kernels on GPUs: created at their first call, compiled by CuPy, which caches them on disk.

Note [Launches]
---------------
CuPy's `ElementwiseKernel` and ufuncs inspect types, shapes and strides at each call, which takes longer than the rest
of a recorded op. We therefore launch the same text as a kernel over plain pointers if all arrays have one
floating-point type and each has one of three layouts: dense, with all elements of the result in their order; one number
for all elements, like the gradient of a sum; a repeated row of the last dimensions, like a bias; or one number for each
row of the last dimensions, like the means of rows. The kernel is looked up by the type and these kinds (`launch.pyx`).
Everything else goes through CuPy.

A block handles 8 KB of each array. If all arrays are 16-byte aligned, a thread reads 16 bytes at once and issues all
its reads before it computes, because memory throughput depends on the number of bytes in flight.
"""

from typing import Any

from cygrad._kernels.device.cupy_library import cupy, switches
from cygrad._kernels.device.launch import Launches
from cygrad._kernels.gpu.launch.program import EXACT, FLOATS, Program

# The type to compute in: float for half precision. `W` belongs to `T`, the element type.
_WIDE = """
template <typename T> struct wide { typedef T type; };
template <> struct wide<float16> { typedef float type; };
template <> struct wide<bfloat16> { typedef float type; };
"""

# For preambles. Floats use the GPU's approximate division, within 2 ulp: the exact one branches.
LOGISTIC = """
__device__ inline float reciprocal(float x) { return __fdividef(1.0f, x); }
__device__ inline double reciprocal(double x) { return 1.0 / x; }
template <typename W> __device__ W logistic(W x) { return reciprocal(W(1) + exp(-x)); }
"""
_THREADS, _PACKS = 128, 4  # threads of a block; how many packs of 16 bytes of each array a thread handles

# Indices within a block are 32-bit: 64-bit arithmetic takes several instructions.
_BODY = """
struct alignas(16) Pack {{ T v[16 / sizeof(T)]; }};
__device__ inline void copy(void* to, const void* from) {{ *(uint4*)to = *(const uint4*)from; }}
extern "C" __global__ void {name}({given}, whole count{rows}) {{
    const int each = 16 / sizeof(T), most = {of_block} / sizeof(T);
    const whole start = blockIdx.x * (whole)most;
    const int here = count - start < most ? (int)(count - start) : most;
    {begin}
    if (here == most && !(({addresses}(size_t)0) % 16)) {{
        Pack {packs};
        #pragma unroll
        for (int p = 0; p < {number}; p++) {{
            const int i = (p * {threads} + threadIdx.x) * each;
            {copies}
        }}
        #pragma unroll
        for (int p = 0; p < {number}; p++) {{
            #pragma unroll
            for (int k = 0; k < each; k++) {{
                {read_packs}
                {operation};
                {write_packs}
            }}
            {copies_back}
        }}
    }} else {{
        for (int i = threadIdx.x; i < here; i += {threads}) {{
            {read}
            {operation};
            {write}
        }}
    }}
}}
"""


class _Operand:
    """The parts of a kernel's text that depend on an array's layout, see Note [Launches]."""

    given = "const T* __restrict__ {0}_of"
    begin = addresses = packs = copies = rows = write_packs = copies_back = write = ""


class _Dense(_Operand):
    begin = "{0}_of += start;"
    addresses = "(size_t){0}_of | "
    packs = "packs_{0}[{number}]"
    copies = "copy(&packs_{0}[p], {0}_of + i);"
    read_packs = "const T {0} = packs_{0}[p].v[k];"
    read = "const T {0} = {0}_of[i];"


class _One(_Operand):
    begin = "const T one_{0} = *{0}_of;"
    read_packs = read = "const T {0} = one_{0};"


class _Row(_Operand):
    begin = "const unsigned first_{0} = (unsigned)rest(start, row_{0}), length_{0} = (unsigned)row_{0};"
    addresses = "(size_t){0}_of | (size_t)row_{0} * sizeof(T) | "
    packs = _Dense.packs
    copies = "copy(&packs_{0}[p], {0}_of + (first_{0} + i) % length_{0});"
    rows = ", whole row_{0}"
    read_packs = _Dense.read_packs
    read = "const T {0} = {0}_of[(first_{0} + i) % length_{0}];"


class _Column(_Operand):
    begin = (
        "const whole from_{0} = quotient(start, row_{0}); {0}_of += from_{0}; "
        "const unsigned first_{0} = (unsigned)(start - from_{0} * row_{0}), length_{0} = (unsigned)row_{0};"
    )
    rows = _Row.rows
    read_packs = "const T {0} = {0}_of[(first_{0} + (p * {threads} + threadIdx.x) * each + k) / length_{0}];"
    read = "const T {0} = {0}_of[(first_{0} + i) / length_{0}];"


class _Number(_Operand):
    given = "double {0}"
    read_packs = read = ""


class _Made(_Operand):
    """A result, which the operation assigns to."""

    given = "T* __restrict__ {0}_of"
    begin, addresses = _Dense.begin, _Dense.addresses
    packs = "pack_{0}"
    read_packs = read = "T {0};"
    write_packs = "pack_{0}.v[k] = {0};"
    copies_back = "copy({0}_of + (p * {threads} + threadIdx.x) * each, &pack_{0});"
    write = "{0}_of[i] = {0};"


_KINDS = _Dense, _One, _Row, _Column  # indexed by the kinds of `launch.pyx`


def text_of(name, arrays, numbers, made, operation, packs=_PACKS):
    """Return the text of a kernel, which takes arrays, numbers, results, their length, and the lengths of rows.

    `arrays` are (name, kind). A thread handles `packs` packs of each array; `bytes_of_block` tells what a block does.
    """
    parts: list[Any] = [(each, _KINDS[kind]) for each, kind in arrays]
    parts += [(each, _Number) for each in numbers] + [(each, _Made) for each in made]

    def of_each(part, between=" "):
        texts = (getattr(kind, part).format(each, number=packs, threads=_THREADS) for each, kind in parts)
        return between.join(filter(None, texts))

    joined: tuple[Any, ...] = ("begin", " "), ("addresses", ""), ("packs", ", "), ("copies", " "), ("rows", "")
    joined += (
        ("read_packs", " "),
        ("read", " "),
        ("write_packs", " "),
        ("copies_back", " "),
        ("write", " "),
        ("given", ", "),
    )
    return _BODY.format(
        name=name,
        operation=operation,
        number=packs,
        threads=_THREADS,
        of_block=bytes_of_block(packs),
        **{part: of_each(part, between) for part, between in joined},
    )


def bytes_of_block(packs=_PACKS):
    """Return how many bytes of each result a block makes."""
    return 16 * packs * _THREADS


class Elementwise:
    """A function of floating-point arrays in one pass.

    `inputs`, `outputs` and `operation` are those of CuPy's `ElementwiseKernel`; `T` is the element type and `W` the
    type to compute in. If all arguments are raw, calls need `size=`.

    `launched(operands)` returns the result for arrays followed by numbers, or None for layouts not in Note [Launches].
    """

    def __init__(self, name, inputs, outputs, operation, preamble=""):
        self.__name__ = name
        self._given = inputs, outputs, operation, preamble
        self._kernel: Any = None
        self._library: Any = None  # the CuPy module that `_kernel` belongs to
        self._parameters = [part.split() for part in inputs.split(",")]
        self._arrays = sum(kind[0] == "T" for kind in self._parameters)
        plain = all(len(kind) == 2 and kind[0] in ("T", "float64") for kind in self._parameters)
        self._is_direct = plain and outputs.split()[0] == "T" and "," not in outputs
        self._is_direct &= all(kind[0] == "T" for kind in self._parameters[: self._arrays]) and self._arrays > 0
        self._programs: dict = {}  # by kinds of operands
        self.launched = Launches(self._made, self._arrays, len(self._parameters), _THREADS, bytes_of_block())

    def _made(self, dtype, kinds):
        """Return the kernel for arrays of a type with these layouts, or None."""
        if not self.takes(dtype):
            return None
        program = self._programs.get(kinds)
        if program is None:
            program = self._programs[kinds] = Program(f"cygrad_{self.__name__}", self._text(kinds), options=EXACT)
        return program.kernel(dtype)

    def _text(self, kinds):
        names = [name for _, name in self._parameters]
        arrays, numbers = names[: self._arrays], names[self._arrays :]
        text = text_of(f"cygrad_{self.__name__}", list(zip(arrays, kinds)), numbers, (self.made,), self.operation)
        return self.preamble + text

    def takes(self, dtype):
        """Whether it may be launched for arrays of a type, alone or joined with others."""
        return self._is_direct and dtype.name in FLOATS and switches.own_launches

    def waits(self, *operands):
        """Return (function, operands) by which a call may be joined with others (Note [Groups]), or None."""
        return (self, operands) if self._is_direct and len(operands) == len(self._parameters) else None

    @property
    def names(self):
        """The names of the operands in the operation, arrays first."""
        return [name for _, name in self._parameters]

    @property
    def made(self):
        """The name of the result in the operation."""
        return self._given[1].split()[1]

    @property
    def operation(self):
        """What computes an element of the result, in C++."""
        return self._given[2]

    @property
    def preamble(self):
        """The functions that the operation calls."""
        return self._given[3]

    def __call__(self, *operands, **how):
        """Return the result, or None if the kernel writes into an array that was passed."""
        if self._is_direct and not how:
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


def elementwise(name, inputs, outputs, operation, preamble=""):
    """Create an `Elementwise` function."""
    return Elementwise(name, inputs, outputs, operation, preamble)
