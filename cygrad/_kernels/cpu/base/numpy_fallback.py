"""NumPy fallbacks of the compiled kernels, for types without a loop and for memory that is not plain.

With CYGRAD_PURE=1 in the environment, everything uses them. Nothing here warns of overflow or NaN.
"""

import math
import sys
from functools import cmp_to_key, wraps
from typing import Any

import numpy as np

from cygrad._kernels.device import gpu_forms
from cygrad._kernels.device.cupy_library import as_array

_umath: Any = sys.modules.get("numpy._core.umath")
_CAN_IGNORE = hasattr(_umath, "_make_extobj")
_OF_FLOAT8 = frozenset(("absolute", "equal", "isnan", "multiply", "not_equal"))  # PyTorch computes these alone
_TORCH_KERNELS = {
    "add": "add_stub",
    "divide": "div_cpu",
    "exp": "exp_vml_cpu",
    "floor": "floor_vml_cpu",
    "isfinite": "isfinite",
    "isinf": "isinf",
    "less": "lt_cpu",
    "negative": "neg_cpu",
    "sign": "sign_cpu",
    "sqrt": "sqrt_vml_cpu",
    "square": "pow",
    "subtract": "add_stub",
}
_REDUCTIONS = {"add": "sum_cpu", "maximum": "max_values_cpu", "minimum": "min_values_cpu", "multiply": "prod_out_cpu"}
_OPS = {  # PyTorch's kernels of ops that are no ufuncs; None for ops that compute in float8
    "amax": "max_values_cpu",
    "amin": "min_values_cpu",
    "count_nonzero": "nonzero_count_cpu",
    "diag_embed": None,
    "isreal": None,
    "isclose": "mul_cpu_reduced_float",
    "lerp": "lerp_kernel_scalar",
    "linalg_vector_norm": "norm_cpu",
    "max": "max_all",
    "min": "min_all",
    "nan_to_num": "nan_to_num",
    "nonzero": "nonzero_count_cpu",
    "roll": None,
    "softmax": "softmax_lastdim_kernel_impl",
    "trace": "trace",
    "tril": "tril",
    "triu": "triu",
}
_TAKE_EMPTY = frozenset(  # ops whose kernel PyTorch does not call for tensors without elements
    """softmax log_softmax cdist pdist channel_shuffle pixel_shuffle pixel_unshuffle grid_sampler_2d amax amin
    linalg_vecdot""".split()
)
_USER_TYPES = 256  # the first number of types that other packages register
_HANDLING: Any = _umath._extobj_contextvar if _CAN_IGNORE else None


def silent(function, **more):
    """Decorate a function to silence NumPy's warnings, like `np.errstate`, which takes three times as long per call."""
    if not _CAN_IGNORE:
        return np.errstate(all="ignore", **more)(function)
    ignoring = _umath._make_extobj(all="ignore", **more)

    # Bind the state as defaults, not closure variables: free-threaded CPython locks a closure cell on each read, and a
    # process that forks at that moment leaves it locked in its child.
    @wraps(function)
    def silently(*args, _function=function, _ignoring=ignoring, **kwargs):
        before = _HANDLING.set(_ignoring)
        try:
            return _function(*args, **kwargs)
        finally:
            _HANDLING.reset(before)

    return silently


@silent
def call(ufunc, *arrays):
    """Call a ufunc on arrays of any kind. Always returns an array, even where NumPy returns a scalar."""
    given = [as_array(array) for array in arrays]
    if ufunc.__name__ not in _OF_FLOAT8:
        refuse_float8(given[0].dtype, _TORCH_KERNELS.get(ufunc.__name__, f"{ufunc.__name__}_cpu"))
    if any(map(gpu_forms.is_array, given)):
        return gpu_forms.run(ufunc, given, ())
    if ufunc is np.log1p and given[0].dtype.kind == "c":
        return _complex_log1p(given[0])
    return as_array(ufunc(*given))


def _complex_log1p(z):
    """Return log(1 + z), accurate near 0: NumPy's adds 1 first, which leaves nothing of a small real part."""
    shifted = z.astype(np.complex128)
    x, y = shifted.real.copy(), shifted.imag
    shifted.real += 1  # on its own, so that imaginary zeros keep their signs
    found = as_array(np.log(shifted))
    small = np.maximum(np.abs(x), np.abs(y)) < 0.5
    found.real[small] = 0.5 * np.log1p(x * (x + 2) + y * y)[small]  # half the logarithm of |1 + z|^2
    return found.astype(z.dtype)


@silent
def number(value, dtype):
    """A Python number as a 0-dim array in native byte order."""
    array = np.empty((), dtype.newbyteorder("="))
    array[...] = _within_float8(np.asarray(value), dtype) if is_float8(dtype) else value
    return array


