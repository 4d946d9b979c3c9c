"""The distributions of transformed samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cygrad
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.distribution import Distribution, Independent
from cygrad.distributions.transforms import ComposeTransform, Transform, _widened
from cygrad.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of the transformed samples of another distribution.

    With y = t(x), the density at y is that of the base at x, divided by |dy / dx|.

    >>> import cygrad
    >>> from cygrad.distributions import Normal, TanhTransform, TransformedDistribution
    >>> policy = TransformedDistribution(Normal(cygrad.zeros(2), 1.0), TanhTransform(cache_size=1))
    >>> policy.log_prob(cygrad.tensor([0.0, 0.5]))
    tensor([-0.9189, -0.7821])
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        base, dims = base_distribution, len(base_distribution.event_shape)
        shape = base.batch_shape + base.event_shape
        whole = ComposeTransform(self.transforms)
        needed, given = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < needed:
            raise ValueError(f"base_distribution needs to have shape with size at least {needed}, but got {shape}.")
        result = tuple(whole.forward_shape(shape))
        wanted = tuple(whole.inverse_shape(result))
        if wanted != tuple(shape):
            base = base.expand(wanted[: len(wanted) - dims])
        self.base_dist = Independent(base, needed - dims) if needed > dims else base
        cut = len(result) - max(given, dims + given - needed)
        super().__init__(result[:cut], result[cut:], validate_args)

    arg_constraints: Any = {}
    has_rsample: Any = property(lambda self: self.base_dist.has_rsample, doc="Whether samples have gradients.")

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """The support of the distribution.

        >>> import cygrad.distributions as dist
        >>> dist.TransformedDistribution(dist.Normal(0.0, 1.0), [dist.ExpTransform()]).support
        GreaterThan(lower_bound=0.0)
        """
        if not self.transforms:
            return self.base_dist.support
        return _widened(self.transforms[-1].codomain, len(self.event_shape))

    def _expanded(self, batch_shape):
        shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return {**super()._expanded(batch_shape), "base_dist": base}

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad.distributions as dist
        >>> d = dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.ExpTransform())
        >>> d.sample((3,)).shape
        torch.Size([3])
        """
        with cygrad.no_grad():
            return self._moved(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> loc = cygrad.tensor(0.0, requires_grad=True)
        >>> d = dist.TransformedDistribution(dist.Normal(loc, 1.0), dist.ExpTransform())
        >>> d.rsample((3,)).requires_grad
        True
        """
        return self._moved(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: that of the base at the inverse, minus the log-determinants.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> d = dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.ExpTransform())
        >>> d.log_prob(cygrad.tensor([1.0, 2.0]))
        tensor([-0.9189, -1.8523])
        """
        if self._validate_args:
            self._validate_sample(value)
        dims, total = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            total = total - _sum_rightmost(transform.log_abs_det_jacobian(x, value), dims - transform.domain.event_dim)
            value = x
        return total + _sum_rightmost(self.base_dist.log_prob(value), dims - len(self.base_dist.event_shape))

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: that of the base at the inverse.

        >>> import cygrad, cygrad.distributions as dist
        >>> d = dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.ExpTransform())
        >>> d.cdf(cygrad.tensor([1.0, 2.0]))
        tensor([0.5000, 0.7559])
        """
        sign = 1
        for transform in reversed(self.transforms):
            value, sign = transform.inv(value), sign * transform.sign
        below = self.base_dist.cdf(value)
        return sign * (below - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at a probability (the inverse of `cdf`): the transform of that of the base.

        >>> import cygrad, cygrad.distributions as dist
        >>> d = dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.ExpTransform())
        >>> d.icdf(cygrad.tensor([0.5, 0.75]))
        tensor([1.0000, 1.9630])
        """
        for transform in self.transforms:
            value = transform.sign * (value - 0.5) + 0.5
        return self._moved(self.base_dist.icdf(value))

    def _moved(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class _Made(TransformedDistribution):
    """A transformed distribution whose transforms depend on parameters: to expand it, it is made anew."""

    def _expanded(self, batch_shape):
        made: Any = next(cls for cls in type(self).__mro__ if _Made in cls.__bases__)
        values = {name: getattr(self, name).expand(batch_shape) for name in made.arg_constraints}
        return vars(made(**values, validate_args=self._validate_args))
