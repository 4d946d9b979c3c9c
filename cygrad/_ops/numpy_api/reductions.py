"""NumPy's reductions, scans and quantiles on tensors; see functions.py."""

import numpy as np

from cygrad._core.types.dtypes import as_dtype
from cygrad._ops.numpy_api.operands import FUNCTIONS, as_tensor, deliver, dims_of, given, means, public, select, typed
from cygrad._ops.numpy_api.ufuncs import reduce_

# -- reductions --


def reduction(ufunc):
    def function(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True):
        return reduce_(ufunc, a, axis, dtype, out, given(keepdims), given(initial, None), given(where, True))

    return function


def extremum(ufunc):
    def function(a, axis=None, out=None, keepdims=False, initial=None, where=True):
        return reduce_(ufunc, a, axis, None, out, given(keepdims), given(initial, None), given(where, True))

    return function


def question(ufunc):
    def function(a, axis=None, out=None, keepdims=False, *, where=True):
        return reduce_(ufunc, a, axis, None, out, given(keepdims), None, given(where, True))

    return function


means("sum")(reduction(np.add))
means("prod")(reduction(np.multiply))
means("amax", "max")(extremum(np.maximum))
means("amin", "min")(extremum(np.minimum))
means("all")(question(np.logical_and))
means("any")(question(np.logical_or))


def masked(a, where, fill):
    t = as_tensor(a)
    return t if given(where, True) is True else select(where, t, fill)


def inexact(a, dtype):
    """Convert to a tensor of this dtype, and integers to floating point."""
    t = typed(as_tensor(a), dtype)
    return t if t.dtype.is_floating_point or t.is_complex() else t * 1.0


@means("mean")
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    t = inexact(a, dtype)
    if given(where, True) is True:
        return deliver(t.mean(dims_of(axis, t), given(keepdims)), out)
    total = reduce_(np.add, t, axis, None, None, given(keepdims), None, where)
    return deliver(total / reduce_(np.add, as_tensor(where).expand(t.shape), axis, keepdims=given(keepdims)), out)


def spread(name):
    def function(
        a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=np._NoValue
    ):
        t = inexact(a, dtype)
        if given(where, None) not in (None, True):
            raise TypeError(f"{name}() of a tensor takes no `where`")
        dims = dims_of(axis, t)
        return deliver(public(name)(t, dims, correction=given(correction, ddof), keepdim=given(keepdims)), out)

    return function


means("var")(spread("var"))
means("std")(spread("std"))


def place(name):
    def function(a, axis=None, out=None, *, keepdims=False):
        return deliver(public(name)(as_tensor(a), axis, given(keepdims)), out)

    return function


means("argmax")(place("argmax"))
means("argmin")(place("argmin"))


def scan(name):
    def function(a, axis=None, dtype=None, out=None):
        t = as_tensor(a)
        t, dim = (t.reshape(-1), 0) if axis is None else (t, axis)
        return deliver(public(name)(t, dim, dtype=None if dtype is None else as_dtype(dtype)), out)

    return function


means("cumsum")(scan("cumsum"))
means("cumprod")(scan("cumprod"))


def without_nan(name):
    def function(a, axis=None, dtype=None, out=None, keepdims=False, **options):
        t = as_tensor(a)
        kind = None if dtype is None else as_dtype(dtype)
        return deliver(public(name)(t, dims_of(axis, t), given(keepdims), dtype=kind, **options), out)

    return function


means("nansum")(without_nan("nansum"))
means("nanmean")(without_nan("nanmean"))


def ranked(name, scale):
    def function(
        a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None,
        interpolation=None,
    ):  # fmt: skip
        t = as_tensor(a)
        share = q / scale if isinstance(q, (int, float)) else as_tensor(q).to(t.dtype) / scale
        if isinstance(axis, tuple):
            kept = [dim for dim in range(t.ndim) if dim not in [n % t.ndim for n in axis]]
            t = t.movedim(axis, tuple(range(len(axis)))).reshape([-1, *(t.shape[dim] for dim in kept)])
            axis = 0
        return deliver(public(name)(t, share, axis, given(keepdims), interpolation=interpolation or method), out)

    return function


