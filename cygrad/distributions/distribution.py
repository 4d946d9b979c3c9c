"""Base classes: Distribution, exponential families, and Independent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import cygrad
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.utils.warning import warn

__all__ = ["Distribution", "ExponentialFamily", "Independent"]


def where_defined(mask, formula, x, inside, otherwise):
    """Return `formula(x)` where `mask` is true, else `otherwise`.

    Elsewhere the formula is evaluated at `inside`: at infinite values its masked gradients would be 0 * inf.
    """
    return cygrad.where(mask, formula(cygrad.where(mask, x, inside)), otherwise)


def lacking(self, *args, **kwargs):
    """Raise NotImplementedError: the distribution does not support this.

    >>> import cygrad, cygrad.distributions as dist
    >>> dist.Poisson(1.0).cdf(cygrad.tensor(1.0))
    Traceback (most recent call last):
        ...
    NotImplementedError
    """
    raise NotImplementedError


def _lacking_with(*parameters: inspect.Parameter) -> Any:
    """Return `lacking` as a method that shows these parameters."""

    def method(self, *args, **kwargs):
        return lacking(self, *args, **kwargs)

    method.__doc__ = lacking.__doc__
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = inspect.Signature([own, *parameters])  # type: ignore[attr-defined]
    return method


def _parameter(name: str, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


class lazy_property:
    """A property that is computed once, when it is first read, with gradients.

    It may be given in the object's `__dict__` instead. Read from the class, it is a property with a docstring.

    >>> from cygrad.distributions.utils import lazy_property
    >>> class Circle:
    ...     radius = 2
    ...     @lazy_property
    ...     def area(self):
    ...         return 3.14 * self.radius**2
    >>> circle = Circle()
    >>> circle.area, circle.__dict__
    (12.56, {'area': 12.56})
    """

    def __init__(self, wrapped: Callable[..., Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with cygrad.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a class shows of a `lazy_property`."""

    def __init__(self, wrapped: Callable[..., Any]) -> None:
        property.__init__(self, wrapped)


