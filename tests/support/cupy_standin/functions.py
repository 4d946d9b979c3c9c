"""The functions of `cupy`, `cupy.linalg` and `cupy.fft` that wrap NumPy's."""

import inspect
import math

import numpy as np

from . import compute, names, state

# Functions that only inspect an array or return a view of it, so that no kernel runs.
VIEWS = set(
    """array_split atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to diagonal dsplit expand_dims flip
    fliplr flipud hsplit matrix_transpose moveaxis permute_dims rollaxis rot90 split squeeze swapaxes transpose
    vsplit""".split()
)
# Functions that take no arrays or only query their properties; NumPy's versions are used unchanged.
AS_THEY_ARE = """base_repr binary_repr broadcast_shapes can_cast finfo format_float_positional get_printoptions iinfo
    isdtype isfortran isscalar issubdtype iterable mintypecode ndim set_printoptions printoptions shape size
    iscomplexobj isrealobj typename index_exp s_ may_share_memory shares_memory common_type result_type
    promote_types min_scalar_type""".split()
# Functions whose result size depends on the elements, or that validate elements: CuPy synchronizes.
WAITING = """nonzero flatnonzero argwhere unique unique_all unique_counts unique_inverse unique_values extract compress
    bincount trim_zeros union1d intersect1d setdiff1d setxor1d place fill_diagonal mask_indices nanargmax_ piecewise_
    histogram histogram2d histogramdd digitize gradient_ delete_ ravel_multi_index interp_ array_repr array_str
    array2string putmask_ select_ corrcoef_ nanmedian median_ poly1d roots polyfit_ lexsort_ packbits_""".split()
WAITING = {name for name in WAITING if not name.endswith("_")}
WAITING_LINALG = {"lstsq", "matrix_rank", "cond", "eig", "eigvals"}
# Parameters by these names must be device arrays, because CuPy calls their methods.
ARRAYS = {"a", "x", "arr", "ary", "m", "ar", "filt", "b", "y", "condition", "x1", "x2"}
# Functions that nevertheless accept Python scalars or lists for these parameters.
LENIENT = set(
    """where clip full_like isclose allclose array_equal array_equiv searchsorted interp expand_dims diff append
    isin in1d compress tril_indices triu_indices mask_indices asarray array asanyarray copy indices meshgrid
    digitize outer inner dot tensordot kron polyval percentile quantile nan_to_num corrcoef cov isreal iscomplex
    isneginf isposinf trapezoid column_stack dstack vstack hstack""".split()
)
RENAMED = {"alltrue": "all", "sometrue": "any", "product": "prod", "cumproduct": "cumprod", "in1d": "isin",
           "round_": "round", "trapz": "trapezoid", "row_stack": "vstack", "amax": "max", "amin": "min"}  # fmt: skip


def numpy_call(function, expected):
    """Return a function that maps the arguments of a CuPy call to those of NumPy's `function`."""
    try:
        theirs = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        theirs = None
    ours = list(expected.parameters.values())

    def arguments(args, kwargs):
        bound = expected.bind(*args, **kwargs).arguments
        positional, named, broken = [], {}, False
        for i, parameter in enumerate(ours):
            if parameter.name not in bound:
                broken = True
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(bound[parameter.name])
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(bound[parameter.name])
            elif parameter.kind is parameter.KEYWORD_ONLY or broken:
                name = parameter.name
                if theirs and all(t.name != name for t in theirs) and i < len(theirs):
                    name = theirs[i].name
                named[name] = bound[parameter.name]
            elif theirs and i < len(theirs) and theirs[i].kind is inspect.Parameter.KEYWORD_ONLY:
                named[parameter.name] = bound[parameter.name]
            elif theirs and i and i < len(theirs) and any(t.name == parameter.name for t in theirs[i + 1 :]):
                named[parameter.name], broken = bound[parameter.name], True
            else:
                positional.append(bound[parameter.name])
        return positional, named

    return arguments


