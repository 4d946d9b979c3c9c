"""Products, log-sum-exp, all/any, count_nonzero, and nonzero.

`dim`, `keepdim`, `axis`, and `keepdims` are described in reductions.pyx.
"""

import numpy as np

import cygrad._kernels.cpu.base.reduce as reduce
from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_forward, values_of
from cygrad._core.graph.internals import array_of, operand_of, tensor_of
from cygrad._core.graph.opdef import IN0, NONDIFF, OUT0, PRIVATE, declare, publish
from cygrad._core.graph.record import apply1_args, apply_n, as_type, record_n, recorded, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._core.types.type_info import finfo
from cygrad._kernels.cpu.base import stack_chunks
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.indexing import axis_ops
from cygrad._kernels.cpu.reduction import arg_extrema
from cygrad._kernels.cpu.reduction.non_finite import are_finite, are_normal
from cygrad._kernels.device.cupy_library import dense, is_meta
from cygrad._kernels.device.gpu_forms import passed_on
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import integers
from cygrad._ops.base.arithmetic import div, mul, sub
from cygrad._ops.base.batching.rules import of_unknown_shape, reduce_along, rule, shifted_argument, shifting
from cygrad._ops.base.batching.sums_and_products import reduce_all
from cygrad._ops.base.comparisons import where
from cygrad._ops.base.pointwise import conjugate, exp, log
from cygrad._ops.base.reductions import accumulator, axes_argument, flag_argument, restored
from cygrad._ops.base.reductions import sum as summed
from cygrad._ops.base.views import reshape
from cygrad._ops.elementwise.logic import isinf


def times(own, g):
    """Multiply the gradient g by `own`, an intermediate result of the rule, whose memory is reused for the product."""
    return mul(own, g, out=reused(own))


# -- product --


def shift_rule(n, g):
    dim, steps, _fill = n.args
    return shift(g, dim, -steps, 0)


SHIFT = declare("shift", shift_rule, flags=PRIVATE, kernel=axis_ops.shift, inputs="self", batching=shifting("d.."))


def shift(t, dim, steps, fill):
    """Shift the elements along `dim`, filling the vacated places with `fill`."""
    return apply1_args(SHIFT, t, (dim, steps, fill), None)


def product_of_others(x, dim):
    """Return, for each element, the product of all others along `dim`, without division because there may be zeros.

    The products of all elements before and after each element are built by doubling: products of 1, 2, 4, ...
    neighbors. They consist of recorded multiplications, so that higher derivatives are also correct at zeros.
    """
    before, behind = shift(x, dim, 1, 1), shift(x, dim, -1, 1)
    steps = 1
    while steps < x.shape[dim]:
        before = mul(before, shift(before, dim, steps, 1))
        behind = mul(behind, shift(behind, dim, -steps, 1))
        steps *= 2
    return mul(before, behind)


def prod_rule(n, g):
    x, result = n.saved(0), n.saved_result()
    if may_be_divided(result):
        return times(conjugate(div(result, x)), g)
    return times_others(g, reshape(x, -1), 0, x.shape)


def times_others(g, x, dim, shape):
    """Multiply a gradient by the products of the other elements along a dimension, in that shape."""
    array = array_of(x)
    if get_modes() & NO_GRAD and isinstance(array, np.ndarray) and not is_forward():
        return times(conjugate(reshape(tensor_of(axis_ops.products_of_others(array, dim)), shape)), g)
    return mul(g, conjugate(reshape(product_of_others(x, dim), shape)))


def may_be_divided(result):
    """Whether products have all their digits, and dividing by a factor is not recorded.

    The derivatives of a quotient have powers of the factor, which leave the range although the product does not.
    """
    if not get_modes() & NO_GRAD:
        return False
    values = values_of(result)
    if isinstance(values, np.ndarray) and values.itemsize > 2:
        return _are_normal(values)
    return not is_meta(values) and _are_within(values, finfo(result.dtype).tiny)


@noted
def _are_within(values, least):
    sizes = np.abs(values)
    return bool(((sizes >= least) & (sizes < np.inf)).all())


_are_finite, _are_normal = noted(are_finite), noted(are_normal)


PROD = declare(
    "prod",
    prod_rule,
    saves=IN0 | OUT0,
    inputs="self",
    autocast="float32",
    autocast_gpu="float32",
    takes_dtype=True,
    out_dtype="same",
    batching=reduce_all,
    overloads="1345",
)


