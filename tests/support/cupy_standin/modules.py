"""The module objects `cupy`, `cupy.cuda`, `cupyx` and so on, with the same names as the real ones."""

import contextlib
import functools as tools
import importlib
import inspect
import types
import warnings

import numpy as np

from . import blas, compute, cufft, devices, dlpack, functions, memory, names, randomness, raw, state, ufuncs
from .array import ndarray
from .kernels import ElementwiseKernel, ReductionKernel
from .namespace import namespace
from .raw import RawKernel, RawModule


class Module(types.ModuleType):
    """A module with the real one's names; functions that the stand-in lacks raise when called."""

    def __init__(self, name, contents):
        super().__init__(name)
        self.__path__ = []
        for key, value in contents.items():
            setattr(self, key, value)

    def __getattr__(self, key):
        recorded = names.MODULES.get(self.__name__, {})
        if key in recorded and isinstance(recorded[key], (dict, str)) and recorded[key] not in ("module", "value"):
            return names.lacking(f"{self.__name__}.{key}")
        raise AttributeError(f"module '{self.__name__}' has no attribute '{key}'")


def gathered(module, *sources, waits=()):
    """The contents of a CuPy `module`, each name from the first of `sources` that defines it."""
    contents = {}
    for name, recorded in names.MODULES[module].items():
        if name in AS_IN_CUPY.get(module, ()):
            continue
        theirs = functions.RENAMED.get(name, name)
        found = next((getattr(source, theirs) for source in sources if hasattr(source, theirs)), None)
        if found is None:
            continue
        if isinstance(recorded, dict):
            if module == "cupy.random":
                continue
            contents[name] = ufuncs.made(module, name, found)
        elif recorded.startswith("(") or recorded == "function":
            contents[name] = functions.wrapped(module, name, found, waits=name in waits)
        elif name in MADE_BY_INDEXING:
            contents[name] = MadeByIndexing(name, found)
        elif recorded in ("class", "value") and not isinstance(found, types.ModuleType):
            contents[name] = found
    return contents


class MadeByIndexing:
    """`r_`, `mgrid` and the like."""

    def __init__(self, name, maker):
        self._name, self._maker = name, maker

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        return compute.run(self._name, lambda *key: self._maker[key[0] if len(key) == 1 else key], key)


MADE_BY_INDEXING = ("r_", "c_", "mgrid", "ogrid")
AS_IN_CUPY = {"cupy": {"bool", "random", "linalg", "fft", "cuda"}}
CONSTANTS = {"NINF": -np.inf, "PINF": np.inf, "Inf": np.inf, "Infinity": np.inf, "infty": np.inf, "NaN": np.nan,
             "NAN": np.nan, "NZERO": -0.0, "PZERO": 0.0, "bool": np.bool_, "float_": np.float64,
             "complex_": np.complex128}  # fmt: skip


def own(module, contents):
    """The stand-in's own functions, checked against the real ones' parameters."""
    recorded = names.MODULES[module]
    result = {}
    for name, function in contents.items():
        text = recorded[name]
        is_checked = isinstance(text, str) and text.startswith("(")
        result[name] = names.checked(f"{module}.{name}", text, function) if is_checked else function
    return result


def made_cupy():
    contents = gathered("cupy", np, waits=functions.WAITING)
    contents |= {name: getattr(np, name) for name in functions.AS_THEY_ARE if name in names.MODULES["cupy"]}
    for name in ("promote_types", "result_type", "common_type", "can_cast", "shape", "ndim", "size", "isfortran",
                 "may_share_memory", "shares_memory", "iscomplexobj", "isrealobj"):  # fmt: skip
        contents[name] = asking(getattr(np, name))
    contents |= own("cupy", functions.special)
    contents |= CONSTANTS
    contents |= {
        "ndarray": ndarray,
        "ufunc": ufuncs.ufunc,
        "ElementwiseKernel": ElementwiseKernel,
        "ReductionKernel": ReductionKernel,
        "RawKernel": RawKernel,
        "RawModule": RawModule,
        "from_dlpack": dlpack.array_from,
        "fromDlpack": dlpack.array_from,
        "is_available": lambda: True,
        "get_default_memory_pool": memory.get_default_memory_pool,
        "get_default_pinned_memory_pool": memory.get_default_pinned_memory_pool,
        "clear_memo": lambda: None,
        "memoize": memoize,
        "__version__": names.RECORDED["version"],
    }
    return Module("cupy", contents)


def memoize(for_each_device=False):
    def decorated(function):
        cached = tools.cache(lambda device, *args, **kwargs: function(*args, **kwargs))
        return lambda *args, **kwargs: cached(state.current_device() if for_each_device else None, *args, **kwargs)

    return decorated


def asking(function):
    """A function that queries properties of arrays without a kernel."""

    def call(*args, **kwargs):
        found = compute.Arguments()
        return function(*[found.host(value, "") for value in args], **kwargs)

    return call


# --- cupy.cuda ---------------------------------------------------------------------------------


