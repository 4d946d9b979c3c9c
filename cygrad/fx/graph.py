"""`Graph`: a list of nodes, each of which computes a value from those before it."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import cygrad
from cygrad.fx._attributes import follow
from cygrad.fx._codegen import CodeGen as CodeGen
from cygrad.fx._codegen import PythonCode as PythonCode
from cygrad.fx._codegen import _format_target as _format_target
from cygrad.fx._codegen import inplace_methods as inplace_methods
from cygrad.fx._codegen import magic_methods as magic_methods
from cygrad.fx._codegen import reflectable_magic_methods as reflectable_magic_methods
from cygrad.fx._codegen import source_of
from cygrad.fx._namespace import _custom_builtins as _custom_builtins
from cygrad.fx._namespace import _Namespace
from cygrad.fx._namespace import _register_custom_builtin as _register_custom_builtin
from cygrad.fx.node import Argument, Node, Target, map_arg
from cygrad.utils.warning import warn

__all__ = ["CodeGen", "Graph", "PythonCode"]

_NO_DEFAULT: Any = object()


def _snake_case(name: str) -> str:
    """Return a name in lower case, with underscores between its words.

    >>> from cygrad.fx.graph import _snake_case
    >>> _snake_case("LayerNorm"), _snake_case("add.Tensor")
    ('layer_norm', 'add_tensor')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace(".", "_").lower()


