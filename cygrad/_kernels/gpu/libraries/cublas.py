"""Calls cuBLAS matrix products by address: through CuPy, or directly while a graph is being captured.

CuPy refuses to call cuBLAS on a capturing stream, although cuBLAS permits it (its manual, "CUDA Graphs Support"). There
we call the library, which CuPy has loaded by then, through `ctypes`. Each captured stream gets its own workspace:
replays may run concurrently with other streams, whose products use the handle's workspace, and so may branches of one
graph.
"""

import ctypes
import sys
from functools import cache
from importlib import import_module

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.runtime.graph_capture import Capture, current

_CODES = {"e": 2, "E": 14, "f": 0, "d": 1, "F": 4, "D": 5}  # dtype char to cudaDataType
_IN_HALF, _IN_SINGLE, _IN_TF32, _IN_DOUBLE = 64, 68, 77, 70  # CUBLAS_COMPUTE_16F and the like
_DEFAULT = -1  # CUBLAS_GEMM_DEFAULT
_WORKSPACE = 32 << 20  # bytes; the largest size that cuBLAS's manual recommends (for compute capability 9.0)
_ONE_AND_ZERO = {char: np.array([1, 0], char) for char in "efdFD"}  # kept alive, as they are read by address
_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
_MATRIX = _POINTER, _INT, _INT  # address, type, leading dimension
_STACK = *_MATRIX, _LONG  # and batch stride
_SIGNATURES = {
    "cublasSetStream_v2": (_POINTER, _POINTER),
    "cublasSetWorkspace_v2": (_POINTER, _POINTER, ctypes.c_size_t),
    "cublasGemmEx": (_POINTER, *[_INT] * 5, _POINTER, *_MATRIX * 2, _POINTER, *_MATRIX, _INT, _INT),
    "cublasGemmStridedBatchedEx": (_POINTER, *[_INT] * 5, _POINTER, *_STACK * 2, _POINTER, *_STACK, *[_INT] * 3),
}


def _addresses(factors):
    start = factors.ctypes.data
    return start, start + factors.itemsize


FACTORS = {char: _addresses(a) for char, a in _ONE_AND_ZERO.items()}  # addresses of 1 and 0, by type


def takes(dtype):
    """Whether cuBLAS multiplies elements of this type."""
    return dtype.char in _CODES


def number_of(dtype):
    """Return cuBLAS's number of an element type."""
    return _CODES[dtype.char]


def arithmetic(char, in_half=False, in_tf32=False):
    """Return (number of the arithmetic for products of a type, type of their factors)."""
    if char in "dD":
        return _IN_DOUBLE, char
    if char in "eE":
        return (_IN_HALF, "e") if in_half and char == "e" else (_IN_SINGLE, "f")
    return (_IN_TF32 if in_tf32 else _IN_SINGLE), char


def multiply(x, of_x, y, of_y, out, inner, in_half=False, in_tf32=False, alpha=1, beta=0):
    """Multiply matrices x @ y of one type into dense `out` (rows, columns), or batches into (count, rows, columns).

    What `out` becomes is alpha times the product plus, unless beta is 0, beta times what it holds, rounded once.

    `of_x` and `of_y` are layouts: (is it transposed, leading dimension, batch stride). `inner` is the length of the
    contracted dimension. Products of float16 are accumulated in float16 if `in_half`, and products of float32 use TF32
    if `in_tf32`. cuBLAS is column-major, so it multiplies the transposes.
    """
    char = out.dtype.char
    count, rows, columns = out.shape if out.ndim == 3 else (1, *out.shape)
    code, (how, kind) = _CODES[char], arithmetic(char, in_half, in_tf32)
    of_product, of_held = FACTORS[kind]
    if alpha != 1 or beta != 0:
        factors = np.array([alpha, beta], "D").astype(kind) if kind in "FD" else np.array([alpha, beta], kind)
        of_product, of_held = _addresses(factors)
    handle = cupy().cuda.get_cublas_handle()
    first = handle, of_y[0], of_x[0], columns, rows, inner, of_product
    a, b, c = (y.data.ptr, code, of_y[1]), (x.data.ptr, code, of_x[1]), (out.data.ptr, code, columns)
    capture = current()
    if capture is not None:
        library = _library()
        _prepare(library, handle, capture)
        if count == 1:
            _check(library.cublasGemmEx(*first, *a, *b, of_held, *c, how, _DEFAULT))
        else:
            stacks = *a, of_y[2], *b, of_x[2], of_held, *c, rows * columns
            _check(library.cublasGemmStridedBatchedEx(*first, *stacks, count, how, _DEFAULT))
        return
    cublas = _of_cupy()
    if count == 1:
        cublas.gemmEx(*first, *a, *b, of_held, *c, how, _DEFAULT)
    else:
        stacks = *a, of_y[2], *b, of_x[2], of_held, *c, rows * columns
        cublas.gemmStridedBatchedEx(*first, *stacks, count, how, _DEFAULT)


_MODULE = "cupy_backends.cuda.libs.cublas"


def _of_cupy():
    return sys.modules.get(_MODULE) or import_module(_MODULE)


def version():
    """Return the number in the name of the library that CuPy has loaded."""
    return _of_cupy().getVersion(cupy().cuda.get_cublas_handle()) // 10000


@cache
def _library():
    """Return the shared library that CuPy has loaded, with argument types set for its functions."""
    name = f"cublas64_{version()}.dll" if sys.platform == "win32" else f"libcublas.so.{version()}"
    found = ctypes.CDLL(name)
    for function, types in _SIGNATURES.items():
        getattr(found, function).argtypes = types
    return found


def _prepare(library, handle, capture: Capture):
    """Set the handle to the capturing stream, with that stream's own workspace."""
    stream = cupy().cuda.get_current_stream().ptr
    workspace = capture.workspaces.get(stream)
    if workspace is None:
        workspace = capture.workspaces[stream] = cupy().empty(_WORKSPACE, np.uint8)
        capture.kept.append(workspace)
    _check(library.cublasSetStream_v2(handle, stream))  # resets the workspace
    _check(library.cublasSetWorkspace_v2(handle, workspace.data.ptr, _WORKSPACE))


def _check(status):
    if status:
        raise _of_cupy().CUBLASError(status)