def made_cuda():
    runtime = Module("cupy.cuda.runtime", {name: getattr(devices, name) for name in devices.RUNTIME})
    runtime.CUDARuntimeError = state.CUDARuntimeError
    runtime.is_hip = False
    runtime.streamCaptureModeGlobal, runtime.streamCaptureModeThreadLocal, runtime.streamCaptureModeRelaxed = 0, 1, 2
    ranges = []
    nvtx = Module(
        "cupy.cuda.nvtx",
        {
            "available": True,
            "RangePush": lambda message, id_color=-1: ranges.append(message),
            "RangePop": lambda: ranges.pop(),
            "Mark": lambda message, id_color=-1: None,
        },
    )
    nvtx._ranges = ranges
    contents = {name: getattr(devices, name) for name in ("Device", "Stream", "ExternalStream", "Event", "Graph")}
    contents |= {name: getattr(devices, name) for name in ("get_current_stream", "get_elapsed_time")}
    of_memory = """BaseMemory Memory MemoryHook MemoryPointer MemoryPool PinnedMemoryPool
        UnownedMemory alloc alloc_pinned_memory get_allocator malloc_async set_allocator using_allocator""".split()
    contents |= {name: getattr(memory, name) for name in of_memory}
    contents |= {
        "Function": raw.Function,
        "is_available": lambda: True,
        "get_device_id": state.current_device,
        "get_cublas_handle": lambda: 1,
        "get_local_runtime_version": devices.runtimeGetVersion,
        "set_pinned_memory_allocator": lambda allocator=None: None,
        "runtime": runtime,
        "nvtx": nvtx,
        "profiler": Module("cupy.cuda.profiler", {"start": lambda: None, "stop": lambda: None}),
        "memory": Module("cupy.cuda.memory", {n: getattr(memory, n) for n in [*of_memory, "OutOfMemoryError"]
                                              if n in names.MODULES["cupy.cuda.memory"]}
                         | {"CUDARuntimeError": state.CUDARuntimeError, "PooledMemory": memory.PooledMemory}),
        "pinned_memory": Module("cupy.cuda.pinned_memory", {
            n: getattr(memory, n) for n in names.MODULES["cupy.cuda.pinned_memory"] if hasattr(memory, n)}),
        "stream": Module("cupy.cuda.stream", {n: contents[n] for n in contents
                                              if n in names.MODULES["cupy.cuda.stream"]}),
        "device": Module("cupy.cuda.device", {"Device": devices.Device, "get_device_id": state.current_device,
                                              "get_compute_capability": lambda: "90"}),
        "function": Module("cupy.cuda.function", {"Function": raw.Function}),
        "cufft": Module("cupy.cuda.cufft", {n: getattr(cufft, n) for n in names.MODULES["cupy.cuda.cufft"]
                                            if hasattr(cufft, n) and n != "memory"}),
        "memory_hook": Module("cupy.cuda.memory_hook", {"MemoryHook": memory.MemoryHook}),
        "graph": Module("cupy.cuda.graph", {"Graph": devices.Graph}),
    }  # fmt: skip
    return Module("cupy.cuda", contents)


# --- cupyx -------------------------------------------------------------------------------------


@contextlib.contextmanager
def allow_synchronize(allow):
    before = getattr(state.local, "may_synchronize", True)
    state.local.may_synchronize = allow
    try:
        yield
    finally:
        state.local.may_synchronize = before


def pinned(shape, dtype=float, order="C"):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, memory.alloc_pinned_memory(max(size, 1)), order=order)


def pinned_like(a, dtype=None, order="K", subok=None, shape=None):
    return pinned(a.shape if shape is None else shape, dtype or a.dtype, "C" if order == "K" else order)


def with_zeros(make):
    def zeros(*args, **kwargs):
        array = make(*args, **kwargs)
        array[...] = 0
        return array

    return zeros


errors = {"divide": None, "over": None, "under": None, "invalid": None, "linalg": "ignore"}


def seterr(*, divide=None, over=None, under=None, invalid=None, linalg=None):
    if not divide is over is under is invalid is None:
        raise NotImplementedError()
    before = dict(errors)
    errors["linalg"] = linalg or errors["linalg"]
    return before


@contextlib.contextmanager
def errstate(*, linalg=None, **kwargs):
    before = seterr(linalg=linalg, **kwargs)
    try:
        yield
    finally:
        seterr(**before)


def rsqrt(x):
    return 1 / np.sqrt(x)


def made_cupyx():
    def scatter(name):
        return lambda a, slices, value: getattr(a, name)(slices, value)

    contents = {
        "rsqrt": ufuncs.made("cupyx", "rsqrt", rsqrt),
        "scatter_add": scatter("scatter_add"),
        "scatter_max": scatter("scatter_max"),
        "scatter_min": scatter("scatter_min"),
        "empty_pinned": pinned,
        "empty_like_pinned": pinned_like,
        "zeros_pinned": with_zeros(pinned),
        "zeros_like_pinned": with_zeros(pinned_like),
        "allow_synchronize": allow_synchronize,
        "DeviceSynchronized": state.DeviceSynchronized,
        "errstate": errstate,
        "seterr": seterr,
        "geterr": lambda: dict(errors),
    }
    cupyx = Module("cupyx", own("cupyx", contents))
    cupyx.scipy = Module("cupyx.scipy", {"get_array_module": functions.get_array_module})
    for part in ("special", "linalg", "fft"):
        name = f"cupyx.scipy.{part}"
        try:
            sources = [importlib.import_module(f"scipy.{part}"), np]
        except ImportError:  # SciPy is optional; without it, these names raise when called
            sources = []
        setattr(cupyx.scipy, part, Module(name, gathered(name, *sources)))
    return cupyx


