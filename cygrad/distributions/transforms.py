"""Invertible transforms."""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Sequence
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.distributions.utils import _sum_rightmost
from cygrad.nn.functional import softplus

__all__ = [
    "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform", "PowerTransform", "SigmoidTransform",
    "SoftplusTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


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

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.AffineTransform(1.0, 2.0)
    >>> isinstance(t, dist.Transform), t.inv(t(cygrad.tensor(5.0)))
    (True, tensor(5.))
    """

    parameters: tuple[str, ...] | None = None
    bijective: Any = False
    domain: Any
    codomain: Any

    _inv: Any  # of an inverse the transform, else a weak reference to the inverse

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._cached_x_y, self._inv = cache_size, (None, None), None
        super().__init__()  # of other base classes: transforms with weights are modules too

    @property
    def sign(self) -> Any:
        """1 if increasing, -1 if decreasing, for monotone functions of numbers."""
        raise NotImplementedError

    @property
    def event_dim(self) -> int:
        """The number of dimensions that form one value, if it is that of arguments and of results."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}  # weak references cannot be pickled

    @property
    def inv(self) -> Any:
        """The inverse, as a transform."""
        found = self._inv and self._inv()
        if found is None:
            found = self._new_inverse()
            self._inv = weakref.ref(found)
        return found

    def _new_inverse(self):
        return _InverseTransform(self)

    def __call__(self, x: Tensor) -> Tensor:
        """Return y = t(x)."""
        if x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        return self._kept(x, self._call(x))[1]

    def _inv_call(self, y):
        if y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        return self._kept(self._inverse(y), y)[0]

    def _kept(self, x, y):
        if self._cache_size:
            self._cached_x_y = x, y
        return x, y

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |dy/dx| of each argument.

        Dimensions that form one argument (`domain.event_dim`) are summed over. Raises NotImplementedError where it is
        undefined.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.ExpTransform()
        >>> x = cygrad.tensor([0.0, 1.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([0., 1.])
        """
        raise NotImplementedError

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of t(x) for x of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.ExpTransform().forward_shape((2, 3))
        (2, 3)
        """
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of x for t(x) of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.ExpTransform().inverse_shape((2, 3))
        (2, 3)
        """
        return shape

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform with this cache size.

        With a cache of size 1, the last argument and result are kept, so that `t.inv(t(x))` is `x` itself.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.TanhTransform().with_cache()
        >>> x = cygrad.tensor(20.0)
        >>> t.inv(t(x)) is x
        True
        """
        if self._cache_size == cache_size:
            return self
        new = copy.copy(self)
        new._cache_size, new._cached_x_y, new._inv = cache_size, (None, None), None
        return new

    def __eq__(self, other: object) -> bool:
        if self is other or type(self) is not type(other) or self.parameters is None:
            return self is other
        pairs = [(getattr(self, name), getattr(other, name)) for name in self.parameters]
        return all(bool(cygrad.as_tensor(a == b).all()) for a, b in pairs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform, `_inv`."""

    parameters = ("_inv",)

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.forward_shape(shape)

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y):
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms applied one after another.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.ComposeTransform([dist.AffineTransform(0.0, 2.0), dist.ExpTransform()])
    >>> t(cygrad.tensor([0.0, 0.5]))
    tensor([1.0000, 2.7183])
    """

    parameters = ("parts",)

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    bijective = property(lambda self: all(part.bijective for part in self.parts), doc="Whether all parts are.")
    sign = property(lambda self: math.prod([part.sign for part in self.parts]), doc="The product of the parts' signs.")

    @property
    def domain(self) -> Constraint:
        """The domain of the first part, with as many event dimensions as the parts need."""
        if not self.parts:
            return constraints.real
        return _widened(self.parts[0].domain, _dims([(b, a) for a, b in reversed(self._ends())]))

    @property
    def codomain(self) -> Constraint:
        """The codomain of the last part, with as many event dimensions as the parts need."""
        if not self.parts:
            return constraints.real
        return _widened(self.parts[-1].codomain, _dims(self._ends()))

    def _ends(self):
        return [(part.domain.event_dim, part.codomain.event_dim) for part in self.parts]

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform with this cache size.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.ComposeTransform([dist.ExpTransform()]).with_cache()
        >>> x = cygrad.tensor(1.0)
        >>> t(x) is t(x)
        True
        """
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of t(x) for x of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.ComposeTransform([dist.ReshapeTransform((4,), (2, 2))]).forward_shape((3, 4))
        (3, 2, 2)
        """
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of x for t(x) of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.ComposeTransform([dist.ReshapeTransform((4,), (2, 2))]).inverse_shape((3, 2, 2))
        (3, 4)
        """
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _new_inverse(self):
        found = ComposeTransform([part.inv for part in reversed(self.parts)])
        found._inv = weakref.ref(self)
        return found

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        """Return the sum over the parts.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.ComposeTransform([dist.AffineTransform(0.0, 2.0), dist.ExpTransform()])
        >>> x = cygrad.tensor([0.0, 0.5])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([0.6931, 1.6931])
        """
        if not self.parts:
            return cygrad.zeros_like(x)
        total, dims = 0.0, self.domain.event_dim
        for part in self.parts:
            y = part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, y), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = y
        return total

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


def _dims(ends):
    """Return the number of event dimensions of a chain of transforms, given their (argument, result) dimensions."""
    found = ends[0][0]
    for before, after in ends:
        found = max(found + after - before, after)
    return found


class IndependentTransform(Transform):
    """Treats extra batch dimensions of another transform as part of the event, summing its log-determinants.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.IndependentTransform(dist.ExpTransform(), 1)
    >>> x = cygrad.tensor([[0.0, 1.0], [1.0, 1.0]])
    >>> t.log_abs_det_jacobian(x, t(x))
    tensor([1., 2.])
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    bijective = property(lambda self: self.base_transform.bijective, doc="Whether the other transform is.")
    sign = property(lambda self: self.base_transform.sign, doc="The sign of the other transform.")
    domain = property(lambda self: self._independent(self.base_transform.domain), doc="The domain.")
    codomain = property(lambda self: self._independent(self.base_transform.codomain), doc="The codomain.")

    def _independent(self, constraint):
        return constraints.independent(constraint, self.reinterpreted_batch_ndims)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform with this cache size.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.IndependentTransform(dist.ExpTransform(), 1).with_cache()
        >>> x = cygrad.tensor([1.0, 2.0])
        >>> t(x) is t(x)
        True
        """
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of t(x) for x of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.IndependentTransform(dist.ExpTransform(), 1).forward_shape((2, 3))
        (2, 3)
        """
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of x for t(x) of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.IndependentTransform(dist.ExpTransform(), 1).inverse_shape((2, 3))
        (2, 3)
        """
        return self.base_transform.inverse_shape(shape)

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum over the reinterpreted dimensions.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.IndependentTransform(dist.ExpTransform(), 1)
        >>> x = cygrad.tensor([1.0, 2.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor(3.)
        """
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


identity_transform = ComposeTransform([])


class AffineTransform(Transform):
    """loc + scale * x.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.AffineTransform(1.0, 2.0)
    >>> y = t(cygrad.tensor([0.0, 3.0]))
    >>> y, t.inv(y)
    (tensor([1., 7.]), tensor([0., 3.]))
    """

    parameters = ("loc", "scale")
    bijective = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: Any = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim, doc="The number of dimensions that form one value.")
    domain = codomain = property(lambda self: _widened(constraints.real, self.event_dim), doc="Real numbers.")

    sign = property(lambda self: cygrad.as_tensor(self.scale).sign(), doc="1 if increasing, -1 if decreasing.")

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |scale|, summed over the event dimensions.

        >>> import cygrad, cygrad.distributions as dist
        >>> x = cygrad.tensor([0.0, 3.0])
        >>> t = dist.AffineTransform(1.0, 2.0)
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([0.6931, 0.6931])
        """
        slope = cygrad.as_tensor(self.scale, dtype=x.dtype, device=x.device).abs().log()
        return _sum_rightmost(slope.expand(x.shape), self.event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of t(x) for x of this shape.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.AffineTransform(cygrad.zeros(3), 2.0).forward_shape((2, 1))
        torch.Size([2, 3])
        """
        return cygrad.broadcast_shapes(shape, *[getattr(value, "shape", ()) for value in (self.loc, self.scale)])

    inverse_shape = forward_shape


class PowerTransform(Transform):
    """x ** exponent, for positive numbers.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.PowerTransform(2.0)
    >>> t(cygrad.tensor([1.0, 3.0])), t.inv(cygrad.tensor(9.0))
    (tensor([1., 9.]), tensor(3.))
    """

    parameters = ("exponent",)
    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = cygrad.as_tensor(exponent)

    sign = property(lambda self: self.exponent.sign(), doc="1 if increasing, -1 if decreasing.")

    def _call(self, x):
        return x**self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |exponent y / x|.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.PowerTransform(2.0)
        >>> x = cygrad.tensor([1.0, 3.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([0.6931, 1.7918])
        """
        return (self.exponent * y / x).abs().log()


class SoftplusTransform(Transform):
    """log(1 + exp(x)).

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.SoftplusTransform()
    >>> t(cygrad.tensor([0.0, 1.0])), t.inv(t(cygrad.tensor(1.0)))
    (tensor([0.6931, 1.3133]), tensor(1.))
    """

    parameters = ()
    bijective = True
    sign = 1
    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return -log(1 + exp(-x)).

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.SoftplusTransform()
        >>> x = cygrad.tensor([0.0, 1.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([-0.6931, -0.3133])
        """
        return -softplus(-x)


class ExpTransform(Transform):
    """exp(x).

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.ExpTransform()
    >>> t(cygrad.tensor([0.0, 1.0])), t.inv(cygrad.tensor(1.0))
    (tensor([1.0000, 2.7183]), tensor(0.))
    """

    parameters = ()
    bijective = True
    sign = 1
    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.ExpTransform()
        >>> x = cygrad.tensor([0.0, 1.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([0., 1.])
        """
        return x


def _clipped_sigmoid(x):
    return x.sigmoid().clamp(cygrad.finfo(x.dtype).tiny, 1 - cygrad.finfo(x.dtype).eps)


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x)), clamped away from 0 and 1.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.SigmoidTransform()
    >>> t(cygrad.tensor([0.0, 1.0])), t.inv(cygrad.tensor(0.5))
    (tensor([0.5000, 0.7311]), tensor(0.))
    """

    parameters = ()
    bijective = True
    sign = 1
    domain = constraints.real
    codomain = constraints.unit_interval

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        y = y.clamp(cygrad.finfo(y.dtype).tiny, 1 - cygrad.finfo(y.dtype).eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log(y (1 - y)), accurate even where it would round to log(0).

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.SigmoidTransform()
        >>> x = cygrad.tensor([0.0, 100.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([  -1.3863, -100.0000])
        """
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """tanh(x). Its inverse loses digits near -1 and 1: use `cache_size=1` to compute log_prob of samples.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.TanhTransform(cache_size=1)
    >>> x = cygrad.tensor([0.0, 20.0])
    >>> t.inv(t(x))
    tensor([ 0., 20.])
    """

    parameters = ()
    bijective = True
    sign = 1
    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log(1 - y**2), accurate even where 1 - y**2 rounds to 0.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.TanhTransform()
        >>> x = cygrad.tensor([0.0, 20.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([  0.0000, -38.6137])
        """
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))
