"""NumPy's functions on meta arrays, each by the function of its name here, or by its group.

`apply` implements `__array_function__`. What is not here is described by running it on small arrays
(`running.of_zeros`).
"""

from functools import partial

import numpy as np

from cygrad._kernels.meta import library, running, ufuncs
from cygrad._kernels.meta.array import ndarray
from cygrad._kernels.meta.errors import no_shape
from cygrad._library import later

linalg = later("cygrad._kernels.meta.forms.linalg")  # which imports this folder

_here = globals()


def apply(function, args, kwargs):
    """Return what `function(*args, **kwargs)` describes."""
    name = function.__name__
    form = _here.get("np_" + name)
    kwargs.pop("like", None)
    if form is not None:
        return form(function, *args, **kwargs)
    made = vars(library).get(name)
    if made is not None:
        return made(*args, **kwargs)
    return running.of_zeros(function, args, kwargs)


def method(array, function):
    """Return the method of an array that a function stands for."""
    return partial(function, array)


# --- Groups ------------------------------------------------------------------------------------


def _view(function, a, *args, **kwargs):
    """Describe a function that only derives views, which NumPy does from the layout."""
    found = function(a.layout, *args, **kwargs)
    return [a.part(each) for each in found] if isinstance(found, (list, tuple)) else a.part(found)


def _by_element(function, *args, **kwargs):
    out = kwargs.pop("out", None)
    found = ufuncs.elementwise(function, args, kwargs)
    return found if out is None else out


def _reduction(function, a, axis=None, *rest, keepdims=False, out=None, **kwargs):
    """Describe a reduction over an axis, several, or all."""
    out = next((value for value in rest if isinstance(value, ndarray)), out)
    rest = tuple(value for value in rest if not isinstance(value, ndarray))
    axes = ufuncs._axes(axis, a.ndim)
    small = np.zeros((1,) * a.ndim, a.dtype)
    dtype = ufuncs.described(partial(function, small), (axis, *rest), kwargs, ()).dtype
    shape = tuple(1 if i in axes else n for i, n in enumerate(a.shape) if keepdims or i not in axes)
    return ndarray(shape, dtype) if out is None else out


def _same_shape(function, a, *args, **kwargs):
    """Describe a function whose result has the shape of its first argument."""
    kwargs.pop("out", None)
    return ufuncs.described(partial(function, np.zeros((1,) * a.ndim, a.dtype)), args, kwargs, a.shape)


def _along_axis(function, a, axis=None, *args, **kwargs):
    """The same, but of all elements in a row if there is no axis."""
    if axis is None:
        a, axis = a.reshape(-1), 0
    return _same_shape(function, a, axis, *args, **kwargs)


def _sorted(function, a, axis=-1, *args, **kwargs):
    return _along_axis(function, a, axis, *args, **kwargs)


def _selected(function, a, kth, axis=-1, *args, **kwargs):
    found = np.sort if function.__name__ == "partition" else np.argsort
    return _along_axis(found, a, axis)


def _refused(function, *args, **kwargs):
    raise no_shape(function.__name__)


np_transpose = np_swapaxes = np_moveaxis = np_rollaxis = np_expand_dims = np_squeeze = np_broadcast_to = _view
np_flip = np_fliplr = np_flipud = np_rot90 = np_diagonal = np_split = np_array_split = np_matrix_transpose = _view
np_atleast_1d = np_atleast_2d = np_atleast_3d = np_sliding_window_view = np_hsplit = np_vsplit = np_dsplit = _view
np_clip = np_nan_to_num = np_isclose = np_real_if_close = np_angle = np_sinc = np_i0 = np_round = np_fix = _by_element
np_iscomplex = np_isreal = np_isposinf = np_isneginf = np_around = _by_element
np_sum = np_prod = np_mean = np_std = np_var = np_max = np_min = np_amax = np_amin = np_all = np_any = _reduction
np_argmax = np_argmin = np_nansum = np_nanmean = np_nanmax = np_nanmin = np_count_nonzero = np_ptp = _reduction
np_median = np_nanmedian = _reduction
np_sort = np_argsort = _sorted
np_partition = np_argpartition = _selected
np_cumsum = np_cumprod = np_nancumsum = np_nancumprod = _along_axis
np_tril = np_triu = np_fftshift = np_ifftshift = _same_shape
np_nonzero = np_flatnonzero = np_argwhere = np_unique = np_extract = np_compress = np_bincount = _refused


