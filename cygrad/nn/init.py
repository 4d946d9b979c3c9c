"""Initializers: functions that fill a tensor in place, without recording, and return it.

`generator` is the random number generator to use; None is the default one.

>>> import cygrad
>>> w = cygrad.empty(3, 5)
>>> cygrad.nn.init.constant_(w, 0.5).sum()
tensor(7.5000)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.autograd.grad_mode import no_grad
from cygrad.utils.warning import warn

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    "linear": 1,
    **{f"conv{n}d": 1 for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": 1 for n in (1, 2, 3)},
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that preserves the variance of signals through a layer followed by `nonlinearity`.

    It is 1 for linear layers and sigmoids, 5/3 for tanh, sqrt(2) for relu, 3/4 for selu, and sqrt(2 / (1 + param^2))
    for leaky_relu.

    `param` is the negative slope for `"leaky_relu"`, 0.01 by default.

    >>> from cygrad.nn import init
    >>> init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"negative_slope {slope} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


# --- Constants --


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.init.constant_(cygrad.empty(2), 3.0)
    tensor([3., 3.])
    """
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.init.ones_(cygrad.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0; return the tensor.

    >>> import cygrad
    >>> cygrad.nn.init.zeros_(cygrad.ones(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity, so that a linear layer preserves as many of its inputs as possible.

    Raises ValueError unless `tensor` has two dimensions.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.init.eye_(cygrad.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    _require_matrix(tensor)
    return tensor.copy_(cygrad.eye(*tensor.shape))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that it preserves its input channels, in each of `groups` groups.

    Accepts tensors with 3, 4 or 5 dimensions: (out channels, in channels, kernel...).

    Raises ValueError for other numbers of dimensions, or out channels that `groups` does not divide.

    >>> import cygrad
    >>> from cygrad import nn
    >>> w = nn.init.dirac_(cygrad.empty(2, 2, 3))
    >>> cygrad.nn.functional.conv1d(cygrad.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), w, padding=1)
    tensor([[1., 2., 3.],
            [4., 5., 6.]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels, in_channels, *kernel = tensor.shape
    if out_channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    middle = tuple(length // 2 for length in kernel)
    tensor.zero_()
    per_group = out_channels // groups
    for group in range(groups):
        for channel in range(min(per_group, in_channels)):
            tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


# --- Plain distributions --


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the uniform distribution on [a, b).

    >>> import cygrad
    >>> from cygrad import nn
    >>> w = nn.init.uniform_(cygrad.empty(2, 3), -1.0, 1.0)
    >>> bool(w.abs().max() <= 1)
    True
    """
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the normal distribution with this mean and standard deviation; return the tensor.

    >>> import cygrad
    >>> _ = cygrad.manual_seed(0)
    >>> cygrad.nn.init.normal_(cygrad.empty(2), std=0.01)
    tensor([ 0.0154, -0.0029])
    """
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Draw from the normal distribution truncated to [a, b]: density proportional to exp(-(x - mean)^2 / (2 std^2)).

    >>> import cygrad
    >>> w = cygrad.nn.init.trunc_normal_(cygrad.empty(1000), a=5.0, b=6.0)
    >>> bool(w.min() >= 5) and bool(w.max() <= 6)
    True
    """
    if a > b:
        raise RuntimeError(f"trunc_normal_ expects an interval [a, b], but found a={a} > b={b}")
    if tensor.is_meta:
        return tensor
    ends = [(end - mean) / std for end in (a, b)]
    below, above = (math.erf(end / math.sqrt(2)) / 2 for end in ends)
    if above - below > 0.3:
        return _by_normal_numbers(tensor, mean, std, a, b, generator)
    return _by_uniform_numbers(tensor, mean, std, *_where_dense(mean, std, a, b), generator)


def _by_normal_numbers(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Draw all numbers anew until each has been in the interval once, as PyTorch does."""
    low, high = tensor.new_tensor([a, b], device="cpu").tolist()
    tensor.normal_(mean, std, generator=generator)
    while (is_out := (tensor < low) | (tensor > high)).any():
        again = cygrad.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(cygrad.where(is_out, again, tensor))
    return tensor


def _by_uniform_numbers(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """The same for intervals with little mass: numbers are kept as often as their density asks for."""
    peak = ((max(a, min(mean, b)) - mean) / std) ** 2 / 2
    drawn, heights = cygrad.empty_like(tensor), cygrad.empty_like(tensor)
    is_open = cygrad.ones_like(tensor, dtype=cygrad.bool)
    while is_open.any():
        drawn.uniform_(a, b, generator=generator)
        tensor.copy_(cygrad.where(is_open, drawn, tensor))
        heights.uniform_(generator=generator).log_()
        is_open &= heights > drawn.sub_(mean).div_(std).pow_(2).mul_(-0.5).add_(peak)
    return tensor


def _where_dense(mean: float, std: float, a: float, b: float) -> tuple[float, float]:
    """Return the interval, or, if it is many times longer, the part of it where the density is not negligible."""
    peak = (max(a, min(mean, b)) - mean) / std
    reach = std * math.sqrt(peak**2 + 74)  # beyond, the density is below 1e-16 of its maximum
    inner = max(a, mean - reach), min(b, mean + reach)
    return inner if b - a > 100 * (inner[1] - inner[0]) else (a, b)


# --- Variance-preserving distributions --


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the number of inputs that feed one output of a layer with this weight, and the reverse."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    n_outputs, n_inputs, *kernel = tensor.shape
    field = math.prod(kernel)
    return n_inputs * field, n_outputs * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from [-a, a] with a = gain * sqrt(6 / (fan_in + fan_out)); return the tensor.

    Raises ValueError for fewer than two dimensions.

    >>> import cygrad
    >>> w = cygrad.nn.init.xavier_uniform_(cygrad.empty(3, 3))
    >>> bool(w.abs().max() <= 1)
    True
    """
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the normal distribution with std = gain * sqrt(2 / (fan_in + fan_out)).

    Raises ValueError for fewer than two dimensions.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.init.xavier_normal_(cygrad.empty(2, 3)).shape
    torch.Size([2, 3])
    """
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draw from [-b, b] with b = gain * sqrt(3 / fan).

    The gain follows from `nonlinearity`, with `a` as the slope of a leaky ReLU. `mode` selects the
    fan: `"fan_in"` preserves variances in the forward pass, `"fan_out"` in the backward pass.

    >>> import cygrad
    >>> from cygrad import nn
    >>> w = nn.init.kaiming_uniform_(cygrad.empty(4, 6), nonlinearity="relu")
    >>> bool(w.abs().max() <= 1)
    True
    """
    if _is_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std  # rounded in PyTorch's order
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draw from the normal distribution with std = gain / sqrt(fan); see `kaiming_uniform_`.

    Raises ValueError for fewer than two dimensions.

    >>> import cygrad
    >>> _ = cygrad.manual_seed(0)
    >>> cygrad.nn.init.kaiming_normal_(cygrad.empty(1, 2))
    tensor([[ 1.5410, -0.2934]])
    """
    if _is_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


# --- Structured --


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Make the rows (or the columns, if they are fewer) orthonormal, times `gain`.

    Dimensions after the first are flattened into one.

    Raises ValueError for fewer than two dimensions.

    >>> import cygrad
    >>> from cygrad import nn
    >>> w = nn.init.orthogonal_(cygrad.empty(2, 3))
    >>> (w @ w.T).allclose(cygrad.eye(2), atol=1e-6)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    q, r = cygrad.linalg.qr(drawn if rows >= columns else drawn.t())
    # Without the sign correction, q would not be uniformly distributed over the orthogonal matrices.
    q *= r.diagonal().sign()
    return tensor.copy_((q if rows >= columns else q.t()).reshape(tensor.shape)).mul_(gain)


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draw a matrix from the normal distribution and zero ceil(sparsity * rows) elements of each column.

    Raises ValueError unless `tensor` has two dimensions.

    >>> import cygrad
    >>> from cygrad import nn
    >>> (nn.init.sparse_(cygrad.empty(4, 3), sparsity=0.5) == 0).sum(0)
    tensor([2, 2, 2])
    """
    _require_matrix(tensor)
    rows, columns = tensor.shape
    n_zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[cygrad.randperm(rows, device=tensor.device)[:n_zeros], column] = 0
    return tensor


def _require_matrix(tensor: Tensor) -> None:
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return True
    return False


# --- Deprecated names --


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    new_name = function.__name__
    old_name = new_name.removesuffix("_")

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        warn(f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.", FutureWarning)
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = old_name
    old.__doc__ = f"""The old name of `{new_name}`, with the same arguments. Warns with FutureWarning.

    >>> from cygrad import nn
    >>> nn.init.{old_name}.__wrapped__ is nn.init.{new_name}
    True
    """
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


# PyTorch's names of those that do not record: libraries look for them here.
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_ = constant_


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)
