"""`ElementwiseKernel` and `ReductionKernel`, whose C++ runs on the CPU."""

import ctypes
import functools

import numpy as np

from . import compiler, compute, state
from .ufuncs import bfloat16

C_TYPES = {
    "?": "bool", "b": "signed char", "h": "short", "i": "int", "l": "long long", "q": "long long",
    "B": "unsigned char", "H": "unsigned short", "I": "unsigned int", "L": "unsigned long long",
    "Q": "unsigned long long", "e": "float16", "E": "bfloat16", "f": "float", "d": "double",
    "F": "complex<float>", "D": "complex<double>",
}  # fmt: skip
BLOCK = 128


def c_type(dtype):
    return "bfloat16" if bfloat16 is not None and dtype == bfloat16 else C_TYPES[dtype.char]


class Parameter:
    """A parameter in `in_params` or `out_params`, e.g. `raw T x`."""

    def __init__(self, text, is_const):
        *words, self.name = text.split()
        self.raw = "raw" in words
        self.is_const = is_const
        words = [word for word in words if word != "raw"]
        if len(words) != 1:
            raise Exception(f'Unknown keyword "{words[0]}"' if words else f"Syntax error: {text}")
        (kind,) = words
        if self.name == "i":
            raise ValueError("Can not use 'i' as a parameter name")
        self.placeholder = kind if len(kind) == 1 else None
        if self.placeholder:
            self.dtype = None
        else:
            self.dtype = compute.checked_dtype(kind)

    def ctype(self, types):
        return c_type(self.dtype or types[self.placeholder])

    def of(self, types):
        return self.dtype or types[self.placeholder]


def parsed(text, is_const):
    return tuple(Parameter(part, is_const) for part in text.split(",") if part.strip())


class Layout(ctypes.Structure):
    """`cuda_on_cpu::Layout`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


def integers(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def layout_of(array):
    return Layout(
        array.__array_interface__["data"][0] if array.size else None,
        array.ndim,
        array.size,
        integers(array.shape),
        integers(array.strides),
    )


def types_of(kernel, ins, outs):
    """The dtypes of the placeholders, inferred from the array arguments; scalars adopt them."""
    types = {}
    for parameter, argument in [*zip(kernel.out_params, outs), *zip(kernel.in_params, ins)]:
        if not isinstance(argument, compute.ndarray_class()):
            continue
        known = parameter.dtype or types.get(parameter.placeholder)
        if known is None:
            types[parameter.placeholder] = argument.dtype
        elif known != argument.dtype:
            raise TypeError(
                f"Type is mismatched. {parameter.name} {argument.dtype} {known} {parameter.placeholder or ''}".rstrip()
            )
    for parameter in (*kernel.in_params, *kernel.out_params):
        if parameter.dtype is None and parameter.placeholder not in types:
            raise TypeError(f"no array tells the type {parameter.placeholder} of {parameter.name} in {kernel.name}")
    return types


def operand(parameter, value):
    if isinstance(value, compute.ndarray_class()):
        return value
    if parameter.raw:
        raise TypeError(f"the raw parameter {parameter.name} is to be a cupy.ndarray, not {type(value)}")
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def typedefs(types):
    return "".join(f"typedef {c_type(dtype)} {name};\n" for name, dtype in sorted(types.items()))


def declarations(parameters, arguments, types):
    """C++ declarations of a kernel's arguments: arrays by number, scalars by number."""
    lines, arrays, scalars = [], 0, 0
    for parameter, argument in zip(parameters, arguments):
        ctype, const = parameter.ctype(types), "const " if parameter.is_const else ""
        if isinstance(argument, np.ndarray):
            name = parameter.name if parameter.raw else f"_raw_{parameter.name}"
            lines.append(f"CArray<{const}{ctype}> {name}(_c.arrays[{arrays}]);")
            arrays += 1
        else:
            lines.append(f"const {ctype} {parameter.name} = *(const {ctype}*)_c.scalars[{scalars}];")
            scalars += 1
    return "\n  ".join(lines)


