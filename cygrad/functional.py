"""Functions of the package under PyTorch's `torch.functional`, where some scripts look for them."""

from cygrad import (
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    cdist,
    einsum,
    istft,
    meshgrid,
    norm,
    split,
    stft,
    tensordot,
    unique,
    unique_consecutive,
)

__all__ = [
    "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "cdist", "einsum", "istft", "meshgrid", "norm", "split",
    "stft", "tensordot", "unique", "unique_consecutive",
]  # fmt: skip
