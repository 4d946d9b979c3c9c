"""NumPy's functions on tensors: `np.sum(t)`, `np.concatenate([array, t])`, `np.linalg.norm(t)` are recorded ops.

Each takes NumPy's arguments, in NumPy's order and with its defaults, and calls cygrad's functions, so that gradients
flow through. Results are tensors; dtypes are promoted by cygrad's rules. Functions that only query (`np.shape`) accept
any tensor. All others are computed by NumPy on the tensors' arrays, which raises PyTorch's error for tensors that
require grad.
"""

import numpy as np

from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import facts, publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import as_dtype
from cygrad._ops.numpy_api import (  # noqa: F401  they register their functions
    products,
    reductions,
    shapes,
)
from cygrad._ops.numpy_api.operands import (
    FUNCTIONS,
    as_tensor,
    common,
    convert,
    deliver,
    given,
    means,
    operand,
    public,
    typed,
)
from cygrad._ops.numpy_api.ufuncs import call

# -- choosing --


@means("where")
def where(condition, /, *choices):
    if not choices:
        return nonzero(condition)
    x, y = (operand(value) for value in choices)
    mask = as_tensor(condition)
    return public("where")(mask if str(mask.dtype) == "torch.bool" else mask != 0, x, y)


@means("nonzero")
def nonzero(a):
    return public("nonzero")(as_tensor(a), as_tuple=True)


@means("clip")
def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None, dtype=None, **options):
    t = as_tensor(a)
    low, high = (given(a_min, None) if min is None else min), (given(a_max, None) if max is None else max)
    for bound, ufunc in ((low, np.maximum), (high, np.minimum)):
        if given(bound, None) is not None:
            t = call(ufunc, t, bound)
    return deliver(typed(t, dtype), out)


@facts(devices="together")
@means("take")
def take(a, indices, axis=None, out=None, mode="raise"):
    t, index = as_tensor(a), as_tensor(indices)
    t, axis = (t.reshape(-1), 0) if axis is None else (t, axis)
    length = t.shape[axis]
    if mode == "wrap":
        index = index % length
    elif mode == "clip":
        index = index.clamp(0, length - 1)
    return deliver(t[(slice(None),) * (axis % t.ndim) + (index,)], out)


@means("take_along_axis")
def take_along_axis(arr, indices, axis=-1):
    t, index = as_tensor(arr), as_tensor(indices)
    t, axis = (t.reshape(-1), 0) if axis is None else (t, axis % t.ndim)
    shape = np.broadcast_shapes(*(tuple(v.shape[:axis]) + (1,) + tuple(v.shape[axis + 1 :]) for v in (t, index)))
    index = index.expand([*shape[:axis], index.shape[axis], *shape[axis + 1 :]])
    index = index + (index < 0) * t.shape[axis]
    return public("gather")(t.expand([*shape[:axis], t.shape[axis], *shape[axis + 1 :]]), axis, index)


@means("sort")
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    t = as_tensor(a)
    return public("sort")(*((t.reshape(-1), 0) if axis is None else (t, axis)))[0]


@means("argsort")
def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    t = as_tensor(a)
    return public("sort")(*((t.reshape(-1), 0) if axis is None else (t, axis)), stable=True)[1]


@means("select")
def select_(condlist, choicelist, default=0):
    result = operand(default)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = where(condition, choice, result)
    return result


@means("compress")
def compress(condition, a, axis=None, out=None):
    return take(a, np.flatnonzero(convert(condition)), axis, out)


@means("extract")
def extract(condition, arr):
    return as_tensor(arr).reshape(-1)[as_tensor(np.flatnonzero(convert(condition)))]


@means("argwhere")
def argwhere(a):
    return public("nonzero")(as_tensor(a))


@means("flatnonzero")
def flatnonzero(a):
    return public("nonzero")(as_tensor(a).reshape(-1)).reshape(-1)


@facts(devices="together")
@means("searchsorted")
def searchsorted(a, v, side="left", sorter=None):
    a, v = common(a, v)
    return public("searchsorted")(a, v, side=side, sorter=None if sorter is None else as_tensor(sorter))


# -- in place: tensors are modified as NumPy modifies arrays, and their version is incremented --


@means("copyto")
def copyto(dst, src, casting="same_kind", where=True):
    if isinstance(dst, Tensor):
        deliver(as_tensor(src).to(dst.dtype), dst, where)
    else:
        np.copyto(dst, convert(src), casting, convert(where))


@means("fill_diagonal")
def fill_diagonal(a, val, wrap=False):
    if not isinstance(a, Tensor):
        return np.fill_diagonal(a, convert(val), wrap)
    if wrap or np.ndim(val):
        raise TypeError("fill_diagonal() of a tensor takes a number and no `wrap`")
    at_places(a, np.arange(min(a.shape)), val, lambda i: (i,) * a.ndim)


