"""Continuous relaxations of discrete distributions, whose samples have gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cygrad
import cygrad.nn.functional as F
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.counts import _Trials
from cygrad.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, clamp_probs
from cygrad.distributions.distribution import Distribution, ExponentialFamily, lazy_property
from cygrad.distributions.transformed_distribution import TransformedDistribution
from cygrad.distributions.transforms import ExpTransform, SigmoidTransform

__all__ = ["ContinuousBernoulli", "OneHotCategoricalStraightThrough", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A one-hot class whose gradient passes straight through to the probabilities.

    P(i) = probs[i] / sum(probs), where i is the index of the 1.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.OneHotCategoricalStraightThrough(cygrad.tensor([0.5, 0.5]))
    >>> d.sample().sum(), d.has_rsample
    (tensor(1.), True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with the gradients of the probabilities: sample + (probs - probs.detach()).

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> p = cygrad.tensor([0.0, 1.0], requires_grad=True)
        >>> dist.OneHotCategoricalStraightThrough(p).rsample()
        tensor([0., 1.], grad_fn=<AddBackward0>)
        """
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class ExpRelaxedCategorical(Distribution):
    """The logarithms of samples of `RelaxedOneHotCategorical`."""

    has_rsample = True
    arg_constraints = Categorical.arg_constraints
    support = constraints.real_vector

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    param_shape = property(lambda self: self._categorical.param_shape, doc="The shape of the parameters.")
    logits = property(lambda self: self._categorical.logits, doc="Logarithms of the probabilities.")
    probs = property(lambda self: self._categorical.probs, doc="The probabilities of the classes.")

    def _expanded(self, batch_shape):
        return {"_categorical": self._categorical.expand(batch_shape)}

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients: Gumbel noise added to the logits."""
        u = cygrad.rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device)
        scores = (self.logits - (-clamp_probs(u).log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density."""
        count = self._event_shape[0]
        if self._validate_args:
            self._validate_sample(value)
        logits, value = cygrad.broadcast_tensors(self.logits, value)
        temperature = cygrad.as_tensor(self.temperature)
        size = cygrad.full_like(temperature, float(count)).lgamma() + (count - 1) * temperature.log()
        return (logits - value * temperature).log_softmax(-1).sum(-1) + size


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors of shares that approach one-hot vectors for a low `temperature`.

    A sample is softmax((logits + Gumbel noise) / temperature), so it has gradients.

    >>> import cygrad, cygrad.distributions as dist
    >>> p = cygrad.tensor([0.25, 0.75], requires_grad=True)
    >>> x = dist.RelaxedOneHotCategorical(0.1, p).rsample()
    >>> x.sum().allclose(cygrad.tensor(1.0)), x.requires_grad
    (True, True)
    """

    has_rsample = True
    arg_constraints = Categorical.arg_constraints
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="How far samples are from one-hot.")
    logits = property(lambda self: self.base_dist.logits, doc="Logarithms of the probabilities.")
    probs = property(lambda self: self.base_dist.probs, doc="The probabilities of the classes.")


class LogitRelaxedBernoulli(_Trials):
    """The logits log(x / (1 - x)) of samples of `RelaxedBernoulli`."""

    has_rsample = True
    arg_constraints = Bernoulli.arg_constraints
    support = constraints.real

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients."""
        u = cygrad.rand(self._extended_shape(sample_shape), dtype=self._param.dtype, device=self._param.device)
        return (clamp_probs(u).logit() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density."""
        if self._validate_args:
            self._validate_sample(value)
        gap = self.logits - value * self.temperature
        return cygrad.as_tensor(self.temperature).log() + gap + 2 * F.logsigmoid(-gap)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in [0, 1] that approach 0 and 1 for a low `temperature`.

    A sample is sigmoid((logits + log(u) - log(1 - u)) / temperature) for uniform numbers u, so it has gradients.

    >>> import cygrad, cygrad.distributions as dist
    >>> p = cygrad.tensor(0.5, requires_grad=True)
    >>> x = dist.RelaxedBernoulli(0.1, p).rsample((4,))
    >>> x.shape, x.requires_grad
    (torch.Size([4]), True)
    """

    has_rsample = True
    arg_constraints = Bernoulli.arg_constraints
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="How far samples are from 0 and 1.")
    logits = property(lambda self: self.base_dist.logits, doc="log(probs / (1 - probs)).")
    probs = property(lambda self: self.base_dist.probs, doc="The probability of 1.")


