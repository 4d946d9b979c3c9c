"""`make_fx`: runs a function and records the ops of PyTorch's library that run in it as a graph."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad._core.graph.internals import identity_of, own_array
from cygrad.fx._codegen import CodeGen
from cygrad.fx._symbolic_trace import annotations_of
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node
from cygrad.fx.passes.shape_prop import _extract_tensor_metadata
from cygrad.fx.proxy import TracerBase
from cygrad.utils import _pytree as pytree
from cygrad.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

__all__ = [
    "ProxyTorchDispatchMode",
    "PythonKeyTracer",
    "disable_proxy_modes_tracing",
    "dispatch_trace",
    "get_isolated_graphmodule",
    "get_proxy_mode",
    "is_sym_node",
    "make_fx",
    "maybe_disable_fake_tensor_mode",
]

_MODES = ("real", "fake", "symbolic")


class PythonKeyTracer(TracerBase):
    """Holds the graph of a trace, and knows which node stands for which tensor.

    A tensor is known by its memory: `detach`, and the copy of a saved result, are the same value.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import PythonKeyTracer
    >>> tracer, x = PythonKeyTracer(), cygrad.ones(2)
    >>> tracer.graph = cygrad.fx.Graph()
    >>> tracer.track(x, tracer.graph.placeholder("x"))
    >>> y = x.view(2)
    >>> tracer.share(x, y)
    >>> tracer.is_tracked(y), tracer.create_arg(y)
    (True, x)
    """

    def __init__(self, root: Any = None) -> None:
        super().__init__()
        self.root = cygrad.nn.Module() if root is None else root
        self.graph = Graph(tracer_cls=PythonKeyTracer)
        self.record_stack_traces = False
        self._nodes: dict[int, tuple[Any, Node]] = {}  # by identity of the array, which is kept alive
        self._constants: dict[int, tuple[Any, Node]] = {}
        self._names = {id(value): name for name, value in _members(self.root)}

    def track(self, tensor: cygrad.Tensor, node: Node) -> None:
        """Note that a node stands for a tensor."""
        self._nodes[identity_of(tensor)] = own_array(tensor), node

    def share(self, tensor: cygrad.Tensor, other: cygrad.Tensor) -> None:
        """Note that the node of a tensor, if it has one, stands for another one, too."""
        found = self._nodes.get(identity_of(tensor))
        if found is not None:
            self.track(other, found[1])

    def is_tracked(self, tensor: cygrad.Tensor) -> bool:
        """Whether a node stands for a tensor."""
        return identity_of(tensor) in self._nodes

    def create_arg(self, a: Any) -> Any:
        """Return a value as an argument of a node: nodes in place of tensors; a constant of the module if unknown."""
        if isinstance(a, Node):
            return a
        if isinstance(a, cygrad.Tensor):
            found = self._nodes.get(identity_of(a))
            kind = "_param_constant" if isinstance(a, cygrad.nn.Parameter) else "_tensor_constant"
            return self._constant(a, kind) if found is None else found[1]
        if isinstance(a, cygrad.Size):
            return list(a)
        try:
            return super().create_arg(a)
        except NotImplementedError:
            return self._constant(a, "_constant")

    def _constant(self, value: Any, prefix: str) -> Node:
        key = id(value)
        known = self._constants.get(key)
        if known is None:
            name = self._names.get(key)
            if name is None:
                n = 0
                while hasattr(self.root, f"{prefix}{n}"):
                    n += 1
                name = f"{prefix}{n}"
                setattr(self.root, name, value)
            known = self._constants[key] = value, self.create_node("get_attr", name, (), {})
        return known[1]


def _members(root: Any) -> Iterator[tuple[str, Any]]:
    yield from root.named_parameters()
    yield from root.named_buffers()


class ProxyTorchDispatchMode(TorchDispatchMode):
    """In the block, ops are added to the graph of a tracer.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer
    >>> tracer = PythonKeyTracer()
    >>> tracer.graph = cygrad.fx.Graph()
    >>> with ProxyTorchDispatchMode(tracer):
    ...     y = cygrad.ones(2) + 1
    >>> [node.op for node in tracer.graph.nodes]
    ['call_function', 'call_function']
    >>> ProxyTorchDispatchMode.is_infra_mode()
    True
    """

    def __init__(
        self,
        tracer: PythonKeyTracer,
        tracing_mode: str = "real",
        decompositions: dict[Any, Callable[..., Any]] | None = None,
    ) -> None:
        self.tracer, self.tracing_mode = tracer, tracing_mode
        self.decompositions = decompositions or {}

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether this mode serves a tracer, rather than a user: True."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        replacement = self.decompositions.get(func)
        if replacement is not None:
            with self:
                found = replacement(*args, **kwargs)
            if found is not NotImplemented:
                return found
        if func._opname == "lift_fresh" and not self.tracer.is_tracked(args[0]):
            return self._new_constant(func, args[0])
        if func._opname in ("detach", "lift_fresh", "lift"):
            found = func(*args, **kwargs)
            self.tracer.share(args[0], found)
            return found
        if func._opname in ("_local_scalar_dense", "item", "equal"):
            self._refuse_value(func, args)
            return func(*args, **kwargs)
        if not getattr(func, "runs_anew", True):
            raise NotImplementedError(
                f"make_fx: {func} is an op that PyTorch does not have, and a graph cannot call it again\n"
                "  to fix it: write what it does by other ops, or give make_fx a function for it in decomposition_table"
            )
        tracer = self.tracer
        given = tuple(tracer.create_arg(value) for value in args), {k: tracer.create_arg(v) for k, v in kwargs.items()}
        found = func(*args, **kwargs)
        node = tracer.create_node("call_function", func, *given, name=func._opname)
        self._note(found, node)
        return found

    def _new_constant(self, func: Any, tensor: cygrad.Tensor) -> Any:
        """Record a tensor that the function makes of numbers: each call of the graph gets a copy that it may change."""
        kept = self.tracer.create_arg(tensor.clone())
        copied = cygrad.ops.aten.lift_fresh_copy.default
        found = func(tensor)
        self._note(found, self.tracer.create_node("call_function", copied, (kept,), {}, name=copied._opname))
        return found

    def _refuse_value(self, func: Any, args: Any) -> None:
        for value in pytree.tree_leaves(args):
            if isinstance(value, cygrad.Tensor) and self.tracer.is_tracked(value):
                raise RuntimeError(
                    "It appears that you're trying to get value out of a tracing tensor with "
                    f"{func} - erroring out! It's likely that this is caused by data-dependent control flow or similar."
                    "\n  a graph holds for all values of its inputs: keep it a tensor, or choose with torch.where"
                )

    def _note(self, found: Any, node: Node) -> None:
        if isinstance(found, cygrad.Tensor):
            _describe(node, found)
            self.tracer.track(found, node)
        elif isinstance(found, (tuple, list)):
            node.meta["val"] = found
            for i, one in enumerate(found):
                if isinstance(one, cygrad.Tensor):
                    item = self.tracer.create_node("call_function", operator.getitem, (node, i), {})
                    self._note(one, item)


def _describe(node: Node, tensor: cygrad.Tensor) -> None:
    node.meta["val"] = tensor
    node.meta["tensor_meta"] = _extract_tensor_metadata(tensor)


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """Return the innermost running trace of `make_fx`, or None.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
    >>> print(get_proxy_mode())
    None
    >>> seen = []
    >>> traced = make_fx(lambda x: seen.append(get_proxy_mode() is not None) or x * 2)(cygrad.ones(2))
    >>> seen
    [True]
    """
    found = (mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, ProxyTorchDispatchMode))
    return next(found, None)


@contextmanager
def disable_proxy_modes_tracing(enable_current: bool = False) -> Iterator[None]:
    """In the block, ops are not added to the graph of a running trace.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
    >>> def f(x):
    ...     with disable_proxy_modes_tracing():
    ...         scale = cygrad.ones(2).sum()  # a constant of the graph
    ...     return x * scale
    >>> traced = make_fx(f)(cygrad.ones(2))
    >>> len([node for node in traced.graph.nodes if node.op == "call_function"])
    1
    """
    with cygrad.utils._python_dispatch._disable_current_modes():
        yield


@contextmanager
def maybe_disable_fake_tensor_mode() -> Iterator[None]:
    """In PyTorch, a block without fake tensors; here they are tensors of the device "meta", and nothing changes.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import maybe_disable_fake_tensor_mode
    >>> with maybe_disable_fake_tensor_mode():
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """
    yield


def is_sym_node(node: Any) -> bool:
    """Whether a value is a symbolic number of a trace: False, since shapes are numbers here.

    >>> from cygrad.fx.experimental.proxy_tensor import is_sym_node
    >>> is_sym_node(3)
    False
    """
    return False


def dispatch_trace(root: Any, tracer: PythonKeyTracer, mode: ProxyTorchDispatchMode, args: Any) -> GraphModule:
    """Run `root(*args)` in a mode, and return the graph that its tracer then holds, as a module.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer, dispatch_trace
    >>> tracer = PythonKeyTracer()
    >>> module = dispatch_trace(lambda x: x * 2, tracer, ProxyTorchDispatchMode(tracer), (cygrad.ones(2),))
    >>> module(cygrad.ones(2))
    tensor([2., 2.])
    """
    leaves, spec = pytree.tree_flatten(args)
    names = _names_of_inputs(root, args)
    placed = []
    for place, leaf in enumerate(leaves):
        node = tracer.create_node("placeholder", names[place], (), {})
        if isinstance(leaf, cygrad.Tensor):
            leaf = leaf.detach().requires_grad_(leaf.requires_grad) if leaf.is_leaf else leaf
            tracer.track(leaf, node)
            _describe(node, leaf)
        placed.append(leaf)
    with mode:
        found = root(*pytree.tree_unflatten(placed, spec))
    results = pytree.tree_map(tracer.create_arg, found)
    returned = annotations_of(inspect.unwrap(root)).get("return")
    tracer.create_node("output", "output", (results,), {}, type_expr=returned)
    tracer.graph.eliminate_dead_code(_has_effect)
    tracer.graph.lint()
    if len(leaves) != len(args) or any(_is_container(value) for value in args):
        tracer.graph.set_codegen(_Containers(names, spec, len(args)))
    name = type(root).__name__ if isinstance(root, cygrad.nn.Module) else getattr(root, "__name__", "traced")
    module = GraphModule(tracer.root, tracer.graph, "<lambda>" if name == "<lambda>" else name)
    return module


def _is_container(value: Any) -> bool:
    """Whether an argument is a list, a dictionary or another container of values."""
    leaves = pytree.tree_leaves(value)
    return len(leaves) != 1 or leaves[0] is not value


class _Containers(CodeGen):
    """Writes functions that take the arguments as they were given, and unpack them."""

    def __init__(self, names: list[str], spec: Any, n: int) -> None:
        super().__init__()
        self._names, self._spec, self._n = names, spec, n

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        given = [f"arg{i}" for i in range(self._n)]
        head = super().gen_fn_def(["self", *given], maybe_return_annotation, expanded_def=expanded_def)
        inputs = [name for name in free_vars if name != "self"]
        return f"{head}\n    {', '.join(inputs)}, = _flat([{', '.join(given)}])"

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [*super().additional_globals(), ("_flat", self._flat)]

    def _flat(self, args: list[Any]) -> list[Any]:
        leaves, spec = pytree.tree_flatten(tuple(args))
        if spec != self._spec:
            raise ValueError(f"the graph takes arguments of the structure {self._spec}, not {spec}")
        return leaves

    def process_inputs(self, *args: Any) -> Any:
        return self._flat(list(args))


def _has_effect(node: Node) -> bool:
    """Whether a node must stay although nobody uses its result: inputs, the output, and ops in place."""
    if node.op in ("placeholder", "output"):
        return True
    name = getattr(node.target, "_opname", "")
    return (name.endswith("_") and not name.endswith("__")) or "out" in node.kwargs


def _names_of_inputs(root: Any, args: Any) -> list[str]:
    """Return a name for each tensor or number among the arguments: that of its parameter, and a number."""
    function = root.forward if isinstance(root, cygrad.nn.Module) else root
    try:
        parameters = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        parameters = []
    found: list[str] = []
    for place, value in enumerate(args):
        name = parameters[place] if place < len(parameters) else f"arg{place}"
        found.extend(f"{name}_{i + 1}" for i in range(len(pytree.tree_leaves(value))))
    return found


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., GraphModule]:
    """Return a function that runs `f` on its arguments and returns the ops that have run, as a GraphModule.

    The graph has the ops of forward and of gradients that `f` computes. It holds for tensors of the same shapes and
    dtypes: what `f` does because of a shape or a number is fixed. Tensors that are no arguments become attributes.
    `tracing_mode`: "real" computes with the arguments, "fake" and "symbolic" with tensors of the device "meta". Shapes
    are numbers in all of them. `decomposition_table` has functions to call in place of ops.

    Raises RuntimeError if `f` reads the value of a tensor that depends on an argument.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import make_fx
    >>> def gradient(x):
    ...     return cygrad.autograd.grad(cygrad.sin(x).sum(), x)[0]
    >>> graph = make_fx(gradient)(cygrad.ones(2, requires_grad=True))
    >>> print(graph.code.strip())  # doctest: +ELLIPSIS
    def forward(self, x_1):
        sin = torch.ops.aten.sin.default(x_1)
        sum_1 = torch.ops.aten.sum.default(sin);  sin = None
        ones_like = torch.ops.aten.ones_like.default(sum_1, ...);  sum_1 = None
        expand = torch.ops.aten.expand.default(ones_like, [2]);  ones_like = None
        cos = torch.ops.aten.cos.default(x_1);  x_1 = None
        mul = torch.ops.aten.mul.Tensor(expand, cos);  expand = cos = None
        return mul
    """
    if tracing_mode not in _MODES:
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")
    if pre_dispatch:
        raise RuntimeError("make_fx(pre_dispatch=True): cygrad shows ops below autograd only")

    def wrapped(*args: Any) -> GraphModule:
        if tracing_mode != "real":
            args = pytree.tree_map(_without_memory, args)
        tracer = PythonKeyTracer(f if isinstance(f, cygrad.nn.Module) else None)
        mode = ProxyTorchDispatchMode(tracer, tracing_mode, decomposition_table)
        return dispatch_trace(f, tracer, mode, args)

    return wrapped


def _without_memory(value: Any) -> Any:
    if not isinstance(value, cygrad.Tensor):
        return value
    return value.detach().to("meta").requires_grad_(value.requires_grad)


def get_isolated_graphmodule(
    func: Callable[..., Any], args: Any, kwargs: Any, tracing_mode: str = "real", decomposition_table: Any = None
) -> GraphModule:
    """Return the graph of `func(*args, **kwargs)`, whose ops a running trace does not see.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import get_isolated_graphmodule
    >>> module = get_isolated_graphmodule(lambda x: x * 2, (cygrad.ones(2),), {})
    >>> module(cygrad.ones(2))
    tensor([2., 2.])
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def flat(*values: Any) -> Any:
        given, named = pytree.tree_unflatten(list(values), spec)
        return func(*given, **named)

    with disable_proxy_modes_tracing():
        return make_fx(flat, decomposition_table, tracing_mode)(*leaves)
