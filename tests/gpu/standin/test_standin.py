"""The stand-in for CuPy: as strict as CuPy, with the same names, and with running kernels."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import cupy_standin
import numpy as np
import pytest
from cupy_standin import compiler, names

from cygrad._kernels.device import cupy_library

needs_a_compiler = pytest.mark.skipif(
    compiler.compiler() is None, reason="kernels run by a C++ compiler: there is none"
)


@pytest.fixture
def cupy():
    with cupy_standin.installed() as module:
        yield module


def same(array, expected, **tolerance):
    np.testing.assert_allclose(array.get(), expected, **tolerance)
    assert array.dtype == np.asarray(expected).dtype


# --- Errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("np.asarray(x)", "Implicit conversion to a NumPy array is not allowed"),
        ("x + np.ones(3)", "Unsupported type <class 'numpy.ndarray'>"),
        ("np.ones(3) + x", "Unsupported type <class 'numpy.ndarray'>"),
        ("cupy.add(x, [1, 2, 3])", "Unsupported type <class 'list'>"),
        ("cupy.sum(np.ones(3))", "is to be a cupy.ndarray"),
        ("cupy.concatenate([x, np.ones(3)])", "Unsupported type"),
        ("cupy.sum(x, where=True)", "unexpected keyword argument 'where'"),
        ("cupy.exp(x, where=True)", "Wrong arguments {'where': True}"),
        ("cupy.add(x, x, out=np.ones(3))", "Output arguments type must be cupy.ndarray"),
        ("cupy.bitwise_and(x, x)", "Wrong type"),
        ("np.nanpercentile(x, 5)", "no implementation found"),
        ("memoryview(x)", "a bytes-like object is required"),
        ("hash(x)", "unhashable"),
        ("range(3)[cupy.arange(1)[0]]", "indices must be integers"),
    ],
)
def test_what_cupy_refuses_raises_a_type_error(cupy, call, text):
    with pytest.raises(TypeError, match=text):
        eval(call, {"np": np, "cupy": cupy, "x": cupy.ones(3)})


def test_numpys_scalars_and_ufuncs_take_its_arrays(cupy):
    x = cupy.ones(3, "f")
    for result in (np.float32(2) * x, np.exp(x), np.add(x, 1), 2 - x, np.int64(1) < x, np.sum(x), np.stack([x, x])):
        assert type(result) is cupy.ndarray


def test_names_that_cupy_lacks(cupy):
    for name in ("put_along_axis_", "bfloat16", "vecdot", "triu_indices_", "nditer"):
        with pytest.raises(AttributeError):
            getattr(cupy, name)
    with pytest.raises(AttributeError):
        cupy.ones(3).resize(2)
    with pytest.raises(NotImplementedError, match="CuPy has cupy.fuse"):
        cupy.fuse()


def test_scalars_stay_arrays_of_no_dimensions(cupy):
    x = cupy.arange(6.0).reshape(2, 3)
    for scalar in (
        x.sum(),
        x[0, 1],
        x.mean(),
        cupy.exp(x[1, 1]),
        np.sum(x),
        x.argmax(),
        x[..., 0][1],
        cupy.dot(x[0], x[1]),
    ):
        assert type(scalar) is cupy.ndarray and scalar.shape == ()
    for scalar in (cupy.allclose(x, x), cupy.array_equal(x, x), cupy.count_nonzero(x)):
        assert type(scalar) is cupy.ndarray and scalar.shape == ()
    x[0, 1] = 5
    assert float(x[0, 1]) == 5


def test_views_share_memory_and_know_their_base(cupy):
    x = cupy.zeros((2, 3))
    for view in (
        x[1],
        x.T,
        x.reshape(6),
        x.ravel(),
        x[:, ::-1],
        cupy.broadcast_to(x, (4, 2, 3)),
        x.view("i8"),
        x[None],
    ):
        assert view.base is x
    x[:, ::-1][0] = cupy.arange(3.0)
    same(x, [[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert x[1].data.ptr - x.data.ptr == 24 and x[1].flags.c_contiguous and not x.T.flags.c_contiguous
    same(cupy.broadcast_to(x[0], (2, 3)) + 0.5, [[2.5, 1.5, 0.5]] * 2)


def test_index_arrays_out_of_range_wrap_around(cupy):
    x = cupy.arange(4)
    same(x[cupy.array([4, -1, 7])], np.array([0, 3, 3]))
    same(x.take(cupy.array([5])), np.array([1]))
    with pytest.raises(IndexError):
        x[4]


def test_promotion_is_that_of_nep_50(cupy):
    eight, half = cupy.ones(2, "i1"), cupy.ones(2, "e")
    assert (eight + 1).dtype == "i1" and (eight + 1.0).dtype == "f8" and (cupy.ones(2, "?") + 1).dtype == "i8"
    assert (half * 2.5).dtype == "e" and (half + np.float64(1)).dtype == "f8" and (half * 1j).dtype == "F"
    assert cupy.exp(eight).dtype == "e" and (eight / eight).dtype == "f8" and cupy.sin(cupy.ones(1, "i4")).dtype == "f8"
    with pytest.raises(OverflowError):
        eight + 300


def test_bfloat16(cupy):
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    x = cupy.asarray([1, 2.5, 3]).astype(bfloat16)
    for result in (x + x, x * 2.0, cupy.exp(x), x @ x, x.sum()):
        assert result.dtype == bfloat16
    assert (x + cupy.ones(3, "f")).dtype == "f"


# --- Records -----------------------------------------------------------------------------------


def test_synchronizations_and_transfers_are_noted(cupy):
    with cupy_standin.watch() as seen:
        x = cupy.ones((3, 3))
        y = cupy.where(x > 0, x @ x, 1)
        y[0] = 2
        y[y > 1] = 0
        y.sum(axis=0).max()
        cupy.asarray(np.ones(4, "f"))
    assert seen.synchronizations == ["assigning under a boolean array"] and seen.transfers == [("to device", 16)]
    texts = []
    cupy_standin.on_synchronize.append(texts.append)
    try:
        waits = [x.get, x.tolist, x[0, 0].item, lambda: float(x[0, 0]), lambda: bool(x[0, 0]), lambda: x[x > 0],
                 lambda: cupy.asnumpy(x), lambda: cupy.nonzero(x), lambda: cupy.unique(x), lambda: repr(x),
                 cupy.cuda.Device().synchronize, cupy.cuda.get_current_stream().synchronize]  # fmt: skip
        for i, wait in enumerate(waits, 1):
            wait()
            assert len(texts) == i, wait
    finally:
        cupy_standin.on_synchronize.clear()


def test_memory_is_accounted_for(cupy):
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        x = cupy.zeros(1000, "f")
        assert pool.used_bytes() == 4096
        y = x[10:]
        del x
        assert pool.used_bytes() == 4096
        del y
        assert (pool.used_bytes(), pool.total_bytes()) == (0, 4096)
        pool.free_all_blocks()
        assert pool.total_bytes() == 0
        pool.set_limit(size=1 << 20)
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="limit set to: 1,048,576 bytes"):
            cupy.zeros(1 << 20)
    assert np.isnan(cupy.empty(3).get()).all()  # unlike zeros, which real memory may contain by chance


def test_devices(cupy):
    assert cupy.cuda.runtime.getDeviceCount() == 2
    x = cupy.ones(3)
    with cupy.cuda.Device(1):
        y = cupy.ones(3)
        assert y.device.id == 1
        with pytest.raises(ValueError, match="Array device must be same as the current device: array device = 0"):
            x + y
        moved = cupy.asarray(x)
        assert moved.device.id == 1 and moved is not x
    assert cupy.cuda.Device().id == 0
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidDevice"):
        cupy.cuda.Device(2).use()


def test_graphs_replay_and_refuse_to_wait(cupy):
    x, pool, stream = cupy.zeros(3), cupy.cuda.MemoryPool(), cupy.cuda.Stream(non_blocking=True)
    with stream, cupy.cuda.using_allocator(pool.malloc):
        stream.begin_capture()
        x += 1
        y = cupy.exp(x * 2) + 1
        with pytest.raises(RuntimeError, match="the current stream is capturing"):
            x.get()
        with pytest.raises(RuntimeError, match="the current stream is capturing"):
            stream.synchronize()
        graph = stream.end_capture()
    same(x, np.zeros(3))
    for i in (1, 2):
        graph.launch()
        same(y, np.exp(np.full(3, 2.0 * i)) + 1)
    del pool
    with pytest.raises(AssertionError, match="has gone back to a pool"):
        graph.launch()


def test_arrays_go_to_others_by_dlpack(cupy):
    x = cupy.arange(6.0).reshape(2, 3)
    assert x.__dlpack_device__() == (2, 0)
    y = cupy.from_dlpack(x)
    y[0, 0] = 9
    assert float(x[0, 0]) == 9 and y.data.ptr == x.data.ptr
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(x)
    told = x.T.__cuda_array_interface__
    assert told["data"][0] == x.data.ptr and told["strides"] == (8, 24)


# --- Kernels -----------------------------------------------------------------------------------


@needs_a_compiler
def test_elementwise_kernels(cupy):
    kernel = cupy.ElementwiseKernel("T x, T y, float32 s", "T z", "z = s * (x - y) + max(x, T(0))", "k")
    x = cupy.arange(6, dtype="f").reshape(2, 3)
    host = x.get()
    same(kernel(x, x[0], 0.5), 0.5 * (host - host[0]) + host)
    same(kernel(x.T, x.T[:, 1:], 2), 2 * (host.T - host.T[:, 1:]) + host.T)
    half = x.astype("e")
    same(kernel(half, half, 1), host.astype("e"))
    out = cupy.empty((2, 3), "f")
    assert kernel(x, x, 1, out) is out
    gather = cupy.ElementwiseKernel("raw T x, int64 j", "T y", "y = x[j] + i * x.size()", "gather")
    same(gather(x.T, cupy.arange(6)), host.T.ravel() + 6 * np.arange(6, dtype="f"))
    two = cupy.ElementwiseKernel("T x", "T a, bool b", "a = -x; b = x > 2;", "two")
    a, b = two(x)
    same(a, -host), same(b, host > 2)
    inplace = cupy.ElementwiseKernel("T g", "raw T w", "w[i] -= g", "inplace", no_return=True)
    inplace(x[0], out)
    same(out[0], np.zeros(3, "f"))


@needs_a_compiler
def test_kernels_refuse_what_cupys_refuse(cupy):
    x = cupy.ones(4, "f")
    kernel = cupy.ElementwiseKernel("T x, T y", "T z", "z = x + y", "k")
    with pytest.raises(TypeError, match="Type is mismatched"):
        kernel(x, x.astype("d"))
    with pytest.raises(TypeError, match="Unsupported type"):
        kernel(x, np.ones(4, "f"))
    with pytest.raises(ValueError, match="shape"):
        kernel(x, x, cupy.empty(5, "f"))
    with pytest.raises(compiler.Failed, match="index [4-6] of an array of 4 elements"):
        cupy.ElementwiseKernel("raw T x", "T z", "z = x[i + 3]", "k")(x, cupy.empty(4, "f"))
    with pytest.raises(compiler.CompileException, match="nonsense"):
        cupy.ElementwiseKernel("T x", "T z", "z = nonsense", "k")(x)


@needs_a_compiler
def test_reduction_kernels(cupy):
    kernel = cupy.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = sqrt(a)", "0", "norm")
    x = cupy.arange(2400, dtype="d").reshape(2, 3, 400)
    host = x.get()
    for axis in (None, 0, 2, (0, 2)):
        for keepdims in (False, True):
            same(kernel(x, x, axis=axis, keepdims=keepdims), np.sqrt((host**2).sum(axis, keepdims=keepdims)))


@needs_a_compiler
@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "e", "bfloat16", "d", "D"])
def test_kernels_know_all_types(cupy, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    dtype = np.dtype(dtype)
    # One kernel for all dtypes; halves are computed as floats, as in CuPy's classes.
    kernel = cupy.ElementwiseKernel(
        "T x, raw T w", "T y, S z", "y = x * x + w[0] + T(1); z = T(sizeof(T)) != x", "types"
    )
    x = cupy.asarray([0, 1, 3]).astype(dtype)
    y, z = kernel(x, x, cupy.empty(3, dtype), cupy.empty(3, "?"))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.get().astype("D"), (np.array([1, 2, 10]) != 0 if dtype == "?" else [1, 2, 10]))
    np.testing.assert_array_equal(z.get(), x.get() != np.array(dtype.itemsize, dtype))
    if dtype.kind not in "bc":
        total = cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total", reduce_type="double")
        assert total(x).dtype == dtype and float(total(x)) == 4


@needs_a_compiler
def test_functions_of_cuda(cupy):
    kernel = cupy.ElementwiseKernel(
        "T x",
        "T y",
        """
        float2 pair = make_float2(x, 2.0f);
        half2 halves = __floats2half2_rn(pair.x, pair.y);
        unsigned long long count = 0;
        atomicAdd(&count, 1ULL);
        y = erff(x) + __expf(-x) + rsqrtf(pair.y) + max(x, 0) + fmaxf(x, 0.5f) + __half2float(halves.y) + (T)count
            + normcdff(x) + tanhf(x) + (x > 0 ? x : T(0)) + __int_as_float(__float_as_int(x))
            + exp(complex<float>(0, x)).real()
            + (isnan(x) ? NAN : CUDART_INF_F > x ? 0.f : 1.f) + __ldg(&x) + powf(x, 2) + __popc(7) + warpSize;
        """,
        "functions",
    )
    from math import erf

    x = np.linspace(-2, 2, 5, dtype="f")
    phi = np.array([0.5 * (1 + erf(v / 2**0.5)) for v in x])
    expected = (np.array([erf(v) for v in x]) + np.exp(-x) + 2**-0.5 + np.maximum(x, 0) + np.maximum(x, 0.5) + 2 + 1
                + phi + np.tanh(x) + np.maximum(x, 0) + x + np.cos(x) + x + x**2 + 3 + 32)  # fmt: skip
    np.testing.assert_allclose(kernel(cupy.asarray(x)).get(), expected, rtol=1e-6)


def test_streams_events_and_pinned_memory(cupy):
    import cupyx

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        assert cupy.cuda.get_current_stream() == stream != cupy.cuda.Stream.null
        start.record()
        x = cupy.ones(5)
        stop.record()
        stream.wait_event(start)
    assert cupy.cuda.get_current_stream() == cupy.cuda.Stream.null
    stop.synchronize()
    assert cupy.cuda.get_elapsed_time(start, stop) >= 0
    with cupy_standin.watch() as seen:
        out = cupyx.empty_pinned(5)
        is_pinned = cupy.cuda.pinned_memory.is_memory_pinned
        assert is_pinned(out.ctypes.data) and not is_pinned(np.empty(5).ctypes.data)
        assert x.get(stream=stream, blocking=False, out=out) is out and out.tolist() == [1.0] * 5
    assert seen.synchronizations == []
    x.set(np.arange(5.0))
    same(x, np.arange(5.0))
    with pytest.raises(TypeError, match="cannot be set"):
        x.set(np.arange(5))
    cupy.cuda.nvtx.RangePush("part")
    cupy.cuda.nvtx.RangePop()
    with pytest.raises(ValueError, match="negative strides"):
        cupy.ndarray((2,), "d", x.data + 8, (-8,))


SUMS = r"""
#include <cuda_fp16.h>
extern "C" __global__ void sums(const float* __restrict__ x, float* y, int n) {
  extern __shared__ float partial[];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i];
  for (int d = 16; d; d >>= 1) v += __shfl_down_sync(0xffffffff, v, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int w = 0; w < blockDim.x / 32; w++) total += partial[w];
    atomicAdd(y, total);
  }
}
extern "C" __global__ void stuck(float* x) {
  if (threadIdx.x) __syncthreads(); else __syncwarp();
}
extern "C" __global__ void beyond(float* x, int n) { x[n] = 1; }
template <typename T, int K> __global__ void scaled(T* x) {
  __shared__ T seen[K];
  seen[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = seen[K - 1 - threadIdx.x] * T(K) + T(__popc(__ballot_sync(0xffffffff >> (32 - K), threadIdx.x > 0)));
}
"""


@needs_a_compiler
def test_raw_kernels_with_barriers_and_warps(cupy):
    module = cupy.RawModule(code=SUMS, name_expressions=["scaled<float, 4>", "scaled<half, 4>"])
    sums = module.get_function("sums")
    x, y = cupy.ones(100_001, "f"), cupy.zeros(1, "f")
    sums((10,), (256,), (x, y, np.int32(x.size)), shared_mem=32)
    same(y, np.array([100_001], "f"))
    for dtype, name in (("f", "float"), ("e", "half")):
        z = cupy.arange(4).astype(dtype)
        module.get_function(f"scaled<{name}, 4>")((1,), (4,), (z,))
        same(z, np.array([15, 11, 7, 3], dtype))
    with pytest.raises(compiler.Failed, match="argument 2 is of kind 'i' with 8 bytes"):
        sums((1,), (32,), (x, y, 3), shared_mem=4)
    with pytest.raises(compiler.Failed, match="takes 3 arguments, not 2"):
        sums((1,), (32,), (x, y))
    with pytest.raises(compiler.Failed, match="wait for each other"):
        module.get_function("stuck")((1,), (32,), (x,))
    with pytest.raises(AssertionError, match="written behind a block"):
        module.get_function("beyond")((1,), (1,), (y, np.int32(1)))
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="INVALID_VALUE"):
        sums((1,), (2048,), (x, y, np.int32(3)))
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="OUT_OF_RESOURCES"):
        sums((1,), (512,), (x, y, np.int32(3)), shared_mem=64)
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="NOT_FOUND"):
        module.get_function("missing")


def test_blas_by_addresses(cupy):
    from cupy_backends.cuda.libs import cublas

    a, b, out = cupy.random.rand(2, 3, 4), cupy.random.rand(2, 4, 5), cupy.empty((2, 3, 5))
    one, zero = np.ones(1), np.zeros(1)
    # The transposed product in column-major order is the product in row-major order.
    cublas.dgemmStridedBatched(1, 0, 0, 5, 3, 4, one.ctypes.data, b.data.ptr, 5, 20, a.data.ptr, 4, 12,
                               zero.ctypes.data, out.data.ptr, 5, 15, 2)  # fmt: skip
    same(out, a.get() @ b.get())
    half = [x.astype("e") for x in (a[0], b[0], out[0])]
    one, zero = one.astype("f"), zero.astype("f")
    cublas.gemmEx(1, 0, 0, 5, 3, 4, one.ctypes.data, half[1].data.ptr, 2, 5, half[0].data.ptr, 2, 4, zero.ctypes.data,
                  half[2].data.ptr, 2, 5, cublas.CUBLAS_COMPUTE_32F, cublas.CUBLAS_GEMM_DEFAULT)  # fmt: skip
    same(half[2], (half[0].get().astype("f") @ half[1].get().astype("f")).astype("e"), rtol=1e-3)


def test_linear_algebra_looks_at_no_errors(cupy):
    import cupyx

    singular = cupy.zeros((2, 2))
    with cupy_standin.watch() as seen:
        assert np.isnan(cupy.linalg.inv(singular)._a).all()
    assert not seen.synchronizations
    with cupyx.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
        cupy.linalg.inv(singular)


def test_adding_at_indices(cupy):
    x = cupy.zeros(3)
    cupy.add.at(x, cupy.array([0, 0, 4]), 1.0)
    same(x, np.array([2.0, 1.0, 0.0]))
    with pytest.raises(TypeError, match="cupy.add.at only supports int32, int64"):
        cupy.add.at(x.astype("D"), cupy.array([0]), 1)


def test_hooks_are_told_of_memory(cupy):
    class Hook(cupy.cuda.MemoryHook):
        told = []

        def malloc_postprocess(self, *, device_id, size, mem_size, mem_ptr, pmem_id):
            self.told.append(size)

    with Hook():
        cupy.empty(7)
    assert Hook.told == [56]


@needs_a_compiler
def test_what_depends_on_the_order_of_threads_shows(cupy):
    last = cupy.RawKernel('extern "C" __global__ void last(int* x) { x[0] = blockIdx.x; x[1] = threadIdx.x; }', "last")
    seen = set()
    for _ in range(2):
        x = cupy.zeros(2, "i4")
        last((3,), (4,), (x,))
        seen.add(tuple(x.tolist()))
    assert len(seen) == 2


@needs_a_compiler
def test_kernels_in_graphs(cupy):
    x, y, pool, stream = cupy.ones(64, "f"), cupy.zeros(1, "f"), cupy.cuda.MemoryPool(), cupy.cuda.Stream()
    double = cupy.ElementwiseKernel("T x", "T y", "y = 2 * x", "twice")
    sums = cupy.RawKernel(SUMS.partition("template")[0], "sums")
    with stream, cupy.cuda.using_allocator(pool.malloc):
        stream.begin_capture()
        sums((1,), (32,), (double(x), y, np.int32(64)), shared_mem=4)
        double(x, x)
        graph = stream.end_capture()
    assert float(y[0]) == 0
    for expected in (128, 128 + 256):
        graph.launch()
        assert float(y[0]) == expected


# --- The names ---------------------------------------------------------------------------------


def test_it_has_no_names_that_cupy_lacks(cupy):
    for name, recorded in names.MODULES.items():
        module = sys.modules.get(name)
        own = {key for key, value in vars(module or object).items() if not isinstance(value, types.ModuleType)}
        assert {key for key in own if not key.startswith("_")} <= set(recorded) | {"Generator"}, name  # made on demand
    members = {key for key in dir(cupy.ndarray) if not key.startswith("_")}
    assert members <= set(names.CLASSES["cupy.ndarray"])
    assert set(names.CLASSES["cupy.ndarray"]) - members - set(dir(cupy.ndarray)) <= NOT_DONE


# Attributes of CuPy's array for Python 2, and those that return C structures.
NOT_DONE = {
    "__delitem__",
    "__div__",
    "__hex__",
    "__idiv__",
    "__oct__",
    "__ifloordiv__",
    "cstruct",
    "mdspan",
    "__slots__",
}


def test_it_undoes_itself():
    before = {name: sys.modules.get(name) for name in ("cupy", "cupyx.scipy.special")}
    with cupy_standin.installed() as cupy:
        assert sys.modules["cupy"] is cupy and sys.modules["cupy.cuda.runtime"] is cupy.cuda.runtime
        import cupyx.scipy.special

        assert cupyx.scipy.special is sys.modules["cupyx.scipy.special"]
        cupy.cuda.set_allocator(None)
    with cupy_standin.installed() as cupy:
        assert cupy.cuda.get_allocator() == cupy.get_default_memory_pool().malloc
    assert {name: sys.modules.get(name) for name in before} == before


def test_names_match():
    """If the real CuPy is installed, check that the recorded names are up to date."""
    if cupy_library.is_available():
        pytest.skip("with CUDA's libraries more modules of CuPy can be imported than where the names are recorded")
    python = os.environ.get("CUPY_PYTHON", sys.executable)  # in an environment with CuPy
    if python == sys.executable and importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed, and CUPY_PYTHON names no Python that has it")
    path = Path(cupy_standin.__file__).with_name("record_names.py")
    code = f"import runpy; r = runpy.run_path({str(path)!r}); print(r['written'](r['recorded']()), end='')"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    recorded = names.RECORDED
    found = json.loads(found)
    if found["version"] != recorded["version"]:
        pytest.skip(f"recorded of CuPy {recorded['version']}, while CuPy {found['version']} is installed")
    assert not differing(without_bfloat16(found), without_bfloat16(recorded))


def differing(found, recorded, path=""):
    """Differences between two tables: (path, value found, value recorded)."""
    if not (isinstance(found, dict) and isinstance(recorded, dict)):
        return [] if found == recorded else [(path, found, recorded)]
    names = sorted(found.keys() | recorded.keys())
    return [each for n in names for each in differing(found.get(n), recorded.get(n), f"{path} {n}")]


def without_bfloat16(found):
    """Remove the loops that CuPy has only if ml_dtypes is installed."""
    return json.loads(re.sub(r" \w*E\w*->[\w?]+| \w+->\w*E\w*", "", json.dumps(found)))
