"""Named distributions obtained by transforming uniform, exponential and normal variables."""

from __future__ import annotations

from collections.abc import Sequence

import cygrad
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.distributions.continuous import Exponential, Normal, Uniform
from cygrad.distributions.distribution import Distribution, broadcast, where_defined
from cygrad.distributions.more_transforms import StickBreakingTransform
from cygrad.distributions.transformed_distribution import TransformedDistribution, _Made
from cygrad.distributions.transforms import AffineTransform, ExpTransform, PowerTransform
from cygrad.distributions.utils import euler_constant

__all__ = ["GeneralizedPareto", "Kumaraswamy", "LogisticNormal", "Pareto", "Weibull"]


class Pareto(_Made):
    """Numbers at or above `scale`: P(X > x) = (scale / x)^alpha.

    The density is alpha scale^alpha / x^(alpha + 1).

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Pareto(1.0, cygrad.tensor([2.0, 3.0]))
    >>> d.mean, d.log_prob(cygrad.tensor(2.0))
    (tensor([2.0000, 1.5000]), tensor([-1.3863, -1.6740]))
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast(scale, alpha)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args), steps, validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        """The support of the distribution.

        >>> import cygrad.distributions as dist
        >>> dist.Pareto(1.0, 1.0).support
        GreaterThanEq(lower_bound=1.0)
        """
        return constraints.greater_than_eq(self.scale)

    mode = property(lambda self: self.scale, doc="The mode.")

    @property
    def mean(self) -> Tensor:
        """The mean; inf where it does not exist."""
        return where_defined(self.alpha > 1, lambda a: a * self.scale / (a - 1), self.alpha, 2.0, cygrad.inf)

    @property
    def variance(self) -> Tensor:
        """The variance; inf where it does not exist."""
        return where_defined(
            self.alpha > 2, lambda a: self.scale**2 * a / ((a - 1) ** 2 * (a - 2)), self.alpha, 3.0, cygrad.inf
        )

    def entropy(self) -> Tensor:
        """Return log(scale / alpha) + 1 + 1 / alpha.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Pareto(1.0, cygrad.tensor([1.0, 2.0])).entropy()
        tensor([2.0000, 0.8069])
        """
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)


class GeneralizedPareto(Distribution):
    """Numbers x at or above `loc`: P(X > x) = (1 + c (x - loc) / scale)^(-1 / c), where c is the `concentration`.

    Exponential for c = 0, Pareto-like for c > 0, and bounded above for c < 0.

    >>> import cygrad
    >>> d = cygrad.distributions.GeneralizedPareto(0.0, 1.0, cygrad.tensor([-1.0, 0.0, 0.25]))
    >>> d.mean, d.cdf(cygrad.tensor(0.5))
    (tensor([0.5000, 1.0000, 1.3333]), tensor([0.5000, 0.3935, 0.3757]))
    """

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        """The support of the distribution.

        >>> import cygrad.distributions as dist
        >>> dist.GeneralizedPareto(0.0, 1.0, 0.5).support
        Interval(lower_bound=0.0, upper_bound=inf)
        """
        c = self.concentration
        return constraints.interval(self.loc, cygrad.where(c < 0, self.loc - self.scale / c, cygrad.inf))

    mode = property(lambda self: self.loc, doc="The mode.")

    @property
    def mean(self) -> Tensor:
        """The mean; NaN where it does not exist."""
        c = self.concentration
        return where_defined(c < 1, lambda c: self.loc + self.scale / (1 - c), c, 0.0, cygrad.nan)

    @property
    def variance(self) -> Tensor:
        """The variance; NaN where it does not exist."""
        c = self.concentration
        return where_defined(c < 0.5, lambda c: self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), c, 0.0, cygrad.nan)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> scale = cygrad.tensor(2.0, requires_grad=True)
        >>> dist.GeneralizedPareto(0.0, scale, 0.5).rsample((3,)).requires_grad
        True
        """
        shape = self._extended_shape(sample_shape)
        return self.icdf(cygrad.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _by(self, power, limit):
        """Return `power(concentration)`, or `limit` where the concentration is 0."""
        c = self.concentration
        is_zero = c.isclose(cygrad.zeros_like(c))
        return cygrad.where(is_zero, limit, power(c.masked_fill(is_zero, 1)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: -log(scale) - (1 + 1 / c) log(1 + c z), with z = (value - loc) / scale.

        Here c is the concentration. Raises ValueError for values outside the support, unless `validate_args` is
        False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.GeneralizedPareto(0.0, 1.0, 0.5).log_prob(cygrad.tensor([1.0, 2.0]))
        tensor([-1.2164, -2.0794])
        """
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return self._by(lambda c: -cygrad.special.xlog1py(1 + 1 / c, c * z), -z) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the log-probability of a sample above `value`: -log(1 + c z) / c, as in `log_prob`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.GeneralizedPareto(0.0, 1.0, 0.5).log_survival_function(cygrad.tensor([1.0, 2.0]))
        tensor([-0.8109, -1.3863])
        """
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return self._by(lambda c: -(c * z).log1p() / c, -z)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the log-probability of a sample at or below `value`: log(1 - (1 + c z)^(-1 / c)), as in `log_prob`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.GeneralizedPareto(0.0, 1.0, 0.5).log_cdf(cygrad.tensor([1.0, 2.0]))
        tensor([-0.5878, -0.2877])
        """
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: 1 - (1 + c z)^(-1 / c), as in `log_prob`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.GeneralizedPareto(0.0, 1.0, 0.5).cdf(cygrad.tensor([0.0, 1.0]))
        tensor([0.0000, 0.5556])
        """
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at a probability (the inverse of `cdf`): loc + scale ((1 - value)^(-c) - 1) / c.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.GeneralizedPareto(0.0, 1.0, 0.5).icdf(cygrad.tensor([0.0, 0.5]))
        tensor([0.0000, 0.8284])
        """
        log = (-value).log1p()
        return self.loc + self.scale * self._by(lambda c: (-c * log).expm1() / c, -log)

    def entropy(self) -> Tensor:
        """Return log(scale) + concentration + 1.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.GeneralizedPareto(0.0, 1.0, cygrad.tensor([0.0, 0.5])).entropy()
        tensor([1.0000, 1.5000])
        """
        return self.scale.log() + self.concentration + 1


class Weibull(_Made):
    """Positive numbers: P(X > x) = exp(-(x / scale)^concentration).

    The density is c / scale (x / scale)^(c - 1) exp(-(x / scale)^c), where c is the concentration.

    >>> import cygrad
    >>> d = cygrad.distributions.Weibull(2.0, cygrad.tensor([1.0, 2.0]))
    >>> d.mean, d.log_prob(cygrad.tensor(1.0))
    (tensor([2.0000, 1.7725]), tensor([-1.1931, -0.9431]))
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast(scale, concentration)
        steps = [PowerTransform(1 / self.concentration), AffineTransform(0, self.scale)]
        super().__init__(Exponential(cygrad.ones_like(self.scale), validate_args), steps, validate_args)

    def _moment(self, n):
        return (1 + n / self.concentration).lgamma().exp() * self.scale**n

    mean = property(lambda self: self._moment(1), doc="The mean.")
    variance = property(lambda self: self._moment(2) - self._moment(1) ** 2, doc="The variance.")

    @property
    def mode(self) -> Tensor:
        """The mode; NaN where the density has no maximum."""
        c = self.concentration
        return self.scale * ((c - 1) / c) ** (1 / c)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: log(c / scale) + (c - 1) log(value / scale) - (value / scale)^c.

        Here c is the concentration.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Weibull(1.0, 2.0).log_prob(cygrad.tensor([0.5, 1.0]))
        tensor([-0.2500, -0.3069])
        """
        if self._validate_args:
            self._validate_sample(value)
        c, log = self.concentration, (value / self.scale).log()
        return (c / self.scale).log() + (c - 1) * log - (c * log).exp()

    def entropy(self) -> Tensor:
        """Return 0.5772 (1 - 1 / concentration) + log(scale / concentration) + 1.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Weibull(1.0, cygrad.tensor([1.0, 2.0])).entropy()
        tensor([1.0000, 0.5955])
        """
        return euler_constant * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class Kumaraswamy(_Made):
    """Numbers in [0, 1]: P(X > x) = (1 - x^a)^b, where a = `concentration1` and b = `concentration0`.

    The density is a b x^(a - 1) (1 - x^a)^(b - 1).

    >>> import cygrad.distributions as dist
    >>> d = dist.Kumaraswamy(2.0, 3.0)
    >>> d.mean, d.sample((3,)).shape
    (tensor(0.4571), torch.Size([3]))
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = a, b = broadcast(concentration1, concentration0)
        unit = Uniform(cygrad.zeros_like(b), cygrad.ones_like(b), validate_args)
        steps = [PowerTransform(1 / b), AffineTransform(1, -1), PowerTransform(1 / a)]
        super().__init__(unit, steps, validate_args)

    def _moment(self, n):
        b, c = self.concentration0, 1 + n / self.concentration1
        return b * (c.lgamma() + b.lgamma() - (c + b).lgamma()).exp()

    mean = property(lambda self: self._moment(1), doc="The mean.")
    variance = property(lambda self: self._moment(2) - self._moment(1) ** 2, doc="The variance.")

    @property
    def mode(self) -> Tensor:
        """The mode; NaN where the density is unbounded."""
        a, b = self.concentration1, self.concentration0
        return cygrad.where((a < 1) | (b < 1), cygrad.nan, ((a - 1) / (a * b - 1)) ** (1 / a))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: log(a b) + (a - 1) log(value) + (b - 1) log(1 - value^a), at 0 and 1 as well.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Kumaraswamy(2.0, 3.0).log_prob(cygrad.tensor([0.25, 0.5]))
        tensor([0.2764, 0.5232])
        """
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return (a * b).log() + (a - 1).xlogy(value) + cygrad.special.xlog1py(b - 1, -(value**a))

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: 1 - (1 - value^a)^b.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Kumaraswamy(2.0, 3.0).cdf(cygrad.tensor([0.25, 0.5]))
        tensor([0.1760, 0.5781])
        """
        if self._validate_args:
            self._validate_sample(value)
        return 1 - (1 - value**self.concentration1) ** self.concentration0

    def entropy(self) -> Tensor:
        """Return 1 - 1 / b + (1 - 1 / a) (digamma(b + 1) + 0.5772) - log(a b).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Kumaraswamy(cygrad.tensor([1.0, 2.0]), 1.0).entropy()
        tensor([ 0.0000, -0.1931])
        """
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * ((b + 1).digamma() + euler_constant) - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """Vectors of shares that sum to 1, obtained from normal variables by stick breaking.

    y[i] = s[i] (1 - s[0]) ... (1 - s[i - 1]), for n normal variables x, where
    s[i] = sigmoid(x[i] - log(n - i)) and s[n] = 1.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.LogisticNormal(cygrad.zeros(2), cygrad.ones(2))
    >>> d.sample().sum(), d.event_shape
    (tensor(1.), torch.Size([3]))
    """

    arg_constraints = Normal.arg_constraints
    support = constraints.simplex

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc, doc="The mean of the normal distribution.")
    scale = property(lambda self: self.base_dist.base_dist.scale, doc="Its standard deviation.")
