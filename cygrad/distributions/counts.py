"""Distributions of counts: successes, failures before a success, and classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cygrad
import cygrad.nn.functional as F
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.distributions.discrete import Categorical, _check_one_is_given, clamp_probs, outcomes
from cygrad.distributions.distribution import Distribution, broadcast, lazy_property
from cygrad.distributions.gammas import Gamma

__all__ = ["Binomial", "Geometric", "Multinomial", "NegativeBinomial"]


class _Trials(Distribution):
    """Trials with success probability `probs`; `logits` are log(probs / (1 - probs))."""

    support: Any = constraints.nonnegative_integer

    def _take(self, probs, logits, *others):
        _check_one_is_given(probs, logits)
        found = broadcast(*others, probs if logits is None else logits)
        self.__dict__["probs" if logits is None else "logits"] = found[-1]
        return found

    _param = property(lambda self: self.__dict__["probs" if "probs" in self.__dict__ else "logits"])
    param_shape = property(lambda self: self._param.shape, doc="The shape of the parameters.")

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of success."""
        return self.logits.sigmoid()

    @lazy_property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))."""
        p = clamp_probs(self.probs)
        return p.log() - (-p).log1p()


class Geometric(_Trials):
    """The number of failed trials before the first success.

    P(k) = (1 - p)^k p. Give either `probs` or `logits`; ValueError otherwise.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Geometric(cygrad.tensor([0.25, 0.5]))
    >>> d.mean, d.sample((3,)).shape
    (tensor([3., 1.]), torch.Size([3, 2]))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and "probs" in self.__dict__ and not (self.probs > 0).all():
            bad = self.probs[self.probs <= 0]
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{bad}"
            )

    mean = property(lambda self: 1.0 / self.probs - 1.0, doc="The mean.")
    mode = property(lambda self: cygrad.zeros_like(self.probs), doc="The mode.")
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs, doc="The variance.")

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Geometric(cygrad.tensor([0.5, 1.0])).sample((3,)).shape
        torch.Size([3, 2])
        """
        with cygrad.no_grad():
            probs = self.probs.expand(self._extended_shape(sample_shape))
            u = cygrad.rand_like(probs).clamp(min=cygrad.finfo(probs.dtype).tiny)
            return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability: value log(1 - p) + log(p).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Geometric(0.5).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-0.6931, -1.3863])
        """
        if self._validate_args:
            self._validate_sample(value)
        if self._param is self.__dict__.get("logits"):
            return value * F.logsigmoid(-self.logits) + F.logsigmoid(self.logits)
        value, probs = cygrad.broadcast_tensors(value, self.probs)
        failures = probs.masked_fill((probs == 1) & (value == 0), 0.0)
        return value * (-failures).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """Return the entropy of one trial divided by the probability: -(p log(p) + (1 - p) log(1 - p)) / p.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Geometric(cygrad.tensor([0.25, 0.5])).entropy()
        tensor([2.2493, 1.3863])
        """
        _ = self.logits  # `repr` shows them from now on, as in PyTorch
        (share, log), (other, log_other) = outcomes(self)
        is_rare = (
            share < cygrad.finfo(share.dtype).eps
        )  # where the last term is -1, although its factors may be 0 and inf
        return 0.0 - log - cygrad.where(is_rare, -1.0, other * log_other / cygrad.where(is_rare, 1.0, share))


