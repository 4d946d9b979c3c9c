"""Discrete distributions: Bernoulli, categorical, Poisson."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cygrad
import cygrad.nn.functional as F
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.distributions.distribution import Distribution, ExponentialFamily, broadcast, lazy_property

__all__ = ["Bernoulli", "Categorical", "OneHotCategorical", "Poisson"]


def _check_one_is_given(probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities so that their logarithms are finite.

    >>> import cygrad
    >>> from cygrad.distributions.utils import clamp_probs
    >>> clamp_probs(cygrad.tensor([0.0, 0.5])).log()
    tensor([-15.9424,  -0.6931])
    """
    eps = cygrad.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def outcomes(p: Any) -> Any:
    """Return (probability, logarithm) of 1 and of 0 for a distribution with `probs` or `logits` of 1.

    They are computed from what was given, because probabilities near 1 have lost the digits of logits. Logarithms are
    those of numbers where the probability is 0, so that their gradients are not 0 * inf.
    """
    if "logits" in p.arg_constraints and p._param is p.__dict__.get("logits"):
        logs = F.logsigmoid(p.logits), F.logsigmoid(-p.logits)
        return [(log.exp(), log.masked_fill(log == -cygrad.inf, 0.0)) for log in logs]
    return [(x, x.masked_fill(x == 0, 1.0).log()) for x in (p.probs, 1 - p.probs)]


