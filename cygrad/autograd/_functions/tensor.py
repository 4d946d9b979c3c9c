"""`Resize` and `Type`: changes of shape and of dtype as custom functions."""

from math import prod

from cygrad._core.errors.sites import warn
from cygrad.autograd.function import Function

__all__ = ["Resize", "Type"]


class Type(Function):
    """Convert to a type: `Type.apply(x, "torch.DoubleTensor")`. Gradient: g in the type of x. Deprecated: `x.to()`."""

    @staticmethod
    def forward(ctx, i, dest_type):
        warn(
            "`torch.autograd._functions.Type` is deprecated as of PyTorch 2.1, please use "
            "`torch.tensor.to(dtype=dtype)` instead.",
            FutureWarning,
        )
        ctx.dtype, ctx.device = i.dtype, i.device
        return i.type(dest_type)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.to(ctx.device, ctx.dtype), None


class Resize(Function):
    """View as another shape with as many elements, which is a RuntimeError otherwise. Gradient: g in the shape of x.

    >>> import cygrad
    >>> from cygrad.autograd._functions import Resize
    >>> Resize.apply(cygrad.arange(4.0), (2, 2)).shape
    torch.Size([2, 2])
    """

    @staticmethod
    def forward(ctx, tensor, sizes):
        ctx.sizes, ctx.numel, ctx.input_sizes = sizes, prod(sizes), tensor.size()
        if tensor.numel() != ctx.numel:
            wanted, given = ("x".join(map(str, shape)) for shape in (sizes, tensor.size()))
            raise RuntimeError(
                f"requested resize to {wanted} ({ctx.numel} elements in total), but the given tensor has a size of "
                f"{given} ({tensor.numel()} elements). autograd's resize can only change the shape of a given tensor, "
                "while preserving the number of elements. "
            )
        return tensor.contiguous().view(*sizes)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.contiguous().view(ctx.input_sizes), None