def elements(parameters, arguments, types, index):
    """C++ that names the elements of the arrays at an index."""
    return "\n    ".join(
        f"{'const ' if p.is_const else ''}{p.ctype(types)} &{p.name} = _raw_{p.name}[{index}];"
        for p, a in zip(parameters, arguments)
        if isinstance(a, np.ndarray) and not p.raw
    )


CALL = """
struct _Call {
  const cuda_on_cpu::Layout* arrays;
  const void* const* scalars;
  int64_t n, m;
  int ndim, reduced;
  const int64_t *lengths;
};
"""


class Call(ctypes.Structure):
    _fields_ = [
        ("arrays", ctypes.POINTER(Layout)),
        ("scalars", ctypes.POINTER(ctypes.c_void_p)),
        ("n", ctypes.c_int64),
        ("m", ctypes.c_int64),
        ("ndim", ctypes.c_int),
        ("reduced", ctypes.c_int),
        ("lengths", ctypes.POINTER(ctypes.c_int64)),
    ]


def described(parameters, arguments, types, n, m, shape, reduced):
    """The struct passed to C++, and the objects that must outlive the call."""
    layouts = [layout_of(a) for a in arguments if isinstance(a, np.ndarray)]
    scalars = [np.array(a, p.of(types)) for p, a in zip(parameters, arguments) if not isinstance(a, np.ndarray)]
    arrays = (Layout * max(len(layouts), 1))(*layouts)
    pointers = (ctypes.c_void_p * max(len(scalars), 1))(*[s.ctypes.data for s in scalars])
    call = Call(arrays, pointers, n, m, len(shape), reduced, integers(shape))
    return call, (layouts, scalars, arrays, pointers, arguments)


