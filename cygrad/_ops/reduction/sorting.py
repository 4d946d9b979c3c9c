"""Sorting and order statistics: top k, k-th value, median and mode.

NaN counts as larger than all numbers. Each op returns values along one dimension together with their indices, as a
named tuple; the gradient goes to the elements at these indices. Sorting is stable.
"""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.kernel_call import as_float32
from cygrad._core.graph.opdef import NONDIFF, PRIVATE, declare, facts, publish
from cygrad._core.graph.record import apply_n, record_n, tensor_argument
from cygrad._kernels.cpu.base.copying import contiguous, in_dtype
from cygrad._kernels.cpu.base.numpy_fallback import refuse_float8
from cygrad._kernels.cpu.indexing.indexing import gather
from cygrad._kernels.cpu.reduction import sorting as kernels
from cygrad._ops.base.arguments import dim_argument, integer
from cygrad._ops.base.batching.rules import reduce_along, rule
from cygrad._ops.base.checks.common import require_kind
from cygrad._ops.common.out_argument import given
from cygrad._ops.reduction.extrema import check_dim_not_empty, choice_along, choice_of_all, chosen_along


def prepared(op, input, dim, kernel=None, booleans=False, position=2):
    """Return (tensor, its array with at least one dimension, dim) after checks; complex numbers have no order."""
    t = tensor_argument(op, input, "input", 1)
    dim = dim_argument(dim, t.dim(), op.name, "dim", position)
    if kernel is not None:
        require_kind("bif" if booleans else "if", kernel, t)
    a = as_float32(array_of(t))
    return t, a if a.ndim else a.reshape(1), dim


def in_memory_order(find, a, dim, *args):
    """Call `find` with the array's dimensions in memory order, so that the result has the same memory layout."""
    if a.flags.c_contiguous or 0 in a.strides:
        return find(a, dim, *args)
    order = sorted(range(a.ndim), key=lambda i: -abs(a.strides[i]))
    back = sorted(order, key=order.__getitem__)
    found = find(a.transpose(order), back[dim], *args)
    return tuple(each.transpose(back) for each in found) if isinstance(found, tuple) else found.transpose(back)


# -- sort --

SORT = choice_along("sort")
SORT_STABLE = choice_along("sort.stable", node="SortBackward1", out_dtype="same")


