"""cuBLAS, both with arrays (`cupy.cublas`) and with addresses (`cupy_backends.cuda.libs.cublas`)."""

import ctypes

import numpy as np

from . import compute, state
from .ufuncs import bfloat16

TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 3: np.int8, 4: np.complex64, 5: np.complex128, 10: np.int32,
         14: bfloat16}  # fmt: skip
COMPUTED_IN = {64: np.float16, 68: np.float32, 74: np.float32, 75: np.float32, 77: np.float32, 70: np.float64}
modes: dict = {}  # math mode by handle


# --- With arrays ---------------------------------------------------------------------------------


def transposed(x, trans):
    kinds = {"N": 0, "T": 1, "C": 2, "n": 0, "t": 1, "c": 2, 0: 0, 1: 1, 2: 2}
    if trans not in kinds:
        raise TypeError(f"invalid trans (actual: {trans})")
    return (x, x.T, x.conj().T)[kinds[trans]]


def one_type(*arrays):
    dtypes = {array.dtype for array in arrays if array is not None}
    if len(dtypes) != 1 or next(iter(dtypes)).char not in "fdFD":
        raise TypeError(f"one of float32, float64, complex64 and complex128 is needed, not {dtypes}")


def gemm(transa, transb, a, b, out=None, alpha=1.0, beta=0.0):
    """Return alpha op(a) op(b) + beta out."""
    one_type(a, b, out)

    def call(a, b, out):
        product = alpha * (transposed(a, transa) @ transposed(b, transb))
        if out is None:
            return product.astype(a.dtype)
        out[...] = product if beta == 0 else product + beta * out
        return out

    return compute.run("gemm", call, [a, b, out])


def gemv(transa, alpha, a, x, beta, y):
    one_type(a, x, y)

    def call(a, x, y):
        y[...] = alpha * (transposed(a, transa) @ x) + (beta * y if beta else 0)

    compute.run("gemv", call, [a, x, y])


def geam(transa, transb, alpha, a, beta, b, out=None):
    one_type(a, b, out)

    def call(a, b, out):
        result = alpha * transposed(a, transa) + beta * transposed(b, transb)
        if out is None:
            return result.astype(a.dtype)
        out[...] = result
        return out

    return compute.run("geam", call, [a, b, out])


def axpy(a, x, y):
    one_type(x, y)

    def call(a, x, y):
        y += a * x

    compute.run("axpy", call, [a, x, y])


def nrm2(x, out=None):
    one_type(x)
    return compute.run("nrm2", lambda x: np.linalg.norm(x), [x])


BY_ARRAYS = {f.__name__: f for f in (gemm, axpy, geam, gemv, nrm2)}


# --- With addresses ------------------------------------------------------------------------------


def matrix(address, dtype, rows, columns, leading, stride=0, batch=1):
    """A view of column-major (Fortran-order) matrices in memory: (batch, rows, columns)."""
    dtype = np.dtype(dtype)
    if leading < max(rows, 1):
        raise CUBLASError("CUBLAS_STATUS_INVALID_VALUE")
    size = ((batch - 1) * stride + leading * (columns - 1) + rows) * dtype.itemsize
    data = np.frombuffer((ctypes.c_uint8 * max(size, 0)).from_address(address), np.uint8)
    strides = (stride * dtype.itemsize, dtype.itemsize, leading * dtype.itemsize)
    return np.ndarray((batch, rows, columns), dtype, data, 0, strides)


class CUBLASError(RuntimeError):
    """`cupy_backends.cuda.libs.cublas.CUBLASError`."""


def scalar(address, dtype):
    return matrix(address, dtype, 1, 1, 1)[0, 0, 0]


def product(name, dtypes, computed, transa, transb, m, n, k, alpha, a, b, beta, c, batch):
    """Compute C = alpha op(A) op(B) + beta C, given (address, leading dimension, stride) of each matrix."""

    factor, keep = scalar(alpha, computed), scalar(beta, computed)  # in host memory

    def work():
        left = matrix(a[0], dtypes[0], *((k, m) if transa else (m, k)), a[1], a[2], batch)
        right = matrix(b[0], dtypes[1], *((n, k) if transb else (k, n)), b[1], b[2], batch)
        result = matrix(c[0], dtypes[2], m, n, c[1], c[2], batch)
        for left_one, right_one, one in zip(left, right, result):
            x = transposed(left_one.astype(computed), transa) @ transposed(right_one.astype(computed), transb)
            one[...] = factor * x + (keep * one.astype(computed) if keep else 0)

    state.launch(name, work, [])


