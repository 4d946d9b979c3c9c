"""Classes and truth values as numbers between, so that samples have gradients."""

import cygrad
from cygrad.distributions import constraints
from cygrad.distributions.counts import _Trials
from cygrad.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, _away_from_ends
from cygrad.distributions.distribution import Distribution
from cygrad.distributions.transforms import ExpTransform, SigmoidTransform, TransformedDistribution

__all__ = ["OneHotCategoricalStraightThrough", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A class as a row of zeros with a one, whose gradient goes to the probabilities as if it were them."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        """Samples with the gradients of the probabilities."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class ExpRelaxedCategorical(Distribution):
    """Logarithms of `RelaxedOneHotCategorical`."""

    has_rsample = True
    arg_constraints = Categorical.arg_constraints
    support = constraints.real_vector

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    param_shape = property(lambda self: self._categorical.param_shape, doc="The shape of the parameters.")
    logits = property(lambda self: self._categorical.logits, doc="Logarithms of the probabilities.")
    probs = property(lambda self: self._categorical.probs, doc="The probabilities of the classes.")

    def expand(self, batch_shape, _instance=None):
        """The same distribution for a larger `batch_shape`."""
        new = super().expand(batch_shape)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    def rsample(self, sample_shape=()):
        """Samples with gradients: of the Gumbel distribution, moved by the logits."""
        u = cygrad.rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device)
        scores = (self.logits - (-_away_from_ends(u).log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value):
        """The logarithm of the density."""
        count = self._event_shape[0]
        if self._validate_args:
            self._validate_sample(value)
        logits, value = cygrad.broadcast_tensors(self.logits, value)
        temperature = cygrad.as_tensor(self.temperature)
        size = cygrad.full_like(temperature, float(count)).lgamma() + (count - 1) * temperature.log()
        return (logits - value * temperature).log_softmax(-1).sum(-1) + size


class RelaxedOneHotCategorical(TransformedDistribution):
    """Rows of shares that are near to a row of zeros with a one where `temperature` is low."""

    has_rsample = True
    arg_constraints = Categorical.arg_constraints
    support = constraints.simplex

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="How far samples are from classes.")
    logits = property(lambda self: self.base_dist.logits, doc="Logarithms of the probabilities.")
    probs = property(lambda self: self.base_dist.probs, doc="The probabilities of the classes.")

    def expand(self, batch_shape, _instance=None):
        """The same distribution for a larger `batch_shape`."""
        logits = self.logits.expand((*batch_shape, self.logits.shape[-1]))
        return type(self)(self.temperature, None, logits, self._validate_args)


class LogitRelaxedBernoulli(_Trials):
    """log(x / (1 - x)) of the numbers of `RelaxedBernoulli`."""

    has_rsample = True
    arg_constraints = Bernoulli.arg_constraints
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        """Samples with gradients."""
        u = cygrad.rand(self._extended_shape(sample_shape), dtype=self._param.dtype, device=self._param.device)
        return (_away_from_ends(u).logit() + self.logits) / self.temperature

    def log_prob(self, value):
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        gap = self.logits - value * self.temperature
        return cygrad.as_tensor(self.temperature).log() + gap - 2 * gap.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers from 0 to 1 that are near to the ends where `temperature` is low."""

    has_rsample = True
    arg_constraints = Bernoulli.arg_constraints
    support = constraints.unit_interval

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="How far samples are from 0 and 1.")
    logits = property(lambda self: self.base_dist.logits, doc="log(probs / (1 - probs)).")
    probs = property(lambda self: self.base_dist.probs, doc="The probability of 1.")

    def expand(self, batch_shape, _instance=None):
        """The same distribution for a larger `batch_shape`."""
        return type(self)(self.temperature, None, self.logits.expand(batch_shape), self._validate_args)
