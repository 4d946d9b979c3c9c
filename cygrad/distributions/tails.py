"""Further continuous distributions, half-distributions, angles, and mixtures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cygrad
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.distributions.continuous import Normal, Uniform, _LocationScale
from cygrad.distributions.discrete import Categorical
from cygrad.distributions.distribution import Distribution, broadcast
from cygrad.distributions.more_transforms import AbsTransform
from cygrad.distributions.transformed_distribution import TransformedDistribution, _Made
from cygrad.distributions.transforms import AffineTransform, ExpTransform
from cygrad.distributions.utils import euler_constant

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "HalfNormal", "MixtureSameFamily", "VonMises"]


class Cauchy(_LocationScale):
    """The distribution with density 1 / (pi scale (1 + ((x - loc) / scale)^2)), which has no mean.

    The location and the scale are its median and half the distance between its quartiles; `mean` and `variance` are NaN
    and infinity.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Cauchy(0.0, cygrad.tensor([1.0, 2.0]))
    >>> d.mode, d.sample((3,)).shape
    (tensor([0., 0.]), torch.Size([3, 2]))
    """

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mode = property(lambda self: self.loc, doc="The mode.")
    mean = property(lambda self: cygrad.full_like(self.loc, cygrad.nan), doc="nan.")
    variance = property(lambda self: cygrad.full_like(self.loc, cygrad.inf), doc="inf.")

    def _unit(self, shape):
        return cygrad.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: -log(pi scale) - log(1 + ((value - loc) / scale)^2).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Cauchy(0.0, 1.0).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-1.1447, -1.8379])
        """
        return -math.log(math.pi) - self.scale.log() - (self._scaled(value) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: atan((value - loc) / scale) / pi + 1 / 2.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Cauchy(0.0, 1.0).cdf(cygrad.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7500])
        """
        return self._scaled(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at the probability `value` (the inverse of `cdf`): loc + scale tan(pi (value - 1 / 2)).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Cauchy(0.0, 1.0).icdf(cygrad.tensor([0.5, 0.75]))
        tensor([0., 1.])
        """
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        """Return log(4 pi scale).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Cauchy(0.0, cygrad.tensor([1.0, 2.0])).entropy()
        tensor([2.5310, 3.2242])
        """
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_Made, _LocationScale):
    """The distribution of maxima: P(X <= x) = exp(-exp(-(x - loc) / scale)).

    It is that of -scale log(-log u) + loc for uniform numbers u.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Gumbel(0.0, cygrad.tensor([1.0, 2.0]))
    >>> d.mean, d.sample((3,)).shape
    (tensor([0.5772, 1.1544]), torch.Size([3, 2]))
    """

    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast(loc, scale)
        limits = cygrad.finfo(self.loc.dtype)
        unit = Uniform(cygrad.full_like(self.loc, limits.tiny), cygrad.full_like(self.loc, 1 - limits.eps))
        logarithm = ExpTransform().inv
        steps = [logarithm, AffineTransform(0, -1), logarithm, AffineTransform(self.loc, -self.scale)]
        super().__init__(unit, steps, validate_args=validate_args)

    mode = property(lambda self: self.loc, doc="The mode.")
    mean = property(lambda self: self.loc + self.scale * euler_constant, doc="The mean.")
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale, doc="The standard deviation.")
    variance = property(lambda self: self.stddev**2, doc="The variance.")

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: -z - exp(-z) - log(scale), where z = (value - loc) / scale.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Gumbel(0.0, 1.0).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-1.0000, -1.3679])
        """
        y = -self._scaled(value)
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: exp(-exp(-(value - loc) / scale)).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Gumbel(0.0, 1.0).cdf(cygrad.tensor([0.0, 1.0]))
        tensor([0.3679, 0.6922])
        """
        return (-(-self._scaled(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at the probability `value` (the inverse of `cdf`): loc - scale log(-log(value)).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Gumbel(0.0, 1.0).icdf(cygrad.tensor([0.25, 0.5]))
        tensor([-0.3266,  0.3665])
        """
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        """Return log(scale) + 1 + 0.5772.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Gumbel(0.0, cygrad.tensor([1.0, 2.0])).entropy()
        tensor([1.5772, 2.2704])
        """
        return self.scale.log() + (1 + euler_constant)


class _Half(TransformedDistribution):
    has_rsample = True
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _of: type

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(self._of(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale, doc="The scale of the underlying symmetric distribution.")
    mode = property(lambda self: cygrad.zeros_like(self.scale), doc="The mode.")

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density."""
        if self._validate_args:
            self._validate_sample(value)
        return cygrad.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -cygrad.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:  # PyTorch's name, which its other distributions do not use
        """Return the quantile at this probability (the inverse of `cdf`)."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        """Return the entropy of the signed variable minus log(2)."""
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal variable with mean 0.

    The density is `sqrt(2 / pi) exp(-x^2 / (2 scale^2)) / scale` for `x >= 0`.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.HalfNormal(1.0)
    >>> d.mean, d.log_prob(cygrad.tensor([0.0, 1.0]))
    (tensor(0.7979), tensor([-0.2258, -0.7258]))
    """

    _of = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi), doc="The mean.")
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi), doc="The variance.")


