"""NaN-ignoring sums and means, joint statistics (var_mean, std_mean, aminmax), quantiles and covariances."""

import numpy as np

from cygrad._core.engine.blocked_gradients import is_own, reused
from cygrad._core.errors import messages
from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, OUT0, OUT1, PRIVATE, declare, facts, note_facts, publish
from cygrad._core.graph.record import apply_n, record_n, record_outputs
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types import return_types
from cygrad._core.types.dtypes import as_dtype
from cygrad._kernels.cpu.base import chunks, elementwise, reduce
from cygrad._kernels.cpu.base.matmul import matmul as product
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import sum as sum_of_array
from cygrad._kernels.cpu.base.stack_chunks import cut
from cygrad._kernels.cpu.reduction.sorting import places_of_ranks
from cygrad._kernels.device.cupy_library import as_array, beside, is_array
from cygrad._kernels.tape.calls import noted
from cygrad._kernels.tape.tape import noted_data
from cygrad._ops.base.arguments import dim_argument, require
from cygrad._ops.base.arithmetic import add, div, mul, sub
from cygrad._ops.base.batching.rules import shifting
from cygrad._ops.base.checks.common import require_kind
from cygrad._ops.base.creation import full_like, ones_like, zeros_like
from cygrad._ops.base.pointwise import sqrt
from cygrad._ops.base.products import matmul
from cygrad._ops.base.reductions import axes_argument, flag_argument, mean, restored
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.slicing import cat, narrow
from cygrad._ops.base.views import reshape, squeeze, unsqueeze
from cygrad._ops.common.gradients import adjoint, sum_type
from cygrad._ops.common.out_argument import given, given_several
from cygrad._ops.elementwise.binary import ldexp
from cygrad._ops.elementwise.logic import isfinite, isnan
from cygrad._ops.elementwise.predicates import frexp
from cygrad._ops.elementwise.selection import clamp, where
from cygrad._ops.elementwise.weighted_sums import lerp
from cygrad._ops.indexing.gathering import gather
from cygrad._ops.reduction.extrema import amax, amin
from cygrad._ops.reduction.sorting import sort
from cygrad._ops.reduction.variance import STD, VAR, var_arguments, warn_of_freedom
from cygrad._ops.shape.diagonals import diagonal
from cygrad._ops.shape.reshaping import movedim

# -- ignoring NaN --


