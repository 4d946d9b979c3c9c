"""Invertible transforms, and the distributions of transformed samples."""

import copy
import math
import weakref
from typing import Any

import cygrad
from cygrad.distributions import constraints
from cygrad.distributions.distribution import Distribution, Independent
from cygrad.nn.functional import softplus

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform", "PowerTransform", "SigmoidTransform",
    "SoftplusTransform", "TanhTransform", "Transform", "TransformedDistribution", "identity_transform",
]  # fmt: skip


def _added(x, count):
    """Sum over the last dimensions."""
    return x.flatten(x.ndim - count).sum(-1) if count > 0 else x


def _widened(constraint, event_dim):
    """Return the constraint with at least `event_dim` event dimensions."""
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


class Transform:
    """A function `t(x)` with an inverse `t.inv(y)` and the logarithm of its absolute Jacobian determinant.

    Subclasses define `_call(x)`, `_inverse(y)`, `log_abs_det_jacobian(x, y)`, `domain` and `codomain`, whose
    `event_dim` is the number of dimensions that form one argument or result. With `cache_size=1` the inverse of the
    last result is the exact argument it came from, without rounding. Transforms of one class are equal if their
    parameters are; if a class does not list its parameters, each is equal only to itself.
    """

    parameters: tuple[str, ...] | None = None
    bijective = True
    sign: Any = 1
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
        """Return y = t(x)."""
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
        """Return log |dy/dx| of each argument."""
        raise NotImplementedError

    def forward_shape(self, shape):
        """Return the shape of t(x) for x of this shape."""
        return shape

    def inverse_shape(self, shape):
        """Return the shape of x for t(x) of this shape."""
        return shape

    def with_cache(self, cache_size=1):
        """Return the same transform with this cache size."""
        if self.cache_size == cache_size:
            return self
        new = copy.copy(self)
        Transform.__init__(new, cache_size)
        return new

    def __eq__(self, other):
        if self is other or type(self) is not type(other) or self.parameters is None:
            return self is other
        pairs = [(getattr(self, name), getattr(other, name)) for name in self.parameters]
        return all(bool(cygrad.as_tensor(a == b).all()) for a, b in pairs)

    def __repr__(self):
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    parameters = ("_of",)

    def __init__(self, transform):
        super().__init__()
        self._of = transform
        self.domain, self.codomain, self.sign = transform.codomain, transform.domain, transform.sign

    inv = property(lambda self: self._of)

    def forward_shape(self, shape):
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._of.forward_shape(shape)

    def _call(self, x):
        return self._of._back(x)

    def _inverse(self, y):
        return self._of(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._of.log_abs_det_jacobian(y, x)

    def __repr__(self):
        return f"_InverseTransform({self._of!r})"


class ComposeTransform(Transform):
    """Transforms applied one after another."""

    parameters = ("parts",)

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = list(parts)
        self.sign = math.prod([part.sign for part in self.parts])
        if self.parts:
            ends = [(part.domain.event_dim, part.codomain.event_dim) for part in self.parts]
            self.domain = _widened(self.parts[0].domain, _dims([(b, a) for a, b in reversed(ends)]))
            self.codomain = _widened(self.parts[-1].codomain, _dims(ends))

    def forward_shape(self, shape):
        """Return the shape of t(x) for x of this shape."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        """Return the shape of x for t(x) of this shape."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        """Return the sum over the parts."""
        if not self.parts:
            return cygrad.zeros_like(x)
        total, dims = 0.0, self.domain.event_dim
        for part in self.parts:
            y = part(x)
            total = total + _added(part.log_abs_det_jacobian(x, y), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = y
        return total

    def __repr__(self):
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


def _dims(ends):
    """Return the number of event dimensions of a chain of transforms, given their (argument, result) dimensions."""
    found = ends[0][0]
    for before, after in ends:
        found = max(found + after - before, after)
    return found


class IndependentTransform(Transform):
    """Treats extra batch dimensions of another transform as part of the event, summing its log-determinants."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform, n = base_transform.with_cache(cache_size), reinterpreted_batch_ndims
        self.reinterpreted_batch_ndims, self.sign = n, base_transform.sign
        self.domain = constraints.independent(base_transform.domain, n)
        self.codomain = constraints.independent(base_transform.codomain, n)

    def forward_shape(self, shape):
        """Return the shape of t(x) for x of this shape."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        """Return the shape of x for t(x) of this shape."""
        return self.base_transform.inverse_shape(shape)

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        """Return the sum over the reinterpreted dimensions."""
        return _added(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


identity_transform = ComposeTransform([])


class AffineTransform(Transform):
    """loc + scale * x."""

    parameters = ("loc", "scale")

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        self.domain = self.codomain = _widened(constraints.real, event_dim)

    sign = property(lambda self: cygrad.as_tensor(self.scale).sign(), doc="1 if increasing, -1 if decreasing.")

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        """Return log |scale|, summed over the event dimensions."""
        slope = cygrad.as_tensor(self.scale, dtype=x.dtype, device=x.device).abs().log()
        return _added(slope.expand(x.shape), self.event_dim)

    def forward_shape(self, shape):
        """Return the shape of t(x) for x of this shape."""
        return cygrad.broadcast_shapes(shape, *[getattr(value, "shape", ()) for value in (self.loc, self.scale)])

    inverse_shape = forward_shape


class PowerTransform(Transform):
    """x ** exponent, for positive numbers."""

    parameters = ("exponent",)
    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = cygrad.as_tensor(exponent)

    sign = property(lambda self: self.exponent.sign(), doc="1 if increasing, -1 if decreasing.")

    def _call(self, x):
        return x**self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        """Return log |exponent y / x|."""
        return (self.exponent * y / x).abs().log()


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    parameters = ()
    codomain = constraints.positive

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        """Return -log(1 + exp(-x))."""
        return -softplus(-x)


class ExpTransform(Transform):
    """exp(x)."""

    parameters = ()
    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        """Return x."""
        return x


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x)), clamped away from 0 and 1."""

    parameters = ()
    codomain = constraints.unit_interval

    def _call(self, x):
        return x.sigmoid().clamp(cygrad.finfo(x.dtype).tiny, 1 - cygrad.finfo(x.dtype).eps)

    def _inverse(self, y):
        y = y.clamp(cygrad.finfo(y.dtype).tiny, 1 - cygrad.finfo(y.dtype).eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        """Return log(y (1 - y)), accurate even where it would round to log(0)."""
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """tanh(x). Its inverse loses digits near -1 and 1: use `cache_size=1` to compute log_prob of samples."""

    parameters = ()
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        """Return log(1 - y**2), accurate even where 1 - y**2 rounds to 0."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class TransformedDistribution(Distribution):
    """The distribution of the transformed samples of another distribution.

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

    has_rsample = property(lambda self: self.base_dist.has_rsample, doc="Whether samples have gradients.")

    @property
    def support(self):
        """The support of the distribution."""
        if not self.transforms:
            return self.base_dist.support
        return _widened(self.transforms[-1].codomain, len(self.event_shape))

    def expand(self, batch_shape, _instance=None):
        """Return the same distribution expanded to a larger `batch_shape`."""
        shape = ComposeTransform(self.transforms).inverse_shape(tuple(batch_shape) + tuple(self.event_shape))
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return type(self)(base, self.transforms, self._validate_args)

    def sample(self, sample_shape=()):
        """Draw samples without gradients."""
        with cygrad.no_grad():
            return self._moved(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        """Draw samples with gradients."""
        return self._moved(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        """Return the log-density: that of the base at the inverse, minus the log-determinants."""
        if self._validate_args:
            self._validate_sample(value)
        dims, total = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            total = total - _added(transform.log_abs_det_jacobian(x, value), dims - transform.domain.event_dim)
            value = x
        return total + _added(self.base_dist.log_prob(value), dims - len(self.base_dist.event_shape))

    def cdf(self, value):
        """Return the probability of a sample at or below `value`."""
        sign = 1
        for transform in reversed(self.transforms):
            value, sign = transform.inv(value), sign * transform.sign
        below = self.base_dist.cdf(value)
        return sign * (below - 0.5) + 0.5

    def icdf(self, value):
        """Return the quantile at this probability (the inverse of `cdf`)."""
        for transform in self.transforms:
            value = transform.sign * (value - 0.5) + 0.5
        return self._moved(self.base_dist.icdf(value))

    def _moved(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x