class HalfCauchy(_Half):
    """The absolute value of a Cauchy variable with location 0.

    The density is `2 / (pi scale (1 + (x / scale)^2))` for `x >= 0`.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.HalfCauchy(1.0)
    >>> d.log_prob(cygrad.tensor([0.0, 1.0])), d.cdf(cygrad.tensor(1.0))
    (tensor([-0.4516, -1.1447]), tensor(0.5000))
    """

    _of = Cauchy
    mean = variance = property(lambda self: cygrad.full_like(self.scale, cygrad.inf), doc="inf.")


class VonMises(Distribution):
    """Angles from -pi to pi with density exp(concentration cos(x - loc)) / (2 pi I0(concentration)).

    >>> import cygrad
    >>> d = cygrad.distributions.VonMises(0.0, cygrad.tensor(4.0))
    >>> d.log_prob(cygrad.tensor([0.0, 3.0]))
    tensor([-0.2628, -8.2228])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc, doc="The mean and the mode of the angle.")

    @property
    def variance(self) -> Tensor:
        """The circular variance: 1 minus the mean of cos(x - loc)."""
        k = self.concentration
        return 1 - cygrad.special.i1e(k) / cygrad.special.i0e(k)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: concentration cos(value - loc) - log(2 pi I0(concentration)).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.VonMises(0.0, 1.0).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-1.0738, -1.5335])
        """
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - (k + cygrad.special.i0e(k).log())

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients, by the method of Best and Fisher.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> x = dist.VonMises(0.0, cygrad.tensor([1.0, 2.0])).sample((3,))
        >>> x.shape, bool((x.abs() <= 3.1416).all())
        (torch.Size([3, 2]), True)
        """
        with cygrad.no_grad():
            shape = self._extended_shape(sample_shape)
            k = self.concentration.double().expand(shape)
            root = 1 + (1 + 4 * k**2).sqrt()
            rho = (root - (2 * root).sqrt()) / (2 * k)
            r = cygrad.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
            found, is_done = cygrad.zeros_like(r), cygrad.zeros_like(r, dtype=cygrad.bool)
            while not is_done.all():
                u = cygrad.rand((3, *shape), dtype=k.dtype, device=k.device)
                z = (math.pi * u[0]).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                is_good = (c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 >= c)
                found = cygrad.where(is_good, (u[2] - 0.5).sign() * f.clamp(-1, 1).acos(), found)
                is_done |= is_good
            return ((found + math.pi + self.loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)


class MixtureSameFamily(Distribution):
    """A mixture of the distributions along the last batch dimension, with weights given by a `Categorical`.

    The density is the sum over components k of weight[k] * density_k(x).

    >>> import cygrad
    >>> from cygrad.distributions import Categorical, MixtureSameFamily, Normal
    >>> d = MixtureSameFamily(Categorical(cygrad.ones(2)), Normal(cygrad.tensor([-1.0, 1.0]), 0.5))
    >>> d.mean, d.variance
    (tensor(0.), tensor(1.2500))
    """

    arg_constraints: Any = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        mixture, parts = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(parts, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        own, theirs = mixture.batch_shape, parts.batch_shape[:-1]
        for a, b in zip(reversed(own), reversed(theirs), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({own}) is not compatible with "
                    f"`component_distribution.batch_shape`({theirs})"
                )
        count, expected = mixture.logits.shape[-1], parts.batch_shape[-1]
        if count != expected:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({expected})"
            )
        self._mixture_distribution, self._component_distribution = mixture, parts
        super().__init__(theirs, parts.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution, doc="The distribution over components.")
    component_distribution = property(lambda self: self._component_distribution, doc="The component distributions.")

    @constraints.dependent_property
    def support(self) -> Constraint:
        """The support of the distribution.

        >>> import cygrad, cygrad.distributions as dist
        >>> parts = dist.Normal(cygrad.zeros(2), cygrad.ones(2))
        >>> dist.MixtureSameFamily(dist.Categorical(cygrad.ones(2)), parts).support
        MixtureSameFamilyConstraint(Real())
        """
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _expanded(self, batch_shape):
        parts = self.component_distribution.expand((*batch_shape, self.component_distribution.batch_shape[-1]))
        mixture = self.mixture_distribution.expand(batch_shape)
        return {"_mixture_distribution": mixture, "_component_distribution": parts}

    def _mean_of(self, x):
        probs = self.mixture_distribution.probs
        return (probs.reshape(probs.shape + (1,) * len(self.event_shape)) * x).sum(-1 - len(self.event_shape))

    mean = property(lambda self: self._mean_of(self.component_distribution.mean), doc="The mean.")

    @property
    def variance(self) -> Tensor:
        """The mean of the variances plus the variance of the means."""
        parts, n = self.component_distribution, len(self.event_shape)
        gap = parts.mean - self.mean.unsqueeze(-1 - n)
        return self._mean_of(parts.variance) + self._mean_of(gap**2)

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density: log(sum over components k of weight[k] * density_k(x)).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> d = dist.MixtureSameFamily(dist.Categorical(cygrad.ones(2)), dist.Normal(cygrad.tensor([-1.0, 1.0]), 1.0))
        >>> d.log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-1.4189, -1.4852])
        """
        if self._validate_args:
            self._validate_sample(x)
        logs = self.component_distribution.log_prob(x.unsqueeze(-1 - len(self.event_shape)))
        return (logs + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, x: Tensor) -> Tensor:
        """Return the probability of a sample at or below `x`: the weighted sum of the components' probabilities.

        >>> import cygrad, cygrad.distributions as dist
        >>> d = dist.MixtureSameFamily(dist.Categorical(cygrad.ones(2)), dist.Normal(cygrad.tensor([-1.0, 1.0]), 1.0))
        >>> d.cdf(cygrad.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7386])
        """
        below = self.component_distribution.cdf(x.unsqueeze(-1 - len(self.event_shape)))
        return (below * self.mixture_distribution.probs).sum(-1)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> d = dist.MixtureSameFamily(dist.Categorical(cygrad.ones(2)), dist.Normal(cygrad.tensor([-1.0, 1.0]), 1.0))
        >>> d.sample((3,)).shape
        torch.Size([3])
        """
        with cygrad.no_grad():
            n = len(self.event_shape)
            which = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            found = self.component_distribution.sample(sample_shape)
            which = which.reshape(which.shape + (1,) * (n + 1))
            dim = which.ndim - 1 - n
            return found.gather(dim, which.expand(which.shape[: dim + 1] + self.event_shape)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
