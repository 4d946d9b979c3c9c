"""Kullback-Leibler divergences between distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.distributions.continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from cygrad.distributions.counts import Binomial, Geometric
from cygrad.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, Poisson, outcomes
from cygrad.distributions.distribution import Distribution, ExponentialFamily, Independent
from cygrad.distributions.gammas import Beta, Dirichlet, Gamma
from cygrad.distributions.multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
from cygrad.distributions.powers import Pareto
from cygrad.distributions.relaxed import ContinuousBernoulli
from cygrad.distributions.tails import Cauchy, Gumbel, HalfNormal
from cygrad.distributions.transformed_distribution import TransformedDistribution

__all__ = ["kl_divergence", "register_kl"]

EULER = 0.5772156649015329  # the Euler-Mascheroni constant, the mean of the standard Gumbel distribution
_KL_REGISTRY: dict[Any, Any] = {}  # (class of p, class of q): formula


def register_kl(type_p: type, type_q: type) -> Callable[..., Any]:
    """Return a decorator that registers a function of (p, q) with `kl_divergence` for these classes and subclasses.

    Raises TypeError for anything but a class.

    >>> import cygrad, cygrad.distributions as dist
    >>> class Constant(dist.Distribution): pass
    >>> @dist.register_kl(Constant, Constant)
    ... def zero(p, q):
    ...     return cygrad.tensor(0.0)
    >>> dist.kl_divergence(Constant(validate_args=False), Constant(validate_args=False))
    tensor(0.)
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):  # libraries have base classes of their own
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def note(function):
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return note


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence: the integral of `p log(p / q)`.

    Raises NotImplementedError for classes without a formula; `register_kl` adds one.

    >>> import cygrad
    >>> from cygrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    found = [(a, b) for a, b in _KL_REGISTRY if isinstance(p, a) and isinstance(q, b)]
    if not found:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    nearest = min(found, key=lambda pair: (type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])))
    return _KL_REGISTRY[nearest](p, q)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log()) / 2


@register_kl(LogNormal, LogNormal)
def _log_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    return sum(_gaps(p, q))


def _gaps(p, q):
    """Return the terms a log(a / b) for the probabilities a and b of 1 and of 0.

    Where a is 0, so are the term and its gradient with respect to a, although that of a log(a) is infinite.
    """
    found = []
    for (a, log_a), (b, log_b) in zip(outcomes(p), outcomes(q), strict=True):
        impossible = (b == 0) & (log_b == 0)
        gap = cygrad.where((a == 0) & (log_a == 0), 0.0, a * (log_a - log_b))
        found.append(cygrad.where(impossible & (a > 0), cygrad.inf, gap))
    return found


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    from_p, from_q, logs_p, logs_q = cygrad.broadcast_tensors(p.probs, q.probs, p.logits, q.logits)
    never, impossible = from_p == 0, (from_q == 0) & (from_p > 0)
    terms = from_p * (logs_p.masked_fill(never, 0.0) - logs_q.masked_fill(never | impossible, 0.0))
    return terms.masked_fill(impossible, cygrad.inf).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), cygrad.inf)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, gap = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + gap / q.scale + ratio * (-gap / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    a, b = p.scale, q.scale
    return (((a + b) ** 2 + (p.loc - q.loc) ** 2) / (4 * a * b)).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, gap = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return gap - ratio.log() + (ratio - 1) * EULER - 1 + ((1 + ratio).lgamma() - gap).exp()


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return found.masked_fill(p.scale < q.scale, cygrad.inf)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    found = kl_divergence(p.base_dist, q.base_dist)
    return found.sum(list(range(found.ndim - len(p.batch_shape), 0))) if found.ndim > len(p.batch_shape) else found


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate.xlogy(p.rate) - p.rate.xlogy(q.rate) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    (share, log_p), (_, log_q) = outcomes(p)[0], outcomes(q)[0]
    return log_p - log_q + _gaps(p, q)[1] / share


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    found = p.total_count * sum(_gaps(p, q))
    return found.masked_fill(p.total_count > q.total_count, cygrad.inf)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    shapes = b.lgamma() - a.lgamma() + (a - b) * a.digamma()
    return b * (p.rate / q.rate).log() + shapes + (q.rate - p.rate) * a / p.rate


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1, keepdim=True)
    sizes = (total.squeeze(-1).lgamma() - a.lgamma().sum(-1)) - (b.sum(-1).lgamma() - b.lgamma().sum(-1))
    return sizes + ((a - b) * (a.digamma() - total.digamma())).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    scaled = cygrad.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    gap = cygrad.linalg.solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False)
    spread = (scaled**2).sum((-2, -1)) + (gap**2).sum((-2, -1)) - p.event_shape[0]
    return spread / 2 + q._half_log_det() - p._half_log_det()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
