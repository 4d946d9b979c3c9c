"""The losses of most training loops: squared and absolute error, nll, cross-entropy; and what all losses share.

`reduction` says what is made of the losses of all elements: their "mean", their "sum", or "none" of these. Its
deprecated predecessors are `size_average` and `reduce`. Each loss is one node, reduction included, except for l1_loss.
Other losses that compare element by element stand in pointwise_losses.py.
"""

from numpy cimport NPY_INT64, PyArray_DIMS, PyArray_NDIM, PyArray_TYPE, ndarray

import numpy as np

from cygrad._core.dtypes cimport FLOATING
from cygrad._core.opdef cimport FUNCTION_ONLY, IN0, IN1, METHOD_ONLY, PRIVATE, OpDef, OpNode, lookup, op, variant
from cygrad._core.opdef import publish
from cygrad._core.record cimport record1, record2, run2
from cygrad._core.tensor cimport Tensor, dtype_of, wrap
from cygrad._core import messages
cimport cygrad._kernels.nn as nn
cimport cygrad._kernels.reduce as reduce_kernels
from cygrad._kernels.arrays cimport same_shape
from cygrad._ops.arguments cimport require
from cygrad._ops.arithmetic cimport mul, neg, sub
from cygrad._ops.pointwise cimport abs
from cygrad._ops.softmax cimport log_softmax_along
from cygrad._ops import loss_checks as checks, loss_reductions as reductions, soft_targets

cdef unsigned int ELSEWHERE = FUNCTION_ONLY | METHOD_ONLY    # neither: found in nn.functional
cdef int NONE = reductions.NONE, MEAN = reductions.MEAN, SUM = reductions.SUM


# -- what all losses share ---------------------------------------------------------------------------------

cpdef int reduction_of(object reduction, object size_average, object reduce) except -1:
    if size_average is not None or reduce is not None:
        reduction = reductions.old_reduction(size_average, reduce)
    if reduction == "mean":
        return MEAN
    if reduction == "sum":
        return SUM
    if reduction != "none":
        raise reductions.no_reduction(reduction)
    return NONE


cpdef Tensor finished(OpDef op, object losses, tuple inputs, int reduction, tuple more=(), object kept=None):
    cdef object array = losses
    cdef Tensor result
    if reduction == MEAN:
        array = reduce_kernels.mean(losses)
    elif reduction == SUM:
        array = reduce_kernels.sum(losses)
    result = record2(op, array, inputs[0], inputs[1], (reduction, losses.size) + more)
    if kept is not None:
        keep(result, 2, kept)
    return result


cdef int keep(Tensor result, int slot, object value) except -1:
    """Save what has no gradient beside the inputs that have edges."""
    if result.grad_fn_ is not None:
        (<OpNode>result.grad_fn_).save_input(slot, value)
    return 0


cpdef Tensor spread(OpNode n, Tensor g):
    """The gradient of each element's loss, from that of the whole."""
    return mul(g, 1 / n.args[1]) if n.args[0] == MEAN and n.args[1] else g


# -- squared and absolute error ----------------------------------------------------------------------------

cdef object mse_rule(OpNode n, object g):
    grad = mul(mul(sub(n.saved(0), n.saved(1)), 2), spread(n, g))
    return grad, neg(grad) if n.needs(1) else None

cdef OpDef MSE = op("mse_loss", mse_rule).row(saves=IN0 | IN1, flags=ELSEWHERE, inputs="self target",
                    attributes="reduction")
cdef OpDef SUB = lookup("sub"), MUL = lookup("mul")

