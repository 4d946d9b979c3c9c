"""Invertible functions of each element, and distributions of what they give."""

import math
import weakref
from typing import Any

import cygrad
from cygrad.distributions import constraints
from cygrad.distributions.distribution import Distribution
from cygrad.nn.functional import softplus

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "SigmoidTransform", "TanhTransform", "Transform",
    "TransformedDistribution", "identity_transform",
]  # fmt: skip


class Transform:
    """A function `t(x)` with its inverse `t.inv(y)`, and the logarithm of its slope's size.

    A subclass has `_call(x)`, `_inverse(y)`, `log_abs_det_jacobian(x, y)`, `domain` and `codomain`. With
    `cache_size=1` the inverse of the last result is the very argument it came from, without rounding.
    """

    bijective = True
    sign = 1
    event_dim = 0
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self.cache_size, self._last, self._inv = cache_size, (None, None), None

    @property
    def inv(self) -> Any:
        """The inverse, as a transform."""
        found = self._inv and self._inv()
        if found is None:
            found = _Inverse(self)
            self._inv = weakref.ref(found)
        return found

    def __call__(self, x):
        """y = t(x)."""
        if x is self._last[0]:
            return self._last[1]
        return self._kept(x, self._call(x))[1]

    def _back(self, y):
        if y is self._last[1]:
            return self._last[0]
        return self._kept(self._inverse(y), y)[0]

    def _kept(self, x, y):
        if self.cache_size:
            self._last = x, y
        return x, y

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log |dy/dx|, of each element."""
        raise NotImplementedError

    def forward_shape(self, shape):
        """The shape of t(x) for x of this shape."""
        return shape

    inverse_shape = forward_shape

    def __repr__(self):
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, transform):
        super().__init__()
        self._of = transform
        self.domain, self.codomain, self.sign = transform.codomain, transform.domain, transform.sign

    inv = property(lambda self: self._of)

    def _call(self, x):
        return self._of._back(x)

    def _inverse(self, y):
        return self._of(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._of.log_abs_det_jacobian(y, x)

    def __repr__(self):
        return f"_InverseTransform({self._of!r})"


class ComposeTransform(Transform):
    """One transform after the other."""

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = list(parts)
        self.sign = math.prod([part.sign for part in self.parts])
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        """The sum over the parts."""
        total = cygrad.zeros_like(x)
        for part in self.parts:
            y = part(x)
            total = total + part.log_abs_det_jacobian(x, y)
            x = y
        return total


identity_transform = ComposeTransform([])


class AffineTransform(Transform):
    """loc + scale * x."""

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        if event_dim:
            raise NotImplementedError("AffineTransform(event_dim): use Independent for events of several elements")
        self.loc, self.scale = loc, scale

    sign = property(lambda self: cygrad.as_tensor(self.scale).sign(), doc="1 where it grows, -1 where it falls.")

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        """log |scale|."""
        return cygrad.as_tensor(self.scale, dtype=x.dtype, device=x.device).abs().log().expand(x.shape)


class ExpTransform(Transform):
    """exp(x)."""

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        """x."""
        return x


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x)), kept off 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x):
        return x.sigmoid().clamp(cygrad.finfo(x.dtype).tiny, 1 - cygrad.finfo(x.dtype).eps)

    def _inverse(self, y):
        y = y.clamp(cygrad.finfo(y.dtype).tiny, 1 - cygrad.finfo(y.dtype).eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        """log(y (1 - y)), where that is not rounded to 0."""
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """tanh(x). Its inverse loses digits near -1 and 1: take `cache_size=1` where samples are scored."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        """log(1 - y**2), where that is not rounded to 0."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class TransformedDistribution(Distribution):
    """What transforms make of the samples of another distribution.

    >>> import cygrad
    >>> from cygrad.distributions import Normal, TanhTransform, TransformedDistribution
    >>> policy = TransformedDistribution(Normal(cygrad.zeros(2), 1.0), TanhTransform(cache_size=1))
    >>> policy.log_prob(cygrad.tensor([0.0, 0.5]))
    tensor([-0.9189, -0.7821])
    """

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.base_dist = base_distribution
        super().__init__(base_distribution.batch_shape, base_distribution.event_shape, validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample, doc="Whether samples have gradients.")

    @property
    def support(self):
        """Where values lie."""
        if not self.transforms:
            return self.base_dist.support
        last, n = self.transforms[-1].codomain, len(self.event_shape)
        return constraints.independent(last, n) if n else last

    def expand(self, batch_shape, _instance=None):
        """The same distribution for a larger `batch_shape`."""
        return type(self)(self.base_dist.expand(batch_shape), self.transforms, self._validate_args)

    def sample(self, sample_shape=()):
        """Samples without gradients."""
        with cygrad.no_grad():
            return self._moved(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        """Samples with gradients."""
        return self._moved(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        """The logarithm of the density: that of the base at the inverse, less those of the slopes."""
        if self._validate_args:
            self._validate_sample(value)
        n, total = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            slope = transform.log_abs_det_jacobian(x, value)
            total = total - (slope.flatten(slope.ndim - n).sum(-1) if n else slope)
            value = x
        return total + self.base_dist.log_prob(value)

    def cdf(self, value):
        """The probability of at most `value`."""
        sign = 1
        for transform in reversed(self.transforms):
            value, sign = transform.inv(value), sign * transform.sign
        below = self.base_dist.cdf(value)
        return sign * (below - 0.5) + 0.5

    def icdf(self, value):
        """The number below which a sample is with this probability."""
        for transform in self.transforms:
            value = transform.sign * (value - 0.5) + 0.5
        return self._moved(self.base_dist.icdf(value))

    def _moved(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x