@register_kl(Beta, ContinuousBernoulli)
def _to_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_factor()


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """Bregman divergence of the log-normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    params, normalizer, gradients = p._normalized()
    others = q._natural_params
    gap = p._product([x - y for x, y in zip(others, params, strict=True)], gradients)
    return q._log_normalizer(*others) - normalizer - gap


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return p._added(kl_divergence(p.base_dist, q.base_dist))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p, q):
    return _multivariate_normal(*(MultivariateNormal(each.loc, each.covariance_matrix) for each in (p, q)))


# -- Different classes --


def _from(types, type_q):
    """Return a decorator that registers a formula for all these classes of p."""

    def note(function):
        for type_p in types:
            register_kl(type_p, type_q)(function)
        return function

    return note


@_from((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform), Normal)
def _to_normal(p, q):
    is_infinite = p.variance == cygrad.inf
    mean, variance = (moment.masked_fill(is_infinite, 0.0) for moment in (p.mean, p.variance))
    spread = (variance + (mean - q.loc) ** 2) / (2 * q.scale**2)
    found = spread + q.scale.log() + math.log(2 * math.pi) / 2 - p.entropy()
    return found.masked_fill(is_infinite, cygrad.inf)


@_from((Beta, ContinuousBernoulli, Gamma, Pareto), Exponential)
def _to_exponential(p, q):
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Uniform, Exponential)
def _uniform_to_exponential(p, q):
    return _to_exponential(p, q).masked_fill(p.low < 0, cygrad.inf)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_to_continuous_bernoulli(p, q):
    found = _to_continuous_bernoulli(p, q)
    return found.masked_fill((p.low <= 0) | (p.high >= 1), cygrad.inf)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_to_uniform(p, q):
    found = (q.high - q.low).log() - p.entropy()
    return found.masked_fill((q.low >= 0) | (q.high <= 1), cygrad.inf)


@register_kl(Exponential, Gamma)
def _exponential_to_gamma(p, q):
    return _gamma(Gamma(cygrad.ones_like(p.rate), p.rate), q)


@register_kl(Beta, Uniform)
def _beta_to_uniform(p, q):
    found = (q.high - q.low).log() - p.entropy()
    return found.masked_fill((q.low > 0) | (q.high < 1), cygrad.inf)


@register_kl(Normal, Laplace)
def _normal_to_laplace(p, q):
    gap = (p.loc - q.loc) / (p.scale * math.sqrt(2))
    distance = p.scale * (math.sqrt(2 / math.pi) * (-(gap**2)).exp() + math.sqrt(2) * gap * gap.erf())
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


# Formulas based on the mean of log(x) for x drawn from p


def _mean_log(low, high):
    """Return the mean of log(x) for x uniform between `low` and `high`."""
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


def _moved_inside(p, outside):
    """Return `p` with another interval where it is outside the support of q, which makes the divergence infinite.

    The formula is masked there, but derivatives of the logarithms of negative numbers would remain as nan.
    """
    low, high = cygrad.where(outside, 0.25, p.low), cygrad.where(outside, 0.75, p.high)
    return Uniform(low, high, validate_args=False)


def _to_gamma(p, q, mean_log, mean=None):
    c = q.concentration
    return q.rate * (p.mean if mean is None else mean) - (c - 1) * mean_log - c.xlogy(q.rate) + c.lgamma() - p.entropy()


@register_kl(Beta, Gamma)
def _beta_to_gamma(p, q):
    c = p.concentration1
    return _to_gamma(p, q, c.digamma() - (c + p.concentration0).digamma())


@register_kl(Pareto, Gamma)
def _pareto_to_gamma(p, q):
    is_infinite = p.alpha <= 1
    found = _to_gamma(p, q, p.scale.log() + 1 / p.alpha, p.mean.masked_fill(is_infinite, 0.0))
    return found.masked_fill(is_infinite, cygrad.inf)


@register_kl(Uniform, Gamma)
def _uniform_to_gamma(p, q):
    outside = p.low < 0
    p = _moved_inside(p, outside)
    return _to_gamma(p, q, _mean_log(p.low, p.high)).masked_fill(outside, cygrad.inf)


@register_kl(Uniform, Beta)
def _uniform_to_beta(p, q):
    outside = (p.low < 0) | (p.high > 1)
    p = _moved_inside(p, outside)
    a, b = q.concentration1, q.concentration0
    of_logs = (a - 1) * _mean_log(p.low, p.high) + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    found = a.lgamma() + b.lgamma() - (a + b).lgamma() - of_logs - p.entropy()
    return found.masked_fill(outside, cygrad.inf)


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p, q):
    outside = p.low < q.scale
    p = _moved_inside(p, outside)
    found = (q.alpha + 1) * _mean_log(p.low, p.high) - q.alpha.log() - q.alpha.xlogy(q.scale) - p.entropy()
    return found.masked_fill(outside, cygrad.inf)


# Divergences from the Gumbel distribution, with density exp(-z - exp(-z)) / scale


def _to_gumbel(p, q, log_mean):
    """`log_mean` is the logarithm of the mean of exp(-x / q.scale) for x drawn from p."""
    return q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale + log_mean).exp() - p.entropy()


@register_kl(Exponential, Gumbel)
def _exponential_to_gumbel(p, q):
    return _to_gumbel(p, q, -(1 / (p.rate * q.scale)).log1p())


@register_kl(Gamma, Gumbel)
def _gamma_to_gumbel(p, q):
    return _to_gumbel(p, q, -p.concentration * (1 / (p.rate * q.scale)).log1p())


@register_kl(Normal, Gumbel)
def _normal_to_gumbel(p, q):
    return _to_gumbel(p, q, (p.scale / q.scale) ** 2 / 2 - p.loc / q.scale)


@register_kl(Uniform, Gumbel)
def _uniform_to_gumbel(p, q):
    width = (p.high - p.low) / q.scale
    return _to_gumbel(p, q, (-(-width).expm1() / width).log() - p.low / q.scale)


@register_kl(Bernoulli, Poisson)
def _bernoulli_to_poisson(p, q):
    return q.rate - p.probs.xlogy(q.rate) - p.entropy()


@_from((Normal, Laplace, Gumbel), Beta)
@_from((Normal, Laplace, Gumbel), Exponential)
@_from((Normal, Laplace, Gumbel), Gamma)
@_from((Normal, Laplace, Gumbel, Beta, ContinuousBernoulli, Exponential, Gamma), Pareto)
@_from((Normal, Laplace, Gumbel, Exponential, Gamma, Pareto), Uniform)
@_from((Exponential, Gamma, Pareto), Beta)
@_from((Normal, Laplace, Gumbel, Exponential, Gamma, Pareto), ContinuousBernoulli)
@_from((Poisson,), Bernoulli)
@_from((Poisson,), Binomial)
def _infinite(p, q):
    """Some values of p have zero probability under q."""
    return cygrad.full_like(p.mean, cygrad.inf)