def nansum_array(a, axes, keepdims):
    """Sum over axes, or over all if None, with NaN as 0; large arrays that contain NaN are summed chunk by chunk."""
    if not is_array(a):
        found = sum_of_array(a, axes, keepdims)
        if not np.isnan(found).any():
            return found
    if a.size <= chunks.SIZE or is_array(a):
        return sum_of_array(_without_nan(a), axes, keepdims)
    if axes is None:
        return chunks.sum_in_blocks(_without_nan, (a,))[0].reshape((1,) * a.ndim * keepdims)
    across = int(np.argmax(a.shape))
    step = max(1, a.shape[across] * chunks.SIZE // a.size)
    sums = [
        sum_of_array(_without_nan(cut(a, slice(start, start + step), across)), axes, True)
        for start in range(0, a.shape[across], step)
    ]
    found = np.concatenate(sums, across)
    if across in axes:
        found = sum_of_array(found, (across,), True)
    return found if keepdims else found.squeeze(axes)


def _without_nan(a):
    return as_array(elementwise.where(as_array(np.isnan(a)), np.zeros((), a.dtype, like=a), a))


def nansum_rule(n, g):
    x, (axes, keepdim) = n.saved(0), n.args
    return where(isnan(x), 0.0, restored(g, x.shape, axes, keepdim))


NANSUM = declare(
    "nansum",
    nansum_rule,
    saves=IN0,
    kernel=nansum_array,
    inputs="self",
    attributes="dim keepdim",
    batching=shifting("D."),
)


def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Sum over `dim`, or over all elements, with NaN as 0. Saves `input`. Gradient: g, and 0 at NaN.

    >>> import cygrad
    >>> cygrad.nansum(cygrad.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    t = require(input, "nansum")
    if t.is_complex():
        raise RuntimeError("nansum on CPU does not support complex inputs")
    _check_type_of_sum(dtype, out)
    return given("nansum", _sum_of_numbers(t, dim, keepdim, dtype), out)


note_facts("nansum.dtype", {"out_dtype": "nansum: provided dtype must match dtype of result. Got {out} and {result}."})


def _check_type_of_sum(dtype, out):
    if dtype is not None and isinstance(out, Tensor):
        kind = as_dtype(dtype)
        is_integer = not (kind.is_floating_point or kind.is_complex)  # without NaN
        messages.check_asked_type("mean.dtype" if is_integer else "nansum.dtype", kind, out)


def _sum_of_numbers(t, dim, keepdim, dtype):
    if dtype is not None and t.dtype is not dtype:
        t = t.to(dtype)
    if array_of(t).dtype.char not in "fdFD":
        kept = where(isnan(t), 0.0, t) if t.is_floating_point() else t
        return total(kept, dim, keepdim, dtype=dtype)
    axes = None if dim is None else axes_argument(NANSUM, t, dim, None)
    return apply_n(NANSUM, (t,), (axes, flag_argument(NANSUM, keepdim, None)))


def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Compute the mean over `dim`, or over all elements, ignoring NaN; NaN if all are NaN. Gradient: see `nansum`.

    The result is nansum(x) / (number of elements that are not NaN).

    >>> import cygrad
    >>> cygrad.nanmean(cygrad.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    t = require(input, "nanmean")
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {t.dtype.type_name}"
        )
    if dtype is not None and not (as_dtype(dtype).is_floating_point or as_dtype(dtype).is_complex):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {as_dtype(dtype).type_name}"
        )
    _check_type_of_sum(dtype, out)
    numbers = ~isnan(t)
    count = total(numbers, dim, flag_argument(NANSUM, keepdim, None))
    if dtype is None and sum_type(t) is not t.dtype:
        result = div(_sum_of_numbers(t, dim, keepdim, sum_type(t)), count).to(t.dtype)
    else:
        result = div(_sum_of_numbers(t, dim, keepdim, dtype), count)
    return given("nansum", result, out)


# -- two statistics at once --


def _shares(x, *given):
    """Sum the gradients of several results: `given` is (result, share of elements equal to it, share of others), ..."""
    found = None
    for result, share, nothing in zip(given[::3], given[1::3], given[2::3]):
        part = where(x == result, share, nothing)
        found = part if found is None else add(found, part, out=reused(found))
    return found


@silent
def _shared_arrays(x, *given):
    """`_shares` of arrays on the CPU."""
    out = np.empty_like(x)
    out[...] = sum(given[2::3])
    for result, share in zip(given[::3], given[1::3]):
        reached = x == result
        if 8 * np.count_nonzero(reached) < reached.size:
            np.add(out, share, out=out, where=reached)
        else:
            out += np.where(reached, share, 0)
    return out


def both_extrema_rule(n, grads):
    axes, keepdim = n.args
    x, tensors = n.saved(0), []
    for i, g in enumerate(grads):
        if g is not None:
            g, result = (restored(t, x.shape, axes, keepdim) for t in (g, n.saved_output(i)))
            number = total(x == result, axes, True).to(sum_type(g))
            tensors += [result, div(g, number), where(number == 0, np.nan, zeros_like(number))]  # 0: result is NaN
    if not n.may_run_in_parts(grads):
        return _shares(x, *tensors)
    return tensor_of(chunks.in_blocks(_shared_arrays, [memory_of(t) for t in (x, *tensors)]))


BOTH_EXTREMA = declare(
    "both_extrema",
    both_extrema_rule,
    saves=IN0 | OUT0 | OUT1,
    flags=PRIVATE,
    node="AminmaxBackward0",
    inputs="self",
    outputs="min max",
    attributes="dim keepdim",
    batching=None,
)


def both_extrema(t, axes, keepdim):
    """Compute the minimum and the maximum over axes, as one node."""
    array = array_of(t)
    arrays = tuple(as_array(extremum(array, axes, keepdim)) for extremum in (reduce.amin, reduce.amax))
    return record_outputs(BOTH_EXTREMA, arrays, (t,), (axes, keepdim), 2)


def both(function, op, input, dim, unbiased, correction, keepdim):
    t = require(input, function)
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(f"{function} only support floating point and complex dtypes")
    if not isinstance(keepdim, bool):
        raise messages.fits_none(function)
    if isinstance(dim, bool):  # the old form: var_mean(input, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = int(unbiased)
    every = dim is None
    if every and keepdim:
        dim = tuple(range(t.dim()))
    args = var_arguments(op, t, dim, None, keepdim, correction, name=function)
    return apply_n(op, (t,), args), mean(t) if every and not keepdim else mean(t, dim, keepdim)


@facts(overloads="")
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=1):
    """Compute variance and mean over `dim`, or over all elements: a tuple (variance, mean). See `var`.

    They are sum(|x - mean|^2) / (count - correction) and sum(x) / count.

    >>> import cygrad
    >>> cygrad.var_mean(cygrad.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return both("var_mean", VAR, input, dim, unbiased, correction, keepdim)


@facts(overloads="")
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=1):
    """Compute standard deviation and mean over `dim`, or over all elements: a tuple (deviation, mean). See `std`.

    They are sqrt(sum(|x - mean|^2) / (count - correction)) and sum(x) / count.

    >>> import cygrad
    >>> cygrad.std_mean(cygrad.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return both("std_mean", STD, input, dim, unbiased, correction, keepdim)


@facts(out_dtype="same")
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """Compute the minimum and the maximum along `dim`, or over all elements: a tuple (min, max).

    Gradient: g, shared among the elements that are equal to the result. See `amin`.

    >>> import cygrad
    >>> cygrad.aminmax(cygrad.tensor([3.0, 1.0, 2.0]))
    torch.return_types.aminmax(
    min=tensor(1.),
    max=tensor(3.))
    """
    t = require(input, "aminmax")
    require_kind("bif", "aminmax_cpu", t)
    if dim is None:
        if not t.numel():
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        dims = tuple(range(t.dim()))
    else:
        dims = dim_argument(dim, t.dim(), "aminmax", "dim", 2)
        if t.dim() and not t.shape[dims]:
            raise IndexError(f"aminmax: Expected reduction dim {dims} to have non-zero size.")
    if is_own(t) and t.is_floating_point():
        results = both_extrema(t, dims if isinstance(dims, tuple) else (dims,), keepdim)
    else:
        over = None if dim is None else dims
        results = (amin(t, over, keepdim), amax(t, over, keepdim)) if t.dim() else (t.clone(), t.clone())
    if out is not None:
        results = given_several("aminmax", map(array_of, results), out, t)
    return return_types.aminmax(results)


# -- quantiles --

MOST_PLACES = 4  # for more quantiles, elements are sorted
LEAST_ROW = 64  # elements; shorter rows are sorted
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@facts(devices="together", autocast="float32", overloads="")
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """Compute the `q`-th quantiles along `dim`, or over all elements; NaN if any element is NaN.

    With the elements x sorted, h = q (n - 1) and i = floor(h), the linear one is x[i] + (h - i) (x[i + 1] - x[i]).

    `q` is a number in [0, 1], or a tensor of such numbers with the dtype of `input`; for a 1-d tensor the results are
    arranged along a new first dimension. `interpolation` between two elements is "linear", "lower", "higher",
    "midpoint" or "nearest". The gradient goes to the one or two elements that determine the result.

    >>> import cygrad
    >>> cygrad.quantile(cygrad.tensor([0.0, 1.0, 2.0, 3.0]), 0.4)
    tensor(1.2000)
    """
    return quantiles("quantile", input, q, dim, keepdim, interpolation, False, out)


@facts(devices="together", autocast="float32", overloads="")
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """Compute the `q`-th quantiles of the elements that are not NaN. See `quantile`.

    With these sorted, h = q (n - 1) and i = floor(h), the linear one is x[i] + (h - i) (x[i + 1] - x[i]).

    >>> import cygrad
    >>> cygrad.nanquantile(cygrad.tensor([0.0, float("nan"), 2.0]), 0.5)
    tensor(1.)
    """
    return quantiles("nanquantile", input, q, dim, keepdim, interpolation, True, out)


@noted
def _are_shares(values):
    return bool(((values >= 0) & (values <= 1)).all())


def check_quantiles(function, t, q, interpolation):
    """Check the arguments and return the requested quantiles in float64."""
    if not isinstance(q, (Tensor, int, float)):
        raise messages.fits_none(function)
    if str(t.dtype) not in ("torch.float32", "torch.float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if not t.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        return tensor_of(beside(noted_data(np.asarray(q, np.float64)), memory_of(t)))
    if q.dim() > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q.dtype is not t.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    values = values_of(q)
    if not is_array(values) and not _are_shares(values):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q.detach().double()


def quantiles(function, input, q, dim, keepdim, interpolation, ignore_nan, out):
    t = require(input, function)
    places = check_quantiles(function, t, q, interpolation)
    if isinstance(out, Tensor) and out.dtype is not t.dtype:
        raise RuntimeError("quantile() out tensor must be same dtype as the input tensor")
    kept_dims = t.dim()
    if dim is None:
        t, where_kept = reshape(t, (-1,)), None
    else:
        where_kept = dim_argument(dim, t.dim(), function, "dim", 3)
        t = movedim(t if t.dim() else unsqueeze(t, 0), where_kept, -1)
    is_large = is_own(t) and places.numel() <= MOST_PLACES and t.shape[-1] > LEAST_ROW
    ordered = t if is_large else sort(t, -1).values
    last = t.shape[-1] - 1
    scale = clamp(sub(last, total(isnan(ordered), -1, True)), min=0) if ignore_nan else last
    rank = mul(reshape(places, (-1,)), scale)
    if not ignore_nan:  # NaN is sorted last
        largest = amax(t.detach(), -1, True) if is_large else narrow(ordered.detach(), -1, last, 1)
        rank = where(isnan(largest), float(last), rank)
    if interpolation == "nearest":
        rank = rank.round()
    below, above = rank.floor().long(), rank.ceil().long()
    if interpolation in ("lower", "nearest"):
        result = _of_ranks(ordered, below, is_large)
    elif interpolation == "higher":
        result = _of_ranks(ordered, above, is_large)
    else:
        if interpolation == "midpoint":
            weight = full_like(rank, 0.5, dtype=t.dtype)
        else:  # recorded, because `q` may require grad
            places_of_q = reshape(q, (-1,)) if isinstance(q, Tensor) else reshape(places, (-1,)).to(t.dtype)
            weight = sub(mul(places_of_q, scale), below)
        if is_large:
            both = _of_ranks(ordered, cat((below, above), -1), True)
            count = places.numel()
            result = lerp(narrow(both, -1, 0, count), narrow(both, -1, count, count), weight)
        else:
            result = lerp(_of_ranks(ordered, below, False), _of_ranks(ordered, above, False), weight)
    if keepdim:
        if where_kept is None:
            result = reshape(result, (1,) * kept_dims + (-1,))
        elif kept_dims:
            result = unsqueeze(result, where_kept)
    return given(function, movedim(result, -1, 0) if places.ndim else squeeze(result, -1), out)


def _of_ranks(t, rank, is_large):
    """Return the elements with these ranks along the last dimension; unless `is_large`, `t` is already sorted."""
    if is_large:
        rows, ranks = (a.reshape(-1, a.shape[-1]) for a in (array_of(t), array_of(rank)))
        rank = tensor_of(places_of_ranks(rows, ranks).reshape(rank.shape))
    return gather(t, -1, rank)


# -- covariance --


def gram_rule(n, g):
    return matmul(add(g, adjoint(g)), n.saved(0))


GRAM = declare("gram", gram_rule, saves=IN0, flags=PRIVATE, node="MmBackward0", inputs="self", batching=None)


def gram(x):
    """Compute `matmul(x, adjoint(x))` as one op, whose gradient needs one product."""
    a = array_of(x)
    return record_n(GRAM, product(a, a.conj().T if x.is_complex() else a.T), (x,), None)


def cov(input, *, correction=1, fweights=None, aweights=None):
    """Compute the covariances of the rows of `input` (variables) over its columns (observations).

    C[i, j] = sum over k of (x[i, k] - mean[i]) conj(x[j, k] - mean[j]) / (n - correction) for n observations.

    A vector, or one row, is a single variable, with a 0-dim result. `fweights` (integers) are the numbers of
    repetitions of each observation, `aweights` their relative weights. The sum is divided by the number of observations
    minus `correction`.

    >>> import cygrad
    >>> cygrad.cov(cygrad.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    t = require(input, "cov")
    if t.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {t.dim()} dimensions"
        )
    if t.dtype.name == "bool":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    if sum_type(t) is not t.dtype:  # sums of products end at 65504 in float16
        weights = [w if w is None else w.to(sum_type(w)) for w in (fweights, aweights)]
        found = cov(t.to(sum_type(t)), correction=correction, fweights=weights[0], aweights=weights[1])
        return found.to(t.dtype)
    x = reshape(t, (1, -1)) if t.dim() < 2 else t
    weights = observation_weights(x, fweights, aweights)
    if weights is None:
        count, sum_of = x.shape[1], x.shape[1]
        centred = sub(x, mean(x if x.is_floating_point() or x.is_complex() else x + 0.0, 1, True))
        weighted = centred
    else:
        count = total(weights)
        centred = sub(x, div(total(mul(x, weights), 1, True), count))
        weighted = mul(centred, weights)
        sum_of = count
        if aweights is not None:
            sum_of = count
            correction = div(mul(total(mul(weights, aweights)), correction), count)
    freedom = sum_of - correction
    found = array_of(freedom) if isinstance(freedom, Tensor) else np.asarray(freedom)
    if not is_array(found) and (found <= 0).any():  # skipped on a GPU, as it would wait
        warn_of_freedom("cov", "the number of observations")
    norm = clamp(freedom, min=0) if isinstance(freedom, Tensor) else max(freedom, 0)
    products = gram(centred) if weighted is centred and is_own(centred) else matmul(weighted, adjoint(centred))
    result = div(products, norm)
    return reshape(result, ()) if x.shape[0] == 1 else result


def observation_weights(x, fweights, aweights):
    weights = None
    for name, weight, is_right in (
        ("fweights", fweights, lambda w: not (w.is_floating_point() or w.is_complex())),
        ("aweights", aweights, lambda w: w.is_floating_point()),
    ):
        if weight is None:
            continue
        require(weight, "cov", name, 3)
        if weight.dim() > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weight.dim()} dimensions"
            )
        if not is_right(weight):
            word = "integral" if name == "fweights" else "floating point"
            raise RuntimeError(
                f"cov(): expected {name} to have {word} dtype but got {name} with {weight.dtype.type_name} dtype"
            )
        if weight.numel() != x.shape[1]:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{weight.numel()} != {x.shape[1]}"
            )
        if not is_array(array_of(weight)) and (array_of(weight) < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative")
        weights = weight if weights is None else mul(weights, weight)
    return weights


def _are_in_range(covariances):
    """Whether no variance is infinite, NaN or tiny. On GPUs it may be: looking at it would wait."""
    if not isinstance(covariances, np.ndarray):
        return False
    return reduce.are_in_range(np.diagonal(np.atleast_2d(covariances)).real)


def _scale_of_rows(t):
    """Powers of two by which the largest element of each row gets near 1, as a column."""
    largest = t.detach().abs().amax(-1, True)
    _, exponent = frexp(where((largest > 0) & isfinite(largest), largest, 1.0))
    return ldexp(ones_like(largest), -exponent)


def corrcoef(input):
    """Compute the correlation coefficients of the rows of `input` over its columns: `cov` divided by the deviations.

    R[i, j] = C[i, j] / sqrt(C[i, i] C[j, j]), where C = cov(input).

    >>> import cygrad
    >>> cygrad.corrcoef(cygrad.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    t = require(input, "corrcoef")
    if t.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {t.dim()} dimensions"
        )
    if sum_type(t) is not t.dtype:
        return corrcoef(t.to(sum_type(t))).to(t.dtype)
    c = cov(t)
    if t.dim() and t.numel() and not _are_in_range(array_of(c)):
        c = cov(mul(t, _scale_of_rows(t)))
    if c.dim() == 0:
        return div(c, c)
    deviation = sqrt(diagonal(c))
    result = div(div(c, unsqueeze(deviation, 1)), unsqueeze(deviation, 0))
    return result if result.is_complex() else clamp(result, -1, 1)


composite = {
    "nanmean": 0,
    "var_mean": FUNCTION_ONLY,
    "std_mean": FUNCTION_ONLY,
    "aminmax": 0,
    "quantile": 0,
    "nanquantile": 0,
    "cov": 0,
    "corrcoef": 0,
}
functions = publish(globals())
