"""Making batches of samples, in PyTorch's place."""

from cygrad.utils.data.collate import default_collate, default_convert

__all__ = ["default_collate", "default_convert"]
