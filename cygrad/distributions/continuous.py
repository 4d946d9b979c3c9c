"""Continuous distributions on the real numbers: normal, log-normal, Laplace, uniform, exponential."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cygrad
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.distributions.distribution import Distribution, ExponentialFamily, broadcast
from cygrad.distributions.transformed_distribution import TransformedDistribution
from cygrad.distributions.transforms import ExpTransform

__all__ = ["Exponential", "Laplace", "LogNormal", "Normal", "Uniform"]


class _LocationScale(Distribution):
    """What distributions with a location and a scale share, without their `__init__`."""

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    loc: Any
    scale: Any

    mean = mode = property(lambda self: self.loc, doc="The mean and the mode.")

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients: samples of location 0 and scale 1, scaled and shifted."""
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * self._unit(shape)

    def _unit(self, shape):
        raise NotImplementedError

    def _scaled(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale


class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution, of density `exp(-(x - loc)^2 / (2 scale^2)) / (scale sqrt(2 pi))`.

    >>> import cygrad
    >>> from cygrad.distributions import Normal
    >>> d = Normal(cygrad.tensor([0.0, 1.0]), 2.0)
    >>> d.sample((3,)).shape, d.log_prob(cygrad.tensor(0.0))
    (torch.Size([3, 2]), tensor([-1.6121, -1.7371]))
    """

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.loc / self.scale**2, -1 / (2 * self.scale**2)))
    stddev = property(lambda self: self.scale, doc="The standard deviation.")
    variance = property(lambda self: self.scale**2, doc="The variance.")

    def _log_normalizer(self, x, y):
        return (-math.pi / y).log() / 2 - x**2 / (4 * y)

    def _unit(self, shape):
        return cygrad.randn(shape, dtype=self.loc.dtype, device=self.loc.device)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: -(value - loc)^2 / (2 scale^2) - log(scale) - log(2 pi) / 2.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Normal(0.0, 2.0).log_prob(cygrad.tensor([0.0, 2.0]))
        tensor([-1.6121, -2.1121])
        """
        return -(self._scaled(value) ** 2) / 2 - self.scale.log() - math.log(2 * math.pi) / 2

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: (1 + erf((value - loc) / (scale sqrt(2)))) / 2.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Normal(0.0, 1.0).cdf(cygrad.tensor([0.0, 1.96]))
        tensor([0.5000, 0.9750])
        """
        return (1 + (self._scaled(value) / math.sqrt(2)).erf()) / 2

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at a probability (the inverse of `cdf`): loc + scale sqrt(2) erfinv(2 value - 1).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Normal(0.0, 1.0).icdf(cygrad.tensor([0.5, 0.975]))
        tensor([0.0000, 1.9600])
        """
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        """Return log(scale) + log(2 pi e) / 2.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Normal(0.0, cygrad.tensor([1.0, 2.0])).entropy()
        tensor([1.4189, 2.1121])
        """
        return self.scale.log() + (1 + math.log(2 * math.pi)) / 2


class LogNormal(TransformedDistribution):
    """The exponential of a normal distribution.

    The density is `exp(-(log(x) - loc)^2 / (2 scale^2)) / (x scale sqrt(2 pi))` for `x > 0`.

    >>> import cygrad.distributions as dist
    >>> d = dist.LogNormal(0.0, 1.0)
    >>> d.mean, d.mode, d.sample((3,)).shape
    (tensor(1.6487), tensor(0.3679), torch.Size([3]))
    """

    has_rsample = True
    arg_constraints = Normal.arg_constraints
    support = constraints.positive

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc, doc="The mean of the logarithm.")
    scale = property(lambda self: self.base_dist.scale, doc="The standard deviation of the logarithm.")
    mean = property(lambda self: (self.loc + self.scale**2 / 2).exp(), doc="The mean.")
    mode = property(lambda self: (self.loc - self.scale**2).exp(), doc="The mode.")
    variance = property(lambda self: self.mean**2 * (self.scale**2).expm1(), doc="The variance.")

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: that of the normal distribution at log(value), minus log(value).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.LogNormal(0.0, 1.0).log_prob(cygrad.tensor([1.0, 2.0]))
        tensor([-0.9189, -1.8523])
        """
        if self._validate_args:
            self._validate_sample(value)
        return self.base_dist.log_prob(value.log()) - value.log()

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: that of the normal distribution at log(value).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.LogNormal(0.0, 1.0).cdf(cygrad.tensor([0.5, 1.0]))
        tensor([0.2441, 0.5000])
        """
        return self.base_dist.cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at the probability `value`: exp(loc + scale sqrt(2) erfinv(2 value - 1)).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.LogNormal(0.0, 1.0).icdf(cygrad.tensor([0.5, 0.975]))
        tensor([1.0000, 7.0991])
        """
        return self.base_dist.icdf(value).exp()

    def entropy(self) -> Tensor:
        """Return the entropy of the normal distribution plus its mean: log(scale) + log(2 pi e) / 2 + loc.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.LogNormal(cygrad.tensor([0.0, 1.0]), 1.0).entropy()
        tensor([1.4189, 2.4189])
        """
        return self.base_dist.entropy() + self.loc


class Laplace(_LocationScale):
    """The distribution of density `exp(-|x - loc| / scale) / (2 scale)`.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Laplace(cygrad.tensor([0.0, 1.0]), 1.0)
    >>> d.variance, d.sample((3,)).shape
    (tensor([2., 2.]), torch.Size([3, 2]))
    """

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    variance = property(lambda self: 2 * self.scale**2, doc="The variance.")
    stddev = property(lambda self: math.sqrt(2) * self.scale, doc="The standard deviation.")

    def _unit(self, shape):
        u = cygrad.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
        u.uniform_(cygrad.finfo(u.dtype).eps - 1, 1)
        return -u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: -|value - loc| / scale - log(2 scale).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Laplace(0.0, 1.0).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-0.6931, -1.6931])
        """
        return -self._scaled(value).abs() - (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: (1 + sign(z) (1 - exp(-|z|))) / 2.

        Here z = (value - loc) / scale.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Laplace(0.0, 1.0).cdf(cygrad.tensor([0.0, 1.0]))
        tensor([0.5000, 0.8161])
        """
        x = self._scaled(value)
        return 0.5 - 0.5 * x.sign() * (-x.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at the probability `value` (the inverse of `cdf`): loc - scale sign(q) log(1 - 2 |q|).

        Here q = value - 1 / 2.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Laplace(0.0, 1.0).icdf(cygrad.tensor([0.25, 0.5]))
        tensor([-0.6931,  0.0000])
        """
        x = value - 0.5
        return self.loc - self.scale * x.sign() * (-2 * x.abs()).log1p()

    def entropy(self) -> Tensor:
        """Return 1 + log(2 scale).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Laplace(0.0, cygrad.tensor([0.5, 1.0])).entropy()
        tensor([1.0000, 1.6931])
        """
        return 1 + (2 * self.scale).log()


class Uniform(Distribution):
    """The uniform distribution on [`low`, `high`).

    The density is `1 / (high - low)`. Raises ValueError unless `low < high`.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Uniform(cygrad.tensor([0.0, 1.0]), 3.0)
    >>> d.mean, d.sample((2,)).shape
    (tensor([1.5000, 2.0000]), torch.Size([2, 2]))
    """

    has_rsample = True

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    arg_constraints = property(
        lambda self: {
            "low": constraints.less_than(_plain(self.high)),
            "high": constraints.greater_than(_plain(self.low)),
        },
        doc="The constraints on the parameters.",
    )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        """The support of the distribution.

        >>> import cygrad.distributions as dist
        >>> dist.Uniform(0.0, 2.0).support
        Interval(lower_bound=0.0, upper_bound=2.0)
        """
        return constraints.interval(_plain(self.low), _plain(self.high))

    mean = property(lambda self: (self.low + self.high) / 2, doc="The mean.")
    mode = property(lambda self: self.low * cygrad.nan, doc="The mode.")
    variance = property(lambda self: (self.high - self.low) ** 2 / 12, doc="The variance.")
    stddev = property(lambda self: (self.high - self.low) / 12**0.5, doc="The standard deviation.")

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients: low + u (high - low) for uniform numbers u in [0, 1).

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> low = cygrad.tensor(1.0, requires_grad=True)
        >>> x = dist.Uniform(low, 2.0).rsample((3,))
        >>> x.shape, bool((x >= 1).all()), x.requires_grad
        (torch.Size([3]), True, True)
        """
        shape = self._extended_shape(sample_shape)
        unit = cygrad.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + unit * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return -log(high - low), or -inf outside the interval, where only unchecked values lie.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Uniform(0.0, 2.0).log_prob(cygrad.tensor([0.5, 1.0]))
        tensor([-0.6931, -0.6931])
        """
        if self._validate_args:
            self._validate_sample(value)
        is_inside = (self.low <= value) & (value < self.high)
        return is_inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: (value - low) / (high - low), clamped to [0, 1].

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Uniform(0.0, 2.0).cdf(cygrad.tensor([0.5, 1.0]))
        tensor([0.2500, 0.5000])
        """
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at the probability `value` (the inverse of `cdf`): low + value (high - low).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Uniform(0.0, 2.0).icdf(cygrad.tensor([0.25, 1.0]))
        tensor([0.5000, 2.0000])
        """
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        """Return log(high - low).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Uniform(0.0, cygrad.tensor([1.0, 2.0])).entropy()
        tensor([0.0000, 0.6931])
        """
        return (self.high - self.low).log()


def _plain(x):
    """Return a limit in the form shown in the repr."""
    return x.item() if not x.ndim else x.detach()


class Exponential(ExponentialFamily):
    """The distribution of density `rate exp(-rate x)` for `x >= 0`.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Exponential(cygrad.tensor([1.0, 2.0]))
    >>> d.mean, d.variance, d.sample((3,)).shape
    (tensor([1.0000, 0.5000]), tensor([1.0000, 0.2500]), torch.Size([3, 2]))
    """

    has_rsample = True
    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (-self.rate,))

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: 1 / self.rate, doc="The mean and the standard deviation.")
    mode = property(lambda self: cygrad.zeros_like(self.rate), doc="The mode.")
    variance = property(lambda self: self.rate**-2, doc="The variance.")

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> rate = cygrad.tensor(2.0, requires_grad=True)
        >>> x = dist.Exponential(rate).rsample((3,))
        >>> x.shape, x.requires_grad
        (torch.Size([3]), True)
        """
        shape = self._extended_shape(sample_shape)
        return cygrad.empty(shape, dtype=self.rate.dtype, device=self.rate.device).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: log(rate) - rate value.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Exponential(2.0).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([ 0.6931, -1.3069])
        """
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: 1 - exp(-rate value).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Exponential(2.0).cdf(cygrad.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8647])
        """
        if self._validate_args:
            self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at the probability `value` (the inverse of `cdf`): -log(1 - value) / rate.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Exponential(2.0).icdf(cygrad.tensor([0.0, 0.5]))
        tensor([0.0000, 0.3466])
        """
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        """Return 1 - log(rate).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Exponential(cygrad.tensor([1.0, 2.0])).entropy()
        tensor([1.0000, 0.3069])
        """
        return 1 - self.rate.log()

    def _log_normalizer(self, x):
        return -(-x).log()
