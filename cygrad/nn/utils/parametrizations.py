"""Common parametrizations: orthogonal matrices, weight norm, spectral norm."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from cygrad.nn.modules.module import Module
from cygrad.nn.utils import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


# --- Orthogonal --


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns (rows, if they are fewer).

    With `base` the map is relative to it: a diagonal matrix is mapped to `base` itself.
    """

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """Return the orthogonal matrix."""
        wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if wide else X
        columns = tall.shape[-1]
        q = self._householder(tall) if self.orthogonal_map == "householder" else self._exponential(tall)
        if getattr(self, "base", None) is not None:
            q = self.base @ q
        q = q[..., :columns] if q.shape[-1] != columns else q
        return q.mT if wide else q

    def _householder(self, x: Tensor) -> Tensor:
        below = x.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        signs = x.diagonal(dim1=-2, dim2=-1).detach().sign().unsqueeze(-2)
        return cygrad.linalg.householder_product(below, tau) * signs

    def _exponential(self, x: Tensor) -> Tensor:
        rows, columns = x.shape[-2:]
        lower = x.tril()
        if rows != columns:
            lower = F.pad(lower, (0, rows - columns))
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            return cygrad.matrix_exp(skew)
        identity = cygrad.eye(rows, dtype=x.dtype)
        return cygrad.linalg.solve(identity - skew / 2, identity + skew / 2)

    @cygrad.no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """Return a matrix that maps to `Q`, or to an orthogonal matrix derived from Q if it is not orthogonal."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        x = self._rebase(tall) if "base" in self._buffers else self._reflectors(tall)
        return (x.mT if wide else x).contiguous()

    def _rebase(self, q: Tensor) -> Tensor:
        rows, columns = q.shape[-2:]
        if rows != columns:
            q = cygrad.cat([q, cygrad.randn((*q.shape[:-2], rows, rows - columns), dtype=q.dtype, device=q.device)], -1)
        self.base = q.clone() if _is_orthogonal(q) else _orthogonalized(q)
        # Its strictly lower triangle is zero, so every map, including Householder's, sends it to the identity.
        return -cygrad.eye(rows, columns, dtype=q.dtype).expand(*q.shape[:-2], rows, columns)

    def _reflectors(self, q: Tensor) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations "
                "when use_trivialization=False."
            )
        a, tau = cygrad.geqrf(q)
        diagonal = a.diagonal(dim1=-2, dim2=-1)
        # Where tau is 0, geqrf applies no reflection, but our zero reflector is a reflection: flipping the sign
        # compensates.
        diagonal.copy_(cygrad.where(tau == 0, -diagonal.sign(), diagonal.sign()))
        return a


def _is_orthogonal(q: Tensor) -> bool:
    identity = cygrad.eye(q.shape[-1], dtype=q.dtype)
    tolerance = 10 * q.shape[-2] * cygrad.finfo(q.dtype).eps
    return cygrad.allclose(q.mH @ q, identity, atol=tolerance)


def _orthogonalized(a: Tensor) -> Tensor:
    """Return the orthogonal QR factor of a, made unique by a positive diagonal of R."""
    q, r = cygrad.linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a matrix, or a batch of matrices, orthogonal (unitary, if complex); return `module`.

    `orthogonal_map` computes the matrix from the parameter: `"matrix_exp"` (of the skew-symmetric L - L^H, with L its
    lower triangle; default for square or complex matrices), `"cayley"` ((I - A/2)^-1 (I + A/2) of the same) or
    `"householder"` (the product of the reflections in its lower triangle; default otherwise).
    `use_trivialization` multiplies the result by a base matrix, which holds the value last assigned.

    Raises `ValueError` for an unknown name or map, or a tensor with fewer than two dimensions.

    >>> import cygrad
    >>> from cygrad import nn
    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(20, 30))
    >>> q = layer.weight
    >>> cygrad.allclose(q.T @ q, cygrad.eye(20), atol=1e-5)
    True
    """
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


# --- Weight norm --


def norm_except(v: Tensor, dim: int) -> Tensor:
    """Return the norm over all dimensions except `dim`, keeping them with size 1; over all for -1."""
    if dim == -1:
        return v.norm()
    others = [d for d in range(v.ndim) if d != dim % v.ndim]
    return cygrad.linalg.vector_norm(v, dim=others, keepdim=True) if others else v.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """Return the weight of magnitude g and direction v."""
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return magnitude and direction."""
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Split a weight into magnitude g and direction v, `w = g * v / ||v||`; return `module`.

    The norm is taken per slice along `dim`, or over the whole tensor with `dim=None`. g is
    `module.parametrizations.weight.original0` and v `original1`; state dicts with the names of the old
    `nn.utils.weight_norm` (`weight_g`, `weight_v`) can be loaded. See T. Salimans and D. P. Kingma, "Weight
    Normalization", 2016.

    >>> import cygrad
    >>> from cygrad import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([40, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for i, part in enumerate("gv"):
            old = f"{prefix}{name}_{part}"
            if old in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(old)

    module._register_load_state_dict_pre_hook(rename)
    return module


# --- Spectral norm --


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if dim >= weight.ndim or dim < -weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            rows, columns = matrix.shape
            self.register_buffer("_u", F.normalize(matrix.new_empty(rows).normal_(0, 1), dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(matrix.new_empty(columns).normal_(0, 1), dim=0, eps=eps))
            iterate(matrix, self._u, self._v, 15, eps)  # so that the first estimate is accurate

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weight divided by its largest singular value."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            iterate(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # Clone, so that the graph keeps these values while the next step updates the buffers.
        sigma = cygrad.vdot(self._u.clone(), matrix.mv(self._v.clone()))
        return weight / sigma

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value itself, which is assumed to have spectral norm 1."""
        return value


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return the weight as a matrix: `dim` first, the others flattened."""
    return weight.movedim(dim, 0).flatten(1) if weight.ndim > 1 else weight


@cygrad.no_grad()
def iterate(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """Refine `u`, then `v`, in place towards the leading singular vectors by power iteration."""
    for _ in range(times):
        u.copy_(F.normalize(matrix.mv(v), dim=0, eps=eps))
        v.copy_(F.normalize(matrix.H.mv(u), dim=0, eps=eps))


def output_dim(module: Any) -> int:
    """Return the dimension of the weight that indexes the outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by an estimate of its largest singular value; return `module`.

    The weight becomes W / (u^T W v). A step of power iteration sets u = W v / |W v|, then v = W^T u / |W^T u|.

    In training each use performs `n_power_iterations` steps of power iteration, starting from the previous estimate.
    `dim` is the dimension of the outputs. See T. Miyato et al., "Spectral Normalization for Generative Adversarial
    Networks", 2018.

    >>> import cygrad
    >>> from cygrad import nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))
    >>> bool((cygrad.linalg.matrix_norm(layer.weight, 2) - 1).abs() < 0.2)
    True
    """
    weight = _weight_of(module, name)
    dim = output_dim(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def _weight_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight
