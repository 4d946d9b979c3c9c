"""`annotate`: give the value of a traced function a type."""

from typing import Any

from cygrad.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Give the node of a proxy a type, and return the proxy. Other values are returned as they are.

    Raises RuntimeError if the node has a type.

    >>> import cygrad
    >>> from cygrad.fx.annotate import annotate
    >>> traced = cygrad.fx.symbolic_trace(lambda x: annotate(x + 1, cygrad.Tensor) * 2)
    >>> traced.graph.find_nodes(op="call_function")[0].type is cygrad.Tensor, annotate(3, int)
    (True, 3)
    """
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type "
            f"is {type}. This could happen if you tried to annotate a function parameter value (in which case you "
            "should use the type slot on the function signature) or you called annotate on the same value twice"
        )
    val.node.type = type
    return val
