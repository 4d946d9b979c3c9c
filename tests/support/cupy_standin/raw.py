"""`RawKernel` and `RawModule`: CUDA C++ run on the CPU, thread by thread."""

import ctypes
import re

import numpy as np

from . import compiler, compute, memory, state

LIMIT = 48 * 1024  # bytes of shared memory available to a block by default
MOST = 232448
UNTOLD = 256  # block size that always has enough registers, whatever the compiler assigns to each thread
GLOBAL = re.compile(r"(template\s*<[^{};]*>\s*)?__global__\s+void\s+(?:__launch_bounds__\s*\([^()]*\)\s*)?(\w+)\s*\(")


class Argument(ctypes.Structure):
    """`cuda_on_cpu::Argument`."""

    _fields_ = [("value", ctypes.c_void_p), ("size", ctypes.c_int64), ("kind", ctypes.c_int32)]


class Module:
    """A CUDA source and its compiled functions."""

    def __init__(self, code):
        self.code = code
        self.found = [name for template, name in GLOBAL.findall(code) if not template]
        self.meets = compiler.threads_meet(code)

    def function(self, name, symbol):
        """Return the launcher of a kernel; all kernels of a source are compiled together."""
        kernels = self.found if name in self.found else [name]
        if symbol in self.found:
            kernels = self.found
        exports = "".join(
            f'extern "C" const char* cuda_on_cpu_export_{i}(const cuda_on_cpu::Argument* arguments, int count, '
            "const unsigned* sizes, size_t shared, bool meets) {\n"
            f'  return cuda_on_cpu::launch("{kernel}", &{kernel}, arguments, count, sizes, shared, meets);\n}}\n'
            for i, kernel in enumerate(kernels)
        )
        library = compiler.library(compiler.for_the_cpu(self.code) + "\n" + exports)
        return getattr(library, f"cuda_on_cpu_export_{kernels.index(name)}")


def passed(value):
    """Return the bytes passed to a kernel for an argument, as an array, and their kind."""
    if isinstance(value, compute.ndarray_class()):
        return np.array(value._ptr if value.size else 0, np.uint64), "p"
    if value is None:
        return np.array(0, np.uint64), "p"
    if isinstance(value, memory.MemoryPointer):
        return np.array(value.ptr, np.uint64), "p"
    if isinstance(value, (bool, np.bool_)):
        return np.array(value, np.bool_), "b"
    if isinstance(value, int):
        return np.array(value, np.int64), "i"
    if isinstance(value, float) and not isinstance(value, np.generic):
        return np.array(value, np.float64), "f"
    if isinstance(value, complex) and not isinstance(value, np.generic):
        return np.array(value, np.complex128), "s"
    if isinstance(value, np.generic):
        array = np.array(value)
        return array, {"i": "i", "u": "i", "f": "f" if array.itemsize > 2 else "s"}.get(array.dtype.kind, "s")
    if isinstance(value, ctypes.Structure):
        return np.frombuffer(bytes(value), np.uint8).copy(), "s"
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.copy(), "s"  # a struct by value
    raise TypeError(f"Unsupported type {type(value)}")


class RawKernel:
    """`cupy.RawKernel`."""

    def __init__(self, code, name, options=(), backend="nvrtc", translate_cucomplex=False, *,
                 enable_cooperative_groups=False, jitify=None, _module=None):  # fmt: skip
        if not isinstance(options, tuple):
            raise TypeError(f"options must be a tuple, not {type(options)}")
        self.code, self.name, self.options, self.backend = code, name, options, backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.file_path = None
        self._module = _module or Module(with_options(code, options))
        self.max_dynamic_shared_size_bytes = LIMIT
        self.max_threads_per_block = 1024
        self.__name__ = name

    def compile(self, log_stream=None):
        self._module.function(self.name, self.name)

    @property
    def attributes(self):
        return {"max_dynamic_shared_size_bytes": self.max_dynamic_shared_size_bytes,
                "max_threads_per_block": self.max_threads_per_block}  # fmt: skip

    @property
    def kernel(self):
        return Function(self)

    def __call__(self, grid, block, args, *, shared_mem=0):
        Function(self)(grid, block, args, shared_mem)


