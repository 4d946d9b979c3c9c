"""What is made of the losses of all elements, where it is not part of the loss's own node."""

from cygrad._core.sites import warn
from cygrad._ops.arguments import require
from cygrad._ops.arithmetic import div, mul
from cygrad._ops.reductions import mean
from cygrad._ops.reductions import sum as total

NONE, MEAN, SUM = range(3)


def old_reduction(size_average, reduce):
    """The reduction that the two former arguments ask for."""
    reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction


def no_reduction(reduction):
    """A `reduction` that is none."""
    return ValueError(f'{reduction} is not a valid value for reduction\n  it is "mean", "sum" or "none"')


def reduced(losses, reduction):
    """The losses, their mean or their sum."""
    if reduction == NONE:
        return losses
    return mean(losses) if reduction == MEAN else total(losses)


def weighted(losses, weight, input, reduction, function):
    """The losses with a weight each; their mean is by the weights. Raises ValueError for another number of weights."""
    require(weight, function, "weight", 6)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = mul(losses, weight)
    if reduction == MEAN:
        return div(total(losses), total(weight))
    return reduced(losses, reduction)