def check_stream():
    """CuPy passes the stream to cuBLAS before each call and rejects a capturing one."""
    if state.capturing() is not None:
        raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")


def gemmEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc, computeType,
           algo):  # fmt: skip
    gemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, 0, B, Btype, ldb, 0, beta, C, Ctype,
                         ldc, 0, 1, computeType, algo)  # fmt: skip


def gemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta,
                         C, Ctype, ldc, strideC, batchCount, computeType, algo):  # fmt: skip
    check_stream()
    any_stream(transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype, ldc,
               strideC, batchCount, computeType)  # fmt: skip


def any_stream(transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype, ldc,
               strideC, batchCount, computeType):  # fmt: skip
    dtypes = [TYPES[t] for t in (Atype, Btype, Ctype)]
    computed = np.result_type(COMPUTED_IN[computeType], *(t for t in dtypes if np.dtype(t).kind == "c"))
    product("gemmEx", dtypes, computed, transa, transb, m, n, k, alpha, (A, lda, strideA), (B, ldb, strideB), beta,
            (C, ldc, strideC), batchCount)  # fmt: skip


def of_type(name, dtype):
    def gemm(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
        product(
            name, [dtype] * 3, dtype, transa, transb, m, n, k, alpha, (A, lda, 0), (B, ldb, 0), beta, (C, ldc, 0), 1
        )

    def batched(handle, transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC,
                batchCount):  # fmt: skip
        product(name, [dtype] * 3, dtype, transa, transb, m, n, k, alpha, (A, lda, strideA), (B, ldb, strideB), beta,
                (C, ldc, strideC), batchCount)  # fmt: skip

    return {f"{name}gemm": gemm, f"{name}gemmStridedBatched": batched}


class Library:
    """The functions loaded directly from the shared library, which does not check for capture."""

    workspaces: list = []  # (stream, address) of each workspace set

    @staticmethod
    def cublasSetStream_v2(handle, stream):
        assert stream == state.stream().ptr, "the stream of this thread"
        Library.workspace = None
        return 0

    @staticmethod
    def cublasSetWorkspace_v2(handle, workspace, size):
        assert workspace % 256 == 0 and size == 32 << 20
        Library.workspace = workspace
        Library.workspaces.append((state.stream().ptr, workspace))
        return 0

    @staticmethod
    def cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc,
                     computeType, algo):  # fmt: skip
        return Library.cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, 0, B, Btype,
                                                  ldb, 0, beta, C, Ctype, ldc, 0, 1, computeType, algo)  # fmt: skip

    @staticmethod
    def cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb,
                                   strideB, beta, C, Ctype, ldc, strideC, batchCount, computeType, algo):  # fmt: skip
        assert Library.workspace is not None, "what is captured has a workspace of its own"
        any_stream(transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype, ldc,
                   strideC, batchCount, computeType)  # fmt: skip
        return 0


def setMathMode(handle, mode):
    modes[handle] = mode


def getMathMode(handle):
    return modes.get(handle, 0)


BY_ADDRESSES = {
    **{f.__name__: f for f in (gemmEx, gemmStridedBatchedEx, setMathMode, getMathMode)},
    **of_type("s", np.float32),
    **of_type("d", np.float64),
    **of_type("c", np.complex64),
    **of_type("z", np.complex128),
    "setStream": lambda handle, stream: check_stream(),
    "getVersion": lambda handle: 130000,
    "getPointerMode": lambda handle: 0,
    "setPointerMode": lambda handle, mode: None,
    "setWorkspace": lambda handle, workspace, size: None,
    "CUBLASError": CUBLASError,
    "CUBLAS_OP_N": 0,
    "CUBLAS_OP_T": 1,
    "CUBLAS_OP_C": 2,
    "CUBLAS_DEFAULT_MATH": 0,
    "CUBLAS_TENSOR_OP_MATH": 1,
    "CUBLAS_TF32_TENSOR_OP_MATH": 3,
    "CUBLAS_COMPUTE_32F": 68,
    "CUBLAS_COMPUTE_64F": 70,
    "CUBLAS_COMPUTE_32F_FAST_16F": 74,
    "CUBLAS_COMPUTE_32F_FAST_16BF": 75,
    "CUBLAS_COMPUTE_32F_FAST_TF32": 77,
    "CUBLAS_GEMM_DEFAULT": -1,
    "CUBLAS_GEMM_DEFAULT_TENSOR_OP": 99,
}
