"""Distributions whose samples and densities have gradients, for policies and variational models."""

import sys

from cygrad.distributions import constraints, continuous, discrete, distribution, transforms
from cygrad.distributions.continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from cygrad.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from cygrad.distributions.distribution import Distribution, Independent
from cygrad.distributions.kl import kl_divergence, register_kl
from cygrad.distributions.multivariate_normal import MultivariateNormal
from cygrad.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    TanhTransform,
    Transform,
    TransformedDistribution,
    identity_transform,
)

__all__ = [
    "AffineTransform", "Bernoulli", "Categorical", "ComposeTransform", "Distribution", "ExpTransform", "Exponential",
    "Independent", "Laplace", "LogNormal", "MultivariateNormal", "Normal", "OneHotCategorical", "Poisson",
    "SigmoidTransform", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "constraints",
    "identity_transform", "kl_divergence", "register_kl", "transforms",
]  # fmt: skip

# PyTorch has a module for each class.
for _names, _module in (
    ("exponential laplace log_normal normal uniform", continuous),
    ("bernoulli categorical one_hot_categorical poisson", discrete),
    ("independent", distribution),
    ("transformed_distribution", transforms),
):
    sys.modules.update({f"{__name__}.{_name}": _module for _name in _names.split()})
