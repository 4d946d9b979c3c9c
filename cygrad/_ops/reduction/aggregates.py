"""Products and log-sums over dimensions, truth values of many elements, how many and which are not 0.

For `dim`, `keepdim`, `axis`, `keepdims` see reductions.pyx.
"""

import numpy as np

import cygrad._kernels.cpu.base.reduce as reduce
from cygrad._core.engine.blocked_gradients import reused
from cygrad._core.errors import messages
from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN0, NONDIFF, OUT0, PRIVATE, declare, publish
from cygrad._core.graph.record import apply1_args, apply_n, as_type, record_n, recorded, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.dtypes import get_default_dtype
from cygrad._kernels.cpu.base import stack_chunks
from cygrad._kernels.cpu.indexing import axis_ops
from cygrad._kernels.cpu.reduction import arg_extrema
from cygrad._kernels.device.cupy_library import dense
from cygrad._ops.base.arguments import integers
from cygrad._ops.base.arithmetic import div, mul, sub
from cygrad._ops.base.pointwise import conjugate, exp
from cygrad._ops.base.reductions import accumulator, axes_argument, flag_argument, restored
from cygrad._ops.base.views import reshape


def times(own, g):
    """The gradient g times a result of the rule's own, in its memory."""
    return mul(own, g, out=reused(own))


# -- product --


def shift_rule(n, g):
    dim, steps, _fill = n.args
    return shift(g, dim, -steps, 0)


SHIFT = declare("shift", shift_rule, flags=PRIVATE, kernel=axis_ops.shift, inputs="self")


def shift(t, dim, steps, fill):
    """The elements moved along `dim`, with `fill` in the places left free."""
    return apply1_args(SHIFT, t, (dim, steps, fill), None)


def product_of_others(x, dim):
    """For each element the product of all others along `dim`, without dividing, for there may be zeros.

    What is before an element and what is behind it, both by doubling: products of 1, 2, 4, ... neighbours. It is made
    of recorded products, so that its own derivatives are right at zeros too.
    """
    before, behind = shift(x, dim, 1, 1), shift(x, dim, -1, 1)
    steps = 1
    while steps < x.shape[dim]:
        before = mul(before, shift(before, dim, steps, 1))
        behind = mul(behind, shift(behind, dim, -steps, 1))
        steps *= 2
    return mul(before, behind)


def prod_rule(n, g):
    x = n.saved(0)
    if np.all(values_of(x)):
        return times(conjugate(div(n.saved_result(), x)), g)
    return mul(g, conjugate(reshape(product_of_others(reshape(x, -1), 0), x.shape)))


PROD = declare("prod", prod_rule, saves=IN0 | OUT0, inputs="self")


def prod_dim_rule(n, g):
    dim, keepdim = n.args
    x = n.saved(0)
    if x.ndim == 0:
        return g
    g = restored(g, x.shape, (dim,), keepdim)
    if np.all(values_of(x)):
        return times(conjugate(div(restored(n.saved_result(), x.shape, (dim,), keepdim), x)), g)
    return mul(g, conjugate(product_of_others(x, dim)))


PROD_DIM = declare(
    "prod.dim_int",
    prod_dim_rule,
    saves=IN0 | OUT0,
    flags=PRIVATE,
    inputs="self",
    attributes="dim keepdim",
    node="ProdBackward1",
)


def prod(input, dim=..., keepdim=False, *, dtype=None, axis=None, keepdims=None, out=None):
    """The product of the elements, of all or along one dimension.

    Integers and truth values are multiplied in int64, other types in their own or in `dtype`. Saves `input` and the
    result. Gradient: g times the product of the other elements, also where there are zeros. Raises IndexError for a
    dimension that is not there.

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
    result = restored(n.saved_result(), x.shape, axes, keepdim)
    apart = sub(x, result)
    return times(conjugate(exp(apart, out=reused(apart))), restored(g, x.shape, axes, keepdim))


LOGSUMEXP = declare("logsumexp", logsumexp_rule, saves=IN0 | OUT0, inputs="self", attributes="dim keepdim")


def logsumexp(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """`log(sum(exp(input)))` over `dim` (an int or a tuple of ints), without overflow; -inf of no elements.

    Saves `input` and the result r. Gradient: g * exp(input - r), which is the softmax times g. Raises IndexError for a
    dimension that is not there.

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
    array = array_of(t) if t.is_floating_point() or t.is_complex() else as_type(t, get_default_dtype())
    return recorded(LOGSUMEXP, log_sums(array, *args), (t,), args, out)


def log_sums(array, axes, keepdim):
    """`reduce.logsumexp`, of large arrays part by part."""
    join = reduce.logsumexp if array.itemsize > 2 else None  # which would round once more
    return stack_chunks.reduced(reduce.logsumexp, array, axes, keepdim, join)


# -- truth values of many --


def truth(op, input, dim, keepdim, axis, keepdims, out):
    """`all` or `any`: no dimension at all, `dim=()`, leaves each element for itself."""
    if not isinstance(input, Tensor):
        raise messages.fits_none(op.name)
    dim = dim if axis is None else axis
    nowhere = isinstance(dim, (tuple, list)) and not dim
    axes = () if nowhere else axes_argument(op, input, dim, None)
    args = axes, flag_argument(op, keepdim, keepdims)
    array = (reduce.all_ if op is ALL else reduce.any_)(array_of(input), *args)
    if input.dtype.name == "uint8":  # stays: that was PyTorch's boolean once
        array = array.astype(np.uint8)
    return recorded(op, array, (input,), args, out)


ALL = declare("all", flags=NONDIFF, kernel=reduce.all_)


def all(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """Whether all elements over `dim` are true (not 0). Boolean; uint8 for uint8.

    >>> import cygrad
    >>> x = cygrad.tensor([[1, 0], [1, 1]])
    >>> x.all(), x.all(dim=1)
    (tensor(False), tensor([False,  True]))
    """
    return truth(ALL, input, dim, keepdim, axis, keepdims, out)


ANY = declare("any", flags=NONDIFF, kernel=reduce.any_)


def any(input, dim=None, keepdim=False, *, axis=None, keepdims=None, out=None):
    """Whether any element over `dim` is true (not 0). Boolean; uint8 for uint8.

    >>> import cygrad
    >>> x = cygrad.tensor([[1, 0], [0, 0]])
    >>> x.any(), x.any(dim=1)
    (tensor(True), tensor([ True, False]))
    """
    return truth(ANY, input, dim, keepdim, axis, keepdims, out)


COUNT_NONZERO = declare("count_nonzero", flags=NONDIFF, kernel=arg_extrema.count_nonzero)


def count_nonzero(input, dim=None, *, axis=None):
    """How many elements over `dim` are not 0, in int64.

    >>> import cygrad
    >>> cygrad.count_nonzero(cygrad.tensor([[1, 0], [1, 1]]), dim=0)
    tensor([2, 1])
    """
    t = tensor_argument(COUNT_NONZERO, input, "input", 1)
    return apply_n(COUNT_NONZERO, (t,), (axes_argument(COUNT_NONZERO, t, dim, axis), False))


NONZERO = declare("nonzero", flags=NONDIFF, kernel=axis_ops.nonzero)


def nonzero(input, *, as_tuple=False, out=None):
    """Where the elements are not 0: one row of indices for each, in int64.

    With `as_tuple` a tuple of index tensors, one for each dimension, which indexes `input`.

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
    a = array_of(t)
    return tuple([record_n(NONZERO, dense(index), (t,)) for index in axis_ops.nonzero(a if a.ndim else a.reshape(1)).T])


functions = publish(globals())
