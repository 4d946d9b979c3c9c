"""Tracing through tensors, as programs ask about it: such a trace never runs, since ops call each other in C."""

from typing import Any

import cygrad

__all__ = ["get_proxy_mode", "is_sym_node", "make_fx"]


def get_proxy_mode() -> None:
    """The running trace through tensors, of which there is none."""


def is_sym_node(node: Any) -> bool:
    """Whether a value is a symbolic number of a trace: False."""
    return False


def make_fx(f: Any, *options: Any, **named: Any) -> Any:
    """Trace a function through its tensors. Raises RuntimeError: `fx.symbolic_trace` traces modules and functions."""
    raise RuntimeError(
        f"make_fx({cygrad.typename(f)}): cygrad does not trace through tensors\n"
        "  to fix it: use `torch.fx.symbolic_trace`, which calls the function with proxies"
    )
