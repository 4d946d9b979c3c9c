"""NVIDIA's runtime compiler (which needs no GPU), applied to kernel sources as CuPy would pass them."""

import ctypes
import importlib.machinery
import re
import sys
from pathlib import Path

from . import kernels, raw

HEADERS = "carray", "complex", "float16", "bfloat16", "atomics"
OPTIONS = (
    "--std=c++17",
    "-ftz=true",
    "--device-as-default-execution-space",
    "--ptxas-options=-v",
)  # CuPy's options, plus a report


def places(package):
    """The directories of an installed package, without importing it: `cupy` may be the stand-in."""
    found = importlib.machinery.PathFinder.find_spec(package, sys.path)
    return [Path(place) for place in (found and found.submodule_search_locations) or ()]


def first(package, pattern):
    return next((path for place in places(package) for path in sorted(place.glob(pattern))), None)


class Compiler:
    """NVRTC with CuPy's headers. Raises ImportError naming the missing package if one is not installed."""

    def __init__(self):
        library = first("nvidia", "*/lib/libnvrtc.so.*")
        cuda, own = first("nvidia", "*/include/cuda_fp16.h"), first("cupy", "_core/include/cupy/carray.cuh")
        if None in (library, cuda, own):
            raise ImportError("needs CuPy, NVRTC and CUDA's headers: pip install 'cupy-cuda12x[ctk]'")
        own = own.parents[1]
        bundled = (own / "cupy" / "_cccl" / name for name in ("cub", "thrust", "libcudacxx"))
        self.options = *OPTIONS, *(f"-I{path}" for path in (*bundled, own, cuda.parent))
        self.nvrtc = ctypes.CDLL(str(library))

    def compiled(self, text, name, kind):
        """Return (success, compiler log) for compute capability `kind`."""
        program = ctypes.c_void_p()
        self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
        options = [option.encode() for option in (*self.options, f"-arch=sm_{kind}")]
        failed = self.nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        size = ctypes.c_size_t()
        self.nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetProgramLog(program, log)
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return not failed, log.value.decode()


def number(pattern, log):
    """The largest value reported for this quantity."""
    return max((int(found) for found in re.findall(pattern, log)), default=0)


def text_of(kernel, types):
    """The source that CuPy generates from an `ElementwiseKernel` for one-dimensional arrays."""
    lists, named = [], []
    for p in kernel.params:
        kind = p.ctype(types)
        lists.append(f"CArray<{kind}, 1, 1, 1> {'' if p.raw else '_raw_'}{p.name}")
        if not p.raw:
            named.append(f"{'const ' + kind if p.is_const else kind + ' &'} {p.name} = _raw_{p.name}[_ind.get()];")
    includes = "".join(f"#include <cupy/{name}.cuh>\n" for name in HEADERS)
    return f"""{includes}#include <cupy/math_constants.h>
{kernels.typedefs(types)}{kernel.preamble}
extern "C" __global__ void {kernel.name}({", ".join(lists)}, CIndexer<1, 1> _ind) {{
  {kernel.kwargs.get("loop_prep", "")};
  #pragma unroll 1
  CUPY_FOR(i, _ind.size()) {{
    _ind.set(i);
    {" ".join(named)}
    {kernel.operation};
  }}
  {kernel.kwargs.get("after_loop", "")};
}}"""


def recorded(patch):
    """Return {source: name} of the kernels launched from now on, none of which is run."""
    found = {}

    def launched(self, *args, **how):
        found[self._kernel._module.code] = self._kernel.name

    def of_elements(self, are_arrays, types):
        found[text_of(self, dict(types))] = self.name
        return ""

    patch.setattr(raw.Function, "__call__", launched)
    patch.setattr(kernels.ElementwiseKernel, "_text", of_elements)
    patch.setattr(kernels, "started", lambda *args: None)
    return found