def started(kernel, text, call, keep, threads, memories):
    """Launch a compiled kernel with one thread for each index."""
    library = compiler.library(compiler.for_the_cpu(text))
    meets = compiler.threads_meet(text)
    sizes = (ctypes.c_uint * 6)(max(-(-threads // BLOCK), 1), 1, 1, BLOCK, 1, 1)

    def work():
        compiler.called(library.cuda_on_cpu_run, kernel.name, ctypes.byref(call), sizes, ctypes.c_bool(meets))
        return keep

    state.launch(kernel.name, work, memories)
    if state.capturing() is None:
        for mem in memories:
            mem.check()


RUN = """
extern "C" const char* cuda_on_cpu_run(_Call* call, const unsigned* sizes, bool meets) {
  return cuda_on_cpu::run(&_kernel_body, call, sizes, 0, meets);
}
"""


def raw_as_given(parameters, arguments, shape):
    """NumPy arrays broadcast to the shape of the call; raw ones and scalars unchanged."""
    return [
        a if not isinstance(a, compute.ndarray_class()) else a._a if p.raw else np.broadcast_to(a._a, shape)
        for p, a in zip(parameters, arguments)
    ]


class ElementwiseKernel:
    """`cupy.ElementwiseKernel`."""

    def __init__(self, in_params, out_params, operation, name="kernel", reduce_dims=True, preamble="", no_return=False,
                 return_tuple=False, **kwargs):  # fmt: skip
        unknown = set(kwargs) - {"loop_prep", "after_loop", "options"}
        if unknown:
            raise TypeError(f"Wrong arguments {sorted(unknown)}")
        if not name.isidentifier():
            raise ValueError(f"Invalid kernel name: {name!r}")
        self.in_params, self.out_params = parsed(in_params, True), parsed(out_params, False)
        self.params = self.in_params + self.out_params
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self.nargs = self.nin + self.nout
        self.operation, self.name, self.preamble = operation, name, preamble
        self.reduce_dims, self.no_return, self.return_tuple = reduce_dims, no_return, return_tuple
        self.kwargs = kwargs
        self.__name__ = name

    def __call__(self, *args, size=None, block_size=128, **wrong):
        if wrong:
            raise TypeError(f"Wrong arguments {wrong}")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"Wrong number of arguments for {self.name!r}: {len(args)}, not {self.nin} or {self.nargs}")
        args = [operand(p, a) for p, a in zip(self.params, args)]
        ins, outs = args[: self.nin], args[self.nin :]
        if any(not isinstance(o, compute.ndarray_class()) for o in outs):
            raise TypeError("Output arguments type must be cupy.ndarray")
        found = compute.Arguments()
        found.arrays = [a for a in args if isinstance(a, compute.ndarray_class())]
        found.check_device()
        types = types_of(self, ins, outs)
        shaped = [a.shape for p, a in zip(self.params, args) if isinstance(a, compute.ndarray_class()) and not p.raw]
        shape = self._shape(shaped, ins, size)
        if not outs:
            if any(p.raw for p in self.out_params):
                raise ValueError("Output array size is Undecided")
            outs = [compute.allocate(shape, p.of(types)) for p in self.out_params]
        for p, o in zip(self.out_params, outs):
            if not p.raw and o.shape != shape:
                raise ValueError(f"Out shape is mismatched: {o.shape} and {shape}")
        arguments = raw_as_given(self.params, [*ins, *outs], shape)
        n = int(np.prod(shape, dtype=np.int64))
        if n:
            text = self._text(tuple(isinstance(a, np.ndarray) for a in arguments), tuple(sorted(types.items())))
            call, keep = described(self.params, arguments, types, n, 1, shape, 0)
            memories = {id(a._memory): a._memory for a in [*found.arrays, *outs]}
            started(self, text, call, keep, n, list(memories.values()))
        if self.no_return:
            return None
        return tuple(outs) if self.return_tuple or len(outs) != 1 else outs[0]

    def _shape(self, shaped, ins, size):
        if size is not None:
            if shaped:
                raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
            return (int(size),)
        if not shaped:
            raise ValueError("Loop size is undecided.")
        return np.broadcast_shapes(*shaped)

    @functools.cache  # noqa: B019  kernels are never freed
    def _text(self, are_arrays, types):
        types = dict(types)
        arguments = [np.empty(0) if is_array else 0 for is_array in are_arrays]
        return f"""#include <cupy/complex.cuh>
{typedefs(types)}{self.preamble}
{CALL}
static void _kernel_body(void* _argument) {{
  const _Call& _c = *(const _Call*)_argument;
  {declarations(self.params, arguments, types)}
  CIndexer _ind(_c.n, _c.ndim, _c.lengths);
  {self.kwargs.get("loop_prep", "")};
  for (ptrdiff_t i = (ptrdiff_t)blockIdx.x * blockDim.x + threadIdx.x; i < _ind.size();
       i += (ptrdiff_t)blockDim.x * gridDim.x) {{
    _ind.set(i);
    {elements(self.params, arguments, types, "i")}
    {self.operation};
  }}
  {self.kwargs.get("after_loop", "")};
}}
{RUN}"""


class ReductionKernel:
    """`cupy.ReductionKernel`."""

    def __init__(self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name="reduce_kernel",
                 reduce_type=None, reduce_dims=True, preamble="", options=()):  # fmt: skip
        if not name.isidentifier():
            raise ValueError(f"Invalid kernel name: {name!r}")
        self.in_params, self.out_params = parsed(in_params, True), parsed(out_params, False)
        self.params = self.in_params + self.out_params
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self.nargs = self.nin + self.nout
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.name, self.reduce_type, self.reduce_dims = name, reduce_type, reduce_dims
        self.preamble, self.options = preamble, options
        self.__name__ = name

    def __call__(self, *args, out=None, axis=None, keepdims=False, stream=None, **wrong):
        if wrong:
            raise TypeError(f"Wrong arguments {wrong}")
        if len(args) not in (self.nin, self.nargs) or (out is not None and len(args) != self.nin):
            raise TypeError(f"Wrong number of arguments for {self.name!r}")
        args = [operand(p, a) for p, a in zip(self.params, args)]
        ins, outs = args[: self.nin], args[self.nin :] if out is None else [out]
        ndarray = compute.ndarray_class()
        if any(not isinstance(o, ndarray) for o in outs):
            raise TypeError("Output arguments type must be cupy.ndarray")
        found = compute.Arguments()
        found.arrays = [a for a in [*ins, *outs] if isinstance(a, ndarray)]
        found.check_device()
        types = types_of(self, ins, outs)
        shaped = [a.shape for p, a in zip(self.in_params, ins) if isinstance(a, ndarray) and not p.raw]
        if not shaped:
            raise ValueError("Loop size is undecided.")
        shape = np.broadcast_shapes(*shaped)
        axes = range(len(shape)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, len(shape))
        axes = sorted(axes)
        kept = [i for i in range(len(shape)) if i not in axes]
        result = tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes)
        if not self.identity and 0 in [shape[i] for i in axes]:
            raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
        if not outs:
            outs = [compute.allocate(result, p.of(types)) for p in self.out_params]
        for o in outs:
            if o.shape != result:
                raise ValueError(f"Output array has wrong shape: {o.shape}, not {result}")
        arguments = raw_as_given(self.in_params, ins, shape)
        arguments = [
            a.transpose([*kept, *axes]) if isinstance(a, np.ndarray) and not p.raw else a
            for p, a in zip(self.in_params, arguments)
        ]
        arguments += [o._a for o in outs]
        n = int(np.prod([shape[i] for i in kept], dtype=np.int64))
        m = int(np.prod([shape[i] for i in axes], dtype=np.int64))
        if n:
            text = self._text(tuple(isinstance(a, np.ndarray) for a in arguments), tuple(sorted(types.items())))
            order = [shape[i] for i in (*kept, *axes)]
            call, keep = described(self.params, arguments, types, n, m, order, len(axes))
            memories = {id(a._memory): a._memory for a in [*found.arrays, *outs]}
            started(self, text, call, keep, n, list(memories.values()))
        return tuple(outs) if len(outs) != 1 else outs[0]

    @functools.cache  # noqa: B019  kernels are never freed
    def _text(self, are_arrays, types):
        types = dict(types)
        arguments = [np.empty(0) if is_array else 0 for is_array in are_arrays]
        reduce_type = self.reduce_type or self.out_params[0].ctype(types)
        outs = arguments[self.nin :]
        return f"""#include <cupy/complex.cuh>
{typedefs(types)}{self.preamble}
{CALL}
typedef {reduce_type} _type_reduce;
static inline _type_reduce _identity() {{ return _type_reduce({self.identity}); }}
#define REDUCE(a, b) ({self.reduce_expr})
#define POST_MAP(a) ({self.post_map_expr})
static _type_reduce _reduced(const _type_reduce& a, const _type_reduce& b) {{ return REDUCE(a, b); }}
static void _kernel_body(void* _argument) {{
  const _Call& _c = *(const _Call*)_argument;
  const ptrdiff_t _i = (ptrdiff_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (_i >= _c.n) return;
  {declarations(self.params, arguments, types)}
  CIndexer _in_ind(_c.n * _c.m, _c.ndim, _c.lengths), _out_ind(_c.n, _c.ndim - _c.reduced, _c.lengths);
  // As many partial results as a block of CuPy's has threads, combined by halves.
  const int _most = 512;
  _type_reduce _partial[_most];
  int _width = 1;
  while (_width < _most && _width < _c.m) _width *= 2;
  for (int _k = 0; _k < _width; _k++) _partial[_k] = _identity();
  const bool _has_identity = {"true" if self.identity else "false"};
  for (ptrdiff_t _J = 0; _J < _c.m; _J++) {{
    const ptrdiff_t _j = _i * _c.m + _J, i = _j;
    _in_ind.set(_j);
    {elements(self.in_params, arguments[: self.nin], types, "_j")}
    _type_reduce _a = static_cast<_type_reduce>({self.map_expr});
    _type_reduce& _s = _partial[_J % _width];
    _s = _J < _width && !_has_identity ? _a : _reduced(_s, _a);
  }}
  ptrdiff_t _filled = _c.m < _width && !_has_identity ? _c.m : _width;
  for (int _half = _width / 2; _half; _half /= 2)
    for (int _k = 0; _k < _half; _k++)
      if (_k + _half < _filled) _partial[_k] = _reduced(_partial[_k], _partial[_k + _half]);
  const _type_reduce& a = _partial[0];
  const ptrdiff_t i = _i;
  _out_ind.set(_i);
  {elements(self.out_params, outs, types, "_i")}
  POST_MAP(a);
}}
{RUN}"""