def wrapped(module, name, function, *, waits=False):
    """NumPy's `function` with CuPy's parameters and restrictions."""
    text = names.MODULES[module][name]
    text = text if text.startswith("(") else "(*args, **kwargs)"
    expected = names.signature(text)
    arguments = numpy_call(function, expected)
    full = f"{module}.{name}"
    function = without_bfloat16(function) if name == "clip" else function
    must_be_arrays = [p for p in expected.parameters if p in ARRAYS] if name not in LENIENT else []

    def call(*args, **kwargs):
        if must_be_arrays:
            bound = expected.bind(*args, **kwargs).arguments
            for parameter in must_be_arrays:
                value = bound.get(parameter)
                if parameter in bound and value is not None and not isinstance(value, compute.ndarray_class()):
                    raise TypeError(f"{full}(): {parameter} is to be a cupy.ndarray, not {type(value)}")
        positional, named = arguments(args, kwargs)
        if waits:
            state.synchronize(full)
        return compute.run(name, function, positional, named, is_view=name in VIEWS)

    return names.checked(full, text, call)


# --- Functions that differ -----------------------------------------------------------------------

special = {}


def differs(function):
    special[function.__name__.rstrip("_")] = function
    return function


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    if isinstance(a, compute.ndarray_class()):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    if hasattr(a, "__cuda_array_interface__"):
        return asarray(a).get(order=order, out=out)
    result = np.asarray(a, order=order)
    if out is not None:
        np.copyto(out, result)
        return out
    return result


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    ndarray = compute.ndarray_class()
    order = order or "K"
    if isinstance(obj, ndarray):
        dtype = obj.dtype if dtype is None else compute.checked_dtype(dtype)
        here = obj._memory.device_id == state.current_device()
        fits = here and dtype == obj.dtype and obj.ndim >= ndmin
        if order == "C":
            fits = fits and obj.flags.c_contiguous
        elif order == "F":
            fits = fits and obj.flags.f_contiguous
        if fits and not copy:
            return obj
        if copy is False and blocking is None:
            raise ValueError("Unable to avoid copy")
        return compute.run(
            "copy", lambda a: np.array(a, dtype, order=order, ndmin=ndmin, copy=True), [obj], anywhere=True
        )
    if hasattr(obj, "__cuda_array_interface__"):
        return foreign(obj, copy)
    if holds_device_arrays(obj):
        return compute.run("stack", lambda a: np.array(a, dtype, order=order, ndmin=ndmin), [obj])
    host = np.array(obj, dtype, order=order, ndmin=ndmin)
    compute.checked_dtype(host.dtype)
    state.transfer("to device", host.nbytes)
    if blocking:
        state.synchronize("cupy.array(blocking=True)")
    return compute.fresh(host)


def holds_device_arrays(obj):
    if isinstance(obj, compute.ndarray_class()):
        return True
    return isinstance(obj, (list, tuple)) and any(map(holds_device_arrays, obj))


def foreign(obj, copy):
    """Wrap another library's array through `__cuda_array_interface__`."""
    from . import memory

    told = obj.__cuda_array_interface__
    dtype, shape = np.dtype(told["typestr"]), told["shape"]
    strides = told.get("strides") or np.empty(shape, dtype).strides
    size = dtype.itemsize + sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
    mem = memory.UnownedMemory(told["data"][0], size, obj)
    new = compute.ndarray_class()._of(np.ndarray(shape, dtype, mem._bytes, 0, strides), mem)
    return new.copy() if copy else new


def asarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    if copy is False and not (isinstance(a, compute.ndarray_class()) and dtype in (None, a.dtype)):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return array(a, dtype, bool(copy), order or "K", blocking=blocking)


def asanyarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    return asarray(a, dtype, order, copy=copy, blocking=blocking)


def ascontiguousarray(a, dtype=None):
    return array(a, dtype, False, "C", ndmin=1)


def asfortranarray(a, dtype=None):
    return array(a, dtype, False, "F", ndmin=1)


