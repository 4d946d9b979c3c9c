"""Matrix products plus a bias in one launch, by cuBLASLt, which is part of cuBLAS and takes its handles.

CuPy has no functions for it, so it is called through `ctypes`, whether or not a graph is being captured. Numbers of
attributes and epilogues are those of `cublasLt.h` (versions 11 to 13).
"""

import ctypes
import sys
from functools import cache, lru_cache
from threading import local
from typing import Any

import numpy as np

from cygrad._kernels.device.cupy_library import cupy, current_device
from cygrad._kernels.gpu.libraries import cublas

_TRANSPOSES, _EPILOGUE, _BIAS = (3, 4), 7, 8  # attributes: whether to transpose each factor, and what follows
_ADDS_BIAS = 4  # CUBLASLT_EPILOGUE_BIAS
_WORKSPACE = 4 << 20  # bytes
_INT, _SIZE, _POINTER = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
_SIGNATURES = {
    "cublasLtMatmulDescCreate": (_POINTER, _INT, _INT),
    "cublasLtMatmulDescSetAttribute": (_POINTER, _INT, _POINTER, _SIZE),
    "cublasLtMatrixLayoutCreate": (_POINTER, _INT, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64),
    "cublasLtMatrixLayoutDestroy": (_POINTER,),
    "cublasLtMatmul": (*[_POINTER] * 13, _SIZE, _POINTER),
}
_of_thread = local()  # .products: by what they compute, since an attribute changes from call to call
_refused: set[Any] = set()  # signatures of products that the library cannot compute


def takes(dtype):
    """Whether there are products plus a bias of this type."""
    return dtype.char in "eEfd" and library() is not None


@cache
def library() -> Any:
    """Return the library, with the types of its functions set, or None if there is none."""
    version = cublas.version()
    try:
        found = ctypes.CDLL(f"cublasLt64_{version}.dll" if sys.platform == "win32" else f"libcublasLt.so.{version}")
        for function, types in _SIGNATURES.items():
            getattr(found, function).argtypes = types
    except (OSError, AttributeError):
        return None
    return found


class _Layout:
    """A matrix in memory, column by column."""

    def __init__(self, *numbers):
        self.pointer = _POINTER()
        self._destroy = library().cublasLtMatrixLayoutDestroy
        _check(library().cublasLtMatrixLayoutCreate(ctypes.byref(self.pointer), *numbers))

    def __del__(self):
        if self.pointer and not sys.is_finalizing():
            self._destroy(self.pointer)


@lru_cache(1024)
def _layout(code, rows, columns, leading):
    return _Layout(code, rows, columns, leading)


def _product(how, code, transposes):
    """Return this thread's description of a product plus a bias."""
    made = _of_thread.__dict__.setdefault("products", {})
    key = how, code, transposes
    if key not in made:
        pointer = _POINTER()
        _check(library().cublasLtMatmulDescCreate(ctypes.byref(pointer), how, code))
        for attribute, value in (*zip(_TRANSPOSES, transposes), (_EPILOGUE, _ADDS_BIAS)):
            _set(pointer, attribute, _INT(value))
        made[key] = pointer
    return made[key]


def _set(product, attribute, value):
    _check(library().cublasLtMatmulDescSetAttribute(product, attribute, ctypes.byref(value), ctypes.sizeof(value)))


def _check(status):
    if status:
        raise RuntimeError(f"cuBLASLt returned status {status}")


def multiply(x, of_x, y, of_y, bias, out, inner, in_tf32=False):
    """Compute x @ y + bias into dense `out` (rows, columns), with layouts as in `cublas.multiply`; rounds once.

    `bias` is a dense vector, one number for each column. Returns whether the library could do that.
    """
    char, (rows, columns) = out.dtype.char, out.shape
    code, (how, factors) = cublas.number_of(out.dtype), cublas.arithmetic(char, False, in_tf32)
    signature = current_device(), code, how, of_x, of_y, rows, columns, inner
    if signature in _refused:
        return False
    # As in `cublas.multiply`, the transposes are multiplied, since the library counts by columns.
    first = (inner, columns) if of_y[0] else (columns, inner)
    second = (rows, inner) if of_x[0] else (inner, rows)
    layouts = _layout(code, *first, of_y[1]), _layout(code, *second, of_x[1]), _layout(code, columns, rows, columns)
    product = _product(how, cublas.number_of(np.dtype(factors)), (of_y[0], of_x[0]))
    _set(product, _BIAS, _POINTER(bias.data.ptr))
    workspace, (one, zero) = cupy().empty(_WORKSPACE, np.uint8), cublas.FACTORS[factors]
    made = out.data.ptr, layouts[2].pointer
    status = library().cublasLtMatmul(
        cupy().cuda.get_cublas_handle(), product,
        one, y.data.ptr, layouts[0].pointer, x.data.ptr, layouts[1].pointer, zero, *made, *made,
        None, workspace.data.ptr, _WORKSPACE, cupy().cuda.get_current_stream().ptr,
    )  # fmt: skip
    if status:
        _refused.add(signature)
    return not status
