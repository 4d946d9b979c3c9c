"""Trees, for the public modules: nested containers of values (see `_core/transforms/trees.py`)."""

from cygrad._core.transforms.trees import flatten, mapped, nodes, rebuild, spread

__all__ = ["flatten", "mapped", "nodes", "rebuild", "spread"]
