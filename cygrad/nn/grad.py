"""Gradients of convolutions with respect to input and weight, as differentiable functions."""

from __future__ import annotations

from collections.abc import Sequence

import cygrad
from cygrad import Tensor, conv1d, conv2d, conv3d


def _gradient(convolve, input, weight, of, grad_output, more):
    with cygrad.enable_grad():
        result = convolve(input, weight, None, *more)
    return cygrad.autograd.grad(result, of, grad_output, create_graph=cygrad.is_grad_enabled())[0]


def _of_input(convolve, input_size, weight, grad_output, more):
    input = cygrad.zeros(input_size, dtype=weight.dtype, requires_grad=True)
    return _gradient(convolve, input, weight, input, grad_output, more)


def _of_weight(convolve, input, weight_size, grad_output, more):
    weight = cygrad.zeros(weight_size, dtype=input.dtype, requires_grad=True)
    return _gradient(convolve, input, weight, weight, grad_output, more)


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv1d` with respect to an input of the given size; see `conv2d_input`.

    >>> import cygrad
    >>> from cygrad.nn.grad import conv1d_input
    >>> conv1d_input((1, 1, 4), cygrad.ones(1, 1, 2), cygrad.ones(1, 1, 3))
    tensor([[[1., 2., 2., 1.]]])
    """
    return _of_input(conv1d, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv1d` with respect to a weight of the given size; see `conv2d_weight`.

    >>> import cygrad
    >>> from cygrad.nn.grad import conv1d_weight
    >>> conv1d_weight(cygrad.ones(1, 1, 4), (1, 1, 2), cygrad.ones(1, 1, 3))
    tensor([[[3., 3.]]])
    """
    return _of_weight(conv1d, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv2d(input, weight)` with respect to the input, given the gradient of the output.

    >>> import cygrad
    >>> cygrad.nn.grad.conv2d_input((1, 1, 2, 2), cygrad.ones(1, 1, 2, 1), cygrad.ones(1, 1, 1, 2)).flatten()
    tensor([1., 1., 1., 1.])
    """
    return _of_input(conv2d, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv2d(input, weight)` with respect to the weight, given the gradient of the output.

    >>> import cygrad
    >>> cygrad.nn.grad.conv2d_weight(cygrad.ones(1, 1, 2, 2), (1, 1, 2, 1), cygrad.ones(1, 1, 1, 2)).flatten()
    tensor([2., 2.])
    """
    return _of_weight(conv2d, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv3d` with respect to an input of the given size; see `conv2d_input`.

    >>> import cygrad
    >>> from cygrad.nn.grad import conv3d_input
    >>> conv3d_input((1, 1, 4, 4, 4), cygrad.ones(1, 1, 2, 2, 2), cygrad.ones(1, 1, 3, 3, 3)).shape
    torch.Size([1, 1, 4, 4, 4])
    """
    return _of_input(conv3d, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv3d` with respect to a weight of the given size; see `conv2d_weight`.

    >>> import cygrad
    >>> from cygrad.nn.grad import conv3d_weight
    >>> conv3d_weight(cygrad.ones(1, 1, 2, 2, 2), (1, 1, 1, 1, 1), cygrad.ones(1, 1, 2, 2, 2))
    tensor([[[[[8.]]]]])
    """
    return _of_weight(conv3d, input, weight_size, grad_output, (stride, padding, dilation, groups))
