"""Constraints on parameters and values of distributions: `constraint.check(value)` tests where they are satisfied."""

import cygrad

__all__ = [
    "Constraint", "boolean", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "mixture_same_family", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex",
    "square", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region of values; subclasses define `check(value)`.

    The last `event_dim` dimensions form one value; `is_discrete` marks discrete regions.

    >>> import cygrad
    >>> positive = cygrad.distributions.constraints.positive
    >>> positive, positive.check(cygrad.tensor([1.0, -1.0]))
    (GreaterThan(lower_bound=0.0), tensor([ True, False]))
    """

    event_dim = 0
    is_discrete = False

    def check(self, value):
        """Return where a tensor satisfies this, without the last `event_dim` dimensions, which form one value."""
        raise NotImplementedError

    def __repr__(self):
        return f"{type(self).__name__.lstrip('_')}()"


class _Region(Constraint):
    """A region given by its name, its test, and the limits shown in its repr."""

    def __init__(self, name, test, event_dim=0, is_discrete=False, **limits):
        self._name, self._test, self._limits = name, test, limits
        self.event_dim, self.is_discrete = event_dim, is_discrete
        self.__dict__.update(limits)

    def check(self, value):
        return self._test(value)

    def __repr__(self):
        return f"{self._name}({', '.join(f'{name}={limit}' for name, limit in self._limits.items())})"


def greater_than(lower_bound):
    """Return the constraint of numbers above a limit."""
    return _Region("GreaterThan", lambda x: x > lower_bound, lower_bound=lower_bound)


def greater_than_eq(lower_bound):
    """Return the constraint of numbers at or above a limit."""
    return _Region("GreaterThanEq", lambda x: x >= lower_bound, lower_bound=lower_bound)


def less_than(upper_bound):
    """Return the constraint of numbers below a limit."""
    return _Region("LessThan", lambda x: x < upper_bound, upper_bound=upper_bound)


def interval(lower_bound, upper_bound):
    """Return the constraint of numbers in a closed interval."""
    limits = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return _Region("Interval", lambda x: (lower_bound <= x) & (x <= upper_bound), **limits)


def half_open_interval(lower_bound, upper_bound):
    """Return the constraint of numbers in an interval that excludes its upper bound."""
    limits = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return _Region("HalfOpenInterval", lambda x: (lower_bound <= x) & (x < upper_bound), **limits)


def integer_interval(lower_bound, upper_bound):
    """Return the constraint of integers in a closed interval."""

    def test(x):
        return (x % 1 == 0) & (lower_bound <= x) & (x <= upper_bound)

    return _Region("IntegerInterval", test, 0, True, lower_bound=lower_bound, upper_bound=upper_bound)


def multinomial(upper_bound):
    """Return the constraint of counts whose sum is at most a limit."""
    return _Region("Multinomial", lambda x: (x >= 0).all(-1) & (x.sum(-1) <= upper_bound), 1, True)


class independent(Constraint):
    """A constraint with additional batch dimensions counted as part of the value."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete

    def check(self, value):
        """Return where all entries of the reinterpreted dimensions satisfy the constraint."""
        found = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        return found.flatten(found.ndim - n).all(-1) if n else found

    def __repr__(self):
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class mixture_same_family(Constraint):
    """The support of a mixture: that of its components, without the component dimension."""

    def __init__(self, base_constraint):
        self.base_constraint = base_constraint
        self.event_dim, self.is_discrete = base_constraint.event_dim, base_constraint.is_discrete

    def check(self, value):
        """Return where the components could have produced the value."""
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.flatten(value.ndim - self.event_dim).all(-1)

    def __repr__(self):
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class dependent_property(property):
    """A property of distributions whose value, a constraint, depends on their parameters.

    Use as a decorator, optionally with the attributes shared by all these constraints:
    `@dependent_property(is_discrete=False, event_dim=1)`.
    """

    def __init__(self, fget=None, *, is_discrete=None, event_dim=None):
        super().__init__(fget)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fget):
        return dependent_property(fget, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint):
    """Whether a constraint depends on parameters and must be read from the distribution instance."""
    return constraint is dependent or isinstance(constraint, dependent_property)


def _is_simplex(x):
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _is_one_hot(x):
    return ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)


def _is_lower_cholesky(x):
    is_lower = (x.tril() == x).flatten(-2).all(-1)
    return is_lower & (x.diagonal(0, -2, -1) > 0).all(-1)


def _is_corr_cholesky(x):
    tolerance = cygrad.finfo(x.dtype).eps * x.shape[-1] * 10
    rows = (x**2).sum(-1)
    return _is_lower_cholesky(x) & ((rows - 1).abs() < tolerance).all(-1)


def _is_positive_definite(x):
    is_symmetric = cygrad.isclose(x, x.mT, atol=1e-6).flatten(-2).all(-1)
    return is_symmetric & (cygrad.linalg.cholesky_ex(x).info == 0)


def _is_square(x):
    return cygrad.full(x.shape[:-2], x.shape[-2] == x.shape[-1])


def _is_symmetric(x):
    if x.shape[-2] != x.shape[-1]:
        return _is_square(x)
    return cygrad.isclose(x, x.mT, atol=1e-6).flatten(-2).all(-1)


def _is_positive_semidefinite(x):
    symmetric = _is_symmetric(x)
    return (cygrad.linalg.eigvalsh(x) >= 0).all(-1) if symmetric.all() else symmetric


dependent = _Region("Dependent", None)
real = _Region("Real", lambda x: x == x)
boolean = _Region("Boolean", lambda x: (x == 0) | (x == 1), 0, True)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
nonnegative_integer = _Region("IntegerGreaterThan", lambda x: (x % 1 == 0) & (x >= 0), 0, True, lower_bound=0)
positive_integer = _Region("IntegerGreaterThan", lambda x: (x % 1 == 0) & (x >= 1), 0, True, lower_bound=1)
unit_interval = interval(0.0, 1.0)
simplex = _Region("Simplex", _is_simplex, 1)
one_hot = _Region("OneHot", _is_one_hot, 1, True)
lower_cholesky = _Region("LowerCholesky", _is_lower_cholesky, 2)
corr_cholesky = _Region("CorrCholesky", _is_corr_cholesky, 2)
positive_definite = _Region("PositiveDefinite", _is_positive_definite, 2)
square = _Region("Square", _is_square, 2)
symmetric = _Region("Symmetric", _is_symmetric, 2)
positive_semidefinite = _Region("PositiveSemidefinite", _is_positive_semidefinite, 2)
lower_triangular = _Region("LowerTriangular", lambda x: (x.tril() == x).flatten(-2).all(-1), 2)
real_vector = independent(real, 1)
