"""The graph's nodes."""

from cygrad._core.node import Node, live_nodes

__all__ = ["Node", "live_nodes"]
