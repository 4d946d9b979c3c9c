"""Transforms of vectors and matrices, and the registries of transforms from the real numbers to a constraint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cygrad
import cygrad.nn.functional as F
from cygrad import Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.distributions.distribution import Distribution, Size
from cygrad.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    SigmoidTransform,
    Transform,
    identity_transform,
)

__all__ = [
    "AbsTransform", "CatTransform", "ConstraintRegistry", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "ReshapeTransform", "SoftmaxTransform", "StackTransform",
    "StickBreakingTransform", "biject_to", "transform_to",
]  # fmt: skip


class AbsTransform(Transform):
    """|x|; the inverse returns the positive solution.

    It is not bijective, so it has no log-determinant.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.AbsTransform()
    >>> t(cygrad.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    parameters = ()
    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class SoftmaxTransform(Transform):
    """softmax(x) of vectors; the inverse returns log(y).

    It is not bijective, so it has no log-determinant.

    >>> import cygrad, cygrad.distributions as dist
    >>> dist.SoftmaxTransform()(cygrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    parameters = ()
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()


def _odds(x):
    """Return the logarithms of n, ..., 2, 1 for vectors of n elements."""
    return cygrad.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()


class StickBreakingTransform(Transform):
    """Maps vectors of n - 1 elements to n shares that sum to 1: each element breaks off a part of the remaining stick.

    y[i] = s[i] (1 - s[0]) ... (1 - s[i - 1]), where s[i] = sigmoid(x[i] - log(n - 1 - i)) and s[n - 1] = 1.

    >>> import cygrad
    >>> shares = cygrad.distributions.StickBreakingTransform()
    >>> shares(cygrad.zeros(3)), shares.inv(cygrad.tensor([0.5, 0.5]))
    (tensor([0.2500, 0.2500, 0.2500, 0.2500]), tensor([0.]))
    """

    parameters = ()
    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x):
        part = (x - _odds(x)).sigmoid().clamp(cygrad.finfo(x.dtype).tiny, 1 - cygrad.finfo(x.dtype).eps)
        return F.pad(part, (0, 1), value=1.0) * F.pad((1 - part).cumprod(-1), (1, 0), value=1.0)

    def _inverse(self, y):
        left = (1 - y[..., :-1].cumsum(-1)).clamp(min=cygrad.finfo(y.dtype).tiny)
        return y[..., :-1].log() - left.log() + _odds(left)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return sum over i of log(y[i] (1 - s[i])), for all shares y but the last.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.StickBreakingTransform()
        >>> x = cygrad.tensor([0.0, 0.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor(-3.2958)
        """
        x = x - _odds(x)
        return (F.logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of t(x) for x of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.StickBreakingTransform().forward_shape((2, 3))
        (2, 4)
        """
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of x for t(x) of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.StickBreakingTransform().inverse_shape((2, 4))
        (2, 3)
        """
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """The lower triangle of a matrix, with an exponentiated diagonal.

    L[i, i] = exp(x[i, i]), and L[i, j] = x[i, j] for i > j.

    >>> import cygrad, cygrad.distributions as dist
    >>> dist.LowerCholeskyTransform()(cygrad.tensor([[0.0, 5.0], [2.0, 1.0]]))
    tensor([[1.0000, 0.0000],
            [2.0000, 2.7183]])
    """

    parameters = ()
    domain = constraints.independent(constraints.real, 2)
    codomain: Any = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """L L^T for the result L of `LowerCholeskyTransform`.

    >>> import cygrad, cygrad.distributions as dist
    >>> dist.PositiveDefiniteTransform()(cygrad.tensor([[0.0, 5.0], [2.0, 1.0]]))
    tensor([[ 1.0000,  2.0000],
            [ 2.0000, 11.3891]])
    """

    codomain = constraints.positive_definite

    def _call(self, x):
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return super()._inverse(cygrad.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Maps vectors of n (n - 1) / 2 elements to the Cholesky factor of an n x n correlation matrix.

    L[i, j] = z[i, j] sqrt((1 - z[i, 0]^2) ... (1 - z[i, j - 1]^2)), where z has the tanh of the elements below its
    diagonal, row by row, and 1 on it.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.CorrCholeskyTransform()
    >>> factor = t(cygrad.tensor([0.5]))
    >>> factor, t.inv(factor)
    (tensor([[1.0000, 0.0000],
            [0.4621, 0.8868]]), tensor([0.5000]))
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x):
        eps = cygrad.finfo(x.dtype).eps
        n = self.forward_shape(x.shape)[-1]
        rows, columns = cygrad.tril_indices(n, n, -1, device=x.device)
        part = cygrad.zeros((*x.shape[:-1], n, n), dtype=x.dtype, device=x.device)
        part[..., rows, columns] = x.tanh().clamp(eps - 1, 1 - eps)
        left = (1 - part**2).sqrt().cumprod(-1)
        return (part + cygrad.eye(n, dtype=x.dtype, device=x.device)) * F.pad(left[..., :-1], (1, 0), value=1.0)

    @staticmethod
    def _below(y, diagonal=-1):
        rows, columns = cygrad.tril_indices(y.shape[-2], y.shape[-1], diagonal, device=y.device)
        return y[..., rows, columns]

    def _inverse(self, y):
        left = F.pad(1 - (y * y).cumsum(-1)[..., :-1], (1, 0), value=1.0)
        return (self._below(y) / self._below(left).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        """Return the log-determinant of the Jacobian of the elements below the diagonal, without `intermediates`.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.CorrCholeskyTransform()
        >>> x = cygrad.tensor([0.5])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor(-0.2402)
        """
        sticks = 0.5 * self._below(1 - (y * y).cumsum(-1), -2).log().sum(-1)
        return sticks - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of t(x) for x of this shape.

        Raises ValueError for a length that is not n (n - 1) / 2.

        >>> import cygrad.distributions as dist
        >>> dist.CorrCholeskyTransform().forward_shape((2, 3))
        (2, 3, 3)
        """
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of x for t(x) of this shape.

        Raises ValueError unless it is a square matrix.

        >>> import cygrad.distributions as dist
        >>> dist.CorrCholeskyTransform().inverse_shape((2, 3, 3))
        (2, 3)
        """
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class ReshapeTransform(Transform):
    """Reshapes its argument.

    Raises ValueError if the shapes have different numbers of elements.

    >>> import cygrad, cygrad.distributions as dist
    >>> dist.ReshapeTransform((4,), (2, 2))(cygrad.arange(4.0))
    tensor([[0., 1.],
            [2., 3.]])
    """

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    bijective = True
    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)), doc="The domain.")
    codomain = property(
        lambda self: constraints.independent(constraints.real, len(self.out_shape)), doc="The codomain."
    )

    def _batch(self, x):
        return x.shape[: x.ndim - len(self.in_shape)]

    def _call(self, x):
        return x.reshape(self._batch(x) + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return 0.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.ReshapeTransform((4,), (2, 2))
        >>> x = cygrad.ones(3, 4)
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([0., 0., 0.])
        """
        return x.new_zeros(self._batch(x))

    def _replaced(self, shape, old, new):
        cut = len(shape) - len(old)
        if cut < 0:
            raise ValueError("Too few dimensions on input")
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return tuple(shape[:cut]) + tuple(new)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of t(x) for x of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.ReshapeTransform((4,), (2, 2)).forward_shape((3, 4))
        (3, 2, 2)
        """
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of x for t(x) of this shape.

        >>> import cygrad.distributions as dist
        >>> dist.ReshapeTransform((4,), (2, 2)).inverse_shape((3, 2, 2))
        (3, 4)
        """
        return self._replaced(shape, self.out_shape, self.in_shape)


class CumulativeDistributionTransform(Transform):
    """The cdf of a distribution, which maps its samples to uniform numbers.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.CumulativeDistributionTransform(dist.Normal(0.0, 1.0))
    >>> t(cygrad.tensor([0.0, 1.0])), t.inv(cygrad.tensor(0.5))
    (tensor([0.5000, 0.8413]), tensor(0.))
    """

    bijective = True
    sign = 1
    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support, doc="The domain of the transform.")

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the log-density at x, as the density is the derivative of the cdf.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.CumulativeDistributionTransform(dist.Normal(0.0, 1.0))
        >>> x = cygrad.tensor([0.0, 1.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([-0.9189, -1.4189])
        """
        return self.distribution.log_prob(x)


class CatTransform(Transform):
    """Applies a separate transform to each part of a tensor along a dimension.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.CatTransform([dist.ExpTransform(), dist.AffineTransform(0.0, 2.0)], lengths=[1, 2])
    >>> t(cygrad.tensor([0.0, 1.0, 2.0]))
    tensor([1., 2., 4.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq], dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms), doc="The most of those of the parts.")
    bijective = property(lambda self: all(t.bijective for t in self.transforms), doc="Whether all parts are.")
    domain = property(lambda self: self._joined_constraint([t.domain for t in self.transforms]), doc="The domain.")
    codomain = property(
        lambda self: self._joined_constraint([t.codomain for t in self.transforms]), doc="The codomain."
    )

    def _joined_constraint(self, cseq):
        return constraints.cat(cseq, self.dim, self.lengths)

    length = property(lambda self: sum(self.lengths), doc="The length of the dimension.")

    def _parts(self, x):
        return x.split(self.lengths, self.dim)

    def _joined(self, parts, dim):
        return cygrad.cat(parts, dim)

    def _call(self, x):
        return self._joined([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)], self.dim)

    def _inverse(self, y):
        return self._joined([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        """Return the concatenated log-determinants, or their sum if the dimension is part of an event.

        >>> import cygrad, cygrad.distributions as dist
        >>> t = dist.CatTransform([dist.ExpTransform(), dist.AffineTransform(0.0, 2.0)], lengths=[1, 1])
        >>> x = cygrad.tensor([0.5, 1.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([0.5000, 0.6931])
        """
        found, dims = [], self.domain.event_dim
        for t, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            logs = t.log_abs_det_jacobian(a, b)
            more = dims - t.domain.event_dim
            found.append(logs.flatten(logs.ndim - more).sum(-1) if more else logs)
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        return self._joined(found, dim + dims) if dim + dims < 0 else sum(found)


class StackTransform(CatTransform):
    """Applies a separate transform to each slice of a tensor along a dimension.

    >>> import cygrad, cygrad.distributions as dist
    >>> t = dist.StackTransform([dist.ExpTransform(), dist.AffineTransform(0.0, 2.0)])
    >>> t(cygrad.tensor([[0.0, 1.0], [1.0, 2.0]]))
    tensor([[1.0000, 2.7183],
            [2.0000, 4.0000]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size=cache_size)

    def _parts(self, x):
        return x.unbind(self.dim)

    def _joined(self, parts, dim):
        return cygrad.stack(parts, dim)

    def _joined_constraint(self, cseq):
        return constraints.stack(cseq, self.dim)


class ConstraintRegistry:
    """Maps classes of constraints to transforms from the real numbers to that constraint.

    >>> import cygrad
    >>> from cygrad.distributions import biject_to, constraints
    >>> biject_to(constraints.interval(-1.0, 2.0))(cygrad.tensor(0.0))
    tensor(0.5000)
    """

    def __init__(self) -> None:
        self._registry: dict[Any, Any] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Register `factory(constraint)`, which creates the transform, for a class, given by itself or by an object.

        Returns the factory, or a decorator if it is omitted. Raises TypeError for anything but a constraint.

        >>> import cygrad, cygrad.distributions as dist
        >>> from cygrad.distributions import constraints, constraint_registry
        >>> registry = constraint_registry.ConstraintRegistry()
        >>> @registry.register(constraints.greater_than)
        ... def shifted(constraint):
        ...     return dist.ComposeTransform([dist.ExpTransform(), dist.AffineTransform(constraint.lower_bound, 1)])
        >>> registry(constraints.greater_than(2))(cygrad.tensor(0.0))
        tensor(3.)
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


def _inside(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    unit = SigmoidTransform()
    if isinstance(low, (int, float)) and low == 0 and isinstance(high, (int, float)) and high == 1:
        return unit
    return ComposeTransform([unit, AffineTransform(low, high - low)])


def _above(constraint):
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.lower_bound, 1)])


def _below(constraint):
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


def _with_parts(registry):
    """Register the constraints that consist of others."""

    @registry.register(constraints.independent)
    def independent(constraint):
        return IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def cat(constraint):
        return CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def stack(constraint):
        return StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()
_kind: Any
for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda constraint: identity_transform)
    for _kind in (constraints.greater_than, constraints.greater_than_eq):
        _registry.register(_kind, _above)
    _registry.register(constraints.less_than, _below)
    for _kind in (constraints.interval, constraints.half_open_interval):
        _registry.register(_kind, _inside)
    _registry.register(constraints.corr_cholesky, lambda constraint: CorrCholeskyTransform())
    _with_parts(_registry)
biject_to.register(constraints.simplex, lambda constraint: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda constraint: PositiveDefiniteTransform())
