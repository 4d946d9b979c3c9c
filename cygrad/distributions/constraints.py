"""Constraints on parameters and values of distributions: `constraint.check(value)` tests where they are satisfied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cygrad
from cygrad import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
    "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
    "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack", "symmetric",
    "unit_interval",
]  # fmt: skip


class Constraint:
    """A region of values; subclasses define `check(value)`.

    The last `event_dim` dimensions form one value; `is_discrete` marks discrete regions. Each kind of region has a
    class of its own, by which `biject_to` and `transform_to` know it.

    >>> import cygrad
    >>> positive = cygrad.distributions.constraints.positive
    >>> positive, positive.check(cygrad.tensor([1.0, -1.0]))
    (GreaterThan(lower_bound=0.0), tensor([ True, False]))
    """

    event_dim: Any = 0
    is_discrete: Any = False
    _limits: tuple[str, ...] = ()  # the attributes that the repr shows

    def check(self, value: Tensor) -> Tensor:
        """Return where a tensor satisfies this, without the last `event_dim` dimensions, which form one value.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.positive.check(cygrad.tensor([-1.0, 1.0]))
        tensor([False,  True])
        >>> constraints.simplex.check(cygrad.tensor([[0.5, 0.5], [0.5, 0.6]]))
        tensor([ True, False])
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        limits = ", ".join(f"{name}={getattr(self, name)}" for name in self._limits)
        return f"{type(self).__name__.lstrip('_')}({limits})"


class _Dependent(Constraint):
    """A region that depends on the parameters; only the distribution knows it.

    `constraints.dependent(is_discrete=False, event_dim=1)` states what all these regions have in common. Asking for
    anything else raises NotImplementedError.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.is_dependent(constraints.dependent)
    True
    >>> constraints.dependent(is_discrete=False, event_dim=1).event_dim
    1
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether the region is discrete."""
        return self._known("is_discrete")

    @property
    def event_dim(self) -> int:
        """The number of dimensions that form one value."""
        return self._known("event_dim")

    def _known(self, name):
        value = getattr(self, f"_{name}")
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Any:
        """Return a constraint that states more."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Tensor) -> Tensor:
        """Raises ValueError: the region is not known."""
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property of distributions whose value, a constraint, depends on their parameters.

    Use as a decorator, optionally with what all these constraints share:
    `@dependent_property(is_discrete=False, event_dim=1)`.

    >>> import cygrad, cygrad.distributions as dist
    >>> from cygrad.distributions import constraints
    >>> class Above(dist.Distribution):
    ...     def __init__(self, low):
    ...         self.low = low
    ...     @constraints.dependent_property(is_discrete=False, event_dim=0)
    ...     def support(self):
    ...         return constraints.greater_than(self.low)
    >>> Above(3).support
    GreaterThan(lower_bound=3)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> Any:  # type: ignore[override]  # a decorator
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: object) -> bool:
    """Whether a constraint depends on parameters and must be read from the distribution instance.

    >>> import cygrad, cygrad.distributions as dist
    >>> from cygrad.distributions import constraints
    >>> constraints.is_dependent(constraints.dependent), constraints.is_dependent(dist.Normal.support)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """A constraint with additional batch dimensions counted as part of the value.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.independent(constraints.positive, 1).event_dim
    1
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete, doc="Whether the region is discrete.")
    event_dim = property(
        lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims,
        doc="The number of dimensions that form one value.",
    )

    def check(self, value: Tensor) -> Tensor:
        """Return where all entries of the reinterpreted dimensions satisfy the constraint.

        Raises ValueError for a tensor with fewer dimensions.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.independent(constraints.positive, 1).check(cygrad.tensor([[1.0, 2.0], [1.0, -1.0]]))
        tensor([ True, False])
        """
        found, n = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if found.ndim < n:
            expected = self.base_constraint.event_dim + n
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return found.flatten(found.ndim - n).all(-1) if n else found

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: that of its components, without the component dimension.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.positive)
    MixtureSameFamilyConstraint(GreaterThan(lower_bound=0.0))
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete, doc="Whether the region is discrete.")
    event_dim = property(lambda self: self.base_constraint.event_dim, doc="The dimensions that form one value.")

    def check(self, value: Tensor) -> Tensor:
        """Return where the components could have produced the value.

        >>> import cygrad, cygrad.distributions as dist
        >>> from cygrad.distributions import constraints
        >>> weights = dist.Categorical(cygrad.ones(2))
        >>> d = dist.MixtureSameFamily(weights, dist.Exponential(cygrad.ones(2)))
        >>> d.support.check(cygrad.tensor([-1.0, 1.0]))
        tensor([False,  True])
        """
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.flatten(value.ndim - self.event_dim).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Parts(Constraint):
    """Several constraints, `cseq`, each on its own part of a tensor along a dimension."""

    cseq: Any

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq), doc="Whether a region is discrete.")

    def _found(self, parts):
        return [constraint.check(part) for constraint, part in zip(self.cseq, parts, strict=True)]


class _Cat(_Parts):
    """Constraints on parts of the given lengths (1 each by default) along dimension `dim`.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.cat([constraints.positive, constraints.real]).check(cygrad.tensor([-1.0, -1.0]))
    tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"expected {len(self.cseq)} lengths, but got {len(self.lengths)}")

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq), doc="The most of those of the parts.")

    def check(self, value: Tensor) -> Tensor:
        """Return the joined answers of the parts.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> both = constraints.cat([constraints.positive, constraints.real], lengths=[1, 2])
        >>> both.check(cygrad.tensor([1.0, -1.0, 2.0]))
        tensor([True, True, True])
        """
        return cygrad.cat(self._found(value.split(self.lengths, self.dim)), self.dim)


