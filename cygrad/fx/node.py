"""`Node`: one step of a graph, with the nodes that it uses and those that use it."""

import builtins
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

import cygrad
from cygrad.fx.immutable_collections import immutable_dict, immutable_list
from cygrad.ops import OpOverload, OpOverloadPacket

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Target = Union[Callable[..., Any], str]  # noqa: UP007 - a name that programs import
Argument = Any
BaseArgumentTypes = Union[str, int, float, bool, complex, None]  # noqa: UP007

_legal_ops = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_side_effectful_functions: set[Callable[..., Any]] = {cygrad.no_grad, cygrad.enable_grad, cygrad.set_grad_enabled}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Keep nodes that call `fn` when dead code is eliminated, even if nobody uses their results. Returns `fn`.

    >>> import cygrad
    >>> @cygrad.fx.has_side_effect
    ... def log(x):
    ...     print(x)
    >>> graph = cygrad.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> call = graph.call_function(log, (x,))
    >>> out = graph.output(x)
    >>> graph.eliminate_dead_code(), call.is_impure()
    (False, True)
    """
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Return a copy of nested tuples, lists, dictionaries and slices with `fn` applied to each item in them.

    Lists and dictionaries become immutable.

    >>> from cygrad.fx.node import map_aggregate
    >>> map_aggregate({"x": [1, (2, slice(3, None))]}, lambda value: value and value * 10)
    {'x': [10, (20, slice(30, None, None))]}
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[["Node"], Argument]) -> Argument:
    """Same as `map_aggregate`, but apply `fn` only to nodes.

    >>> import cygrad
    >>> graph = cygrad.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> cygrad.fx.map_arg([x, {"a": x, "b": 2}], lambda node: node.name)
    ['x', {'a': 'x', 'b': 2}]
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda item: fn(item) if isinstance(item, Node) else item)


def _find_module_of_method(orig_method: Callable[..., Any]) -> str:
    """Return the name of the module that has a function that does not tell its own."""
    name = orig_method.__name__
    for guess in (cygrad, cygrad.nn.functional, cygrad.linalg, cygrad.special, cygrad.fft):
        if getattr(guess, name, None) is orig_method:
            return guess.__name__
    raise RuntimeError(f"cannot find module for {orig_method}")