special |= {f.__name__: f for f in (asnumpy, array, asarray, asanyarray, ascontiguousarray, asfortranarray)}


@differs
def empty(shape, dtype=float, order="C"):
    return compute.ndarray_class()(shape, dtype, order=order)


@differs
def empty_like(prototype, dtype=None, order="K", subok=None, shape=None):
    if not isinstance(prototype, compute.ndarray_class()):
        raise TypeError(f"a cupy.ndarray is needed, not {type(prototype)}")
    dtype = compute.checked_dtype(dtype or prototype.dtype)
    if shape is not None:
        compute.refuse_beyond_int64(math.prod(np.atleast_1d(shape).tolist()) * dtype.itemsize)
    like = np.empty_like(prototype._a, dtype, order, shape=shape)
    return compute.allocate(like.shape, like.dtype, like.strides)


def filled(new, value):
    def fill(a):
        a[...] = value

    compute.run("fill", fill, [new])
    return new


def host_value(value):
    """Check a fill value that is no device array, as full() and the like do."""
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


@differs
def zeros(shape, dtype=float, order="C"):
    return filled(empty(shape, dtype, order), 0)


@differs
def ones(shape, dtype=float, order="C"):
    return filled(empty(shape, dtype, order), 1)


@differs
def full(shape, fill_value, dtype=None, order="C"):
    if dtype is None:
        dtype = fill_value.dtype if hasattr(fill_value, "dtype") else np.array(fill_value).dtype
    if isinstance(fill_value, np.ndarray):  # has one element: the only NumPy array that `copyto` accepts
        fill_value = fill_value.item()
    new = empty(shape, dtype, order)
    new[...] = fill_value
    return new


@differs
def zeros_like(a, dtype=None, order="K", subok=None, shape=None):
    return filled(empty_like(a, dtype, order, subok, shape), 0)


@differs
def ones_like(a, dtype=None, order="K", subok=None, shape=None):
    return filled(empty_like(a, dtype, order, subok, shape), 1)


@differs
def full_like(a, fill_value, dtype=None, order="K", subok=None, shape=None):
    new = empty_like(a, dtype, order, subok, shape)
    new[...] = fill_value
    return new