# --- The rest ----------------------------------------------------------------------------------


def of_aligned(transform):
    """A transform of real numbers; cuFFT reads them in pairs, which must lie at multiples of their size."""

    @tools.wraps(transform)
    def call(a, *args, **kwargs):
        if a.flags.c_contiguous and a.size and a.data.ptr % (2 * a.dtype.itemsize):
            raise RuntimeError("CUFFT_INVALID_VALUE: the stand-in's cuFFT takes no such address")
        return transform(a, *args, **kwargs)

    return call


def as_strided(x, shape=None, strides=None):
    found = np.lib.stride_tricks.as_strided(x._a, shape, strides)
    return compute.view(found, x)


def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    if writeable:
        raise NotImplementedError("Writeable views are not supported.")
    return compute.view(np.lib.stride_tricks.sliding_window_view(x._a, window_shape, axis), x)


def made_lib():
    tricks = {"as_strided": as_strided, "sliding_window_view": sliding_window_view}
    tricks = Module("cupy.lib.stride_tricks", own("cupy.lib.stride_tricks", tricks))
    return Module("cupy.lib", {"stride_tricks": tricks})


def made_core():
    """The part of CuPy's core that sets how matrix products are computed."""
    types: dict = {}
    core = Module("cupy._core", {})
    core.set_compute_type = lambda dtype, compute_type: types.update({np.dtype(dtype): compute_type})
    core.get_compute_type = lambda dtype: types.get(np.dtype(dtype), 0)
    linalg = {
        f"COMPUTE_TYPE_{name}": i for i, name in enumerate("TBD DEFAULT PEDANTIC FP16 FP32 FP64 BF16 TF32".split())
    }
    core._routines_linalg = Module("cupy._core._routines_linalg", linalg)
    core._routines_linalg.set_compute_type = core.set_compute_type
    core._routines_linalg.get_compute_type = core.get_compute_type
    return core


def made_backends():
    """`cupy_backends` with cuBLAS taking addresses."""
    parts = "cupy_backends cupy_backends.cuda cupy_backends.cuda.libs cupy_backends.cuda.libs.cublas".split()
    modules = [Module(name, {}) for name in parts]
    for outer, inner in zip(modules, modules[1:]):
        setattr(outer, inner.__name__.rpartition(".")[2], inner)
    vars(modules[-1]).update(blas.BY_ADDRESSES)
    return modules[0]


def unchecked(name, function):
    """A function of `cupy.linalg` that does not check for singular matrices while `cupyx.errstate` disables the check;
    it then returns meaningless numbers.
    """

    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except np.linalg.LinAlgError:
            if errors["linalg"] == "raise":
                raise
            shape = args[0].shape if name != "solve" else args[1].shape
            return np.full(shape, np.nan, np.result_type(args[0].dtype, np.float32))

    call.__signature__ = inspect.signature(function)

    def waiting(*args, **kwargs):
        if errors["linalg"] == "raise":
            state.synchronize(f"cupy.linalg.{name}")
        return wrapped(*args, **kwargs)

    wrapped = functions.wrapped("cupy.linalg", name, call)
    return names.checked(f"cupy.linalg.{name}", names.MODULES["cupy.linalg"][name], waiting)


@tools.cache
def all_modules():
    """The modules by name, created once, so that references kept by a program stay valid when installed again."""
    cupy = made_cupy()
    namespace.cupy = cupy
    cupy.__file__ = __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cupy.cuda = made_cuda()
        cupy.linalg = Module("cupy.linalg", gathered("cupy.linalg", np.linalg, np, waits=functions.WAITING_LINALG))
        cupy.fft = Module("cupy.fft", gathered("cupy.fft", np.fft))
        for name in ("rfft", "rfft2", "rfftn"):
            setattr(cupy.fft, name, of_aligned(getattr(cupy.fft, name)))
        cupy.random = Module("cupy.random", randomness.contents())
        cupy.cublas = Module("cupy.cublas", own("cupy.cublas", blas.BY_ARRAYS))
        cupy.exceptions = np.exceptions
        cupy.lib = made_lib()
        cupy._core = made_core()
        backends = made_backends()
        cupy.cuda.cublas = backends.cuda.libs.cublas
        cupyx = made_cupyx()
    cupy.linalg.matmul = cupy.matmul
    for name in ("cholesky", "inv", "solve"):
        setattr(cupy.linalg, name, unchecked(name, getattr(np.linalg, name)))
    found = {}

    def enter(module):
        found[module.__name__] = module
        for child in list(vars(module).values()):
            if isinstance(child, Module) and child.__name__ not in found:
                enter(child)

    for module in (cupy, cupyx, backends):
        enter(module)
    return found
