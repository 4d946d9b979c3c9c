"""Multivariate normal distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cygrad
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.distribution import Distribution, lazy_property
from cygrad.distributions.utils import _standard_normal

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


class _OfCovariances(Distribution):
    """A distribution with a covariance matrix, given directly, by its inverse, or by its Cholesky factor."""

    has_rsample = True
    _unbroadcasted_scale_tril: Any

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return self._of_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        return self._of_batch(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return self._of_batch(cygrad.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _of_batch(self, matrix):
        return matrix.expand(*self._batch_shape, -1, -1)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)


def _precision_to_scale_tril(P):
    """Return the lower Cholesky factor of the inverse: factor the flipped matrix, flip back, and invert."""
    factor = cygrad.linalg.cholesky(P.flip(-2, -1))
    upper = factor.flip(-2, -1).mT
    eye = cygrad.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return cygrad.linalg.solve_triangular(upper, eye.expand(P.shape), upper=False)


def _batch_mv(bmat, bvec):
    """Return the product of matrices and vectors, whose batches broadcast."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL, bx):
    """Return x^T (L L^T)^-1 x for vectors x and lower triangular matrices L, whose batches broadcast."""
    x = bx.unsqueeze(-1)
    shape = cygrad.broadcast_shapes(x.shape[:-2], bL.shape[:-2])
    solved = cygrad.linalg.solve_triangular(
        bL.expand(*shape, *bL.shape[-2:]), x.expand(*shape, *x.shape[-2:]), upper=False
    )
    return (solved**2).sum((-2, -1))


_FACTORS = {  # how to compute the Cholesky factor from each argument
    "covariance_matrix": cygrad.linalg.cholesky,
    "precision_matrix": _precision_to_scale_tril,
    "scale_tril": lambda factor: factor,
}


def _the_given(covariance_matrix, precision_matrix, scale_tril, error):
    """Return (name, matrix) of the one argument that is given."""
    matrices = zip(_FACTORS, (covariance_matrix, precision_matrix, scale_tril), strict=True)
    given = [(name, matrix) for name, matrix in matrices if matrix is not None]
    if len(given) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    return given[0]


class MultivariateNormal(_OfCovariances):
    """Random vectors with mean `loc` and a covariance matrix given directly, by its inverse, or by its Cholesky factor.

    The density is exp(-d^T C^-1 d / 2) / sqrt((2 pi)^n det(C)) for d = x - loc and the n x n covariance matrix C.

    >>> import cygrad
    >>> from cygrad.distributions import MultivariateNormal
    >>> d = MultivariateNormal(cygrad.zeros(2), covariance_matrix=cygrad.eye(2))
    >>> d.event_shape, d.log_prob(cygrad.zeros(2))
    (torch.Size([2]), tensor(-1.8379))
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = _the_given(covariance_matrix, precision_matrix, scale_tril, ValueError)
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = cygrad.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, -1)
        self.__dict__[name] = matrix.expand(*batch, -1, -1)
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        self._unbroadcasted_scale_tril = _FACTORS[name](matrix)

    mean = mode = property(lambda self: self.loc, doc="The mean and the mode.")

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance matrix."""
        found = (self._unbroadcasted_scale_tril**2).sum(-1)
        return found.expand(self._extended_shape())

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients: loc + L z, with standard normal z and the covariance's Cholesky factor L.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> loc = cygrad.zeros(2, requires_grad=True)
        >>> x = dist.MultivariateNormal(loc, cygrad.eye(2)).rsample((3,))
        >>> x.shape, x.requires_grad
        (torch.Size([3, 2]), True)
        """
        unit = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, unit)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: -(d^T C^-1 d + log det(C) + n log(2 pi)) / 2 for d = value - loc and covariance C.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.MultivariateNormal(cygrad.zeros(2), cygrad.eye(2)).log_prob(cygrad.tensor([1.0, 1.0]))
        tensor(-2.8379)
        """
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        """Return n (1 + log 2 pi) / 2 + log det(covariances) / 2.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.MultivariateNormal(cygrad.zeros(2), cygrad.eye(2)).entropy()
        tensor(2.8379)
        """
        found = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
        return found.expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """Vectors with covariance `cov_factor @ cov_factor.mT + cov_diag.diag()`, without forming that matrix.

    `loc` has the shape (..., n), `cov_factor` (..., n, k) and `cov_diag` (..., n). Densities take O(n k^2) operations.

    >>> import cygrad, cygrad.distributions as dist
    >>> d = dist.LowRankMultivariateNormal(cygrad.zeros(2), cygrad.tensor([[1.0], [1.0]]), cygrad.ones(2))
    >>> d.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        shape = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {shape[0]} x m")
        if cov_diag.shape[-1:] != shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {shape}")
        batch = cygrad.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand(*batch, -1), cov_diag.expand(*batch, -1)
        self.cov_factor = cov_factor.expand(*batch, -1, -1)
        super().__init__(batch, shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc, doc="The mean and the mode.")
    variance = property(lambda self: (self.cov_factor**2).sum(-1) + self.cov_diag, doc="The variances.")
    covariance_matrix = property(
        lambda self: self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed(), doc="The covariances."
    )
    scale_tril = property(lambda self: cygrad.linalg.cholesky(self.covariance_matrix), doc="Their Cholesky factor.")
    precision_matrix = property(lambda self: cygrad.linalg.inv(self.covariance_matrix), doc="Their inverse.")

    def _capacitance(self):
        """Return the Cholesky factor of I + W^T D^-1 W, and W^T D^-1, where W is the factor and D the diagonal."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        inner = scaled @ self.cov_factor
        return cygrad.linalg.cholesky(
            inner + cygrad.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        ), scaled

    def _log_det(self, factor):
        return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.cov_diag.log().sum(-1)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples with gradients.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> loc = cygrad.zeros(2, requires_grad=True)
        >>> d = dist.LowRankMultivariateNormal(loc, cygrad.ones(2, 1), cygrad.ones(2))
        >>> d.rsample((3,)).shape
        torch.Size([3, 2])
        """
        shape = self._extended_shape(sample_shape)
        like: dict[str, Any] = {"dtype": self.loc.dtype, "device": self.loc.device}
        unit = cygrad.randn((*shape[:-1], self.cov_factor.shape[-1], 1), **like)
        spread = (self.cov_factor @ unit).squeeze(-1)
        return self.loc + spread + self.cov_diag.sqrt() * cygrad.randn(shape, **like)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density: -(d^T C^-1 d + log det(C) + n log(2 pi)) / 2 for d = value - loc and covariance C.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> d = dist.LowRankMultivariateNormal(cygrad.zeros(2), cygrad.ones(2, 1), cygrad.ones(2))
        >>> d.log_prob(cygrad.zeros(2))
        tensor(-2.3872)
        """
        if self._validate_args:
            self._validate_sample(value)
        gap, (factor, scaled) = value - self.loc, self._capacitance()
        inner = cygrad.linalg.solve_triangular(factor, scaled @ gap.unsqueeze(-1), upper=False)
        distance = (gap**2 / self.cov_diag).sum(-1) - (inner**2).sum((-2, -1))
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det(factor) + distance)

    def entropy(self) -> Tensor:
        """Return n (1 + log 2 pi) / 2 + log det(covariances) / 2.

        >>> import cygrad, cygrad.distributions as dist
        >>> d = dist.LowRankMultivariateNormal(cygrad.zeros(2), cygrad.ones(2, 1), cygrad.ones(2))
        >>> d.entropy()
        tensor(3.3872)
        """
        return 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det(self._capacitance()[0]))