class Function:
    """`cupy.cuda.Function`: launches a kernel."""

    def __init__(self, kernel):
        self._kernel = kernel

    def linear_launch(self, size, args, shared_mem=0, block_max_size=128, stream=None,
                      enable_cooperative_groups=False):  # fmt: skip
        block = min(block_max_size, size)
        self((-(-size // block), 1, 1), (block, 1, 1), args, shared_mem)

    def __call__(self, grid, block, args, shared_mem=0, stream=None, enable_cooperative_groups=False):
        grid, block = triple(grid), triple(block)
        threads = block[0] * block[1] * block[2]
        if not 0 < threads <= 1024 or block[2] > 64:
            refuse("CUDA_ERROR_INVALID_VALUE", f"a block of {block} threads")
        if threads > UNTOLD and "__launch_bounds__" not in self._kernel.code:
            refuse("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", f"{threads} threads, of which the compiler was not told")
        if min(grid) < 1 or max(grid[1:]) > 65535 or grid[0] > 2**31 - 1:
            refuse("CUDA_ERROR_INVALID_VALUE", f"a grid of {grid} blocks")
        if shared_mem > min(self._kernel.max_dynamic_shared_size_bytes, MOST):
            refuse("CUDA_ERROR_INVALID_VALUE", f"{shared_mem} bytes of shared memory")
        found = compute.Arguments()
        found.arrays = [a for a in args if isinstance(a, compute.ndarray_class())]
        found.check_device()
        given = [passed(value) for value in args]
        arguments = (Argument * max(len(given), 1))(
            *[Argument(value.ctypes.data, value.nbytes, ord(kind)) for value, kind in given]
        )
        sizes = (ctypes.c_uint * 6)(*grid, *block)
        function = self._kernel._module.function(self._kernel.name, self._kernel.name)
        memories = list({id(m): m for m in found.memories()}.values())
        # The arrays may be gone when a graph is launched, but their addresses remain.
        keep = [m._bytes for m in memories], given

        def work():
            compiler.called(function, self._kernel.name, arguments, ctypes.c_int(len(given)), sizes,
                            ctypes.c_size_t(shared_mem), ctypes.c_bool(self._kernel._module.meets))  # fmt: skip
            return keep

        state.launch(self._kernel.name, work, memories)
        if state.capturing() is None:
            for mem in memories:
                mem.check()


def refuse(status, text):
    raise state.cuda_error(status, f"invalid argument ({text})")


def triple(sizes):
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return (*map(int, sizes), 1, 1)[:3]


def with_options(code, options):
    """The source with the macros defined by compiler options."""
    lines = []
    for option in options:
        found = re.fullmatch(r"(?:-D|--define-macro=)(\w+)(?:=(.*))?", option)
        if found:
            lines.append(f"#define {found[1]} {found[2] if found[2] is not None else 1}\n")
    return "".join(lines) + code


class RawModule:
    """`cupy.RawModule`."""

    def __init__(self, code=None, *, path=None, options=(), backend="nvrtc", translate_cucomplex=False,
                 enable_cooperative_groups=False, name_expressions=None, jitify=None):  # fmt: skip
        if code is None:
            raise NotImplementedError("the stand-in has no modules from files")
        if not isinstance(options, tuple):
            raise TypeError(f"options must be a tuple, not {type(options)}")
        self.code, self.options, self.backend = code, options, backend
        self.name_expressions = name_expressions
        self.enable_cooperative_groups = enable_cooperative_groups
        self.file_path = None
        self._module = Module(with_options(code, options))

    def compile(self, log_stream=None):
        for name in self.name_expressions or self._module.found[:1]:
            self._module.function(name, name)

    def get_function(self, name):
        is_known = name in (self.name_expressions or ()) or name in self._module.found
        if not is_known and not re.search(rf"\b{re.escape(name)}\b", self.code):
            raise state.cuda_error("CUDA_ERROR_NOT_FOUND", f"named symbol not found ({name})")
        return RawKernel(self.code, name, self.options, self.backend, _module=self._module)

    def get_global(self, name):
        raise NotImplementedError("the stand-in has no global symbols of modules")