def is_float8(dtype):
    """Whether this is one of the types of 8 bits that ml_dtypes registers with NumPy."""
    return dtype.itemsize == 1 and dtype.num >= _USER_TYPES


def refuse_float8(dtype, kernel):
    """Raise NotImplementedError for a type of 8 bits: PyTorch's kernel of that name does not compute in it."""
    if is_float8(dtype):
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{dtype.name.capitalize()}'\n"
            "  numbers of 8 bits are for storage: compute in another type, as in x.float()"
        )


def refuse_op_in_float8(name, array):
    """Raise NotImplementedError if an op is asked to compute in a type of 8 bits, and PyTorch's does not.

    Some of PyTorch's functions call no kernel for tensors without elements.
    """
    kernel = _OPS.get(name, f"{name}_cpu")
    if kernel is not None and (array.size or name not in _TAKE_EMPTY):
        refuse_float8(array.dtype, kernel)


def _within_float8(array, dtype):
    """The numbers that PyTorch rounds to float8: e4m3fn has no infinity and ends at 448, e8m0fnu has no signs."""
    wide = array.astype(np.float32)
    if dtype.name == "float8_e4m3fn":
        wide = np.clip(wide, -448, 448, dtype=np.float32)
    if dtype.name == "float8_e8m0fnu":
        wide = np.maximum(np.abs(wide), np.float32(2.0**-127))
    return as_array(wide)


@silent
def convertible(array, dtype):
    """Prepare an array so that NumPy's conversion to `dtype` matches PyTorch's.

    Takes real parts of complex numbers, and goes through float32 from float64 to float16 and float8.
    """
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    if is_float8(dtype):
        return _within_float8(array, dtype)
    return array.astype(np.float32) if dtype == np.float16 and array.dtype == np.float64 else array


@silent
def cast(array, dtype):
    """Convert to another type in the same memory order; complex numbers to their real part, without the warning."""
    array = convertible(as_array(array), dtype)
    return array.astype(dtype, order="C" if 0 in array.strides else "K")  # expanded arrays in C order


@silent
def reduce(ufunc, array, axes, out):
    """Reduce over `axes` in the type of `out` and write to it; `out` may keep the axes with size 1."""
    if ufunc.__name__ in _REDUCTIONS and array.size:
        refuse_float8(out.dtype, _REDUCTIONS[ufunc.__name__])
    result = ufunc.reduce(as_array(array), axis=axes, dtype=out.dtype)
    out[...] = np.reshape(result, out.shape)
    return out


# --- Neural networks: softmax.pyx and activations.pyx document the formulas --


@silent
def softmax(array, axis):
    if array.size == 0 or array.ndim == 0:
        return np.ones_like(array)
    exps = np.exp(array - array.max(axis, keepdims=True))
    return exps / exps.sum(axis, keepdims=True)


@silent
def log_softmax(array, axis):
    if array.size == 0 or array.ndim == 0:
        return np.zeros_like(array)
    distance = array - array.max(axis, keepdims=True)
    return distance - np.log(np.exp(distance).sum(axis, keepdims=True))


@silent
def softmax_backward(grad, out, axis):
    products = grad * out
    total = products.sum(axis, keepdims=True) if grad.ndim else products
    return as_array((grad - total) * out)


@silent
def log_softmax_backward(grad, out, axis):
    total = grad.sum(axis, keepdims=True) if grad.ndim else grad
    return as_array(grad - np.exp(out) * total)


def threshold_backward(grad, out):
    return np.where(as_array(out) <= 0, grad.dtype.type(0), as_array(grad))


@silent
def tanh_backward(grad, out):
    return as_array(grad * (1 - out * out).conj())


@silent
def sigmoid_backward(grad, out):
    return as_array(grad * ((1 - out) * out).conj())


@silent
def sigmoid(array):
    return as_array(1 / (1 + np.exp(-array)))


@silent
def silu(a):
    return as_array(a * sigmoid(a))


@silent
def silu_backward(grad, a):
    s = sigmoid(a)
    return as_array(grad * (s * (1 + a * (1 - s))).conj())


def tanh_of_softplus(a):
    """n / (n + 2) for n = e^a (e^a + 2); 1 beyond a = 20."""
    n = np.exp(np.minimum(a, a.dtype.type(20)))
    n = n * (n + 2)
    return n / (n + 2)


@silent
def mish(a):
    return as_array(a * tanh_of_softplus(a))


@silent
def mish_backward(grad, a):
    t = tanh_of_softplus(a)
    return as_array(grad * (t + a * sigmoid(a) * (1 - t * t)))


