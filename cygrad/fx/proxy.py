"""`Proxy`: stands for a tensor while a function is traced; what is done with it is recorded as nodes."""

import copy
import dataclasses
import dis
import enum
import inspect
import operator
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import cygrad
from cygrad.fx import traceback as notes
from cygrad.fx._codegen import magic_methods, reflectable_magic_methods
from cygrad.fx._normalization import as_recorded
from cygrad.fx.graph import Graph
from cygrad.fx.node import Argument, Node, Target, map_aggregate
from cygrad.fx.operator_schemas import check_for_mutable_operation
from cygrad.ops import OpOverload
from cygrad.overrides import _begin_asking as begin_asking

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """Raised for what cannot be traced, such as control flow that depends on values.

    >>> import cygrad
    >>> from cygrad.fx.proxy import TraceError
    >>> try:
    ...     cygrad.fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    ... except TraceError:
    ...     print("the branch depends on a value")
    the branch depends on a value
    """


class Scope:
    """The module that is being traced: its dotted name and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class TracerBase:
    """Makes nodes and proxies. `Tracer` traces functions; `GraphAppendingTracer` adds to a graph that exists.

    >>> import cygrad
    >>> from cygrad.fx.proxy import GraphAppendingTracer, TraceError, TracerBase
    >>> graph = cygrad.fx.Graph()
    >>> tracer = GraphAppendingTracer(graph)
    >>> isinstance(tracer, TracerBase)
    True
    >>> x = tracer.create_proxy("placeholder", "x", (), {})
    >>> node = tracer.create_node("call_function", cygrad.relu, (x.node,), {})
    >>> tracer.proxy(node), tracer.create_arg([x, 2])
    (Proxy(relu), [x, 2])
    >>> for refused in (tracer.to_bool, tracer.iter):
    ...     try:
    ...         refused(x)
    ...     except TraceError as error:
    ...         print(type(error).__name__)
    TraceError
    TraceError
    >>> tracer.keys(x)
    Proxy(keys)
    """

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope = Scope("", None)
    module_stack: dict[str, Any] = {}  # each tracer sets its own

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Add a node to the graph. Tracers that want to change or refuse nodes override this."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if notes.has_preserved_node_meta():
            current = notes.get_current_meta()
            node.meta.update({key: copy.copy(current[key]) for key in _PRESERVED if key in current})
        elif self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def proxy(self, node: Node) -> "Proxy":
        """Return a proxy for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any | None = None,
        proxy_factory_fn: Callable[[Node], "Proxy"] | None = None,
    ) -> "Proxy":
        """Add a node whose arguments may contain proxies, and return its proxy."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, tuple(args_), dict(kwargs_), name, type_expr)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = "".join(traceback.format_list(_user_frames()))
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """Return a value as an argument of a node: nodes in place of proxies, in containers as well.

        Raises NotImplementedError for values that generated code could not write down.
        """
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*(self.create_arg(item) for item in a))
        if type(a) is cygrad.Size:
            return tuple(a)
        if isinstance(a, (tuple, list)):
            return type(a)(self.create_arg(item) for item in a)
        if isinstance(a, dict):
            for key in a:
                map_aggregate(key, _refuse_proxy)
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        if isinstance(a, _PLAIN) or a is None or a is ... or isinstance(a, type):
            return a
        if dataclasses.is_dataclass(a):
            named = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), named)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: "Proxy") -> bool:
        """Called when a proxy is used as a condition; raises TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: "Proxy") -> Iterator[Any]:
        """Called when a proxy is iterated over, except to unpack it into variables; raises TraceError."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: "Proxy") -> Any:
        """Called for `proxy.keys()`, which `**proxy` needs."""
        return Attribute(obj, "keys")()


_PLAIN = (
    str,
    int,
    float,
    bool,
    complex,
    cygrad.dtype,
    cygrad.Tensor,
    cygrad.device,
    cygrad.memory_format,
    cygrad.layout,
    OpOverload,
    enum.Enum,
)
# The notes of a node that nodes made of it receive
_PRESERVED = """
    stack_trace nn_module_stack torch_fn source_fn_stack original_aten recompute ac_graph_id has_backward_hook from_node
    quantization_tag _numeric_debug_handle custom partitioner_tag
