"""Calling a module with its parameters in another dtype."""

from contextlib import contextmanager

from cygrad import Tensor
from cygrad.nn.parallel.scatter_gather import is_namedtuple
from cygrad.nn.utils.stateless import _replaced

__all__ = ["cast_floating", "parameters_in_dtype"]


def cast_floating(value, dtype):
    """A value, however nested, with its floating-point tensors in a dtype; None leaves them as they are.

    >>> import cygrad
    >>> from cygrad.distributed.utils import cast_floating
    >>> cast_floating({"x": cygrad.ones(2), "n": 3}, cygrad.float16)
    {'x': tensor([1., 1.], dtype=torch.float16), 'n': 3}
    """
    if dtype is None:
        return value
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if is_namedtuple(value):
        return type(value)(*(cast_floating(each, dtype) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(cast_floating(each, dtype) for each in value)
    if isinstance(value, dict):
        return type(value)((key, cast_floating(each, dtype)) for key, each in value.items())
    return value


@contextmanager
def parameters_in_dtype(module, param_dtype, buffer_dtype=None, kept_in_full=()):
    """Within this context a module's floating-point parameters and buffers are in these dtypes.

    Gradients arrive in the parameters' own. Modules of the classes `kept_in_full` stay as they are.
    """
    state: dict = {}
    if param_dtype is not None or buffer_dtype is not None:
        for name, inner in module.named_modules():
            if isinstance(inner, kept_in_full):
                continue
            prefix = f"{name}." if name else ""
            for tensors, dtype in (
                (inner.named_parameters(recurse=False), param_dtype),
                (inner.named_buffers(recurse=False), buffer_dtype),
            ):
                state.update((prefix + key, cast_floating(tensor, dtype)) for key, tensor in tensors)
    with _replaced(module, state, tie_weights=True, strict=False):
        yield
