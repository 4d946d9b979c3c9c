"""cuBLAS's products of matrices, by addresses: through CuPy, and without it while a graph is captured.

CuPy calls no cuBLAS for a stream that captures, though cuBLAS allows it (its manual, "CUDA Graphs Support"). So the
library, which CuPy has loaded by then, is called by `ctypes` there. Each stream of a capture has a workspace of its
own: replays may run beside other streams, whose products use the handle's, and so may branches of a graph.
"""

import ctypes
import sys
from functools import cache
from importlib import import_module

import numpy as np

from cygrad._kernels.device.cupy_library import cupy
from cygrad._kernels.gpu.runtime.graph_capture import Capture, current

_CODES = {"e": 2, "E": 14, "f": 0, "d": 1, "F": 4, "D": 5}  # by the letter of a type: its number in CUDA
_IN_HALF, _IN_SINGLE, _IN_TF32, _IN_DOUBLE = 64, 68, 77, 70  # CUBLAS_COMPUTE_16F and the like
_DEFAULT = -1  # CUBLAS_GEMM_DEFAULT
_WORKSPACE = 32 << 20  # bytes; what cuBLAS's manual advises for compute capability 9.0, the most of all
_ONE_AND_ZERO = {char: np.array([1, 0], char) for char in "efdFD"}  # kept, as they are read by address
_FACTORS = {char: (a.ctypes.data, a.ctypes.data + a.itemsize) for char, a in _ONE_AND_ZERO.items()}
_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
_MATRIX = _POINTER, _INT, _INT  # address, type, step from line to line
_STACK = *_MATRIX, _LONG  # and from matrix to matrix
_SIGNATURES = {
    "cublasSetStream_v2": (_POINTER, _POINTER),
    "cublasSetWorkspace_v2": (_POINTER, _POINTER, ctypes.c_size_t),
    "cublasGemmEx": (_POINTER, *[_INT] * 5, _POINTER, *_MATRIX * 2, _POINTER, *_MATRIX, _INT, _INT),
    "cublasGemmStridedBatchedEx": (_POINTER, *[_INT] * 5, _POINTER, *_STACK * 2, _POINTER, *_STACK, *[_INT] * 3),
}


def takes(dtype):
    """Are there products of elements of this type?"""
    return dtype.char in _CODES


def multiply(x, of_x, y, of_y, out, inner, in_half=False, in_tf32=False):
    """Matrices x @ y of one type into dense `out` (rows, columns), or stacks of them into (count, rows, columns).

    `of_x` and `of_y` tell how they lie: (are they transposed, step of lines, step of matrices); `inner` is the length
    of what is added up, in float16 for matrices of it if `in_half`, by TF32 for float32 if `in_tf32`. cuBLAS has its
    matrices in columns: what it multiplies are the transposes.
    """
    char = out.dtype.char
    count, rows, columns = out.shape if out.ndim == 3 else (1, *out.shape)
    code, how, factors = _CODES[char], _IN_SINGLE, char
    if char in "dD":
        how = _IN_DOUBLE
    elif char in "eE":
        factors = "f"
        if in_half and char == "e":
            how, factors = _IN_HALF, "e"
    elif in_tf32:
        how = _IN_TF32
    one, zero = _FACTORS[factors]
    handle = cupy().cuda.get_cublas_handle()
    first = handle, of_y[0], of_x[0], columns, rows, inner, one
    a, b, c = (y.data.ptr, code, of_y[1]), (x.data.ptr, code, of_x[1]), (out.data.ptr, code, columns)
    capture = current()
    if capture is not None:
        library = _library()
        _prepare(library, handle, capture)
        if count == 1:
            _check(library.cublasGemmEx(*first, *a, *b, zero, *c, how, _DEFAULT))
        else:
            stacks = *a, of_y[2], *b, of_x[2], zero, *c, rows * columns
            _check(library.cublasGemmStridedBatchedEx(*first, *stacks, count, how, _DEFAULT))
        return
    cublas = _of_cupy()
    if count == 1:
        cublas.gemmEx(*first, *a, *b, zero, *c, how, _DEFAULT)
    else:
        stacks = *a, of_y[2], *b, of_x[2], zero, *c, rows * columns
        cublas.gemmStridedBatchedEx(*first, *stacks, count, how, _DEFAULT)


def _of_cupy():
    return import_module("cupy_backends.cuda.libs.cublas")


@cache
def _library():
    """The shared library that CuPy has loaded, with the types of its functions' arguments."""
    version = _of_cupy().getVersion(cupy().cuda.get_cublas_handle()) // 10000
    name = f"cublas64_{version}.dll" if sys.platform == "win32" else f"libcublas.so.{version}"
    found = ctypes.CDLL(name)
    for function, types in _SIGNATURES.items():
        getattr(found, function).argtypes = types
    return found


def _prepare(library, handle, capture: Capture):
    """Let the handle work in the stream that captures, and in that stream's own workspace."""
    stream = cupy().cuda.get_current_stream().ptr
    workspace = capture.workspaces.get(stream)
    if workspace is None:
        workspace = capture.workspaces[stream] = cupy().empty(_WORKSPACE, np.uint8)
        capture.kept.append(workspace)
    _check(library.cublasSetStream_v2(handle, stream))  # takes the workspace away
    _check(library.cublasSetWorkspace_v2(handle, workspace.data.ptr, _WORKSPACE))


def _check(status):
    if status:
        raise _of_cupy().CUBLASError(status)