class Bernoulli(ExponentialFamily):
    """1 with probability `probs`, else 0; `logits` are log(probs / (1 - probs)).

    >>> import cygrad
    >>> from cygrad.distributions import Bernoulli
    >>> Bernoulli(cygrad.tensor([0.5, 0.25])).log_prob(cygrad.ones(2))
    tensor([-0.6931, -1.3863])
    """

    has_enumerate_support = True
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.probs.logit(),))

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        _check_one_is_given(probs, logits)
        name, value = ("probs", probs) if logits is None else ("logits", logits)
        (self.__dict__[name],) = broadcast(value)
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities of 1."""
        return self.logits.sigmoid()

    @lazy_property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))."""
        p = clamp_probs(self.probs)
        return p.log() - (-p).log1p()

    _param = property(lambda self: self.__dict__["probs" if "probs" in self.__dict__ else "logits"])
    mean = property(lambda self: self.probs, doc="The mean.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="The variance.")
    param_shape = property(lambda self: self._param.shape, doc="The shape of the parameters.")

    @property
    def mode(self) -> Tensor:
        """The mode: 0 or 1; NaN if both are equally likely."""
        return (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, cygrad.nan)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Bernoulli(cygrad.tensor([0.0, 1.0])).sample((2,))
        tensor([[0., 1.],
                [0., 1.]])
        """
        with cygrad.no_grad():
            return cygrad.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability: value log(p) + (1 - value) log(1 - p).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Bernoulli(0.25).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([-0.2877, -1.3863])
        """
        if self._validate_args:
            self._validate_sample(value)
        logits, value = cygrad.broadcast_tensors(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """Return -p log p - (1 - p) log(1 - p).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Bernoulli(cygrad.tensor([0.25, 0.5])).entropy()
        tensor([0.5623, 0.6931])
        """
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def _log_normalizer(self, x):
        return F.softplus(x)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return 0 and 1, along a new first dimension.

        With `expand=False`, the batch dimensions have length 1.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Bernoulli(cygrad.tensor([0.25, 0.5])).enumerate_support()
        tensor([[0., 0.],
                [1., 1.]])
        """
        values = cygrad.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class Categorical(Distribution):
    """A class index, with probabilities `probs` along the last dimension, or their logarithms `logits`.

    P(i) = probs[i] / sum(probs), or exp(logits[i]) / sum(exp(logits)).

    Neither needs to be normalized.

    >>> import cygrad
    >>> from cygrad.distributions import Categorical
    >>> d = Categorical(cygrad.tensor([1.0, 3.0]))
    >>> d.probs, d.log_prob(cygrad.tensor(1)), d.entropy()
    (tensor([0.2500, 0.7500]), tensor(-0.2877), tensor(0.5623))
    """

    has_enumerate_support = True
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        _check_one_is_given(probs, logits)
        name = "probs" if logits is None else "logits"
        value: Any = probs if logits is None else logits
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = self._param = value / value.sum(-1, keepdim=True)
        else:
            self.logits = self._param = value - value.logsumexp(-1, keepdim=True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self.logits.softmax(-1)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-probabilities of the classes."""
        return clamp_probs(self.probs).log()

    def _expanded(self, batch_shape):
        param = self._param.expand((*batch_shape, self._num_events))
        return {**super()._expanded(batch_shape), "_param": param}

    param_shape = property(lambda self: self._param.shape, doc="The shape of the parameters.")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        """The support of the distribution.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Categorical(cygrad.ones(3)).support
        IntegerInterval(lower_bound=0, upper_bound=2)
        """
        return constraints.integer_interval(0, self._num_events - 1)

    mode = property(lambda self: self.probs.argmax(-1), doc="The mode.")
    mean = variance = property(
        lambda self: self.probs.new_full(self._batch_shape, cygrad.nan), doc="The mean and the variance."
    )

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples of dtype int64.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Categorical(cygrad.tensor([0.0, 1.0, 0.0])).sample((2,))
        tensor([1, 1])
        """
        rows = self.probs.detach().reshape(-1, self._num_events)
        n = math.prod(sample_shape)
        found = rows.multinomial(n, True).T if n else rows.new_zeros((0, len(rows)), dtype=cygrad.int64)
        return found.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability of a class, log(probs[value]).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Categorical(cygrad.tensor([0.25, 0.75])).log_prob(cygrad.tensor([0, 1]))
        tensor([-1.3863, -0.2877])
        """
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        shape = cygrad.broadcast_shapes(value.shape[:-1], self.logits.shape[:-1])
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.expand(*shape, 1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return -sum p log(p).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Categorical(cygrad.tensor([[0.5, 0.5], [0.9, 0.1]])).entropy()
        tensor([0.6931, 0.3251])
        """
        logits = self.logits.masked_fill(self.logits == -cygrad.inf, 0.0)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all classes, along a new first dimension.

        With `expand=False`, the batch dimensions have length 1.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Categorical(cygrad.tensor([0.2, 0.3, 0.5])).enumerate_support()
        tensor([0, 1, 2])
        """
        values = cygrad.arange(self._num_events, device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """A class as a one-hot vector; see `Categorical`.

    P(i) = probs[i] / sum(probs), where i is the index of the 1.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.OneHotCategorical(cygrad.tensor([0.0, 1.0, 0.0]))
    >>> d.sample(), d.event_shape
    (tensor([0., 1., 0.]), torch.Size([3]))
    """

    has_enumerate_support = True
    arg_constraints = Categorical.arg_constraints
    support = constraints.one_hot

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    probs = mean = property(lambda self: self._categorical.probs, doc="The probabilities of the classes.")
    logits = property(lambda self: self._categorical.logits, doc="Their logarithms.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="The variance.")
    param_shape = property(lambda self: self._categorical.param_shape, doc="The shape of the parameters.")

    @property
    def mode(self) -> Tensor:
        """The most likely class."""
        return F.one_hot(self._categorical.mode, self._event_shape[0]).to(self.probs.dtype)

    def _expanded(self, batch_shape):
        return {"_categorical": self._categorical.expand(batch_shape)}

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples in the dtype of the probabilities.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.OneHotCategorical(cygrad.tensor([0.0, 1.0])).sample((2,))
        tensor([[0., 1.],
                [0., 1.]])
        """
        return F.one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability of a class, log(probs[i]) for a one at place i.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.OneHotCategorical(cygrad.tensor([0.25, 0.75])).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor(-0.2877)
        """
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        """Return -sum p log(p).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.OneHotCategorical(cygrad.tensor([0.5, 0.5])).entropy()
        tensor(0.6931)
        """
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all classes, along a new first dimension.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.OneHotCategorical(cygrad.tensor([0.5, 0.5])).enumerate_support()
        tensor([[1., 0.],
                [0., 1.]])
        """
        rows = cygrad.eye(self._event_shape[0], dtype=self.probs.dtype, device=self.probs.device)
        rows = rows.view(-1, *[1] * len(self._batch_shape), len(rows))
        return rows.expand(-1, *self._batch_shape, -1) if expand else rows


class Poisson(ExponentialFamily):
    """Counts k, of probability `rate^k exp(-rate) / k!`.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.Poisson(cygrad.tensor([1.0, 4.0]))
    >>> d.mean, d.variance, d.sample((3,)).shape
    (tensor([1., 4.]), tensor([1., 4.]), torch.Size([3, 2]))
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    _natural_params = property(lambda self: (self.rate.log(),))
    mean = variance = property(lambda self: self.rate, doc="The mean and the variance.")
    mode = property(lambda self: self.rate.floor(), doc="The mode.")

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Poisson(cygrad.tensor([0.0, 4.0])).sample((3,)).shape
        torch.Size([3, 2])
        """
        with cygrad.no_grad():
            return cygrad.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-probability: value log(rate) - rate - log(value!).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Poisson(4.0).log_prob(cygrad.tensor([0.0, 4.0]))
        tensor([-4.0000, -1.6329])
        """
        if self._validate_args:
            self._validate_sample(value)
        rate, value = cygrad.broadcast_tensors(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    def _log_normalizer(self, x):
        return x.exp()
