"""Probability distributions with differentiable samples and densities, for policies and variational models."""

import sys

from cygrad.distributions import (
    constraints,
    continuous,
    counts,
    discrete,
    distribution,
    gammas,
    more_transforms,
    multivariate_normal,
    powers,
    random_matrices,
    relaxed,
    tails,
    transforms,
    utils,
)
from cygrad.distributions.continuous import Exponential, Laplace, LogNormal, Normal, Uniform
from cygrad.distributions.counts import Binomial, Geometric, Multinomial, NegativeBinomial
from cygrad.distributions.discrete import Bernoulli, Categorical, OneHotCategorical, Poisson
from cygrad.distributions.distribution import Distribution, ExponentialFamily, Independent
from cygrad.distributions.gammas import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, InverseGamma, StudentT
from cygrad.distributions.kl import kl_divergence, register_kl
from cygrad.distributions.more_transforms import (
    AbsTransform,
    CatTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
    biject_to,
    transform_to,
)
from cygrad.distributions.multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
from cygrad.distributions.powers import GeneralizedPareto, Kumaraswamy, LogisticNormal, Pareto, Weibull
from cygrad.distributions.random_matrices import LKJCholesky, Wishart
from cygrad.distributions.relaxed import (
    ContinuousBernoulli,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from cygrad.distributions.tails import Cauchy, Gumbel, HalfCauchy, HalfNormal, MixtureSameFamily, VonMises
from cygrad.distributions.transformed_distribution import TransformedDistribution
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
    identity_transform,
)
from cygrad.utils.naming import name_initialisers

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy",
    "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform",
    "VonMises", "Weibull", "Wishart", "biject_to", "constraints", "identity_transform", "kl_divergence",
    "register_kl", "transform_to", "transforms", "utils",
]  # fmt: skip

name_initialisers([globals()[_name] for _name in __all__], ("Transform", "OneHotCategorical"))

# PyTorch keeps all transforms in one module.
_TRANSFORMS = {_name: globals()[_name] for _name in more_transforms.__all__ if _name.endswith("Transform")}
vars(transforms).update(_TRANSFORMS, __all__=[*transforms.__all__, *_TRANSFORMS])

# PyTorch has a module for each class.
for _names, _module in (
    ("exponential laplace log_normal normal uniform", continuous),
    ("binomial geometric multinomial negative_binomial", counts),
    ("bernoulli categorical one_hot_categorical poisson", discrete),
    ("exp_family independent", distribution),
    ("beta chi2 dirichlet fishersnedecor gamma inverse_gamma studentT", gammas),
    ("continuous_bernoulli relaxed_bernoulli relaxed_categorical", relaxed),
    ("cauchy gumbel half_cauchy half_normal mixture_same_family von_mises", tails),
    ("constraint_registry", more_transforms),
    ("lowrank_multivariate_normal", multivariate_normal),
    ("generalized_pareto kumaraswamy logistic_normal pareto weibull", powers),
    ("lkj_cholesky wishart", random_matrices),
):
    for _name in _names.split():
        sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module
vars(discrete).update(OneHotCategoricalStraightThrough=OneHotCategoricalStraightThrough)  # of PyTorch's same module