def normal_distribution(a):
    """The standard normal cumulative distribution function."""
    out = np.empty_like(a, a.dtype.newbyteorder("="))
    out.flat = [0.5 * math.erfc(-x * math.sqrt(0.5)) for x in a.flat]
    return out


@silent
def gelu(a):
    return as_array(a * normal_distribution(a))


@silent
def gelu_backward(grad, a):
    density = np.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    return as_array(grad * (normal_distribution(a) + a * density))


def logistic_part(a):
    """(the factor of `gelu_tanh`, sigmoid(2 * u); the derivative of 2 * u)."""
    scale = a.dtype.type(math.sqrt(8 / math.pi))
    cubic = a.dtype.type(0.044715)
    return sigmoid(a * scale * (1 + cubic * a * a)), scale * (1 + 3 * cubic * a * a)


@silent
def gelu_tanh(a):
    return as_array(a * logistic_part(a)[0])


@silent
def gelu_tanh_backward(grad, a):
    s = logistic_part(a)[0]
    slope = logistic_part(np.clip(a, -30, 30))[1]  # beyond that s is 0 or 1
    return as_array(grad * (s + a * s * (1 - s) * slope))


# --- Optimizers: optim.pyx documents the formulas --


def stepping_in_float32(step):
    """Decorate a step on arrays, so that half precision is widened for it: in float16 the usual `eps` is 0.

    The gradient, which is the second array, is left alone.
    """

    @wraps(step)
    def run(param, grad, *state):
        if param.itemsize != 2:
            step(param, grad, *state)
            return
        *arrays, settings = param, grad, *state
        wide = [None if a is None else a.astype(np.float32) for a in arrays]
        step(*wide, settings)
        for i, (array, found) in enumerate(zip(arrays, wide)):
            if found is not None and i != 1:
                array[...] = found.astype(array.dtype)

    return run


@silent
@stepping_in_float32
def sgd(param, grad, buffer, settings):
    """`buffer` is None without momentum."""
    change = settings["sign"] * grad + settings["weight_decay"] * param
    if buffer is not None:
        buffer[...] = settings["momentum"] * buffer + settings["taken"] * change
        change = change + settings["momentum"] * buffer if settings["nesterov"] else buffer
    param -= settings["lr"] * change


@silent
@stepping_in_float32
def adam(param, grad, mean, square, largest, settings):
    """`largest` is None without amsgrad."""
    param *= settings["shrink"]
    change = settings["sign"] * grad + settings["weight_decay"] * param
    mean += (change - mean) * settings["gain1"]
    square *= settings["beta2"]
    square += settings["gain2"] * change * change
    if largest is not None:
        np.maximum(largest, square, out=largest)
        square = largest
    param -= settings["step_size"] * mean / (np.sqrt(square) / settings["root_of_correction"] + settings["eps"])


BYTES = 1 << 15  # one-byte elements added at a time in int32, which cannot overflow


def sum_of_narrow_integers(a, axes, keepdim):
    """Sum many bools or narrow integers in int64, without converting all of them at once."""
    from cygrad._kernels.cpu.base.arrays import cast  # which imports this module
    from cygrad._kernels.cpu.base.reduce import sum as sum_of_array  # likewise

    if a.dtype == bool and axes is None and not keepdim:
        return np.asarray(np.count_nonzero(a))
    step = BYTES * len(a) // a.size
    if a.itemsize > 1 or not step:
        return np.asarray(np.sum(a, axes, keepdims=keepdim), np.int64)
    kind = np.dtype(np.int32).num
    parts = (cast(a[start : start + step], kind) for start in range(0, len(a), step))
    sums = [sum_of_array(part, axes, keepdim, kind).astype(np.int64) for part in parts]
    if len(sums) > 1 and (axes is None or 0 in axes or -a.ndim in axes):
        return np.asarray(np.add.reduce(sums, 0))
    return sums[0] if len(sums) == 1 else np.concatenate(sums)


def where(condition, a, b):
    """Like `np.where`, but in the memory order of the first array that determines one; NumPy would use index order."""
    if all(array.flags.c_contiguous for array in (condition, a, b)):
        return np.where(condition, a, b)
    arrays = np.broadcast_arrays(condition, a, b)
    order = order_in_memory(arrays)
    back = sorted(range(len(order)), key=order.__getitem__)
    return np.where(*(array.transpose(order) for array in arrays)).transpose(back)


def order_in_memory(arrays):
    """Sort the dimensions of arrays of one shape by decreasing stride; earlier arrays take precedence."""
    shape = arrays[0].shape

    def compare(i, j):
        for array in arrays:
            one, other = abs(array.strides[i]), abs(array.strides[j])
            if one and other and (one, shape[j]) != (other, shape[i]):
                return other - one or shape[i] - shape[j]
        return 0

    return sorted(range(len(shape)), key=cmp_to_key(compare))
