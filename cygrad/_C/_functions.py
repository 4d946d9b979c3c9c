"""Functions that PyTorch keeps in `torch._C._functions`: nodes with a gradient of their own, or with none."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad._core.graph.accumulate_grad import AccumulateGrad
from cygrad.autograd.function import Function

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]


def _check_tensors(inputs, count):
    if len(inputs) != count:
        raise TypeError(f"expected {count} arguments, got {len(inputs)} instead")
    for i, value in enumerate(inputs):
        if not isinstance(value, Tensor):
            raise TypeError(f"argument {i} is not a Variable\n  it is {type(value).__name__}")


class _Error(Function):
    """Passes tensors through, and raises an error in backward."""

    @staticmethod
    def forward(ctx, message, *inputs):
        """Return tensors that share the memory of `inputs`."""
        ctx.message = message
        return tuple(x.detach() for x in inputs)

    @staticmethod
    def backward(ctx, *grads):
        """Raise the error."""
        raise RuntimeError(ctx.message)


class DelayedError:
    """A function of `num_inputs` tensors that returns them, and raises RuntimeError(`msg`) in backward."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        if not isinstance(msg, str):
            raise RuntimeError("argument 'msg' must be a string")
        self._message, self._count = msg, int(num_inputs)

    def __call__(self, *inputs: Any) -> Any:
        """Return the tensors; not a tuple if there is one."""
        _check_tensors(inputs, self._count)
        if not any(x.requires_grad for x in inputs):
            return inputs[0] if len(inputs) == 1 else inputs
        found = _Error.apply(self._message, *inputs)
        return found[0] if len(inputs) == 1 else found


class _UndefinedGrad(Function):
    """Passes a tensor through, but no gradient."""

    @staticmethod
    def forward(ctx, x):
        """Return a tensor that shares the memory of `x`."""
        return x.detach()

    @staticmethod
    def backward(ctx, grad):
        """Return no gradient."""
        return None


class UndefinedGrad:
    """A function that returns its tensor, and gives it no gradient in backward."""

    def __call__(self, *inputs: Any) -> Any:
        """Return the tensor."""
        _check_tensors(inputs, 1)
        return _UndefinedGrad.apply(*inputs)
