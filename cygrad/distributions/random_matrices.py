"""Distributions of matrices: covariance matrices and Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cygrad
import cygrad.nn.functional as F
from cygrad import Size, Tensor
from cygrad.distributions import constraints
from cygrad.distributions.constraints import Constraint
from cygrad.distributions.distribution import Distribution, ExponentialFamily, broadcast
from cygrad.distributions.gammas import Beta, Chi2
from cygrad.distributions.multivariate_normal import _FACTORS, _OfCovariances, _the_given
from cygrad.utils.warning import warn

__all__ = ["LKJCholesky", "Wishart"]


class Wishart(_OfCovariances, ExponentialFamily):
    """Sums of `x x^T` over `df` normal vectors x of given covariance; `df` need not be an integer.

    The density is det(X)^((df - n - 1) / 2) exp(-trace(C^-1 X) / 2) / (2^(df n / 2) det(C)^(df / 2) gamma_n(df / 2))
    for n x n covariance C, where gamma_n is the multivariate gamma function.

    The covariance matrix is given directly, by its inverse, or by its Cholesky factor. Raises ValueError unless `df`
    exceeds the length of the vectors minus 1.

    >>> import cygrad
    >>> from cygrad.distributions import Wishart
    >>> d = Wishart(3.0, covariance_matrix=cygrad.eye(2))
    >>> d.event_shape, d.log_prob(cygrad.eye(2))
    (torch.Size([2, 2]), tensor(-3.5310))
    """

    support = constraints.positive_definite
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = _the_given(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        given, length = df, matrix.shape[-1]
        if not isinstance(df, Tensor):
            df = cygrad.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = cygrad.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        if (self.df <= length - 1).any():
            raise ValueError(f"Value of df={given} expected to be greater than ndim - 1 = {length - 1}.")
        if (self.df < length).any():
            warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        self.__dict__[name] = matrix.expand(*batch, -1, -1)
        super().__init__(batch, matrix.shape[-2:], validate_args)
        self._unbroadcasted_scale_tril = _FACTORS[name](matrix)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """The constraints on the parameters."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._length - 1),
        }

    _length = property(lambda self: self._event_shape[-1])
    _natural_params = property(lambda self: (-self.precision_matrix / 2, (self.df - self._length - 1) / 2))
    mean = property(lambda self: self._times(self.df), doc="The mean.")

    @property
    def mode(self) -> Tensor:
        """The mode; NaN where the density is unbounded."""
        factor = self.df - self._length - 1
        return self._times(factor.masked_fill(factor <= 0, cygrad.nan))

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        diagonal = self.covariance_matrix.diagonal(0, -2, -1)
        squares = self.covariance_matrix**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * squares

    def _times(self, factor):
        return factor[..., None, None] * self.covariance_matrix

    def rsample(self, sample_shape: Sequence[int] = Size(), max_try_correction: int | None = None) -> Tensor:
        """Draw samples with gradients; redraw those singular by rounding, up to ten (or `max_try_correction`) times.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> x = dist.Wishart(cygrad.tensor(3.0), covariance_matrix=cygrad.eye(2)).rsample()
        >>> x.shape, bool(cygrad.linalg.det(x) > 0)
        (torch.Size([2, 2]), True)
        """
        self._drawn(sample_shape)  # PyTorch gives the second samples: its check takes the first ones for singular
        found = self._drawn(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            is_singular = ~constraints.positive_definite.check(found)
            if not is_singular.any():
                break
            warn("Singular sample detected.")
            found = cygrad.where(is_singular[..., None, None], self._drawn(sample_shape), found)
        return found

    def _drawn(self, sample_shape):
        """Draw samples by the Bartlett decomposition, whose Cholesky factor has independent elements."""
        count = cygrad.arange(self._length, dtype=self.df.dtype, device=self.df.device)
        diagonal = Chi2(self.df.unsqueeze(-1) - count, False).rsample(sample_shape).sqrt()
        diagonal = diagonal.clamp(min=cygrad.finfo(diagonal.dtype).eps)
        below = cygrad.tril_indices(self._length, self._length, -1)
        elements = diagonal.diag_embed()
        shape = (*elements.shape[:-2], below.shape[1])
        elements[..., below[0], below[1]] = cygrad.randn(shape, dtype=diagonal.dtype, device=diagonal.device)
        factor = self._unbroadcasted_scale_tril @ elements
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density of a matrix X = `value`, for n x n covariance C.

        It is ((df - n - 1) log det(X) - trace(C^-1 X) - df n log(2) - df log det(C)) / 2 - log(gamma_n(df / 2)), where
        gamma_n is the multivariate gamma function.

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Wishart(cygrad.tensor(3.0), covariance_matrix=cygrad.eye(2)).log_prob(cygrad.eye(2))
        tensor(-3.5310)
        """
        if self._validate_args:
            self._validate_sample(value)
        df, n = self.df, self._length
        shape = cygrad.broadcast_shapes(value.shape, self._batch_shape + self._event_shape)
        ratio = cygrad.cholesky_solve(value.expand(shape), self._unbroadcasted_scale_tril.expand(shape))
        power = (df - n - 1) / 2 * cygrad.linalg.slogdet(value).logabsdet - ratio.diagonal(0, -2, -1).sum(-1) / 2
        return power - df * (n * math.log(2) / 2 + self._half_log_det()) - (df / 2).mvlgamma(n)

    def entropy(self) -> Tensor:
        """Return log(Z) - (df - n - 1) / 2 E + df n / 2, with E the mean of log det(X).

        Z is the divisor of the density, and E = sum over i < n of digamma((df - i) / 2) + n log(2) + log det(C).

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.Wishart(cygrad.tensor(3.0), covariance_matrix=cygrad.eye(2)).entropy()
        tensor(5.5310)
        """
        half, n = self.df / 2, self._length
        count = cygrad.arange(n, dtype=half.dtype, device=half.device)
        digammas = (half.unsqueeze(-1) - count / 2).digamma().sum(-1)
        size = (n + 1) * (n * math.log(2) / 2 + self._half_log_det())
        return size + half.mvlgamma(n) - (half - (n + 1) / 2) * digammas + half * n

    def _log_normalizer(self, x, y):
        n = self._length
        half = y + (n + 1) / 2
        return half * (n * math.log(2) - cygrad.linalg.slogdet(-2 * x).logabsdet) + half.mvlgamma(n)


class LKJCholesky(Distribution):
    """Cholesky factors of `dim` by `dim` correlation matrices C, of density proportional to det(C)^(concentration - 1).

    Uniform over all correlation matrices for a concentration of 1; strong correlations become rarer as it grows.

    >>> import cygrad
    >>> from cygrad.distributions import LKJCholesky
    >>> d = LKJCholesky(2, 1.0)
    >>> d.event_shape, d.log_prob(cygrad.eye(2))
    (torch.Size([2, 2]), tensor(-0.6931))
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Draw samples without gradients: a direction per row, and the share of its length that is off the diagonal.

        The shape is `sample_shape + batch_shape + event_shape`.

        >>> import cygrad, cygrad.distributions as dist
        >>> factor = dist.LKJCholesky(3, 1.0).sample()
        >>> factor.shape, (factor @ factor.mT).diagonal().allclose(cygrad.ones(3))
        (torch.Size([3, 3]), True)
        """
        with cygrad.no_grad():
            like: dict[str, Any] = {"dtype": self.concentration.dtype, "device": self.concentration.device}
            rows = cygrad.arange(self.dim, **like).sub(1).clamp(min=0)  # rows above, of those with free elements
            # PyTorch says `rows + 0.5` here: from three rows on, its samples do not have the density of `log_prob`
            off = Beta((rows + 1) / 2, self.concentration.unsqueeze(-1) + (self.dim - 2) / 2 - rows / 2, False)
            lengths = off.sample(sample_shape).sqrt().unsqueeze(-1)
            directions = cygrad.randn(self._extended_shape(sample_shape), **like).tril(-1)
            below = lengths * F.normalize(directions, dim=-1, eps=0)
            below[..., 0, :] = 0  # the first row is 1, 0, 0, ...
            diagonal = (1 - (below**2).sum(-1)).clamp(min=cygrad.finfo(below.dtype).tiny).sqrt()
            return below + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density of a factor L: sum of (n - i + 2 (concentration - 1)) log(L[i, i]) - log(Z).

        The sum is over rows i = 1, ..., n, where n is `dim`. With a = concentration + (n - 1) / 2,
        log(Z) = (n - 1) log(pi) / 2 + mvlgamma(a - 1 / 2, n - 1) - (n - 1) log(gamma(a)).

        Raises ValueError for values outside the support, unless `validate_args` is False.

        >>> import cygrad, cygrad.distributions as dist
        >>> dist.LKJCholesky(2, 1.0).log_prob(cygrad.eye(2))
        tensor(-0.6931)
        """
        if self._validate_args:
            self._validate_sample(value)
        n, a = self.dim - 1, self.concentration + (self.dim - 1) / 2
        others = cygrad.arange(n - 1, -1, -1, device=self.concentration.device)  # number of rows below each
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + others
        size = n * math.log(math.pi) / 2 + (a - 0.5).mvlgamma(n) - n * a.lgamma()
        return (powers * value.diagonal(0, -2, -1)[..., 1:].log()).sum(-1) - size
