"""Control flow as functions, which tracers of PyTorch need; here they simply run, and gradients flow through them."""

from cygrad._higher_order_ops.associative_scan import associative_scan
from cygrad._higher_order_ops.cond import cond
from cygrad._higher_order_ops.map import map
from cygrad._higher_order_ops.scan import scan
from cygrad._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
