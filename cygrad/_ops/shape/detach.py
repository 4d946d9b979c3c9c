"""`Tensor.detach` and `Tensor.detach_` as functions."""

from cygrad._ops.base.arguments import require


def detach(input):
    """The memory of `input` as a tensor without history; in-place changes are still counted.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.detach(x * 2)
    tensor([2., 2.])
    """
    return require(input, "detach").detach()


def detach_(input):
    """Cut `input` from its history, in place. Raises RuntimeError for views."""
    return require(input, "detach_").detach_()


functions = {"detach": detach, "detach_": detach_}