class Distribution:
    """Random tensors of shape `sample_shape + batch_shape + event_shape`.

    Subclasses define `arg_constraints`, `support`, `mean`, `variance`, `log_prob(value)`, and either `rsample(shape)`,
    whose samples propagate gradients to the parameters, or `sample(shape)`. Anything not defined raises
    NotImplementedError. Invalid parameters and values raise ValueError, unless `validate_args` is False.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Normal(cygrad.zeros(2), 1.0)
    >>> isinstance(d, dist.Distribution), d.batch_shape, d.event_shape
    (True, torch.Size([2]), torch.Size([]))
    >>> d.sample((3,)).shape
    torch.Size([3, 2])
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: Any = property(lacking)
    support: Any = property(lacking)
    _validate_args = __debug__
    _batch_shape: Any
    _event_shape: Any

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions created from now on validate their parameters and values.

        Raises ValueError for anything but a bool.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Distribution.set_default_validate_args(False)
        >>> dist.Uniform(0.0, 1.0).log_prob(cygrad.tensor(2.0))
        tensor(-inf)
        >>> dist.Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def _check_parameters(self):
        for name, constraint in self._constraints_to_check().items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # not given, but computed from others when first needed
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{_shown(value)}"
                )

    def _constraints_to_check(self):
        try:
            return self.arg_constraints
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation."
            )
            return {}

    def _validate_sample(self, value):
        """Raise ValueError unless `value` is a valid argument of `log_prob`."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        own = self._event_shape
        if tuple(value.shape[value.ndim - len(own) :]) != tuple(own):
            theirs = Size(value.shape[value.ndim - len(own) :])
            raise ValueError(f"The right-most size of value must match event_shape: {theirs} vs {own}.")
        expected = self._batch_shape + own
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {Size(expected)}."
                )
        support = self._support_to_check()
        if support is not None and not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{_shown(value)}"
            )

    def _support_to_check(self):
        try:
            return self.support
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
            return None

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions, given by the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a single sample of one distribution."""
        return self._event_shape

    def _extended_shape(self, sample_shape=()):
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    log_prob: Any = _lacking_with(_parameter("value"))
    cdf: Any = _lacking_with(_parameter("value"))
    icdf: Any = _lacking_with(_parameter("value"))
    entropy: Any = _lacking_with()
    rsample: Any = _lacking_with(_parameter("sample_shape", Size()))
    enumerate_support: Any = _lacking_with(_parameter("expand", True))
    mean: Any = property(lacking)
    variance: Any = property(lacking)

    @property
    def mode(self) -> Any:
        """The mode."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Return the same distribution expanded to a larger `batch_shape`.

        A subclass with an `__init__` of its own makes the new object itself (`_get_checked_instance`), sets the
        attributes that it adds, and passes it on as `_instance`. Raises NotImplementedError for one that does not.

        >>> import cygrad.distributions as dist
        >>> dist.Normal(0.0, 1.0).expand((2, 3)).sample().shape
        torch.Size([2, 3])
        """
        new = self._get_checked_instance(_class_of_library(type(self)), _instance)
        batch_shape = Size(batch_shape)
        kept = {name: value for name, value in self.__dict__.items() if not self._is_derived(name)}
        new.__dict__.update({**kept, **new.__dict__, **self._expanded(batch_shape)})
        new._batch_shape, new._event_shape = batch_shape, self._event_shape
        return new

    def _expanded(self, batch_shape):
        """Return the attributes that differ in the expanded distribution: the parameters."""
        found = {}
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__:
                x = self.__dict__[name]
                found[name] = x.expand(batch_shape + x.shape[x.ndim - constraint.event_dim :])
        return found

    def _is_derived(self, name):
        """Whether an attribute is computed from others when first needed, and is not a parameter."""
        return isinstance(getattr(type(self), name, None), lazy_property) and name not in self.arg_constraints

    def _get_checked_instance(self, cls, _instance=None):
        """Return `_instance`, or a new object of this class, for an `expand` that the class `cls` defines.

        Raises NotImplementedError if a subclass of `cls` has an `__init__` of its own, since what that does would be
        left out.
        """
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Normal(cygrad.zeros(2), 1.0).sample((3,)).shape
        torch.Size([3, 2])
        """
        with cygrad.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Deprecated alias of `sample((n,))`.

        >>> import cygrad.distributions as dist
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     print(dist.Normal(0.0, 1.0).sample_n(3).shape)
        torch.Size([3])
        """
        return self.sample((n,))

    @property
    def stddev(self) -> Any:
        """The square root of the variance."""
        return self.variance.sqrt()

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Categorical(cygrad.ones(4)).perplexity()
        tensor(4.)
        """
        return self.entropy().exp()

    def __repr__(self) -> str:
        shown = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        texts = [f"{name}: {x.item() if x.numel() == 1 and not x.ndim else _short(x)}" for name, x in shown]
        return f"{type(self).__name__}({', '.join(texts)})"


def _class_of_library(cls: Any) -> Any:
    """Return the class of this package that a class is, or that it inherits from."""
    return next(base for base in cls.__mro__ if base.__module__.startswith("cygrad.distributions."))


def _short(x):
    return x.shape if x.numel() != 1 else x


def _shown(value):
    return value.item() if not value.ndim else value.detach()


class ExponentialFamily(Distribution):
    """A distribution with density exp(<t(x), theta> - F(theta) + k(x)).

    Subclasses define `_natural_params`, the tensors theta, `_log_normalizer(*theta)`, which is F, and
    `_mean_carrier_measure`, the mean of k. Since the mean of t is the gradient of F, these determine the entropy,
    F(theta) - <theta, F'(theta)> - mean k, and `kl_divergence` of two distributions of the same class.

    >>> import cygrad
    >>> from cygrad.distributions import Exponential, ExponentialFamily
    >>> d = Exponential(cygrad.tensor([1.0, 2.0]))
    >>> ExponentialFamily.entropy(d), d.entropy()
    (tensor([1.0000, 0.3069], grad_fn=<SubBackward0>), tensor([1.0000, 0.3069]))
    """

    _natural_params: Any = property(lacking)
    _log_normalizer: Any = lacking
    _mean_carrier_measure: Any = property(lacking)

    def entropy(self) -> Tensor:
        """Return the entropy, computed from the log-normalizer and its gradient.

        >>> import cygrad.distributions as dist
        >>> dist.Poisson.entropy is dist.ExponentialFamily.entropy
        True
        >>> dist.ExponentialFamily.entropy(dist.Normal(0.0, 1.0))
        tensor(1.4189, grad_fn=<SubBackward0>)
        """
        mean = self._mean_carrier_measure
        params, normalizer, gradients = self._normalized()
        return normalizer - mean - self._product(params, gradients)

    def _normalized(self):
        """Return (natural parameters as leaves, log-normalizer F, gradients of F)."""
        params = [x.detach().requires_grad_() for x in self._natural_params]
        with cygrad.enable_grad():
            normalizer = self._log_normalizer(*params)
            return params, normalizer, cygrad.autograd.grad(normalizer.sum(), params, create_graph=True)

    def _product(self, params, others):
        """Return the inner product of parameters and `others` per distribution."""
        return sum((x * y).reshape(*self._batch_shape, -1).sum(-1) for x, y in zip(params, others, strict=True))


