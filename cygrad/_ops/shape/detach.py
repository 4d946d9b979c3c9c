"""`Tensor.detach` and `Tensor.detach_` as functions."""

from cygrad._ops.base.arguments import require


def detach(input):
    """Return a tensor without history on the memory of `input`; the version counter still tracks in-place changes.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.detach(x * 2)
    tensor([2., 2.])
    """
    return require(input, "detach").detach()


def detach_(input):
    """Detach `input` from its history in place. Raises RuntimeError for views.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True) * 2
    >>> cygrad.detach_(x).requires_grad
    False
    """
    return require(input, "detach_").detach_()


functions = {"detach": detach, "detach_": detach_}