@facts(devices="together")
@means("put")
def put(a, ind, v, mode="raise"):
    if not isinstance(a, Tensor):
        return np.put(a, convert(ind), convert(v), mode)
    if mode != "raise":
        raise TypeError("put() into a tensor takes no `mode`")
    places = np.asarray(convert(ind)).reshape(-1)
    count = a.numel()
    if places.size and not -count <= places.min() <= places.max() < count:
        raise IndexError(f"index out of bounds for size {count}")
    values = as_tensor(v).reshape(-1)
    repeated = values[as_tensor(np.arange(len(places)) % max(len(values), 1))]
    at_places(a, places % max(count, 1), repeated, lambda i: np.unravel_index(i, tuple(a.shape)))


@means("putmask", "place")
def putmask(a, mask, values):
    if not isinstance(a, Tensor):
        return np.putmask(a, convert(mask), convert(values))
    places = np.flatnonzero(convert(mask))
    values = as_tensor(values).reshape(-1)
    repeated = values[as_tensor(places % max(len(values), 1))]
    at_places(a, places, repeated, lambda i: np.unravel_index(i, tuple(a.shape)))


def at_places(a, places, values, index_of):
    """Write values into a tensor at flat positions; `index_of` converts these to an index."""
    a[tuple(map(as_tensor, index_of(places)))] = values.to(a.dtype) if isinstance(values, Tensor) else values


# -- elementwise --


@means("round", "around")
def round_(a, decimals=0, out=None):
    return deliver(public("round")(as_tensor(a), decimals=decimals), out)


@means("nan_to_num")
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    t = as_tensor(x)
    return public("nan_to_num")(t, nan, posinf, neginf) if copy else t.nan_to_num_(nan, posinf, neginf)


@means("fix")
def fix(x, out=None):
    return call(np.trunc, x, out=out)


@means("astype")
def astype(x, dtype, /, *, copy=True, device=None):
    return as_tensor(x).to(as_dtype(dtype), copy=copy)


@means("angle")
def angle(z, deg=False):
    result = public("angle")(as_tensor(z))
    return public("rad2deg")(result) if deg else result


@means("isclose")
def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return public("isclose")(*common(a, b), rtol, atol, equal_nan)


@means("allclose")
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


@means("diff")
def diff(a, n=1, axis=-1, prepend=np._NoValue, append=np._NoValue):
    t = as_tensor(a)
    ends = []
    for end in (prepend, append):
        end = given(end, None)
        if end is not None and np.ndim(end) == 0:
            end = as_tensor(end).to(t.dtype).expand([1 if dim == axis % t.ndim else n for dim, n in enumerate(t.shape)])
        ends.append(None if end is None else as_tensor(end))
    return public("diff")(t, n, axis, *ends)


@means("trapezoid")
def trapezoid(y, x=None, dx=1.0, axis=-1):
    if x is not None:
        return public("trapezoid")(as_tensor(y), as_tensor(x), dim=axis)
    return public("trapezoid")(as_tensor(y), dx=dx, dim=axis)


# -- constructors in the shape of another --


def like(name):
    def function(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
        if shape is not None:
            return public(name.removesuffix("_like"))(shape, dtype=as_tensor(a).dtype if dtype is None else dtype)
        return public(name)(as_tensor(a), dtype=None if dtype is None else as_dtype(dtype))

    return function


for _name in ("zeros_like", "ones_like", "empty_like"):
    means(_name)(like(_name))


@means("full_like")
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    t = as_tensor(a)
    kind = t.dtype if dtype is None else as_dtype(dtype)
    return public("full")(t.shape if shape is None else shape, fill_value, dtype=kind)


# -- queries, allowed for tensors that require grad --


def asking(function):
    def ask(*args, **kwargs):
        return function(*map(without_history, args), **kwargs)

    return ask


def without_history(value):
    return array_of(value) if isinstance(value, Tensor) else value


for _name in (
    *("shape", "ndim", "size", "iscomplexobj", "isrealobj", "may_share_memory", "shares_memory", "can_cast"),
    *("result_type", "min_scalar_type", "common_type", "array_repr", "array_str", "array2string", "array_equal"),
):
    means(_name)(asking(getattr(np, _name)))


# -- the protocol --


def array_function(self, func, types, args, kwargs):
    """Implement `__array_function__`, which NumPy calls for its functions on tensors.

    >>> import cygrad, numpy
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> numpy.concatenate([numpy.zeros(1), x]).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types):
        return NotImplemented
    meant = FUNCTIONS.get(func)
    if meant is None:
        return func(*convert(tuple(args)), **convert(kwargs))
    return meant(*args, **kwargs)


def to_numpy(self):
    """Return `self.numpy()`: Matplotlib, pandas and others call this name, and treat objects without it as lists.

    >>> import cygrad
    >>> cygrad.arange(2).to_numpy()
    array([0, 1])
    """
    return self.numpy()


methods = {"__array_function__": array_function, "to_numpy": to_numpy}
functions = publish(globals())