def _type_repr(obj: object) -> str:
    """Return the text of a type in generated code: built-in types without their module."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        return (
            obj.__qualname__ if obj.__module__ == "builtins" else f"{_public_module(obj.__module__)}.{obj.__qualname__}"
        )
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


def _public_module(name: str) -> str:
    """Return a module's name with `torch` in place of the package's own name, as generated code refers to it."""
    package, dot, rest = name.partition(".")
    return f"torch{dot}{rest}" if package == "cygrad" else name


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """Return the dotted name by which generated code refers to a function.

    >>> import cygrad
    >>> from cygrad.fx.node import _get_qualified_name
    >>> _get_qualified_name(cygrad.nn.functional.relu), _get_qualified_name(len)
    ('torch.nn.functional.relu', 'len')
    """
    name = getattr(func, "__name__", None)
    if name is not None and getattr(builtins, name, None) is func:
        return name
    if isinstance(func, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{func}"
    public = cygrad.overrides.resolve_name(func)
    if public is not None:
        return public
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{_public_module(func.__objclass__.__module__)}.{func.__objclass__.__name__}.{name}"
    if name is not None and getattr(cygrad, name, None) is func:
        return f"torch.{name}"
    module = getattr(func, "__module__", None) or _find_module_of_method(func)
    return f"{_public_module(module)}.{getattr(func, '__qualname__', name)}"


def _format_arg(arg: object, max_list_len: float = float("inf")) -> str:
    """Return the text of an argument in a printed graph: nodes as `%name`, other values without quotes."""
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        named = (f"{name}={_format_arg(value)}" for name, value in zip(arg._fields, arg, strict=True))
        return f"{type(arg).__name__}({', '.join(named)})"
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(item) for i, item in enumerate(arg) if i < max_list_len]
        more = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{', '.join(shown)}{more}]"
        return f"({', '.join(shown)}{more}{',' * (len(arg) == 1)})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One step of a graph. `op` is what it does with `target`, `args` and `kwargs`:

    - 'placeholder': an input; `target` is its name, `args` its default value, if it has one
    - 'get_attr': a parameter, buffer or other attribute of the module; `target` is its dotted name
    - 'call_function': calls the function `target`
    - 'call_method': calls the method named `target` of `args[0]`
    - 'call_module': calls the submodule with the dotted name `target`
    - 'output': returns `args[0]`

    `users` are the nodes that use the result, as the keys of a dictionary; `meta` is for what passes want to note.

    >>> import cygrad
    >>> graph = cygrad.fx.Graph()
    >>> x, y = graph.placeholder("x"), graph.placeholder("y")
    >>> total = graph.call_function(cygrad.add, (x, y))
    >>> total.update_arg(1, 2.0), total.insert_arg(2, 3.0), total.update_kwarg("alpha", 2)
    (None, None, None)
    >>> total.args, total.kwargs, list(x.users)
    ((x, 2.0, 3.0), {'alpha': 2}, [add])
    >>> total.replace_input_with(x, y)
    >>> total.replace_all_uses_with(x)
    []
    >>> x.append(y)
    >>> y.prepend(x)
    >>> total.is_impure(), total.format_node()
    (False, '%add : [num_users=0] = call_function[target=torch.add](args = (%y, 2.0, 3.0), kwargs = {alpha: 2})')
    """

    def __init__(
        self,
        graph: "cygrad.fx.Graph",
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a Callable is "
                "expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: Mapping[str, Argument] = immutable_dict()
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._set_arguments(args, kwargs)

    # -- arguments --

    def _set_arguments(self, args: Any, kwargs: Any) -> None:
        """Take over new arguments; the nodes in them learn of their new user, and those in the old ones lose it."""
        self._args = map_aggregate(tuple(args), lambda item: item)
        self._kwargs = map_aggregate(dict(kwargs), lambda item: item)
        found: dict[Node, None] = {}
        map_arg((self._args, self._kwargs), lambda node: found.setdefault(node))
        for node in self._input_nodes:
            if node not in found:
                node.users.pop(self, None)
        for node in found:
            node.users.setdefault(self)
        self._input_nodes = found

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments. Assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, value: Iterable[Argument]) -> None:
        self._set_arguments(value, self._kwargs)

    @property
    def kwargs(self) -> Mapping[str, Argument]:
        """The keyword arguments. Assign a new dictionary to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: Mapping[str, Argument]) -> None:
        self._set_arguments(self._args, value)

    @property
    def all_input_nodes(self) -> list["Node"]:
        """The nodes among the arguments, each once, in order of their first use."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace positional argument `idx`."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before the one at `idx`."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set keyword argument `key`."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Use `new_input` wherever this node uses `old_input`."""
        self._replace_inputs({old_input: new_input})

    def _replace_inputs(self, new: dict["Node", "Node"]) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            for old, other in new.items():
                hook(old=old, new=other.name, user=self)
        args, kwargs = map_arg((self._args, dict(self._kwargs)), lambda node: new.get(node, node))
        self._set_arguments(args, kwargs)

    def replace_all_uses_with(
        self,
        replace_with: "Node",
        delete_user_cb: Callable[["Node"], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list["Node"]:
        """Let all users of this node use `replace_with` instead, and return them.

        `delete_user_cb(user)` tells which users to change. `propagate_meta` moves the notes of this node to the other.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already "
                    "has .meta keys"
                )
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in users:
            user._replace_inputs({self: replace_with})
        return users

    # -- place in the graph --

    @property
    def next(self) -> "Node":
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> "Node":
        """The node before this one."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: "Node") -> None:
        """Move node `x` of the same graph to the place before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: "Node") -> None:
        """Move node `x` of the same graph to the place behind this node."""
        if self is not x:
            self._next.prepend(x)

    def _places(self) -> dict["Node", int]:
        return {node: i for i, node in enumerate(self.graph.nodes)}

    def __lt__(self, other: "Node") -> bool:
        """Whether this node comes before another of its graph."""
        places = self._places()
        return places[self] < places[other]

    def __gt__(self, other: "Node") -> bool:
        return other < self

    def __le__(self, other: "Node") -> bool:
        return self is other or self < other

    def __ge__(self, other: "Node") -> bool:
        return self is other or other < self

    # -- what it does --

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that the node was traced from, if the tracer recorded them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must stay even if nobody uses its result.

        This holds of inputs and outputs, of modules that may change themselves, of functions that write into a tensor
        or were named by `has_side_effect`, and with `impure_random`, of functions that draw random numbers.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            if isinstance(self.target, OpOverload):  # whose name ends with that of the overload
                writes = self.target._is_mutable
            else:
                writes = "out" in self._kwargs or (name.endswith("_") and not name.startswith("_"))
            draws = impure_random and getattr(self.target, "_nondeterministic_seeded", False)
            return self.target in _side_effectful_functions or writes or draws or name in _ASSERTIONS
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")  # type: ignore[union-attr]
        if self.op == "call_module" and self.graph.owning_module is not None:
            module = self.graph.owning_module.get_submodule(self.target)
            return getattr(module, "_is_impure", False)
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """Return the arguments, with all defaults filled in, as the pair `(args, kwargs)`; None if that is unknown.

        >>> import cygrad
        >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.softmax(x, 0))
        >>> node = traced.graph.find_nodes(op="call_function", target=cygrad.softmax)[0]
        >>> node.normalized_arguments(traced, normalize_to_only_use_kwargs=True).kwargs["dim"]
        0
        """
        from cygrad.fx.operator_schemas import normalize_function, normalize_module

        args, kwargs = self._args, dict(self._kwargs)
        target: Any = self.target
        if self.op == "call_function":
            return normalize_function(target, args, kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, target, args, kwargs, normalize_to_only_use_kwargs)
        return None

    # -- texts --

    def _pretty_print_target(self, target: object) -> str:
        if isinstance(target, str):
            return target
        module = getattr(target, "__module__", None)
        if module == "_operator" or (module == "builtins" and getattr(operator, self._name_of(target), None) is target):
            return f"operator.{self._name_of(target)}"
        if isinstance(target, types.BuiltinFunctionType) and module == "builtins":
            return f"builtins.{self._name_of(target)}"
        return _get_qualified_name(target)  # type: ignore[arg-type]

    @staticmethod
    def _name_of(target: object) -> str:
        return getattr(target, "__name__", "")

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Return the node as text, like a line of a printed graph.

        If lists are given, the names of placeholders are added to the first, and the type of the result to the second.
        """
        kind = f"{_type_repr(self.type)} " if self.type else ""
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"{self.name} : {kind}".rstrip(" :") if kind else self.name)
            default = f"(default={self._args[0]})" if self._args else ""
            return f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            target = self._pretty_print_target(self.target)
            return f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "output":
            if self.type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self._args[0]}"
        args = f"args = {_format_arg(self._args)}, kwargs = {_format_arg(self._kwargs)}"
        target = self._pretty_print_target(self.target)
        return f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={target}]({args})"

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)

    def _rename(self, candidate: str) -> None:
        """Give the node another name, or one like it if that is in use."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)


_ASSERTIONS = ("_assert", "_assert_async", "_assert_is_none")