class _node_list:
    """The nodes of a graph in order. While they are iterated over, nodes may be added and erased."""

    def __init__(self, graph: "Graph", direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> "_node_list":
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint(contextlib.AbstractContextManager[None]):
    """Where a graph inserts new nodes: set at once, and put back at the end of a `with` block."""

    def __init__(self, graph: "Graph", insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class Graph:
    """The nodes of a traced function. Methods named after what a node does append one to the graph.

    >>> import cygrad
    >>> graph = cygrad.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(cygrad.relu, (x,))
    >>> out = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    >>> cygrad.fx.GraphModule({}, graph)(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    >>> add = graph.call_method("add", (y, 1))
    >>> with graph.inserting_before(out):
    ...     twice = graph.create_node("call_function", cygrad.mul, (y, 2))
    >>> with graph.inserting_after(y):
    ...     unused = graph.call_function(cygrad.neg, (y,))
    >>> graph.erase_node(add)
    >>> graph.output_node().args = (twice,)
    >>> graph.eliminate_dead_code(), graph.find_nodes(op="call_function")
    (True, [relu, mul])
    >>> graph.lint()
    >>> print(graph.python_code("self").src.strip().splitlines()[0])
    def forward(self, x):
    >>> graph.process_inputs(3), graph.process_outputs(3)
    ((3,), 3)
    >>> copy = cygrad.fx.Graph()
    >>> copy.graph_copy(graph, {})
    mul
    >>> copy.node_copy(x)
    x_1
    """

    def __init__(
        self, owning_module: "cygrad.fx.GraphModule | None" = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._origin = ""  # where the traced function is, as a part of a sentence

    @property
    def owning_module(self) -> Any:
        """The GraphModule that the graph belongs to."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _node_list:
        """The nodes in order."""
        return _node_list(self)

    def output_node(self) -> Node:
        """Return the node that returns the result."""
        return next(iter(reversed(self.nodes)))

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes with this `op` and, if given, this `target`, in order."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # -- new nodes --

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Add a node at the place where the graph inserts, which is its end unless `inserting_before` changed it."""
        if not isinstance(args if args is not None else (), tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs if kwargs is not None else {}, dict):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        for hook in getattr(self._owning_module, "_create_node_hooks", ()):
            hook(node)
        return node

    def _target_to_str(self, target: Target) -> str:
        if callable(target):
            name = getattr(target, "__name__", type(target).__name__)
        else:
            name = target
            if name.startswith("__") and name.endswith("__"):
                name = name[2:-2]
        return _snake_case(name)

    def placeholder(self, name: str, type_expr: Any | None = None, default_value: Any = _NO_DEFAULT) -> Node:
        """Add an input."""
        args = () if default_value is _NO_DEFAULT else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """Add the value of a parameter, buffer or other attribute of the module, by its dotted name.

        >>> import cygrad
        >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Linear(2, 1))
        >>> with traced.graph.inserting_before():
        ...     node = traced.graph.get_attr("weight")
        >>> node.op, node.target
        ('get_attr', 'weight')
        """
        if self._owning_module is not None and follow(self._owning_module, qualified_name)[1]:
            warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer"
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Add a call of the submodule with this dotted name.

        >>> import cygrad
        >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.ReLU()))
        >>> last = traced.graph.output_node()
        >>> with traced.graph.inserting_before(last):
        ...     last.args = (traced.graph.call_module("1", (last.args[0],)),)  # the second layer once more
        >>> _ = traced.recompile()
        >>> [node.target for node in traced.graph.find_nodes(op="call_module", target="1")]
        ['1', '1']
        """
        if self._owning_module is not None:
            self._owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Add a call of a method of `args[0]`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any | None = None) -> Node:
        """Add the node that returns `result`."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Add a copy of a node of another graph; `arg_transform` maps the nodes of that graph to those of this one."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(dict(node.kwargs), arg_transform)
        copied = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g: "Graph", val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of `g` that `val_map` does not map yet, and enter them there.

        Returns the nodes that stand for what `g` returns, or None; with `return_output_node`, also the output of `g`.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], val_map.__getitem__)
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "Graph":
        copied = Graph(tracer_cls=self._tracer_cls)
        values: dict[Node, Node] = {}
        found = copied.graph_copy(self, values, return_output_node=True)
        copied._codegen, copied._origin = self._codegen, self._origin
        if memo is not None:
            memo.update({id(node): other for node, other in values.items()})
        if found is not None:
            value, old = found
            new = copied.output(value, type_expr=old.type)
            new.meta = dict(old.meta)
        return copied

    # -- changes --

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node. Raises RuntimeError if others use it."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warn(f"erase_node({to_erase}) on an already erased node")
            return
        for hook in getattr(self._owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._set_arguments((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes before `n`, or at the beginning of the graph; in a `with` block, until its end."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes behind `n`, or at the end of the graph; in a `with` block, until its end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase the nodes whose results nobody uses, except those that change something; return whether there were any.

        `is_impure_node(node)` tells which nodes must stay, in place of `Node.is_impure`.
        """
        self.lint()
        is_impure = is_impure_node or Node.is_impure
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not is_impure(node):
                self.erase_node(node)
        return len(self.nodes) < before

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.users.clear()
            self.erase_node(node)

    # -- texts and checks --

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """Return Python source for the graph, in which the module is called `root_module`, and the globals it needs."""
        return source_of(self, root_module, verbose=verbose, expanded_def=expanded_def)

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *filter(None, [node.format_node() for node in self.nodes])])

    def print_tabular(self) -> None:
        """Print the nodes as a table, with the package `tabulate`.

        >>> import cygrad
        >>> import contextlib, importlib.util, io
        >>> graph = cygrad.fx.symbolic_trace(lambda x: x + 1).graph
        >>> with contextlib.redirect_stdout(io.StringIO()) as table:
        ...     if importlib.util.find_spec("tabulate"):
        ...         graph.print_tabular()
        """
        try:
            from tabulate import tabulate  # type: ignore[import-untyped]  # which is not installed everywhere
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip "
                "install tabulate` to install the library."
            )
            raise
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def lint(self) -> None:
        """Check that each node belongs to this graph, has a name of its own and uses only nodes before it.

        In the graph of a module, the submodules and attributes that nodes refer to must exist. Raises RuntimeError, and
        ValueError for an attribute.
        """
        known: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            map_arg((node.args, node.kwargs), lambda used, node=node: self._check_use(used, node, known))  # type: ignore[misc]
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            known.add(node)
            names.add(node.name)
            if self._owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_reference(node)

    def _check_use(self, used: Node, node: Node, known: set[Node]) -> None:
        if used.graph is not self:
            raise RuntimeError(
                f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument! If "
                "you are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap "
                f"values\n{self}"
            )
        if used not in known:
            raise RuntimeError(
                f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that Nodes in "
                f"the graph are topologically ordered\n{self}"
            )

    def _check_reference(self, node: Node) -> None:
        target = str(node.target)
        found, missing = follow(self._owning_module, target)
        if missing:
            where = target.removesuffix(".".join(missing)).removesuffix(".") or "the module"
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {missing[0]} of {where}"
            )
        if node.op == "call_module" and not isinstance(found, cygrad.nn.Module):
            raise RuntimeError(
                f"Node {node} {node.op} target {node.target} of {self._owning_module} does not reference an nn.Module"
            )

    # -- how source is written --

    def set_codegen(self, codegen: CodeGen) -> None:
        """Have `codegen` write the source.

        >>> import cygrad
        >>> graph = cygrad.fx.symbolic_trace(lambda x: x + 1).graph
        >>> graph.set_codegen(cygrad.fx.CodeGen())
        """
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the placeholders for the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return what a call returns for the value of the output node."""
        return self._codegen.process_outputs(out)

    @contextlib.contextmanager
    def _changed_transformer(self, before: Any) -> Iterator[None]:
        try:
            yield
        finally:
            self._codegen._body_transformer = before

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> contextlib.AbstractContextManager[None]:
        r"""Change the lines of the source by `make_transformer(current)(lines)`, for good or in a `with` block.

        >>> import cygrad
        >>> traced = cygrad.fx.symbolic_trace(lambda x: x + 1)
        >>> with traced.graph.on_generate_code(lambda current: lambda lines: ["# generated\n", *lines]):
        ...     _ = traced.recompile()
        >>> "# generated" in traced.code
        True
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        return self._changed_transformer(before)


_OF_NESTED_ARGUMENTS = ("_PyTreeCodeGen", "_PyTreeInfo")  # which PyTorch has here


def __getattr__(name: str) -> Any:
    if name not in _OF_NESTED_ARGUMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from cygrad.fx import _pytree  # which imports this module

    return getattr(_pytree, name)
