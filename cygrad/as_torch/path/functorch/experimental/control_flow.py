"""Control flow as functions."""

from torch import cond
from torch._higher_order_ops.map import map

__all__ = ["cond", "map"]