class ContinuousBernoulli(_Trials, ExponentialFamily):
    """Numbers x in [0, 1] with density proportional to probs^x (1 - probs)^(1 - x); `probs` is not their mean.

    The density is C p^x (1 - p)^(1 - x) with p = `probs` and C = log(p / (1 - p)) / (2 p - 1), or
    C = 2 if p is 1 / 2.

    Between the two probabilities `lims`, where the formulas divide small numbers, polynomials replace them.

    >>> import cygrad
    >>> d = cygrad.distributions.ContinuousBernoulli(cygrad.tensor([0.5, 0.9]))
    >>> d.mean, d.log_prob(cygrad.tensor(1.0))
    (tensor([0.5000, 0.6699]), tensor([0.0000, 0.9050]))
    """

    has_rsample = True
    arg_constraints = Bernoulli.arg_constraints
    support = constraints.unit_interval
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        if logits is None:
            if validate_args is not None and not constraints.unit_interval.check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter in [0, 1]: the probability of 1 in the discrete counterpart."""
        return clamp_probs(self.logits.sigmoid())

    _natural_params = property(lambda self: (self.logits,))

    def _by(self, formula, polynomial):
        """Return `formula(probs, log(1 - probs) - log(probs))` away from 1/2, else `polynomial(probs - 1/2)`."""
        low, high = self._lims
        is_far = (self.probs <= low) | (self.probs > high)
        p = cygrad.where(is_far, self.probs, low)
        return cygrad.where(is_far, formula(p, (-p).log1p() - p.log()), polynomial(self.probs - 0.5))

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self._by(lambda p, gap: p / (2 * p - 1) + 1 / gap, lambda x: 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self._by(
            lambda p, gap: 1 / gap**2 - p * (1 - p) / (1 - 2 * p) ** 2,
            lambda x: 1 / 12 - (1 / 15 - 128 / 945 * x**2) * x**2,
        )

    def _log_factor(self):
        """Return the logarithm of the normalizing factor of the density."""
        return self._by(
            lambda p, gap: gap.abs().log() - (1 - 2 * p).abs().log(),
            lambda x: math.log(2) + (4 / 3 + 104 / 45 * x**2) * x**2,
        )

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients: quantiles of uniform numbers.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> p = cygrad.tensor(0.25, requires_grad=True)
        >>> dist.ContinuousBernoulli(p).rsample((3,)).requires_grad
        True
        """
        shape = self._extended_shape(sample_shape)
        return self.icdf(cygrad.rand(shape, dtype=self._param.dtype, device=self._param.device))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: value log(p) + (1 - value) log(1 - p), minus the log of the normalizing constant.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.ContinuousBernoulli(0.25).log_prob(cygrad.tensor([0.0, 1.0]))
        tensor([ 0.4995, -0.5991])
        """
        if self._validate_args:
            self._validate_sample(value)
        logits, value = cygrad.broadcast_tensors(self.logits, value)
        return self._log_factor() - F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of a sample at or below `value`: (p^value (1 - p)^(1 - value) + p - 1) / (2 p - 1).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.ContinuousBernoulli(0.25).cdf(cygrad.tensor([0.5, 1.0]))
        tensor([0.6340, 1.0000])
        """
        if self._validate_args:
            self._validate_sample(value)
        found = self._by(lambda p, _: (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1), lambda _: value)
        return found.masked_fill(value <= 0, 0.0).masked_fill(value >= 1, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile at the probability q = `value`: log(1 + q (2 p - 1) / (1 - p)) / log(p / (1 - p)).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.ContinuousBernoulli(0.25).icdf(cygrad.tensor([0.0, 0.5]))
        tensor([0.0000, 0.3691])
        """
        return self._by(lambda p, gap: ((-p).log1p() - (value * (2 * p - 1) - p).log1p()) / gap, lambda _: value)

    def entropy(self) -> Tensor:
        """Return -log(C) - mean log(p) - (1 - mean) log(1 - p), with C the factor of the density.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.ContinuousBernoulli(cygrad.tensor([0.25, 0.5])).entropy()
        tensor([-0.0488,  0.0000])
        """
        return -self.mean * self.logits - self._log_factor() - (-self.probs).log1p()

    def _log_normalizer(self, x):
        low, high = (limit - 0.5 for limit in self._lims)
        is_far = (x <= low) | (x > high)
        far = cygrad.where(is_far, x, low)
        return cygrad.where(is_far, (far.expm1() / far).log(), x / 2 + x**2 / 24 - x**4 / 2880)
