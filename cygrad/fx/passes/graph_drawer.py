"""`FxGraphDrawer`: pictures of graphs, by the package `pydot`."""

import hashlib
import itertools
from typing import Any

import cygrad
from cygrad.fx.graph_module import GraphModule, _get_attr
from cygrad.fx.node import Node, _format_arg, _get_qualified_name
from cygrad.fx.operator_schemas import normalize_function
from cygrad.fx.passes.shape_prop import TensorMetadata
from cygrad.fx.passes.tools_common import get_acc_ops_name

__all__ = ["FxGraphDrawer"]

_COLORS = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
_COLORS_OF_FUNCTIONS = """
    CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue MistyRose1 MistyRose2
    PaleTurquoise2 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1
""".split()


def _escaped(text: str) -> str:
    """Return a text in which braces do not divide a box."""
    return text.replace("{", r"\{").replace("}", r"\}")


class FxGraphDrawer:
    """Draws the graph of a module: a box for each node, with what it calls, and what `ShapeProp` noted of its value.

    `ignore_getattr` leaves out the attributes of the module, `ignore_parameters_and_buffers` those of its layers.
    Arguments that contain nodes are not shown unless `skip_node_names_in_args` is False. `parse_stack_trace` shows
    the line that a node comes from, `normalize_args` all arguments by name. `dot_graph_shape` is the shape of boxes.

    `get_dot_graph()` returns a `pydot.Dot`, whose `write_svg` and the like draw by Graphviz. Raises RuntimeError if
    pydot is not installed.

    >>> import cygrad
    >>> import importlib.util
    >>> from cygrad.fx.passes.graph_drawer import FxGraphDrawer
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.ReLU()))
    >>> if importlib.util.find_spec("pydot"):
    ...     drawer = FxGraphDrawer(traced, "model")
    ...     dot = drawer.get_dot_graph()
    ...     assert dot is drawer.get_main_dot_graph() and list(drawer.get_all_dot_graphs()) == ["model"]
    ...     assert "ReLU" in dot.to_string()
    ...     outer = cygrad.fx.GraphModule(cygrad.nn.ModuleDict({"inner": traced}), cygrad.fx.Graph())
    ...     x = outer.graph.placeholder("x")
    ...     assert outer.add_submodule("inner", traced)
    ...     out = outer.graph.output(outer.graph.call_module("inner", (x,)))
    ...     inner = FxGraphDrawer(outer, "outer").get_submod_dot_graph("inner")
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        try:
            import pydot  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ModuleNotFoundError as error:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite "
                "Python package manager.\n  pip install pydot; to draw, Graphviz, too"
            ) from error
        self._pydot: Any = pydot
        self._name = name
        self.dot_graph_shape = dot_graph_shape or "record"
        self.normalize_args = normalize_args
        self._ignores_attributes, self._ignores_parameters = ignore_getattr, ignore_parameters_and_buffers
        self._skips_nodes, self._shows_lines = skip_node_names_in_args, parse_stack_trace
        self._dot_graphs = {name: self._to_dot(graph_module, name)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            module = _get_attr(graph_module, str(node.target))
            if isinstance(module, GraphModule):
                inner = f"{name}_{node.target}"
                self._dot_graphs[inner] = self._to_dot(module, inner)

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """Return the picture of the graph, or of that of a submodule that is a GraphModule."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """Return the picture of the graph."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """Return the picture of the graph of a submodule."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """Return all pictures, by their names."""
        return self._dot_graphs

    def _to_dot(self, module: GraphModule, name: str) -> Any:
        dot = self._pydot.Dot(name, rankdir="TB")
        shown = [node for node in module.graph.nodes if node.op != "get_attr" or not self._ignores_attributes]
        for node in shown:
            dot.add_node(self._pydot.Node(node.name, label=self._label(module, node), **self._style(self._color(node))))
            if node.op == "call_module" and not self._ignores_parameters:
                self._add_parameters(dot, node, _get_attr(module, str(node.target)))
        for node in shown:
            for user in node.users:
                dot.add_edge(self._pydot.Edge(node.name, user.name))
        return dot

    def _add_parameters(self, dot: Any, node: Node, layer: Any) -> None:
        if isinstance(layer, GraphModule):
            return
        for name, tensor in itertools.chain(layer.named_parameters(), layer.named_buffers()):
            kind = "parameter" if isinstance(tensor, cygrad.nn.Parameter) else "buffer"
            full = f"{node.name}.{name}"
            label = rf"{{{full}|op_code=get_{kind}\l{tensor.dtype}{list(tensor.shape)}\n}}"
            dot.add_node(self._pydot.Node(full, label=label, **self._style("Salmon")))
            dot.add_edge(self._pydot.Edge(full, node.name))

    def _style(self, color: str) -> dict[str, str]:
        return {"shape": self.dot_graph_shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000"}

    @staticmethod
    def _color(node: Node) -> str:
        """Return the color of a box, which is the same for all calls of a function."""
        if node.op in _COLORS:
            return _COLORS[node.op]
        digest = hashlib.md5(node._pretty_print_target(node.target).encode(), usedforsecurity=False).hexdigest()
        return _COLORS_OF_FUNCTIONS[int(digest[:8], 16) % len(_COLORS_OF_FUNCTIONS)]

    def _label(self, module: GraphModule, node: Node) -> str:
        """Return the text of a box; `|` divides it."""
        parts = [f"name=%{node.name}", f"op_code={node.op}\n"]
        if node.op == "call_module":
            layer = _get_attr(module, str(node.target))
            settings = [f"{name}: {getattr(layer, name)}" for name in getattr(layer, "__constants__", ())]
            parts[-1] += rf"\n{_escaped(get_acc_ops_name(type(layer)))}\n"
            parts.append(_escaped(r"\n".join(settings) or layer.extra_repr().replace("|", "/")) + r"\n")
        else:
            target: Any = node.target
            parts.append(_escaped(target if isinstance(target, str) else _get_qualified_name(target)) + r"\n")
            parts[-1] = f"target={parts[-1]}"
            parts.extend(self._arguments(node))
            parts.append(rf"num_users={len(node.users)}\n")
        parts.extend(_facts(node.meta.get("tensor_meta")))
        if self._shows_lines and node.stack_trace:
            parts.append(_line(node.stack_trace))
        return "{" + "|".join(parts) + "}"

    def _arguments(self, node: Node) -> list[str]:
        args, kwargs = node.args, dict(node.kwargs)
        if self.normalize_args and node.op == "call_function":
            target: Any = node.target
            args, kwargs = normalize_function(target, args, kwargs, normalize_to_only_use_kwargs=True) or (args, kwargs)
        texts = [_format_arg(value, max_list_len=8) for value in args]
        named = [f"{name}: {_format_arg(value, max_list_len=8)}" for name, value in kwargs.items()]
        return [*self._list("args=(", texts, ")"), *self._list("kwargs={", named, "}")]

    def _list(self, opening: str, texts: list[str], closing: str) -> list[str]:
        shown = [text for text in texts if "%" not in text or not self._skips_nodes]
        if not shown:
            return []
        if len(shown) == 1:
            return [_escaped(f"{opening}{shown[0]},{closing}")]
        return [_escaped(rf"{opening}\l" + r",\n".join(shown) + rf",\n{closing}\l")]


def _facts(described: Any) -> list[str]:
    """Return what is known of a tensor, or of those in a container."""
    if isinstance(described, TensorMetadata):
        names = ("dtype", "shape", "requires_grad", "stride")
        values = (described.dtype, tuple(described.shape), described.requires_grad, described.stride)
        return [rf"{name}={value}\n" for name, value in zip(names, values, strict=True)]
    if isinstance(described, dict):
        described = list(described.values())
    return [fact for one in described for fact in _facts(one)] if isinstance(described, (list, tuple)) else []


def _line(trace: str) -> str:
    """Return the last line of a stack trace, with the end of its file's path."""
    place, _, code = trace.strip().rpartition("\n")
    file, _, rest = place.rpartition("\n")[2].strip().removeprefix('File "').partition('", line ')
    return _escaped(rf"file={'/'.join(file.split('/')[-2:])}:{rest.partition(',')[0]} {code.strip()}\n")