means("quantile")(ranked("quantile", 1))
means("percentile")(ranked("quantile", 100))
means("nanquantile")(ranked("nanquantile", 1))
means("nanpercentile")(ranked("nanquantile", 100))


@means("median")
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    return FUNCTIONS[np.quantile](a, 0.5, axis, out, keepdims=keepdims)


@means("ptp")
def ptp(a, axis=None, out=None, keepdims=False):
    high = reduce_(np.maximum, a, axis, keepdims=given(keepdims))
    return deliver(high - reduce_(np.minimum, a, axis, keepdims=given(keepdims)), out)


@means("average")
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    t = as_tensor(a)
    if weights is None or returned:
        if returned or weights is not None:
            raise TypeError("average() of a tensor takes no `returned`")
        return mean(t, axis, keepdims=keepdims)
    w = as_tensor(weights)
    if w.ndim == 1 and t.ndim > 1 and axis is not None:
        w = w.reshape([-1 if dim == axis % t.ndim else 1 for dim in range(t.ndim)])
    total = reduce_(np.add, t * w, axis, keepdims=given(keepdims))
    return total / reduce_(np.add, w.expand(t.shape), axis, keepdims=given(keepdims))


@means("count_nonzero")
def count_nonzero(a, axis=None, *, keepdims=False):
    return reduce_(np.add, as_tensor(a) != 0, axis, keepdims=keepdims)


# -- ignoring NaN --


def filled(a, fill):
    """Convert to a tensor in which NaN is replaced by `fill`."""
    t = as_tensor(a)
    return select(t == t, t, fill) if t.dtype.is_floating_point or t.is_complex() else t


def filling(of, fill):
    def function(a, *args, **kwargs):
        return FUNCTIONS[of](filled(a, fill), *args, **kwargs)

    return function


means("nanprod")(filling(np.prod, 1))
means("nancumsum")(filling(np.cumsum, 0))
means("nancumprod")(filling(np.cumprod, 1))


def extremum_of_numbers(ufunc, fill):
    def function(a, axis=None, out=None, keepdims=False, initial=None, where=True):
        t = as_tensor(a)
        result = reduce_(ufunc, filled(t, fill), axis, None, None, given(keepdims), given(initial, None), where)
        if t.dtype.is_floating_point:  # NaN if all elements are NaN
            nothing = reduce_(np.logical_and, t != t, axis, keepdims=given(keepdims))
            result = select(nothing.logical_not(), result, float("nan"))
        return deliver(result, out)

    return function


means("nanmax")(extremum_of_numbers(np.maximum, float("-inf")))
means("nanmin")(extremum_of_numbers(np.minimum, float("inf")))


@means("nanvar")
def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **options):
    t = inexact(a, dtype)
    known = t == t
    count = reduce_(np.add, known, axis, keepdims=True)
    zero = filled(t, 0)
    off = select(known, zero - reduce_(np.add, zero, axis, keepdims=True) / count, 0)
    total = reduce_(np.add, np.square(abs(off)), axis, keepdims=given(keepdims))
    return deliver(total / (reduce_(np.add, known, axis, keepdims=given(keepdims)) - ddof), out)


@means("nanstd")
def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **options):
    return deliver(nanvar(a, axis, dtype, None, ddof, keepdims).sqrt(), out)


@means("nanmedian")
def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    return FUNCTIONS[np.nanquantile](a, 0.5, axis, out, keepdims=keepdims)


def cumulative(of):
    def function(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        t = as_tensor(x)
        if axis is None and t.ndim > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        result = FUNCTIONS[of](t, axis or 0, dtype)
        if include_initial:
            first = public("full_like")(result.narrow(axis or 0, 0, 1), 0 if of is np.cumsum else 1)
            result = public("cat")((first, result), axis or 0)
        return deliver(result, out)

    return function


means("cumulative_sum")(cumulative(np.cumsum))
means("cumulative_prod")(cumulative(np.cumprod))