class _Stack(_Parts):
    """Constraints on the slices along dimension `dim`.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.stack([constraints.positive, constraints.real]).event_dim
    0
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def event_dim(self) -> int:
        """The most of those of the parts, and one more if `dim` is among these dimensions."""
        dim = max(constraint.event_dim for constraint in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        """Return the stacked answers of the slices.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.stack([constraints.positive, constraints.real]).check(cygrad.tensor([-1.0, -1.0]))
        tensor([False,  True])
        """
        return cygrad.stack(self._found(value.unbind(self.dim)), self.dim)


# -- numbers --


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is 0 or 1."""
        return (value == 0) | (value == 1)


class _Real(Constraint):
    """All numbers but NaN."""

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is not NaN."""
        return value == value


class _Above(Constraint):
    """Base of the regions with a lower bound alone."""

    _limits: tuple[str, ...] = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(Constraint):
    """Base of the regions with an upper bound alone."""

    _limits: tuple[str, ...] = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(Constraint):
    """Base of the regions with two bounds."""

    _limits = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _IntegerInterval(_Between):
    """Integers in a closed interval.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.integer_interval(0, 3)
    IntegerInterval(lower_bound=0, upper_bound=3)
    """

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is one of them.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.integer_interval(0, 3).check(cygrad.tensor([0.5, 3.0, 4.0]))
        tensor([False,  True, False])
        """
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    """Integers up to a limit."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is one of them."""
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Integers from a limit on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is one of them."""
        return (value % 1 == 0) & (value >= self.lower_bound)


class _GreaterThan(_Above):
    """Numbers above a limit.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.greater_than(1)
    GreaterThan(lower_bound=1)
    """

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is above it.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.greater_than(1).check(cygrad.tensor([1.0, 2.0]))
        tensor([False,  True])
        """
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Numbers at or above a limit.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.greater_than_eq(1)
    GreaterThanEq(lower_bound=1)
    """

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is at or above it.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.greater_than_eq(1).check(cygrad.tensor([0.0, 1.0]))
        tensor([False,  True])
        """
        return self.lower_bound <= value


class _LessThan(_Below):
    """Numbers below a limit.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.less_than(1)
    LessThan(upper_bound=1)
    """

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is below it.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.less_than(1).check(cygrad.tensor([0.0, 1.0]))
        tensor([ True, False])
        """
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers in a closed interval.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.interval(0, 1), constraints.unit_interval
    (Interval(lower_bound=0, upper_bound=1), Interval(lower_bound=0.0, upper_bound=1.0))
    """

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is in it.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.interval(0, 1).check(cygrad.tensor([1.0, 2.0]))
        tensor([ True, False])
        """
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers in an interval that excludes its upper bound.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.half_open_interval(0, 1)
    HalfOpenInterval(lower_bound=0, upper_bound=1)
    """

    def check(self, value: Tensor) -> Tensor:
        """Return where a value is in it.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.half_open_interval(0, 1).check(cygrad.tensor([0.0, 1.0]))
        tensor([ True, False])
        """
        return (self.lower_bound <= value) & (value < self.upper_bound)


# -- vectors --


class _OneHot(Constraint):
    """Vectors of one 1 and zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Return which vectors are of this kind."""
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers that sum to 1, within 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Return which vectors are of this kind."""
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_Below):
    """Vectors of counts whose sum is at most a limit.

    >>> import cygrad
    >>> from cygrad.distributions import constraints
    >>> constraints.multinomial(3).event_dim
    1
    """

    is_discrete = True
    event_dim = 1
    _limits = ()

    def check(self, x: Tensor) -> Tensor:
        """Return which vectors are of this kind.

        >>> import cygrad
        >>> from cygrad.distributions import constraints
        >>> constraints.multinomial(3).check(cygrad.tensor([[1.0, 2.0], [2.0, 2.0]]))
        tensor([ True, False])
        """
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# -- matrices --


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        """Return which matrices are of this kind."""
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        """Return which matrices are of this kind."""
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of length 1."""

    def check(self, value: Tensor) -> Tensor:
        """Return which matrices are of this kind."""
        tolerance = cygrad.finfo(value.dtype).eps * value.shape[-1] * 10
        rows = (value**2).sum(-1)
        return super().check(value) & ((rows - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    """Matrices with as many rows as columns."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        """Return which matrices are of this kind."""
        return cygrad.full(value.shape[:-2], value.shape[-2] == value.shape[-1], device=value.device)


class _Symmetric(_Square):
    """Matrices that are equal to their transposes, within 1e-6."""

    def check(self, value: Tensor) -> Tensor:
        """Return which matrices are of this kind."""
        is_square = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return is_square
        return cygrad.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        """Return which matrices are of this kind."""
        is_symmetric = super().check(value)
        return (cygrad.linalg.eigvalsh(value) >= 0).all(-1) if is_symmetric.all() else is_symmetric


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        """Return which matrices are of this kind."""
        is_symmetric = super().check(value)
        return cygrad.linalg.cholesky_ex(value).info == 0 if is_symmetric.all() else is_symmetric


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