@facts(out_dtype="same", overloads="15")
def sort(input, dim=-1, descending=False, *, stable=None, out=None):
    """Sort the elements in ascending (or `descending`) order along `dim`: a tuple (values, indices) of input's shape.

    Saves the indices. Gradient: g, moved back to the original positions. Sorting is always stable. Raises RuntimeError
    for complex tensors, IndexError for a dimension out of range.

    >>> import cygrad
    >>> values, indices = cygrad.sort(cygrad.tensor([3.0, 1.0, 2.0]))
    >>> values, indices
    (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    if (stable is not None and not isinstance(stable, bool)) or not isinstance(descending, bool):
        raise messages.fits_none("sort")
    op = SORT if stable is None else SORT_STABLE
    t, a, dim = prepared(op, input, dim)
    if t.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if t.ndim:
        refuse_float8(t.dtype.numpy, "sorting_kernel_method_name")
    values, indices = in_memory_order(kernels.sorted_along, a, dim, descending)
    if not t.ndim:
        values, indices = values.reshape(()), indices.reshape(())
    return chosen_along(op, t, values, indices, dim, True, out, (descending,))


ARGSORT = declare("argsort", flags=NONDIFF, overloads="145", float8="sorting_kernel_method_name")


def argsort(input, dim=-1, descending=False, *, stable=False, out=None):
    """Return the indices that sort `input` along `dim`, int64. Not differentiable.

    >>> import cygrad
    >>> cygrad.argsort(cygrad.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    if not (isinstance(stable, bool) and isinstance(descending, bool)):
        raise messages.fits_none("argsort")
    t, a, dim = prepared(SORT_STABLE, input, dim)
    if t.is_complex() or out is not None:  # `sort` raises the errors
        outs = None if out is None else (tensor_of(np.empty_like(array_of(t))), out)
        return sort(t, dim, descending, stable=stable, out=outs).indices
    found = in_memory_order(kernels.order_along, a, dim, descending)
    return record_n(ARGSORT, found.reshape(t.shape), (t,), (dim, descending))


@rule("argsort")
def _order(call):
    t, (dim, descending) = call.inputs[0], call.needed_args()
    x = call.full(t) if t.ndim else call.full(t).view(-1, 1)
    found = x.argsort(dim % t.ndim + 1 if t.ndim else 1, descending, stable=True)
    return call.shaped(found, call.out.shape)


MSORT = declare("msort.values", flags=NONDIFF | PRIVATE, batching=None, float8="sorting_kernel_method_name")


def msort(input, *, out=None):
    """Sort the elements in ascending order along the first dimension; the values of `sort(input, 0)`.

    >>> import cygrad
    >>> cygrad.msort(cygrad.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    t, a, _ = prepared(SORT, input, 0)
    if out is None and not is_recorded(t) and not t.is_complex() and 0 not in a.strides:  # np.sort copies in that order
        found = in_memory_order(np.sort, a, 0).reshape(t.shape)
        found = in_dtype(found, array_of(t).dtype)  # 16-bit floats are sorted as float32
        return record_n(MSORT, found, (t,))
    values = sort(input, 0).values
    return given("sort", values, out)


# -- order statistics --

TOPK = choice_along("topk")


@facts(out_dtype="same")
def topk(input, k, dim=-1, largest=True, sorted=True, *, out=None):
    """Return the `k` largest (or smallest) elements along `dim`, in order: a tuple (values, indices).

    Saves the indices. Gradient: g, scattered into zeros at the indices. Raises RuntimeError if there are fewer than `k`
    elements, and for complex and boolean tensors.

    >>> import cygrad
    >>> cygrad.topk(cygrad.tensor([3.0, 1.0, 2.0]), 2)
    torch.return_types.topk(
    values=tensor([3., 2.]),
    indices=tensor([0, 2]))
    """
    k = integer(k, "topk", "k", 2)
    t, a, dim = prepared(TOPK, input, dim, position=3)
    n = a.shape[dim]
    if not 0 <= k <= n:
        raise RuntimeError(f"selected index k out of range\n  k is {k}, and there are {n} elements to choose from")
    if a.dtype.kind in "bc":
        word = "topk does not support bool" if a.dtype.kind == "b" else " topk does not support complex"
        raise RuntimeError(f"{word} dtypes on CPU")
    if t.ndim:
        refuse_float8(t.dtype.numpy, "topk_cpu")
    if t.dim() == 0:
        values, indices = contiguous(a[0:1].reshape(())), np.zeros((), np.int64, like=a)
    else:
        values, indices = kernels.first_along(a, dim, k, largest)
    return chosen_along(TOPK, t, values, indices, dim, True, out, (k, largest, sorted))


def picked(op, t, a, find, dim, keepdim, out, rank=()):
    """Run an op that selects one element along `dim`; the kernel named `find` returns its index."""
    found = kernels.one_of_few(find, a, dim, *rank)
    if found is None:
        order = getattr(kernels, find)(a, dim, *rank)  # of length 1 along `dim`
        found = gather(a, dim, order), order
    values, indices = found
    if not keepdim or not t.ndim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return chosen_along(op, t, values, indices, dim, bool(keepdim), out, tuple([k + 1 for k in rank]))


KTHVALUE = choice_along("kthvalue", float8="kthvalue_cpu")


@facts(out_dtype=("output values must be of same type as input", "output indices must be of scalar type Long"))
def kthvalue(input, k, dim=-1, keepdim=False, *, out=None):
    """Return the `k`-th smallest elements along `dim`, counted from 1: a tuple (values, indices).

    Saves the indices. Gradient: g, scattered into zeros at the indices. Raises RuntimeError if there are fewer than `k`
    elements.

    >>> import cygrad
    >>> cygrad.kthvalue(cygrad.tensor([3.0, 1.0, 2.0]), 2)
    torch.return_types.kthvalue(
    values=tensor(2.),
    indices=tensor(2))
    """
    k = integer(k, "kthvalue", "k", 2)
    t, a, dim = prepared(KTHVALUE, input, dim, "kthvalue_cpu", position=3)
    check_dim_not_empty(KTHVALUE, t, dim)
    if not 1 <= k <= a.shape[dim]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return picked(KTHVALUE, t, a, "kth_along", dim, keepdim, out, (k - 1,))


@rule("sort sort.stable topk kthvalue")
def _ordered(call):
    t, x = call.inputs[0], call.full(call.inputs[0])
    _, dim, keepdim, *how = call.args
    x, dim = (x, dim % t.ndim + 1) if t.ndim else (x.view(-1, 1), 1)
    if call.op.name == "sort":
        found = x.sort(dim, *how, stable=True)
    else:
        found = x.topk(how[0], dim, *how[1:]) if call.key == "topk" else x.kthvalue(how[0], dim, keepdim)
    return [call.shaped(part, call.out.shape) for part in found]


# -- median --


MEDIAN = choice_of_all("median", kernels.median_of_all)
NANMEDIAN = choice_of_all("nanmedian", kernels.nanmedian_of_all)
MEDIAN_DIM = choice_along(
    "median.dim",
    node="MedianBackward1",
    out_dtype=("middle_values", "middle_indices"),
    batching=reduce_along,
    float8="median_out",
)
NANMEDIAN_DIM = choice_along(
    "nanmedian.dim",
    node="NanmedianBackward1",
    out_dtype=("middle_values", "middle_indices"),
    batching=reduce_along,
    float8="median_out",
)


def median(input, dim=..., keepdim=False, *, out=None):
    """Return the median, the lower one of two middle elements; NaN if any element is NaN.

    Without `dim`, of all elements; g is shared among the elements equal to the median. With `dim`, along that
    dimension: a tuple (values, indices), which saves the indices; g goes to the element at the index.

    >>> import cygrad
    >>> cygrad.median(cygrad.tensor([3.0, 1.0, 2.0, 4.0]))
    tensor(2.)
    """
    if dim is ...:
        return of_all(MEDIAN, input, keepdim, out)
    t, a, dim = median_operand(MEDIAN_DIM, input, dim)
    return along_dim(MEDIAN_DIM, t, a, "median_along", dim, keepdim, out)


def nanmedian(input, dim=..., keepdim=False, *, out=None):
    """Return the median of the elements that are not NaN, the lower one of two middle elements. See `median`.

    Saves `input` and the result; with `dim`, only the indices.

    >>> import cygrad
    >>> cygrad.nanmedian(cygrad.tensor([3.0, 1.0, float("nan")]))
    tensor(1.)
    """
    if dim is ...:
        return of_all(NANMEDIAN, input, keepdim, out)
    t, a, dim = median_operand(NANMEDIAN_DIM, input, dim)
    return along_dim(NANMEDIAN_DIM, t, a, "middle_along", dim, keepdim, out)


@rule("median nanmedian")
def _median(call):
    if not call.inputs[0].numel():
        return call.full(call.out.detach())
    return getattr(call.shaped(call.full(call.inputs[0]), (-1,)), call.key)(1)[0]


def of_all(op, input, keepdim, out):
    if keepdim is not False:
        raise TypeError(f'{op.name}() missing 1 required positional arguments: "dim"')
    t = tensor_argument(op, input, "input", 1)
    if t.numel():  # the median of no elements is NaN (converted to the dtype), for any dtype
        require_kind("if", "median_cpu", t)
    return apply_n(op, (t,), None, out)


def median_operand(op, input, dim):
    t, a, dim = prepared(op, input, dim)
    check_dim_not_empty(MEDIAN_DIM, t, dim)
    require_kind("if", "median_out", t)
    return t, a, dim


def along_dim(op, t, a, find, dim, keepdim, out):
    if type(keepdim) is not bool:
        raise TypeError(f"{op.name}(): argument 'keepdim' must be bool, not {type(keepdim).__name__}")
    return picked(op, t, a, find, dim, keepdim, out)


# -- mode --

MODE = choice_along("mode", batching=reduce_along, float8="mode_cpu")


@facts(
    out_dtype=(
        "expected scalar type '{result}' but got '{out}' for values output",
        "expected scalar type '{result}' but got '{out}' for indices output",
    )
)
def mode(input, dim=-1, keepdim=False, *, out=None):
    """Return the most frequent elements along `dim`, the smallest if there are several: a tuple (values, indices).

    Saves the indices, which are of the last occurrence. Gradient: g, scattered into zeros at the indices.

    >>> import cygrad
    >>> cygrad.mode(cygrad.tensor([3, 1, 1, 3, 2]))
    torch.return_types.mode(
    values=tensor(1),
    indices=tensor(2))
    """
    t, a, dim = prepared(MODE, input, dim, "mode_cpu", booleans=True)
    messages.check_flag("mode", "keepdim", 3, keepdim)
    check_dim_not_empty(MODE, t, dim)
    return picked(MODE, t, a, "most_frequent", dim, keepdim, out)


composite = {"msort": 0}
functions = publish(globals())
