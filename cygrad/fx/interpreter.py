"""`Interpreter` runs a graph node by node; `Transformer` builds a new graph the same way."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cygrad import nn
from cygrad.fx import traceback
from cygrad.fx._attributes import follow
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Argument, Node, Target, map_aggregate, map_arg
from cygrad.fx.proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the graph of a module, or `graph`, node by node. Override `run_node`, or the method for a kind of nodes.

    With `garbage_collect_values`, values are let go as soon as no further node needs them.

    >>> import cygrad
    >>> class Counts(cygrad.fx.Interpreter):
    ...     calls = 0
    ...     def call_function(self, target, args, kwargs):
    ...         self.calls += 1
    ...         return super().call_function(target, args, kwargs)
    >>> counts = Counts(cygrad.fx.symbolic_trace(lambda x: cygrad.exp(x) * 2))
    >>> counts.run(cygrad.zeros(1)), counts.calls
    (tensor([2.]), 2)
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph = module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Return what the graph computes for these inputs. `initial_env` has values for nodes that need not run.

        >>> import cygrad
        >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x) + 1)
        >>> cygrad.fx.Interpreter(traced).run(cygrad.tensor([-1.0, 2.0]))
        tensor([1., 3.])
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self._value_of(node)
            for unused in self.user_to_last_uses.get(node, ()):
                del self.env[unused]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def _value_of(self, node: Node) -> Any:
        try:
            return self.run_node(node)
        except Exception as error:
            if self.extra_traceback:
                trace = node.stack_trace
                more = f"While executing {node.format_node()}\nOriginal traceback:\n{trace}"
                text = f"{error.args[0]}\n\n{more}" if error.args else more
                error.args = (text, *error.args[1:])
                if isinstance(error, KeyError):
                    raise RuntimeError(*error.args) from error
            raise

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Same as `run`, with the inputs in a list that is emptied, so that they can be let go.

        >>> import cygrad
        >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x) + 1)
        >>> arguments = [cygrad.tensor([-1.0, 2.0])]
        >>> cygrad.fx.Interpreter(traced).boxed_run(arguments), arguments
        (tensor([1., 3.]), [])
        """
        placeholders = self.graph.find_nodes(op="placeholder")
        env = dict(zip(placeholders, args_list, strict=False))
        args_list.clear()
        return self.run(initial_env=env)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with traceback.set_current_meta(node):
            yield

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, by the method that is named after its `op`.

        >>> import cygrad
        >>> class Shows(cygrad.fx.Interpreter):
        ...     def run_node(self, n):
        ...         print(n.op, n.name)
        ...         return super().run_node(n)
        >>> result = Shows(cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x))).run(cygrad.ones(2))
        placeholder x
        call_function relu
        output output
        """
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next input, or the default value of the placeholder.

        >>> import cygrad
        >>> class Doubles(cygrad.fx.Interpreter):
        ...     def placeholder(self, target, args, kwargs):
        ...         return super().placeholder(target, args, kwargs) * 2
        >>> Doubles(cygrad.fx.symbolic_trace(lambda x: x + 1)).run(cygrad.ones(2))
        tensor([3., 3.])
        """
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module.

        >>> import cygrad
        >>> class Zeros(cygrad.fx.Interpreter):
        ...     def get_attr(self, target, args, kwargs):
        ...         return cygrad.zeros_like(super().get_attr(target, args, kwargs))
        >>> class Scale(cygrad.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.scale = cygrad.nn.Parameter(cygrad.ones(2))
        ...     def forward(self, x):
        ...         return x * self.scale
        >>> Zeros(cygrad.fx.symbolic_trace(Scale())).run(cygrad.ones(2))
        tensor([0., 0.])
        """
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return `target(*args, **kwargs)`.

        >>> import cygrad
        >>> class Tanh(cygrad.fx.Interpreter):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(cygrad.tanh if target is cygrad.relu else target, args, kwargs)
        >>> Tanh(cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x))).run(cygrad.zeros(2))
        tensor([0., 0.])
        """
        return target(*args, **kwargs)  # type: ignore[operator]

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the method named `target` of the first argument returns for the others.

        >>> import cygrad
        >>> class Shows(cygrad.fx.Interpreter):
        ...     def call_method(self, target, args, kwargs):
        ...         print(target)
        ...         return super().call_method(target, args, kwargs)
        >>> Shows(cygrad.fx.symbolic_trace(lambda x: x.relu())).run(cygrad.ones(2))
        relu
        tensor([1., 1.])
        """
        first, *rest = args
        return getattr(first, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a submodule returns.

        >>> import cygrad
        >>> class Shows(cygrad.fx.Interpreter):
        ...     def call_module(self, target, args, kwargs):
        ...         print(target)
        ...         return super().call_module(target, args, kwargs)
        >>> Shows(cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.ReLU()))).run(cygrad.ones(2))
        0
        tensor([1., 1.])
        """
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result.

        >>> import cygrad
        >>> class Pairs(cygrad.fx.Interpreter):
        ...     def output(self, target, args, kwargs):
        ...         return "result", super().output(target, args, kwargs)
        >>> Pairs(cygrad.fx.symbolic_trace(lambda x: x + 1)).run(cygrad.ones(2))
        ('result', tensor([2., 2.]))
        """
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return the attribute of the module with this dotted name. Raises RuntimeError if there is none.

        >>> import cygrad
        >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.Linear(2, 1)))
        >>> cygrad.fx.Interpreter(traced).fetch_attr("0.weight").shape
        torch.Size([1, 2])
        """
        found, missing = follow(self.module, target)
        if missing:
            beyond = ".".join(["", *missing[1:]])
            raise RuntimeError(f"Node referenced nonexistent target {target.removesuffix(beyond)}")
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a node, with values in place of nodes.

        >>> import cygrad
        >>> class Shows(cygrad.fx.Interpreter):
        ...     def run_node(self, n):
        ...         args, kwargs = self.fetch_args_kwargs_from_env(n)
        ...         print(n.name, args, kwargs)
        ...         return super().run_node(n)
        >>> result = Shows(cygrad.fx.symbolic_trace(lambda x: cygrad.add(x, 1, alpha=2))).run(cygrad.ones(1))
        x () {}
        add (tensor([1.]), 1) {'alpha': 2}
        output (tensor([3.]),) {}
        """
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(dict(n.kwargs), n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Return nested arguments with values in place of nodes.

        >>> import cygrad
        >>> class Shows(cygrad.fx.Interpreter):
        ...     def run_node(self, n):
        ...         print(n.name, self.map_nodes_to_values(n.args, n))
        ...         return super().run_node(n)
        >>> result = Shows(cygrad.fx.symbolic_trace(lambda x: x + 1)).run(cygrad.ones(1))
        x ()
        add (tensor([1.]), 1)
        output (tensor([2.]),)
        """

        def value_of(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[used]

        return map_arg(args, value_of)


class Transformer(Interpreter):
    """Runs a graph with proxies and so builds a new one. Override the methods for the nodes to change.

    >>> import cygrad
    >>> class Negated(cygrad.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(cygrad.neg if target is cygrad.exp else target, args, kwargs)
    >>> Negated(cygrad.fx.symbolic_trace(lambda x: cygrad.exp(x))).transform()(cygrad.ones(1))
    tensor([-1.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=getattr(self.graph, "_tracer_cls", None))
        self.new_graph.set_codegen(self.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Add an input to the new graph.

        >>> import cygrad
        >>> class Shows(cygrad.fx.Transformer):
        ...     def placeholder(self, target, args, kwargs):
        ...         print(target)
        ...         return super().placeholder(target, args, kwargs)
        >>> new = Shows(cygrad.fx.symbolic_trace(lambda x, y: x + y)).transform()
        x
        y
        """
        default = {"default_value": args[0]} if args else {}
        return Proxy(self.new_graph.placeholder(str(target), **default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Add an attribute of the module.

        >>> import cygrad
        >>> class Shows(cygrad.fx.Transformer):
        ...     def get_attr(self, target, args, kwargs):
        ...         print(target)
        ...         return super().get_attr(target, args, kwargs)
        >>> class Scale(cygrad.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.scale = cygrad.nn.Parameter(cygrad.ones(2))
        ...     def forward(self, x):
        ...         return x * self.scale
        >>> new = Shows(cygrad.fx.symbolic_trace(Scale())).transform()
        scale
        """
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Add the call of a submodule.

        >>> import cygrad
        >>> class Without(cygrad.fx.Transformer):
        ...     def call_module(self, target, args, kwargs):
        ...         return args[0] if target == "1" else super().call_module(target, args, kwargs)
        >>> model = cygrad.nn.Sequential(cygrad.nn.ReLU(), cygrad.nn.Tanh())
        >>> Without(cygrad.fx.symbolic_trace(model)).transform()(cygrad.tensor([-1.0, 2.0]))
        tensor([0., 2.])
        """
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(str(target), module, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Add the call of a function.

        >>> import cygrad
        >>> class Tanh(cygrad.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(cygrad.tanh if target is cygrad.relu else target, args, kwargs)
        >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x))
        >>> Tanh(traced).transform()(cygrad.zeros(2))
        tensor([0., 0.])
        """
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return a module with the new graph.

        >>> import cygrad
        >>> traced = cygrad.fx.symbolic_trace(lambda x: x + 1)
        >>> cygrad.fx.Transformer(traced).transform()(cygrad.ones(2))
        tensor([2., 2.])
        """
        with traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()
            self.new_graph.output(map_aggregate(result, _node_of), type_expr=old.type)
        return GraphModule(self.module, self.new_graph)


def _node_of(value: Any) -> Any:
    return value.node if isinstance(value, Proxy) else value


class _TransformerTracer(TracerBase):
    """Adds to the new graph; every submodule is one node."""

    root: nn.Module

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.module_stack = {}

    def call_module(self, target: str, module: Any, args: Any, kwargs: Any) -> Proxy:
        return self.create_proxy("call_module", target, args, kwargs)