# --- Single functions --------------------------------------------------------------------------


def np_roll(function, a, shift, axis=None):
    return ndarray(a.shape, a.dtype)


def np_real(function, val):
    return val.real


def np_imag(function, val):
    return val.imag


def np_ndim(function, a):
    return a.ndim


def np_shape(function, a):
    return a.shape


def np_size(function, a, axis=None):
    return a.size if axis is None else a.shape[axis]


def np_copy(function, a, order="K", subok=False):
    return a.copy(order)


def np_result_type(function, *args):
    return np.result_type(*(np.empty((0,) * a.ndim, a.dtype) if isinstance(a, ndarray) else a for a in args))


def np_can_cast(function, source, to, casting="safe"):
    return np.can_cast(source.dtype, to, casting)


def np_may_share_memory(function, a, b, max_work=None):
    return isinstance(a, ndarray) and isinstance(b, ndarray) and a.data.mem is b.data.mem


np_shares_memory = np_may_share_memory


def np_reshape(function, a, shape, order="C", copy=None):
    return a.reshape(shape, order=order)


def np_ravel(function, a, order="C"):
    return a.ravel(order)


def np_broadcast_arrays(function, *args, subok=False):
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(np.broadcast_to(a if isinstance(a, ndarray) else library.array(a), shape) for a in args)


def np_where(function, condition, x=None, y=None):
    if x is None:
        raise no_shape("nonzero")
    return _by_element(function, condition, x, y)


def np_copyto(function, dst, src, casting="same_kind", where=True):
    if np.broadcast_shapes(dst.shape, np.shape(src)) != dst.shape:
        raise ValueError(f"could not broadcast input array from shape {np.shape(src)} into shape {dst.shape}")


def np_put_along_axis(function, arr, indices, values, axis=-1):
    """Do nothing: there are no elements to change."""


def np_fill_diagonal(function, a, val, wrap=False):
    """Do nothing, likewise."""


np_put = np_place = np_putmask = np_put_along_axis


def np_concatenate(function, arrays, axis=0, out=None, dtype=None, casting="same_kind"):
    arrays = [a if isinstance(a, ndarray) else library.array(a) for a in arrays]
    if axis is None:
        arrays, axis = [a.reshape(-1) for a in arrays], 0
    first = arrays[0]
    axis = axis % first.ndim if -first.ndim <= axis < first.ndim else axis
    sides = {(*a.shape[:axis], *a.shape[axis + 1 :]) for a in arrays}
    if len(sides) > 1 or any(a.ndim != first.ndim for a in arrays):
        raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    dtype = np_result_type(None, *arrays) if dtype is None else dtype
    total = sum(a.shape[axis] for a in arrays)
    return ndarray((*first.shape[:axis], total, *first.shape[axis + 1 :]), dtype) if out is None else out


def np_stack(function, arrays, axis=0, out=None, dtype=None, casting="same_kind"):
    arrays = [a if isinstance(a, ndarray) else library.array(a) for a in arrays]
    return np_concatenate(None, [np.expand_dims(a, axis) for a in arrays], axis, out, dtype)


def np_take(function, a, indices, axis=None, out=None, mode="raise"):
    if axis is None:
        a, axis = a.reshape(-1), 0
    shape = (*a.shape[: axis % a.ndim], *np.shape(indices), *a.shape[axis % a.ndim + 1 :])
    return ndarray(shape, a.dtype)


