"""Changes of the targets of nodes, and the memory that nodes need."""

from typing import Any, NamedTuple

from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node, Target
from cygrad.fx.passes.shape_prop import ShapeProp, TensorMetadata

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target
) -> None:
    """Let all nodes with an `op` and a `target` have others.

    >>> import cygrad
    >>> from cygrad.fx.passes.graph_manipulation import replace_target_nodes_with
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x))
    >>> replace_target_nodes_with(traced, "call_function", cygrad.relu, "call_method", "tanh")
    >>> traced(cygrad.zeros(1)), [node.op for node in traced.graph.nodes]
    (tensor([0.]), ['placeholder', 'call_method', 'output'])
    """
    for node in fx_module.graph.find_nodes(op=old_op, target=old_target):
        with fx_module.graph.inserting_before(node):
            new = fx_module.graph.create_node(new_op, new_target, node.args, dict(node.kwargs), None, node.type)
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        fx_module.graph.erase_node(node)
    fx_module.recompile()


class size_bytes(NamedTuple):
    """The size of a node's value in bytes, and that with the parameters that the node uses.

    >>> from cygrad.fx.passes.graph_manipulation import size_bytes
    >>> size_bytes(8, 32).total_size
    32
    """

    output_size: int
    total_size: int


def get_tensor_meta(node: Node) -> TensorMetadata:
    """Return what `ShapeProp` has noted of the value of a node. Raises RuntimeError if there is nothing.

    >>> import cygrad
    >>> from cygrad.fx.passes.graph_manipulation import get_tensor_meta
    >>> from cygrad.fx.passes.shape_prop import ShapeProp
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x + 1)
    >>> result = ShapeProp(traced).propagate(cygrad.ones(2))
    >>> get_tensor_meta(traced.graph.output_node()).shape
    torch.Size([2])
    """
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Return the size of a node's value, and that with the parameters of the submodule that it calls.

    >>> import cygrad
    >>> from cygrad.fx.passes.graph_manipulation import get_size_of_node
    >>> from cygrad.fx.passes.shape_prop import ShapeProp
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.Linear(3, 2)))
    >>> result = ShapeProp(traced).propagate(cygrad.ones(3))
    >>> get_size_of_node(traced, traced.graph.find_nodes(op="call_module")[0])
    size_bytes(output_size=8, total_size=40)
    """
    described: Any = get_tensor_meta(node)
    own = described.shape.numel()
    of_module = 0
    if node.op == "call_module":
        of_module = sum(p.numel() for p in fx_module.get_submodule(str(node.target)).parameters())
    return size_bytes(own * described.dtype.itemsize, (own + of_module) * described.dtype.itemsize)


def get_size_of_all_nodes(fx_module: GraphModule, args: Any = None) -> None:
    """Set the attribute `size_bytes` of all nodes but the output. `args`: run `ShapeProp` with these inputs first.

    >>> import cygrad
    >>> from cygrad.fx.passes.graph_manipulation import get_size_of_all_nodes
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.sum())
    >>> get_size_of_all_nodes(traced, [cygrad.ones(4)])
    >>> [node.size_bytes.total_size for node in traced.graph.nodes if node.op != "output"]
    [16, 4]
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op != "output":
            node.size_bytes = get_size_of_node(fx_module, node)  # type: ignore[attr-defined]