class Binomial(_Trials):
    """The number of successes in `total_count` trials.

    P(k) = (n choose k) p^k (1 - p)^(n - k), where n is `total_count`.

    >>> import cygrad
    >>> d = cygrad.distributions.Binomial(2, cygrad.tensor(0.5))
    >>> d.mean, d.log_prob(cygrad.tensor([0.0, 1.0])).exp()
    (tensor(1.), tensor([0.2500, 0.5000]))
    """

    has_enumerate_support = True
    arg_constraints = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real
    }  # fmt: skip

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        counts, _ = self._take(probs, logits, total_count)
        self.total_count = counts.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        """The support of the distribution.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Binomial(3, 0.5).support
        IntegerInterval(lower_bound=0, upper_bound=3.0)
        """
        n = self.total_count
        return constraints.integer_interval(0, n if n.ndim else n.item())

    mean = property(lambda self: self.total_count * self.probs, doc="The mean.")
    variance = property(lambda self: self.mean * (1 - self.probs), doc="The variance.")

    @property
    def mode(self) -> Tensor:
        """The mode."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Binomial(5, cygrad.tensor([0.0, 1.0])).sample((2,))
        tensor([[0., 5.],
                [0., 5.]])
        """
        shape = self._extended_shape(sample_shape)
        with cygrad.no_grad():
            return cygrad.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability: log(n choose value) + value log(p) + (n - value) log(1 - p).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Binomial(2, 0.5).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-1.3863, -0.6931])
        """
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * F.softplus(self.logits)

    def entropy(self) -> Tensor:
        """Return -sum P(k) log(P(k)) over all counts k; all total counts must be equal.

        Raises NotImplementedError if they are not.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Binomial(2, cygrad.tensor([0.25, 0.5])).entropy()
        tensor([0.8647, 1.0397])
        """
        n = self._only_count("Inhomogeneous total count not supported by `entropy`.")
        logs = self.log_prob(self.enumerate_support(False)) if n else cygrad.zeros((1, *self._batch_shape))
        return -(logs.exp() * logs).sum(0)

    def _only_count(self, text):
        n = int(self.total_count.max())
        if not (self.total_count == n).all():
            raise NotImplementedError(text)
        return n

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values, along a new first dimension.

        Raises NotImplementedError if the total counts differ.

        >>> import cygrad.distributions as dist
        >>> dist.Binomial(2, 0.5).enumerate_support()
        tensor([0., 1., 2.])
        """
        n = self._only_count("Inhomogeneous total count not supported by `enumerate_support`.")
        values = cygrad.arange(1 + n, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class NegativeBinomial(_Trials):
    """The number of successes before `total_count` failures; `total_count` need not be an integer.

    P(k) = gamma(n + k) / (k! gamma(n)) (1 - p)^n p^k, where n is `total_count`. Give either `probs` or `logits`.

    >>> import cygrad.distributions as dist
    >>> d = dist.NegativeBinomial(3, 0.5)
    >>> d.mean, d.variance, d.sample((2,)).shape
    (tensor(3.), tensor(6.), torch.Size([2]))
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip

    def __init__(
        self,
        total_count: Tensor | int,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        counts, _ = self._take(probs, logits, total_count)
        self.total_count = counts.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean = property(lambda self: self.total_count * self.logits.exp(), doc="The mean.")
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0), doc="The mode.")
    variance = property(lambda self: self.mean / (-self.logits).sigmoid(), doc="The variance.")

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients: Poisson counts at rates drawn from a gamma distribution.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.NegativeBinomial(3, cygrad.tensor([0.25, 0.5])).sample((4,)).shape
        torch.Size([4, 2])
        """
        with cygrad.no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return cygrad.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability: log(gamma(n + value) / (value! gamma(n))) + n log(1 - p) + value log(p).

        Here n is `total_count`.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.NegativeBinomial(1, 0.5).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-0.6931, -1.3863])
        """
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        is_certain = n + value == 0.0  # where the binomial coefficient is 1, although two of its factors are infinite
        total, failures = (cygrad.where(is_certain, 1.0, count) for count in (n + value, n))
        ways = total.lgamma() - (1.0 + value).lgamma() - failures.lgamma()
        return ways + n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)


class Multinomial(Distribution):
    """The number of draws of each class among `total_count` draws.

    P(k) = n! / (k[0]! k[1]! ...) probs[0]^k[0] probs[1]^k[1] ..., where n is `total_count`.

    >>> import cygrad
    >>> d = cygrad.distributions.Multinomial(3, cygrad.tensor([0.5, 0.5]))
    >>> d.mean, d.log_prob(cygrad.tensor([3.0, 0.0])).exp()
    (tensor([1.5000, 1.5000]), tensor(0.1250))
    """

    arg_constraints = Categorical.arg_constraints

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count, self._categorical = total_count, Categorical(probs, logits)
        self._of_one_class = Binomial(total_count, self.probs, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        """The support of the distribution.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Multinomial(3, cygrad.ones(2)).support
        Multinomial()
        """
        return constraints.multinomial(self.total_count)

    probs = property(lambda self: self._categorical.probs, doc="The probabilities of the classes.")
    logits = property(lambda self: self._categorical.logits, doc="Their logarithms.")
    param_shape = property(lambda self: self._categorical.param_shape, doc="The shape of the parameters.")
    mean = property(lambda self: self.total_count * self.probs, doc="The means.")
    variance = property(lambda self: self.mean * (1 - self.probs), doc="The variances.")

    def _expanded(self, batch_shape):
        of_one_class = self._of_one_class.expand(batch_shape + self._event_shape)
        return {"_categorical": self._categorical.expand(batch_shape), "_of_one_class": of_one_class}

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Multinomial(4, cygrad.tensor([0.0, 1.0])).sample()
        tensor([0., 4.])
        """
        with cygrad.no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape))
            return F.one_hot(drawn, self._event_shape[0]).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability: log(n!) - sum log(value!) + sum value log(p).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Multinomial(2, cygrad.tensor([0.5, 0.5])).log_prob(cygrad.tensor([1.0, 1.0]))
        tensor(-0.6931)
        """
        if self._validate_args:
            self._validate_sample(value)
        logits, value = cygrad.broadcast_tensors(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -cygrad.inf), 0.0)
        return (value.sum(-1) + 1).lgamma() + (logits * value - (value + 1).lgamma()).sum(-1)

    def entropy(self) -> Tensor:
        """Return -log(n!) - n sum p log p + the sum over classes and counts k of P(k) log(k!), with binomial P.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Multinomial(2, cygrad.tensor([0.5, 0.5])).entropy()
        tensor(1.0397)
        """
        n = cygrad.tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        counts = self._of_one_class.enumerate_support(expand=False)[1:]
        terms = self._of_one_class.log_prob(counts).exp() * (counts + 1).lgamma()
        return n * self._categorical.entropy() - (n + 1).lgamma() + terms.sum([0, -1])