def np_take_along_axis(function, arr, indices, axis=-1):
    if axis is None:
        return ndarray(indices.shape, arr.dtype)
    axis %= arr.ndim
    sides = np.broadcast_shapes(*((*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in (arr, indices)))
    return ndarray((*sides[:axis], indices.shape[axis], *sides[axis + 1 :]), arr.dtype)


def np_repeat(function, a, repeats, axis=None):
    if isinstance(repeats, ndarray):
        raise no_shape("repeat_interleave")
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis %= a.ndim
    total = a.shape[axis] * int(repeats) if np.ndim(repeats) == 0 else int(np.sum(repeats))
    return ndarray((*a.shape[:axis], total, *a.shape[axis + 1 :]), a.dtype)


def np_tile(function, A, reps):
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    ndim = max(A.ndim, len(reps))
    shape, reps = (1,) * (ndim - A.ndim) + A.shape, (1,) * (ndim - len(reps)) + reps
    return ndarray(tuple(n * r for n, r in zip(shape, reps)), A.dtype)


def np_pad(function, array, pad_width, mode="constant", **kwargs):
    widths = np.broadcast_to(pad_width, (array.ndim, 2))
    return ndarray(tuple(int(n + w.sum()) for n, w in zip(array.shape, widths)), array.dtype)


def np_diff(function, a, n=1, axis=-1, prepend=None, append=None):
    for extra in (prepend, append):
        if extra is not None and extra is not np._NoValue:
            a = np.concatenate([a, extra], axis)
    shape = list(a.shape)
    shape[axis] = max(shape[axis] - n, 0)
    return ndarray(tuple(shape), a.dtype)


def np_dot(function, a, b, out=None):
    if a.ndim and b.ndim and b.ndim > 1:
        shape = (*a.shape[:-1], *b.shape[:-2], b.shape[-1])
    else:
        shape = a.shape[:-1] if a.ndim and b.ndim else np.broadcast_shapes(a.shape, b.shape)
    return ndarray(shape, np_result_type(None, a, b))


def np_outer(function, a, b, out=None):
    return ndarray((a.size, b.size), np_result_type(None, a, b))


def np_tensordot(function, a, b, axes=2):
    over_a, over_b = (range(a.ndim - axes, a.ndim), range(axes)) if np.ndim(axes) == 0 else axes
    over_a = [i % a.ndim for i in np.atleast_1d(list(over_a) if not np.ndim(over_a) == 0 else over_a)]
    over_b = [i % b.ndim for i in np.atleast_1d(list(over_b) if not np.ndim(over_b) == 0 else over_b)]
    kept = [n for i, n in enumerate(a.shape) if i not in over_a] + [n for i, n in enumerate(b.shape) if i not in over_b]
    return ndarray(tuple(kept), np_result_type(None, a, b))


def np_einsum(function, subscripts, *operands, **kwargs):
    given, _, made = subscripts.replace(" ", "").partition("->")
    lengths: dict[str, int] = {}
    for text, a in zip(given.split(","), operands):
        lengths.update(zip(text, a.shape))
    return ndarray(tuple(lengths[name] for name in made), np_result_type(None, *operands))


def np_searchsorted(function, a, v, side="left", sorter=None):
    return ndarray(np.shape(v), np.intp)


def np_trace(function, a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    kept = tuple(n for i, n in enumerate(a.shape) if i not in (axis1 % a.ndim, axis2 % a.ndim))
    return ndarray(kept, a.dtype if dtype is None else dtype)


# --- Linear algebra ----------------------------------------------------------------------------


def np_svd(function, a, full_matrices=True, compute_uv=True, hermitian=False):
    return linalg.svd(None, a, full_matrices) if compute_uv else linalg.values(None, a)


def np_eigh(function, a, UPLO="L"):
    return linalg.eigh(None, a, UPLO)


def np_eigvalsh(function, a, UPLO="L"):
    return linalg.eigvalsh(None, a, UPLO)


def np_eig(function, a):
    return linalg.eig(None, a)


def np_eigvals(function, a):
    return linalg.eigvals(None, a)


def np_qr(function, a, mode="reduced"):
    if mode == "raw":
        return np.swapaxes(a, -1, -2).copy(), ndarray((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    q, r = linalg.factors(None, a, mode == "complete")
    return r if mode == "r" else (q, r)


def np_inv(function, a):
    return ndarray(a.shape, a.dtype)


def np_solve(function, a, b):
    return linalg.lu_solve(None, a, None, b)


def np_det(function, a):
    return ndarray(a.shape[:-2], a.dtype)


def np_slogdet(function, a):
    return ndarray(a.shape[:-2], a.dtype), ndarray(a.shape[:-2], linalg.real_type(a.dtype))


np_cholesky = np_inv


def np_norm(function, x, ord=None, axis=None, keepdims=False):
    axes = ufuncs._axes(axis, x.ndim)
    return ndarray(
        tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes),
        linalg.real_type(x.dtype),
    )