def prod_dim_rule(n, g):
    dim, keepdim = n.args
    x = n.saved(0)
    if x.ndim == 0:
        return g
    g = restored(g, x.shape, (dim,), keepdim)
    result = n.saved_result()
    if may_be_divided(result):
        return times(conjugate(div(restored(result, x.shape, (dim,), keepdim), x)), g)
    return times_others(g, x, dim, x.shape)


PROD_DIM = declare(
    "prod.dim_int",
    prod_dim_rule,
    saves=IN0 | OUT0,
    flags=PRIVATE,
    inputs="self",
    attributes="dim keepdim",
    node="ProdBackward1",
    out_dtype="same",
    batching=reduce_along,
)


def prod(input, dim=..., keepdim=False, *, dtype=None, axis=None, keepdims=None, out=None):
    """Return the product of all elements, or of the elements along one dimension.

    Integer and boolean tensors are multiplied in int64, others in their own dtype; `dtype` overrides both. Saves
    `input` and the result. Gradient: g times the product of the other elements, also correct where there are zeros.
    Raises IndexError for a dimension out of range.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.prod(), x.prod(dim=0)
    (tensor(24.), tensor([3., 8.]))
    """
    t = tensor_argument(PROD, input, "input", 1)
    typenum = accumulator(t, dtype) if dtype is not None else array_of(out).dtype.num if isinstance(out, Tensor) else -1
    if dim is ... and axis is None:
        if keepdim is not False or keepdims is not None:
            raise messages.fits_none("prod")
        return recorded(PROD, reduce.prod(array_of(t), None, False, typenum), (t,), None, out)
    keep = flag_argument(PROD, keepdim, keepdims)
    dim = dim if axis is None else axis
    if dim is None or isinstance(dim, (tuple, list)):
        raise messages.fits_none("prod")
    axes = axes_argument(PROD, t, dim, None)
    array = reduce.prod(array_of(t), axes, keep, typenum)
    return recorded(PROD_DIM, array, (t,), (axes[0] if axes else 0, keep), out)


# -- log-sum-exp --


def logsumexp_rule(n, g):
    axes, keepdim = n.args
    x = n.saved(0)
    result = n.saved_result()
    values = values_of(result)
    is_plain = isinstance(values, np.ndarray) and _are_finite(values)
    result = restored(result, x.shape, axes, keepdim)
    if not is_plain:
        x, result = of_equal_shares(x, result, axes)
    apart = sub(x, result)
    return times(conjugate(exp(apart, out=reused(apart))), restored(g, x.shape, axes, keepdim))


def of_equal_shares(x, result, axes):
    """Return (elements, their log-sum), with the elements that equal an infinite result replaced by zeros.

    So equal infinities share the gradient, as in `logaddexp`, where their difference would be nan.
    """
    is_infinite, is_equal = isinf(result), x == result
    counts = is_equal.to(x.dtype)
    counts = summed(counts, axes, True) if x.ndim else counts
    shared = where(is_equal, 0.0, -np.inf).to(x.dtype)
    return where(is_infinite, shared, x), where(is_infinite, log(counts), result)


LOGSUMEXP = declare(
    "logsumexp",
    logsumexp_rule,
    saves=IN0 | OUT0,
    inputs="self",
    attributes="dim keepdim",
    autocast_gpu="float32",
    out_castable="logsumexp(): Expected floating point type for result tensor, but got: {out}",
    float8="max_values_cpu",
)


