"""Distributions whose samples and densities have gradients, for policies and variational models."""

import sys

from cygrad.distributions import constraints, continuous, discrete, distribution
from cygrad.distributions.continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from cygrad.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from cygrad.distributions.distribution import Distribution, Independent
from cygrad.distributions.kl import kl_divergence, register_kl
from cygrad.distributions.multivariate_normal import MultivariateNormal

__all__ = [
    "Bernoulli", "Categorical", "Distribution", "Exponential", "Independent", "Laplace", "LogNormal",
    "MultivariateNormal", "Normal", "OneHotCategorical", "Poisson", "Uniform", "constraints", "kl_divergence",
    "register_kl",
]  # fmt: skip

# PyTorch has a module for each class.
for _names, _module in (
    ("exponential laplace log_normal normal uniform", continuous),
    ("bernoulli categorical one_hot_categorical poisson", discrete),
    ("independent", distribution),
):
    sys.modules.update({f"{__name__}.{_name}": _module for _name in _names.split()})
