"""Backward passes over several processes, which need `distributed.rpc`."""

from cygrad.distributed._c10d.errors import one_process

__all__ = ["backward", "context", "get_gradients", "is_available"]


def is_available():
    """Whether backward passes can go through other processes: False.

    >>> import cygrad.distributed.autograd as dist_autograd
    >>> dist_autograd.is_available()
    False
    """
    return False


class context:
    """A backward pass over several processes. Raises RuntimeError: use `Tensor.backward`.

    >>> import cygrad.distributed.autograd as dist_autograd
    >>> with dist_autograd.context() as context_id:
    ...     pass
    Traceback (most recent call last):
        ...
    RuntimeError: distributed.autograd.context, which goes through other processes...
    """

    def __init__(self):
        raise one_process("distributed.autograd.context, which goes through other processes")


def backward(context_id, roots, retain_graph=False):
    """Go backward through all processes. Raises RuntimeError: use `Tensor.backward`.

    >>> import cygrad
    >>> import cygrad.distributed.autograd as dist_autograd
    >>> dist_autograd.backward(1, [cygrad.ones((), requires_grad=True)])
    Traceback (most recent call last):
        ...
    RuntimeError: distributed.autograd.backward, which goes through other processes...
    """
    raise one_process("distributed.autograd.backward, which goes through other processes")


def get_gradients(context_id):
    """The gradients of a backward pass through all processes. Raises RuntimeError: use `Tensor.grad`.

    >>> import cygrad.distributed.autograd as dist_autograd
    >>> dist_autograd.get_gradients(1)
    Traceback (most recent call last):
        ...
    RuntimeError: distributed.autograd.get_gradients, which goes through other processes...
    """
    raise one_process("distributed.autograd.get_gradients, which goes through other processes")
