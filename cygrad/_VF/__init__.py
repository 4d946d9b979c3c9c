"""Functions that PyTorch has by private names alone, such as `_cast_Long`, and those that it has removed, as `solve`.

The removed ones raise PyTorch's error, which says what to call.
"""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor

__all__ = [
    "_dim_arange",
    "_log_softmax",
    "_log_softmax_backward_data",
    "_sample_dirichlet",
    "_shape_as_tensor",
    "_softmax",
    "_softmax_backward_data",
    "_standard_gamma",
    "_weight_norm",
]


# -- conversions and shapes --


def _cast(name: str, dtype: Any) -> Any:
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(dtype, non_blocking=non_blocking)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Return a tensor converted to {dtype}."
    return cast


_cast_Byte = _cast("_cast_Byte", cygrad.uint8)
_cast_Char = _cast("_cast_Char", cygrad.int8)
_cast_Double = _cast("_cast_Double", cygrad.float64)
_cast_Float = _cast("_cast_Float", cygrad.float32)
_cast_Half = _cast("_cast_Half", cygrad.float16)
_cast_Int = _cast("_cast_Int", cygrad.int32)
_cast_Long = _cast("_cast_Long", cygrad.int64)
_cast_Short = _cast("_cast_Short", cygrad.int16)
__all__ += [name for name in list(globals()) if name.startswith("_cast_")]


def _shape_as_tensor(input: Tensor) -> Tensor:
    """Return the shape as a tensor of int64."""
    return cygrad.tensor(input.shape, dtype=cygrad.int64)


def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """Return the indices along a dimension."""
    return cygrad.arange(like.shape[dim], device=like.device)


# -- softmax, and its gradient from its result --


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return softmax; with `half_to_float`, of float16 in float32, which is for GPUs."""
    return cygrad.softmax(input, dim, dtype=cygrad.float32 if half_to_float else None)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return the logarithm of softmax; with `half_to_float`, of float16 in float32, which is for GPUs."""
    return cygrad.log_softmax(input, dim, dtype=cygrad.float32 if half_to_float else None)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of the input of softmax: y (g - sum(g y)).

    >>> import cygrad
    >>> cygrad._softmax_backward_data(cygrad.tensor([1.0, 0.0]), cygrad.tensor([0.5, 0.5]), 0, cygrad.float32)
    tensor([ 0.2500, -0.2500])
    """
    return (output * (grad_output - (grad_output * output).sum(dim, keepdim=True))).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of the input of `log_softmax`: g - exp(y) sum(g)."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


# -- random numbers and weights --


def _standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Draw from gamma distributions of these concentrations, with gradients."""
    from cygrad.distributions._implicit import standard_gamma  # needed only here

    with cygrad.random.drawing_from(generator or cygrad.default_generator):
        return standard_gamma(self)


def _sample_dirichlet(self: Tensor, generator: Any = None) -> Tensor:
    """Draw from Dirichlet distributions whose concentrations are in the last dimension, with gradients."""
    from cygrad.distributions._implicit import dirichlet  # needed only here

    with cygrad.random.drawing_from(generator or cygrad.default_generator):
        return dirichlet(self)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return g v / |v|, with norms over all dimensions but one."""
    others = [axis for axis in range(v.ndim) if axis != dim % v.ndim] if dim != -1 else list(range(v.ndim))
    return v * (g / cygrad.linalg.vector_norm(v, dim=others, keepdim=True))


# -- removed --


def _removed(name: str, text: str) -> Any:
    def removed(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed.{text}")

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = "Raise RuntimeError: PyTorch has removed this function."
    return removed


matrix_rank = _removed(
    "matrix_rank",
    "\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was renamed in "
    "`torch.linalg.matrix_rank()` to 'hermitian'.",
)
solve = _removed(
    "solve",
    " `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed "
    "and does not return the LU factorization.\n  X = torch.solve(B, A).solution is X = torch.linalg.solve(A, B)",
)
lstsq = _removed(
    "lstsq",
    " `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n"
    "  X, _ = torch.lstsq(B, A) is X = torch.linalg.lstsq(A, B).solution",
)
eig = _removed(
    "eig",
    " `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking "
    "complex tensors.\n  L, V = torch.eig(A, eigenvectors=True) is L, V = torch.linalg.eig(A)",
)
symeig = _removed(
    "symeig",
    " The default behavior has changed from using the upper triangular portion of the matrix by default to using the "
    "lower triangular portion.\n  L, V = torch.symeig(A, eigenvectors=True) is L, V = torch.linalg.eigh(A, UPLO='U')",
)
__all__ += ["eig", "lstsq", "matrix_rank", "solve", "symeig"]
