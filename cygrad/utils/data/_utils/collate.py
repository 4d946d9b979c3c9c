"""Making batches of samples, in PyTorch's place."""

from cygrad.utils.data.collate import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]