def broadcast(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast parameters, which may be numbers, to tensors of one shape."""
    if not all(isinstance(value, (Tensor, int, float)) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((value for value in values if isinstance(value, Tensor)), None)
    dtype = cygrad.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    tensors = [x if isinstance(x, Tensor) else cygrad.tensor(x, dtype=dtype, device=device) for x in values]
    return cygrad.broadcast_tensors(*tensors)


D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """Reinterprets trailing batch dimensions of a distribution as event dimensions, so that log_prob sums over them.

    >>> import cygrad
    >>> from cygrad.distributions import Independent, Normal
    >>> d = Independent(Normal(cygrad.zeros(3, 2), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(cygrad.zeros(3, 2))
    (torch.Size([3]), torch.Size([2]), tensor([-1.8379, -1.8379, -1.8379]))
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        n, shape = reinterpreted_batch_ndims, base_distribution.batch_shape
        if n > len(shape):
            raise ValueError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {n} vs {len(shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        events = tuple(shape[len(shape) - n :]) + tuple(base_distribution.event_shape)
        super().__init__(shape[: len(shape) - n], events, validate_args)

    arg_constraints: Any = {}
    has_rsample = property(lambda self: self.base_dist.has_rsample, doc="Whether samples have gradients.")
    has_enumerate_support = property(
        lambda self: not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support,
        doc="Whether the support can be enumerated.",
    )

    @constraints.dependent_property
    def support(self) -> Constraint:
        """The support of the distribution.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Independent(dist.Normal(cygrad.zeros(2), 1.0), 1).support
        IndependentConstraint(Real(), 1)
        """
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    mean = property(lambda self: self.base_dist.mean, doc="The mean.")
    mode = property(lambda self: self.base_dist.mode, doc="The mode.")
    variance = property(lambda self: self.base_dist.variance, doc="The variance.")

    def _expanded(self, batch_shape):
        return {"base_dist": self.base_dist.expand(batch_shape + self.event_shape[: self.reinterpreted_batch_ndims])}

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Independent(dist.Normal(cygrad.zeros(3), 1.0), 1).sample((2,)).shape
        torch.Size([2, 3])
        """
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> loc = cygrad.zeros(3, requires_grad=True)
        >>> dist.Independent(dist.Normal(loc, 1.0), 1).rsample((2,)).requires_grad
        True
        """
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density, summed over the reinterpreted dimensions.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Independent(dist.Normal(cygrad.zeros(3), 1.0), 1).log_prob(cygrad.zeros(3))
        tensor(-2.7568)
        """
        return self._added(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        """Return the entropy, summed over the reinterpreted dimensions.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Independent(dist.Normal(cygrad.zeros(3), 1.0), 1).entropy()
        tensor(4.2568)
        """
        return self._added(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of the base; not implemented if any dimension is reinterpreted.

        Raises NotImplementedError then.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Independent(dist.Bernoulli(cygrad.tensor([0.5])), 0).enumerate_support()
        tensor([[0.],
                [1.]])
        """
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def _added(self, x):
        n = self.reinterpreted_batch_ndims
        return x.flatten(x.ndim - n).sum(-1) if n else x

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