def logsumexp(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """`log(sum(exp(input)))` over `dim` (an int or a tuple of ints), computed without overflow.

    The result for no elements is -inf. Saves `input` and the result r. Gradient: g * exp(input - r), which is g times
    the softmax. Raises IndexError for a dimension out of range.

    >>> import cygrad
    >>> cygrad.logsumexp(cygrad.tensor([0.0, 0.0]), dim=0)
    tensor(0.6931)
    """
    t = tensor_argument(LOGSUMEXP, input, "input", 1)
    if axis is not None:
        dim = axis
    elif dim is None:
        raise TypeError('logsumexp() missing 1 required positional arguments: "dim"')
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        integers(dim, "logsumexp", "dim", 2)
    args = axes_argument(LOGSUMEXP, t, dim, None), flag_argument(LOGSUMEXP, keepdim, keepdims)
    array = operand_of(t) if t.is_floating_point() or t.is_complex() else as_type(t, get_default_dtype())
    return recorded(LOGSUMEXP, passed_on(log_sums, array, *args), (t,), args, out)


@rule("logsumexp")
def _logsumexp(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    dims, keepdim = call.args
    return x.logsumexp([d % t.ndim + 1 for d in dims], keepdim) if t.ndim else x.view(-1, 1).logsumexp(1)


def log_sums(array, axes, keepdim):
    """Apply `reduce.logsumexp`, chunk by chunk for large arrays."""
    join = reduce.logsumexp if array.itemsize > 2 else None  # joining partial results would round a second time
    return stack_chunks.reduced(reduce.logsumexp, array, axes, keepdim, join)


# -- all, any, count_nonzero, nonzero --


def truth(op, input, dim, keepdim, axis, keepdims, out):
    """Compute `all` or `any`. An empty `dim=()` reduces nothing: each element is converted by itself."""
    if not isinstance(input, Tensor):
        raise messages.fits_none(op.name)
    dim = dim if axis is None else axis
    nowhere = isinstance(dim, (tuple, list)) and not dim
    axes = () if nowhere else axes_argument(op, input, dim, None)
    args = axes, flag_argument(op, keepdim, keepdims)
    array = (reduce.all_ if op is ALL else reduce.any_)(array_of(input), *args)
    if input.dtype.name == "uint8":  # PyTorch keeps uint8, its former boolean type
        array = in_dtype(array, np.dtype(np.uint8))
    return recorded(op, array, (input,), args, out)


ALL = declare("all", flags=NONDIFF, kernel=reduce.all_, out_dtype="bool", overloads="")


def all(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """Test whether all elements along `dim` are true (nonzero). The result is boolean, or uint8 for uint8 input.

    >>> import cygrad
    >>> x = cygrad.tensor([[1, 0], [1, 1]])
    >>> x.all(), x.all(dim=1)
    (tensor(False), tensor([False,  True]))
    """
    return truth(ALL, input, dim, keepdim, axis, keepdims, out)


ANY = declare("any", flags=NONDIFF, kernel=reduce.any_, out_dtype="bool", overloads="")


def any(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """Test whether any element along `dim` is true (nonzero). The result is boolean, or uint8 for uint8 input.

    >>> import cygrad
    >>> x = cygrad.tensor([[1, 0], [0, 0]])
    >>> x.any(), x.any(dim=1)
    (tensor(True), tensor([ True, False]))
    """
    return truth(ANY, input, dim, keepdim, axis, keepdims, out)


@rule("all any")
def _truth(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    dims, keepdim = call.args
    if dims == () or not t.ndim:
        return getattr(x, call.key)(())
    return getattr(x, call.key)(shifted_argument("D", dims, call, t.ndim), keepdim)


COUNT_NONZERO = declare(
    "count_nonzero",
    flags=NONDIFF,
    kernel=arg_extrema.count_nonzero,
    batching=shifting("D."),
    overloads="1",
    takes_ints=True,
)


def count_nonzero(input, dim=None, *, axis=None):
    """Count the nonzero elements along `dim`. The result is int64.

    >>> import cygrad
    >>> cygrad.count_nonzero(cygrad.tensor([[1, 0], [1, 1]]), dim=0)
    tensor([2, 1])
    """
    t = tensor_argument(COUNT_NONZERO, input, "input", 1)
    return apply_n(COUNT_NONZERO, (t,), (axes_argument(COUNT_NONZERO, t, dim, axis), False))


NONZERO = declare(
    "nonzero",
    flags=NONDIFF,
    kernel=axis_ops.nonzero,
    out_dtype="positions",
    batching=of_unknown_shape,
    float8="nonzero_count_cpu",
)


def nonzero(input, *, as_tuple=False, out=None):
    """Return the indices of the nonzero elements: one row of int64 indices per element.

    With `as_tuple`, returns a tuple of index tensors, one for each dimension, that can be used to index `input`. Raises
    RuntimeError for `out` with `as_tuple`.

    >>> import cygrad
    >>> x = cygrad.tensor([[1, 0], [0, 5]])
    >>> cygrad.nonzero(x)
    tensor([[0, 0],
            [1, 1]])
    >>> x[cygrad.nonzero(x, as_tuple=True)]
    tensor([1, 5])
    """
    t = tensor_argument(NONZERO, input, "input", 1)
    if not as_tuple:
        return apply_n(NONZERO, (t,), None, out)
    if out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    a = array_of(t)
    return tuple([record_n(NONZERO, dense(index), (t,)) for index in axis_ops.nonzero(a if a.ndim else a.reshape(1)).T])


functions = publish(globals())