@differs
def arange(start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    for value in (start, stop, step):
        host_value(value)
    compute.refuse_beyond_int64(8 * max(0, (stop - start) / step) if step else 0)
    return compute.run("arange", lambda: np.arange(start, stop, step, dtype), [])


@differs
def where(condition, x=None, y=None):
    if (x is None) != (y is None):
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if x is None:
        return condition.nonzero()
    for value in (condition, x, y):
        if not isinstance(value, (compute.ndarray_class(), bool, int, float, complex, np.generic)):
            raise TypeError(f"Unsupported type {type(value)}")
    return compute.run("where", without_bfloat16(np.where), [condition, x, y])


def without_bfloat16(function):
    """CuPy has no bfloat16 loop for this and so returns float32."""

    def call(*args, **kwargs):
        args = [a.astype(np.float32) if str(getattr(a, "dtype", "")) == "bfloat16" else a for a in args]
        return function(*args, **kwargs)

    return call


@differs
def cumsum(a, axis=None, dtype=None, out=None):
    return scanned(np.cumsum, a, axis, dtype, out)


@differs
def cumprod(a, axis=None, dtype=None, out=None):
    return scanned(np.cumprod, a, axis, dtype, out)


def scanned(function, a, axis, dtype, out):
    if "bfloat16" in (str(a.dtype), str(dtype)):
        raise TypeError(f"CuPy's {function.__name__} does not compile for bfloat16")
    found = compute.run(function.__name__, lambda a: function(a, axis, dtype), [a])
    if out is None:
        return found
    out[...] = found
    return out


@differs
def argmax(a, axis=None, dtype=None, out=None, keepdims=False):
    return index_of(np.argmax, a, axis, dtype, out, keepdims)


@differs
def argmin(a, axis=None, dtype=None, out=None, keepdims=False):
    return index_of(np.argmin, a, axis, dtype, out, keepdims)


def index_of(function, a, axis, dtype, out, keepdims):
    if not isinstance(a, compute.ndarray_class()):
        raise TypeError(f"a cupy.ndarray is needed, not {type(a)}")
    longs = np.longlong  # unlike NumPy's int64 where that is `long`
    found = compute.run(function.__name__, lambda a: np.asarray(function(a, axis, keepdims=keepdims), longs), [a])
    found = found if dtype is None else found.astype(dtype)
    if out is None:
        return found
    out[...] = found
    return out


@differs
def matmul(*args, axes=None, axis=None, keepdims=False, casting="same_kind", dtype=None, signature=None, order="K",
           out=None):  # fmt: skip
    a, b, *rest = args
    out = rest[0] if rest else out
    for x in (a, b):
        if not isinstance(x, compute.ndarray_class()):
            raise TypeError(f"Unsupported type {type(x)}")
        if x.dtype.name == "bfloat16" and max(a.ndim, b.ndim) > 2 and a.size and b.size:
            raise TypeError("data type 'E' not understood")  # CuPy does not multiply stacks of these
    kwargs = {"out": out, "casting": casting}
    if axes is not None:
        kwargs["axes"] = axes
    return compute.run("matmul", products(np.matmul), [a, b], kwargs)


def products(function):
    """Products of bfloat16 arrays are accumulated in float32, as in cuBLAS."""

    def call(*args, out=None, **kwargs):
        if not any(x.dtype.name in ("bfloat16", "float16") for x in args):
            return function(*args, **kwargs) if out is None else function(*args, out=out, **kwargs)
        dtype = np.result_type(*args)
        result = np.asarray(function(*[x.astype(np.result_type(x, np.float32)) for x in args], **kwargs)).astype(dtype)
        if out is None:
            return result
        out[...] = result
        return out

    return call


@differs
def dot(a, b, out=None):
    for x in (a, b):
        if not isinstance(x, compute.ndarray_class()):
            raise TypeError(f"Unsupported type {type(x)}")
    return compute.run("dot", products(np.dot), [a, b], {"out": out})


@differs
def copyto(dst, src, casting="same_kind", where=None):
    ndarray = compute.ndarray_class()
    if not isinstance(dst, ndarray):
        raise TypeError(f"a cupy.ndarray is needed, not {type(dst)}")
    kwargs = {"casting": casting} | ({} if where is None else {"where": where})
    compute.run("copyto", np.copyto, [dst, src], kwargs, anywhere=True)


@differs
def take(a, indices, axis=None, out=None):
    """Out-of-range indices wrap around."""
    if not isinstance(a, compute.ndarray_class()):
        raise TypeError(f"a cupy.ndarray is needed, not {type(a)}")
    if isinstance(indices, (list, np.ndarray)):
        indices = array(indices)

    def wrap(a, i, out):  # NumPy's own implementation is a loop of subtractions
        n = a.size if axis is None else a.shape[axis]
        return np.take(a, np.mod(i, n) if n else i, axis, out=out, mode="wrap")

    return compute.run("take", wrap, [a, indices, out])


@differs
def take_along_axis(a, indices, axis):
    """Out-of-range indices wrap around."""
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")

    def wrap(a, i):
        a, along = (a.ravel(), 0) if axis is None else (a, axis)
        return np.take_along_axis(a, i % max(a.shape[along], 1), along)

    return compute.run("take_along_axis", wrap, [a, indices])


@differs
def put(a, ind, v, mode="wrap"):
    if mode == "raise":
        raise TypeError("CuPy's put() has the modes 'wrap' and 'clip' alone")
    ind = array(ind) if isinstance(ind, (list, np.ndarray, int)) else ind
    v = array(v) if isinstance(v, (list, np.ndarray, int, float)) else v
    compute.run("put", lambda a, i, v: np.put(a, i, v, mode), [a, ind, v])


@differs
def repeat(a, repeats, axis=None):
    if isinstance(repeats, compute.ndarray_class()):
        raise ValueError("CuPy takes the numbers of repeats from the host: an int, a list or a tuple")
    return compute.run("repeat", lambda a: np.repeat(a, repeats, axis), [a])


@differs
def sort(a, axis=-1, kind=None):
    from .array import refuse_kind

    refuse_kind(kind)
    return compute.run("sort", lambda a: np.take_along_axis(a, compute.order(a, axis), axis), [a])


@differs
def argsort(a, axis=-1, kind=None):
    return a.argsort(axis, kind)


@differs
def lexsort(keys):
    if not isinstance(keys, compute.ndarray_class()):
        raise TypeError("CuPy's lexsort() takes one array of keys")
    return compute.run("lexsort", np.lexsort, [keys])


@differs
def real(val):
    return val.real if isinstance(val, compute.ndarray_class()) else np.real(val)


@differs
def imag(val):
    return val.imag if isinstance(val, compute.ndarray_class()) else np.imag(val)


@differs
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    if weights is not None:
        state.synchronize("cupy.average with weights")
    return compute.run("average", lambda a, w: np.average(a, axis, w, returned, keepdims=keepdims), [a, weights])


@differs
def einsum(*operands, **kwargs):
    return compute.run("einsum", products_einsum, list(operands), kwargs)


def products_einsum(subscripts, *operands, **kwargs):
    return products(lambda *a, **k: np.einsum(subscripts, *a, **k))(*operands, **kwargs)


@differs
def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
               interpolation=None):  # fmt: skip
    return quantile_by(np.percentile, a, q, axis, out, method, keepdims)