def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared error `(input - target)^2`; its mean, its sum, or that of each element.

    `weight` of the input's shape weighs the elements. Saves both. Gradient: 2 * g * (input - target), divided by their
    number for the mean. Warns if input and target differ in shape, which broadcasts.

    >>> import cygrad
    >>> cygrad.nn.functional.mse_loss(cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(2.5000)
    """
    cdef Tensor x = require(input, "mse_loss"), y = require(target, "mse_loss", "target", 2)
    cdef int how = reduction_of(reduction, size_average, reduce)
    cdef ndarray d
    if dtype_of(x).category != FLOATING or dtype_of(y).category != FLOATING:
        checks.check_floating(x, y, "mse_cpu")
    if not same_shape(<ndarray>x.array, <ndarray>y.array):
        checks.warn_sizes(x, y)
    d = run2(SUB, x, y, None)
    d = MUL.ufunc.call2(d, d, None)
    if weight is not None:
        return reductions.weighted(finished(MSE, d, (x, y), NONE), weight, x, how, "mse_loss")
    return finished(MSE, d, (x, y), how)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute error `|input - target|`; its mean, its sum, or that of each element.

    `weight` of the input's shape weighs the elements. Gradient: g * sign(input - target), divided by their number for
    the mean. Warns if input and target differ in shape, which broadcasts.

    >>> import cygrad
    >>> cygrad.nn.functional.l1_loss(cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(1.5000)
    """
    cdef Tensor x = require(input, "l1_loss"), y = require(target, "l1_loss", "target", 2), losses
    cdef int how = reduction_of(reduction, size_average, reduce)
    if not same_shape(<ndarray>x.array, <ndarray>y.array):
        checks.warn_sizes(x, y)
    losses = abs(sub(x, y))
    return reductions.reduced(losses, how) if weight is None else reductions.weighted(losses, weight, x, how, "l1_loss")


# -- negative log-likelihood of arrays ---------------------------------------------------------------------

cdef object as_rows(object array):
    """(C), (N, C) or (N, C, d1, ...) as (samples, C)."""
    if array.ndim == 2:
        return array
    if array.ndim == 1:
        return array.reshape(1, -1)
    return np.moveaxis(array, 1, -1).reshape(-1, array.shape[1])


cdef object from_rows(object rows, tuple shape):
    """The reverse."""
    if len(shape) <= 2:
        return rows.reshape(shape)
    return np.moveaxis(rows.reshape(shape[:1] + shape[2:] + shape[1:2]), -1, 1)


cdef object nll_backward_array(object grad, object target, object weight, long long ignore_index, int reduction,
                               object total, tuple shape):
    """The gradient with respect to the log-probabilities of that shape."""
    like = np.broadcast_to(grad.dtype.type(0), (target.size, shape[1 if len(shape) > 1 else 0]))
    rows = nn.nll_backward(np.ascontiguousarray(grad).reshape(-1) if reduction == NONE else grad, like,
                           target.reshape(-1), weight, ignore_index, reduction, total)
    return from_rows(rows, shape)


# -- and of tensors ----------------------------------------------------------------------------------------

cdef object nll_rule(OpNode n, object g):
    ignore_index, reduction, total = n.args
    shape = (<Tensor>n.saved(0)).array.shape
    return nll_loss_backward(g, n.saved(1), n.saved(2), ignore_index, reduction, total, shape)

cdef OpDef NLL = op("nll_loss", nll_rule).row(saves=IN0, flags=ELSEWHERE, inputs="self target weight",
                    attributes="ignore_index reduction total_weight")
cdef OpDef NLL_2D = variant(NLL, "NllLoss2DBackward0")


cdef Tensor nll(Tensor input, Tensor target, Tensor weight, object ignore_index, int reduction):
    cdef Tensor result
    array = input.array
    loss, total = nn.nll(as_rows(array), target.array.reshape(-1), None if weight is None else weight.array,
                         ignore_index, reduction)
    if reduction == NONE:
        loss = loss.reshape(target.array.shape if array.ndim > 1 else ())
    result = record1(NLL if array.ndim <= 2 else NLL_2D, loss, input, (ignore_index, reduction, wrap(total)))
    keep(result, 1, target)
    keep(result, 2, weight)
    return result


cdef object nll_backward_rule(OpNode n, object g):
    # the loss is linear in its input, and this op its transpose: the transpose of that is the loss
    return nll(g, n.saved(1), n.saved(2), n.args[0], n.args[1])

cdef OpDef NLL_BACKWARD = op("nll_loss_backward", nll_backward_rule).row(
    flags=PRIVATE, inputs="grad_output target weight",
    attributes="ignore_index reduction total_weight self_sizes")

cpdef Tensor nll_loss_backward(Tensor grad_output, Tensor target, Tensor weight, object ignore_index, int reduction,
                               Tensor total_weight, tuple self_sizes):
    """The gradient of `nll_loss` with respect to its input, of shape `self_sizes`."""
    cdef Tensor result
    array = nll_backward_array(grad_output.array, target.array, None if weight is None else weight.array, ignore_index,
                               reduction, total_weight.array, self_sizes)
    result = record1(NLL_BACKWARD, array, grad_output, (ignore_index, reduction, total_weight, self_sizes))
    keep(result, 1, target)
    keep(result, 2, weight)
    return result


# -- nll_loss ----------------------------------------------------------------------------------------------

def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the log-probability that `input` gives to each sample's class; mean, sum, or of each sample.

    Shapes: input (C), (N, C) or (N, C, d1, ...), target (), (N) or (N, d1, ...) of int64, weight (C). Samples of class
    `ignore_index` do not count; the mean is by the weights of the classes. Saves all. Gradient: -g * weight at the
    class, divided by the sum of the weights for the mean.

    Raises IndexError for a class that is none, ValueError or RuntimeError for shapes and dtypes that do not fit.

    >>> import cygrad
    >>> log_probabilities = cygrad.tensor([[0.5, 0.5], [0.9, 0.1]]).log()
    >>> cygrad.nn.functional.nll_loss(log_probabilities, cygrad.tensor([0, 0]))
    tensor(0.3993)
    """
    cdef int how = reduction_of(reduction, size_average, reduce)
    return checked_nll(require(input, "nll_loss_nd"), require(target, "nll_loss_nd", "target", 2), weight,
                       ignore_index, how)


cdef Tensor checked_nll(Tensor input, Tensor target, object weight, object ignore_index, int reduction):
    check_target(<ndarray>input.array, <ndarray>target.array, input, target)
    if dtype_of(input).category != FLOATING:
        raise messages.not_implemented_for("nll_loss_out_frame", dtype_of(input))
    if weight is not None:
        checks.check_class_weight(weight, input, "nll_loss_nd")
        checks.check_constant(weight, "nll_loss_forward", "weight")
    return nll(input, target, weight, ignore_index, reduction)


cdef int check_target(ndarray values, ndarray classes, Tensor input, Tensor target) except -1:
    """Do shapes and type of class indices fit? The usual ones pass at once."""
    if (PyArray_NDIM(values) != 2 or PyArray_NDIM(classes) != 1 or PyArray_TYPE(classes) != NPY_INT64
            or PyArray_DIMS(values)[0] != PyArray_DIMS(classes)[0]):
        checks.check_target(input, target)
    return 0


# -- cross_entropy -----------------------------------------------------------------------------------------

def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    """`nll_loss(log_softmax(input, 1), target)`: the usual loss of a classifier; mean, sum, or of each sample.

    Shapes: input (C), (N, C) or (N, C, d1, ...) of any numbers (logits); target either class indices, (), (N) or
    (N, d1, ...) of int64, or probabilities in input's shape; weight (C). Samples of class `ignore_index` do not count.
    `label_smoothing` is the part of the target that is spread evenly over the classes.

    Raises IndexError for a class that is none, ValueError or RuntimeError for shapes and dtypes that do not fit.

    >>> import cygrad
    >>> cygrad.nn.functional.cross_entropy(cygrad.zeros(3, 10), cygrad.tensor([1, 2, 3]))
    tensor(2.3026)
    """
    cdef Tensor x = require(input, "cross_entropy_loss"), y = require(target, "cross_entropy_loss", "target", 2)
    cdef Tensor logp, by_class
    cdef int how = reduction_of(reduction, size_average, reduce)
    cdef double smoothing = label_smoothing
    cdef bint has_probabilities = same_shape(<ndarray>x.array, <ndarray>y.array)
    if smoothing > 1:
        raise checks.too_much_smoothing(label_smoothing)
    if not has_probabilities and PyArray_NDIM(<ndarray>x.array):
        check_target(<ndarray>x.array, <ndarray>y.array, x, y)
    if dtype_of(x).category != FLOATING:
        raise messages.not_implemented_for("log_softmax_lastdim_kernel_impl", dtype_of(x))
    logp = log_softmax_along(x, 1 if PyArray_NDIM(<ndarray>x.array) > 1 else 0)
    if has_probabilities:
        return soft_targets.soft_loss(logp, y, weight, ignore_index, how, smoothing)
    by_class = checked_nll(logp, y, weight, ignore_index, how)
    if smoothing > 0:
        return soft_targets.smoothed(by_class, logp, y, weight, ignore_index, how, smoothing)
    return by_class


functions = publish(globals())
