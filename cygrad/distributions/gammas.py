"""The gamma distribution and distributions derived from it, with gradients for all parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cygrad
import cygrad.nn.functional as F
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions._implicit import _Dirichlet_backward as _Dirichlet_backward
from cygrad.distributions._implicit import dirichlet, standard_gamma
from cygrad.distributions.distribution import Distribution, ExponentialFamily, broadcast, where_defined
from cygrad.distributions.transformed_distribution import TransformedDistribution
from cygrad.distributions.transforms import PowerTransform

__all__ = ["Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT"]

lgamma, digamma = cygrad.lgamma, cygrad.digamma


class Gamma(ExponentialFamily):
    """Positive numbers with density rate^a x^(a - 1) exp(-rate x) / gamma(a), where a is the `concentration`.

    >>> import cygrad
    >>> d = cygrad.distributions.Gamma(cygrad.tensor([1.0, 2.0]), 2.0)
    >>> d.mean, d.log_prob(cygrad.tensor(1.0))
    (tensor([0.5000, 1.0000]), tensor([-1.3069, -0.6137]))
    """

    has_rsample = True
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))
    mean = property(lambda self: self.concentration / self.rate, doc="The mean.")
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0), doc="The mode.")
    variance = property(lambda self: self.concentration / self.rate**2, doc="The variance.")

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> a = cygrad.tensor(2.0, requires_grad=True)
        >>> x = dist.Gamma(a, 1.0).rsample((3,))
        >>> x.shape, x.requires_grad
        (torch.Size([3]), True)
        """
        shape = self._extended_shape(sample_shape)
        value = standard_gamma(self.concentration.expand(shape)) / self.rate
        value.detach().clamp_(min=cygrad.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor | float) -> Tensor:
        """Return the log-density: a log(rate) + (a - 1) log(value) - rate value - log(gamma(a)), with concentration a.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Gamma(2.0, 1.0).log_prob(cygrad.tensor([1.0, 2.0]))
        tensor([-1.0000, -1.3069])
        """
        value = cygrad.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return a.xlogy(rate) + (a - 1).xlogy(value) - rate * value - lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: the regularized gamma function P(a, rate value).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Gamma(2.0, 1.0).cdf(cygrad.tensor([1.0, 2.0]))
        tensor([0.2642, 0.5940])
        """
        if self._validate_args:
            self._validate_sample(value)
        return cygrad.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        """Return a - log(rate) + log(gamma(a)) + (1 - a) digamma(a).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Gamma(cygrad.tensor([1.0, 2.0]), 1.0).entropy()
        tensor([1.0000, 1.5772])
        """
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1 - a) * digamma(a)

    def _log_normalizer(self, x, y):
        return lgamma(x + 1) - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The sum of `df` squared standard normals: Gamma(df / 2, 1 / 2).

    The density is that of this gamma distribution: proportional to x^(df / 2 - 1) exp(-x / 2).

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Chi2(cygrad.tensor([1.0, 4.0]))
    >>> d.df, d.mean, d.log_prob(cygrad.tensor(2.0))
    (tensor([1., 4.]), tensor([1., 4.]), tensor([-2.2655, -1.6931]))
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    df = property(lambda self: 2 * self.concentration, doc="The degrees of freedom.")

    def _expanded(self, batch_shape):
        return {name: getattr(self, name).expand(batch_shape) for name in Gamma.arg_constraints}


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma variable.

    The density is rate^a / gamma(a) x^(-a - 1) exp(-rate / x), where a is the concentration.

    >>> import cygrad.distributions as dist
    >>> d = dist.InverseGamma(3.0, 1.0)
    >>> d.mean, d.variance, d.sample((3,)).shape
    (tensor(0.5000), tensor(0.2500), torch.Size([3]))
    """

    has_rsample = True
    arg_constraints = Gamma.arg_constraints
    support = constraints.positive

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration, doc="The concentration.")
    rate = property(lambda self: self.base_dist.rate, doc="The rate.")
    mode = property(lambda self: self.rate / (self.concentration + 1), doc="The mode.")

    @property
    def mean(self) -> Tensor:
        """The mean; inf where it does not exist."""
        a = self.concentration
        return where_defined(a > 1, lambda a: self.rate / (a - 1), a, 2.0, cygrad.inf)

    @property
    def variance(self) -> Tensor:
        """The variance; inf where it does not exist."""
        a = self.concentration
        return where_defined(a > 2, lambda a: self.rate**2 / ((a - 1) ** 2 * (a - 2)), a, 3.0, cygrad.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: a log(rate) - (a + 1) log(value) - rate / value - log(gamma(a)).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.InverseGamma(3.0, 1.0).log_prob(cygrad.tensor([0.5, 1.0]))
        tensor([ 0.0794, -1.6931])
        """
        if self._validate_args:
            self._validate_sample(value)
        return self.base_dist.log_prob(1 / value) - 2 * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: the regularized gamma function Q(a, rate / value).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.InverseGamma(3.0, 1.0).cdf(cygrad.tensor([0.5, 1.0]))
        tensor([0.6767, 0.9197])
        """
        return 1 - self.base_dist.cdf(1 / value)

    def entropy(self) -> Tensor:
        """Return a + log(rate) + log(gamma(a)) - (1 + a) digamma(a).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.InverseGamma(cygrad.tensor([2.0, 3.0]), 1.0).entropy()
        tensor([0.7316, 0.0020])
        """
        a = self.concentration
        return a + self.rate.log() + lgamma(a) - (1 + a) * digamma(a)


class Dirichlet(ExponentialFamily):
    """Vectors of nonnegative numbers that sum to 1: gamma variables divided by their sum.

    The density is gamma(sum a) / (prod gamma(a)) prod x^(a - 1), where a are the concentrations.

    >>> import cygrad
    >>> d = cygrad.distributions.Dirichlet(cygrad.tensor([1.0, 3.0]))
    >>> d.mean, d.log_prob(cygrad.tensor([0.5, 0.5]))
    (tensor([0.2500, 0.7500]), tensor(-0.2877))
    """

    has_rsample = True
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    _natural_params = property(lambda self: (self.concentration,))
    _total = property(lambda self: self.concentration.sum(-1, keepdim=True))
    mean = property(lambda self: self.concentration / self._total, doc="The mean.")

    @property
    def mode(self) -> Tensor:
        """The mode; a corner if all concentrations are below 1."""
        above = (self.concentration - 1).clamp(min=0)
        found = above / above.sum(-1, keepdim=True)
        corner = F.one_hot(found.argmax(-1), found.shape[-1]).to(found.dtype)
        return cygrad.where((self.concentration < 1).all(-1, keepdim=True), corner, found)

    @property
    def variance(self) -> Tensor:
        """The variance of each component."""
        a, total = self.concentration, self._total
        return a * (total - a) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> a = cygrad.ones(3, requires_grad=True)
        >>> x = dist.Dirichlet(a).rsample((2,))
        >>> x.shape, x.sum(-1).allclose(cygrad.ones(2)), x.requires_grad
        (torch.Size([2, 3]), True, True)
        """
        return dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: sum (a - 1) log(value) + log(gamma(sum a)) - sum log(gamma(a)).

        Here a are the concentrations. Raises ValueError for values outside the support, unless `validate_args` is
        False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Dirichlet(cygrad.tensor([1.0, 2.0])).log_prob(cygrad.tensor([0.25, 0.75]))
        tensor(0.4055)
        """
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return (a - 1).xlogy(value).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        """Return log(B(a)) + (s - n) digamma(s) - sum (a - 1) digamma(a), where s = sum a.

        Here a are the n concentrations, and B(a) = prod gamma(a) / gamma(s).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Dirichlet(cygrad.tensor([1.0, 2.0])).entropy()
        tensor(-0.1931)
        """
        a, total = self.concentration, self.concentration.sum(-1)
        inner = ((a - 1) * digamma(a)).sum(-1)
        return lgamma(a).sum(-1) - lgamma(total) - (a.shape[-1] - total) * digamma(total) - inner

    def _log_normalizer(self, x):
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))