@differs
def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
             interpolation=None):  # fmt: skip
    return quantile_by(np.quantile, a, q, axis, out, method, keepdims)


def quantile_by(function, a, q, axis, out, method, keepdims):
    if isinstance(q, compute.ndarray_class()):
        state.synchronize(f"cupy.{function.__name__} with an array of q")
    return (
        compute.run(function.__name__, lambda a, q: function(a, q, axis, method=method, keepdims=keepdims), [a, q], {})
        if out is None
        else compute.run(
            function.__name__,
            lambda a, q, out: function(a, q, axis, out, method=method, keepdims=keepdims),
            [a, q, out],
        )
    )


@differs
def get_array_module(*args):
    from .namespace import namespace

    return namespace.cupy if any(isinstance(a, compute.ndarray_class()) for a in args) else np


@differs
def astype(x, dtype, /, *, copy=True, device=None):
    return x.astype(dtype, copy=copy)


@differs
def copy_(a, order="K"):
    return a.copy(order)


@differs
def ravel(a, order="C"):
    if not isinstance(a, compute.ndarray_class()):
        raise TypeError(f"a cupy.ndarray is needed, not {type(a)}")
    flat = a._a.reshape(-1, order=order) if order in "CF" else a._a.ravel(order)
    if compute.lies_in(flat, a._memory):
        return compute.view(flat, a)
    return compute.run("ravel", lambda a: np.ravel(a, order), [a])


@differs
def reshape(a, newshape, order="C", *, copy=None):
    if not isinstance(a, compute.ndarray_class()):
        raise TypeError(f"a cupy.ndarray is needed, not {type(a)}")
    reshaped = a._a.reshape(newshape, order=order)
    is_view = compute.lies_in(reshaped, a._memory) or not reshaped.size
    if copy is False and not is_view:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    if is_view and not copy:
        return compute.view(reshaped, a)
    return compute.run("reshape", lambda a: np.array(a.reshape(newshape, order=order)), [a])


@differs
def around(a, decimals=0, out=None):
    """CuPy has no bfloat16 loop for this and so returns float32."""
    a = a.astype(np.float32) if a.dtype.name == "bfloat16" else a
    return compute.run("round", lambda a, out: np.round(a, decimals, out=out), [a, out])


special["round"] = around


@differs
def isscalar(element):
    return np.isscalar(element)
