"""Distributions whose samples and densities have gradients, for policies and variational models."""

import sys

from cygrad.distributions import (
    constraints,
    continuous,
    counts,
    discrete,
    distribution,
    gammas,
    relaxed,
    tails,
    transforms,
    utils,
)
from cygrad.distributions.continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from cygrad.distributions.counts import Binomial, Geometric, NegativeBinomial
from cygrad.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from cygrad.distributions.distribution import Distribution, Independent
from cygrad.distributions.gammas import Beta, Chi2, Dirichlet, Gamma, InverseGamma, StudentT
from cygrad.distributions.kl import kl_divergence, register_kl
from cygrad.distributions.multivariate_normal import MultivariateNormal
from cygrad.distributions.relaxed import OneHotCategoricalStraightThrough, RelaxedBernoulli, RelaxedOneHotCategorical
from cygrad.distributions.tails import Cauchy, Gumbel, HalfNormal, MixtureSameFamily
from cygrad.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    TransformedDistribution,
    identity_transform,
)

__all__ = [
    "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ComposeTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "Gamma", "Geometric", "Gumbel", "HalfNormal",
    "Independent", "IndependentTransform", "InverseGamma", "Laplace", "LogNormal", "MixtureSameFamily",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Poisson", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "SigmoidTransform",
    "SoftplusTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "constraints",
    "identity_transform", "kl_divergence", "register_kl", "transforms", "utils",
]  # fmt: skip

# PyTorch has a module for each class.
for _names, _module in (
    ("exponential laplace log_normal normal uniform", continuous),
    ("binomial geometric negative_binomial", counts),
    ("bernoulli categorical one_hot_categorical poisson", discrete),
    ("independent", distribution),
    ("beta chi2 dirichlet gamma inverse_gamma studentT", gammas),
    ("relaxed_bernoulli relaxed_categorical", relaxed),
    ("cauchy gumbel half_normal mixture_same_family", tails),
    ("transformed_distribution", transforms),
):
    sys.modules.update({f"{__name__}.{_name}": _module for _name in _names.split()})