""".split()


def _refuse_proxy(value: Any) -> Any:
    if isinstance(value, (Proxy, Node)):
        node = getattr(value, "node", value)
        raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")
    return value


def _user_frames() -> list[traceback.FrameSummary]:
    """Return the frames of the program, outermost first: those outside the package."""
    inside = __file__.rpartition("cygrad")[0] + "cygrad"
    return [frame for frame in traceback.extract_stack() if not frame.filename.startswith(inside)]


class GraphAppendingTracer(TracerBase):
    """Adds the operations on its proxies to a graph that exists.

    >>> import cygrad
    >>> from cygrad.fx.proxy import GraphAppendingTracer
    >>> graph = cygrad.fx.Graph()
    >>> x = cygrad.fx.Proxy(graph.placeholder("x"), GraphAppendingTracer(graph))
    >>> y = x + 1
    >>> [node.name for node in graph.nodes]
    ['x', 'add']
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = {}


class Proxy:
    """Stands for the value of a node. Operators, methods and functions of the package make nodes out of it.

    What needs a value fails with TraceError: conditions, loops, `len`, conversions to numbers.

    >>> import cygrad
    >>> graph = cygrad.fx.Graph()
    >>> x = cygrad.fx.Proxy(graph.placeholder("x"))
    >>> y = cygrad.relu(x) + x.size(0)
    >>> [node.name for node in graph.nodes], x.keys()
    (['x', 'relu', 'size', 'add'], Proxy(keys))
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        begin_asking(cls)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in ("node", "tracer") or (k.startswith("__") and k.endswith("__")):
            raise AttributeError(k)  # copying and pickling ask for special methods
        return Attribute(self, k)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Proxy":
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        for name, value in self.__dict__.items():
            copied.__dict__[name] = copy.deepcopy(value, memo)
        return copied

    def __call__(self, *args: Any, **kwargs: Any) -> "Proxy":
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        if caller is not None:
            for instruction in dis.get_instructions(caller.f_code):
                if instruction.offset == caller.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                    return (self[i] for i in range(instruction.argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> "Proxy":
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Return `keys()` of the value."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tracers: dict[Any, None] = {}

        def note(value: Any) -> Any:
            if isinstance(value, Proxy):
                tracers.setdefault(value.tracer)
            return value

        map_aggregate((args, kwargs or {}), note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        (tracer,) = tracers
        return tracer.create_proxy(*as_recorded(orig_method, args, kwargs or {}))


class Attribute(Proxy):
    """An attribute of a proxy. It becomes a node when it is used, unless it is called as a method.

    >>> import cygrad
    >>> graph = cygrad.fx.Graph()
    >>> x = cygrad.fx.Proxy(graph.placeholder("x"))
    >>> isinstance(x.shape, cygrad.fx.Attribute), x.shape.node.name
    (True, 'getattr_1')
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr = root, attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy for a parameter, which answers questions about shapes with those of the parameter.

    >>> import cygrad
    >>> class Scale(cygrad.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = cygrad.nn.Parameter(cygrad.ones(2, 3))
    ...     def forward(self, x):
    ...         scale = self.scale
    ...         print(type(scale).__name__, scale.size(), scale.dim(), scale.numel(), scale.nelement())
    ...         return x * scale
    >>> graph = cygrad.fx.Tracer(param_shapes_constant=True).trace(Scale())
    ParameterProxy torch.Size([2, 3]) 2 6 6
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self.param.ndim

    def size(self) -> Any:
        """Return its shape."""
        return self.param.size()

    def dim(self) -> int:
        """Return the number of its dimensions."""
        return self.param.dim()

    def numel(self) -> int:
        """Return the number of its elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """Return the number of its elements."""
        return self.param.nelement()


def _define(name: str, reflected: bool) -> None:
    """Give Proxy the operator that is called `name` in the module `operator`."""
    target = getattr(operator, name)

    def forward(self: Proxy, *rest: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (self, *rest), {})

    def backward(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    plain = name.strip("_")
    for method, special in ((forward, f"__{plain}__"), (backward, f"__r{plain}__")):
        if method is forward or reflected:
            method.__name__ = special
            setattr(Proxy, special, method)


for _name in magic_methods:
    if _name != "div":
        _define(_name, _name in reflectable_magic_methods and _name != "getitem")
begin_asking(Proxy)