class Beta(ExponentialFamily):
    """Numbers in [0, 1] with density proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1).

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Beta(cygrad.tensor([0.5, 2.0]), 2.0)
    >>> d.mean, d.variance, d.sample((3,)).shape
    (tensor([0.2000, 0.5000]), tensor([0.0457, 0.0500]), torch.Size([3, 2]))
    """

    has_rsample = True
    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        both = cygrad.stack(broadcast(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0], doc="The weight toward 1.")
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1], doc="The weight toward 0.")
    _natural_params = property(lambda self: (self.concentration1, self.concentration0))
    mean = property(lambda self: self._dirichlet.mean[..., 0], doc="The mean.")
    mode = property(lambda self: self._dirichlet.mode[..., 0], doc="The mode.")
    variance = property(lambda self: self._dirichlet.variance[..., 0], doc="The variance.")

    def _expanded(self, batch_shape):
        return {"_dirichlet": self._dirichlet.expand(batch_shape)}

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> a = cygrad.tensor(2.0, requires_grad=True)
        >>> x = dist.Beta(a, 3.0).rsample((3,))
        >>> x.shape, x.requires_grad
        (torch.Size([3]), True)
        """
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: (a - 1) log(value) + (b - 1) log(1 - value) - log(B(a, b)).

        Here a and b are the concentrations. Raises ValueError for values outside the support, unless `validate_args` is
        False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Beta(2.0, 3.0).log_prob(cygrad.tensor([0.25, 0.5]))
        tensor([0.5232, 0.4055])
        """
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(cygrad.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        """Return log(B(a, b)) - (a - 1) digamma(a) - (b - 1) digamma(b) + (a + b - 2) digamma(a + b).

        Here a and b are the concentrations.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Beta(cygrad.tensor([1.0, 2.0]), 1.0).entropy()
        tensor([ 0.0000, -0.1931])
        """
        return self._dirichlet.entropy()

    def _log_normalizer(self, x, y):
        return lgamma(x) + lgamma(y) - lgamma(x + y)


class StudentT(Distribution):
    """A standard normal divided by sqrt(chi2 / df), with `df` degrees of freedom, scaled and shifted.

    The density is proportional to (1 + ((x - loc) / scale)^2 / df)^(-(df + 1) / 2).

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.StudentT(cygrad.tensor([2.0, 4.0]))
    >>> d.mean, d.variance, d.sample((3,)).shape
    (tensor([0., 0.]), tensor([inf, 2.]), torch.Size([3, 2]))
    """

    has_rsample = True
    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    mode = property(lambda self: self.loc, doc="The mode.")
    mean = property(lambda self: cygrad.where(self.df > 1, self.loc, cygrad.nan), doc="The mean; nan for df <= 1.")

    @property
    def variance(self) -> Tensor:
        """The variance: inf for df <= 2, NaN for df <= 1."""
        df = self.df
        found = where_defined(df > 2, lambda df: self.scale**2 * df / (df - 2), df, 3.0, cygrad.inf)
        return cygrad.where(df > 1, found, cygrad.nan)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> loc = cygrad.tensor(1.0, requires_grad=True)
        >>> dist.StudentT(3.0, loc).rsample((4,)).sum().backward()
        >>> loc.grad
        tensor(4.)
        """
        shape = self._extended_shape(sample_shape)
        unit = cygrad.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self.scale * unit * (Chi2(self.df, False).rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: -(n + 1) / 2 log(1 + z^2 / n) - log(scale sqrt(n) B(n / 2, 1 / 2)).

        Here n is `df`, and z = (value - loc) / scale.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.StudentT(3.0).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-1.0009, -1.5763])
        """
        if self._validate_args:
            self._validate_sample(value)
        half, y = self.df / 2, (value - self.loc) / self.scale
        size = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + lgamma(half) - lgamma(half + 0.5)
        return -(half + 0.5) * (y**2 / self.df).log1p() - size

    def entropy(self) -> Tensor:
        """Return log(scale sqrt(n) B(n / 2, 1 / 2)) + (n + 1) / 2 (digamma((n + 1) / 2) - digamma(n / 2)).

        Here n is `df`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.StudentT(cygrad.tensor([1.0, 3.0])).entropy()
        tensor([2.5310, 1.7735])
        """
        half = self.df / 2
        size = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + lgamma(half) - lgamma(half + 0.5)
        return size + (half + 0.5) * (digamma(half + 0.5) - digamma(half))


class FisherSnedecor(Distribution):
    """The ratio of two Chi2 variables, each divided by its degrees of freedom.

    It is the distribution of the F test's statistic.

    The density is (a / b)^(a / 2) x^(a / 2 - 1) (1 + a x / b)^(-(a + b) / 2) / B(a / 2, b / 2), where a = `df1` and
    b = `df2`.

    >>> import cygrad.distributions as dist
    >>> d = dist.FisherSnedecor(2.0, 5.0)
    >>> d.mean, d.sample((3,)).shape
    (tensor(1.6667), torch.Size([3]))
    """

    has_rsample = True
    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean; NaN where it does not exist."""
        return where_defined(self.df2 > 2, lambda b: b / (b - 2), self.df2, 3.0, cygrad.nan)

    @property
    def mode(self) -> Tensor:
        """The mode; NaN where the density is unbounded."""
        a, b = self.df1, self.df2
        return where_defined(a > 2, lambda a: (a - 2) / a * b / (b + 2), a, 3.0, cygrad.nan)

    @property
    def variance(self) -> Tensor:
        """The variance; NaN where it does not exist."""
        a, b = self.df1, self.df2
        return where_defined(b > 4, lambda b: 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4)), b, 5.0, cygrad.nan)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> df = cygrad.tensor(2.0, requires_grad=True)
        >>> dist.FisherSnedecor(df, 5.0).rsample((3,)).requires_grad
        True
        """
        x, y = (Gamma(df / 2, df, validate_args=False).rsample(sample_shape) for df in (self.df1, self.df2))
        found = x / y
        return found.clamp(min=cygrad.finfo(found.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density, with a = `df1` and b = `df2`.

        It is a / 2 log(a / b) + (a / 2 - 1) log(value) - (a + b) / 2 log(1 + a value / b) - log(B(a / 2, b / 2)).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.FisherSnedecor(2.0, 5.0).log_prob(cygrad.tensor([0.5, 1.0]))
        tensor([-0.6381, -1.1777])
        """
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        size = lgamma(a + b) - lgamma(a) - lgamma(b) + a * ratio.log()
        return size + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
