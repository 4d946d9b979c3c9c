"""The graph of a module's forward as TensorBoard draws it: one node for each input, parameter, op and output.

The module runs once on example inputs, and what it does with tensors is noted; a loop appears as often as it ran.
Nodes are named by the path of modules to them, by which TensorBoard folds them: `Net/Linear[first]/linear`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from cygrad import Tensor
from cygrad.overrides import TorchFunctionMode
from cygrad.utils import _pytree

__all__ = ["graph"]

_PRODUCER = 22  # the version that TensorBoard expects


class _Nodes(TorchFunctionMode):
    """Notes the functions that are called on tensors, as nodes of a graph."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []
        self._taken: dict[str, int] = {}
        self._by_tensor: dict[int, str] = {}  # the node that has made a tensor, by the tensor's id
        self._kept: list[Tensor] = []  # so that no other tensor gets the same id
        self._paths = _paths(model)
        self._members = {
            id(tensor): (f"{self._paths[id(module)]}/{name}", kind)
            for module in model.modules()
            for kind, members in (("Parameter", module._parameters), ("Buffer", module._buffers))
            for name, tensor in members.items()
            if tensor is not None
        }
        self.scope: list[str] = []

    def add(self, name: str, kind: str, inputs: list[str], value: Any) -> str:
        """Add a node, and return its name, which gets a number if it is taken."""
        number = self._taken[name] = self._taken.get(name, -1) + 1
        name = f"{name}_{number}" if number else name
        tensors = _tensors(value)
        self.found.append({"name": name, "op": kind, "inputs": inputs, "shapes": [tuple(t.shape) for t in tensors]})
        for tensor in tensors:
            self._by_tensor[id(tensor)] = name
            self._kept.append(tensor)
        return name

    def node_of(self, tensor: Tensor) -> str:
        """Return the node of a tensor; a parameter, buffer or constant gets its node when it is first used.

        So does a view that was made by reading a property, such as `x.T`.
        """
        if id(tensor) in self._by_tensor:
            return self._by_tensor[id(tensor)]
        base = tensor._base
        if base is not None and id(tensor) not in self._members:
            return self.add(f"{self.path()}view", "aten::view", [self.node_of(base)], tensor)
        name, kind = self._members.get(id(tensor), (f"{self.path()}constant", "Constant"))
        return self.add(name, kind, [], tensor)

    def path(self) -> str:
        """The path of the module that runs, with a slash at its end."""
        return f"{self.scope[-1]}/" if self.scope else ""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = _name_of(func)
        changed = args[0] if name == "setitem" else result
        if _tensors(changed):
            inputs = list(dict.fromkeys(self.node_of(tensor) for tensor in _tensors((args, kwargs or {}))))
            self.add(f"{self.path()}{name}", f"aten::{name}", inputs, changed)
        return result

    @contextlib.contextmanager
    def within(self, model: Any) -> Iterator[None]:
        """Follow which module runs, and note what is done."""

        def enter(module: Any, args: Any) -> None:
            self.scope.append(self._paths[id(module)])

        def leave(module: Any, args: Any, output: Any) -> None:
            self.scope.pop()

        with contextlib.ExitStack() as stack:
            for module in model.modules():
                stack.callback(module.register_forward_pre_hook(enter, prepend=True).remove)
                stack.callback(module.register_forward_hook(leave, always_call=True).remove)
            stack.enter_context(self)
            yield


def _tensors(value: Any) -> list[Tensor]:
    return [each for each in _pytree.tree_leaves(value) if isinstance(each, Tensor)]


def _name_of(func: Any) -> str:
    """Return the name of a function, of a method such as `__add__`, or of the property that is read."""
    name = func.__name__
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    return name.strip("_") or name


def _paths(model: Any) -> dict[int, str]:
    """Return the path of each module: the classes on the way to it, and in brackets the attributes."""
    paths = {id(model): type(model).__name__}
    for module in model.modules():
        for name, child in module.named_children():
            paths.setdefault(id(child), f"{paths[id(module)]}/{type(child).__name__}[{name}]")
    return paths


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> Any:
    """Return the graph of `model(*args)` as a `GraphDef` of tensorboardX. The module runs in evaluation mode.

    `args` is a tensor, or a tuple or list of arguments. `use_strict_trace` is accepted, and makes no difference.
    """
    if not isinstance(args, (tuple, list)):
        args = (args,)
    nodes = _Nodes(model)
    for number, tensor in enumerate(_tensors(tuple(args))):
        nodes.add(f"input/{number}", "IO Node", [], tensor)
    was_training = model.training
    model.train(False)
    try:
        with nodes.within(model):
            result = model(*args)
    finally:
        model.train(was_training)
    for tensor in _tensors(result):
        nodes.add("output/output", "IO Node", [nodes.node_of(tensor)], tensor.detach())
    found = _graph_def(nodes.found)
    if verbose:
        print(found)
    return found


def _graph_def(nodes: list[dict[str, Any]]) -> Any:
    """Return nodes as TensorBoard's protocol buffer."""
    from tensorboardX.proto.attr_value_pb2 import AttrValue  # optional
    from tensorboardX.proto.graph_pb2 import GraphDef  # optional
    from tensorboardX.proto.node_def_pb2 import NodeDef  # optional
    from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto  # optional
    from tensorboardX.proto.versions_pb2 import VersionDef  # optional

    found = []
    for node in nodes:
        shapes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in shape]) for shape in node["shapes"]]
        attributes = {"_output_shapes": AttrValue(list=AttrValue.ListValue(shape=shapes))}
        found.append(NodeDef(name=node["name"], op=node["op"], input=node["inputs"], attr=attributes))
    return GraphDef(node=found, versions=VersionDef(producer=_PRODUCER))
