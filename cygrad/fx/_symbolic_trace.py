"""`Tracer` and `symbolic_trace`: record what a function or a module does with proxies in place of tensors."""

import builtins
import contextlib
import copy
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import cygrad
from cygrad import nn
from cygrad.fx._lazy_graph_module import _make_graph_module
from cygrad.fx._pytree import _PyTreeCodeGen, _PyTreeInfo
from cygrad.fx.graph import Graph
from cygrad.fx.node import Argument, map_aggregate
from cygrad.fx.proxy import ParameterProxy, Proxy, Scope, TracerBase
from cygrad.utils import _pytree as pytree
from cygrad.utils.warning import warn

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]

# Functions that `wrap` named: {(id of the module's globals, name): the globals}; methods: (class, name)
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_wrapped_functions: set[int] = set()  # ids of the functions that are wrapped, once they are known
_is_tracing = False
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_proxyable_classes: dict[type, None] = {}
_MISSING: Any = object()


class PHBase:
    """The value of an argument that stays an input although `concrete_args` mentions it."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """Stays an input, like `PH`; its node gets the attributes that it has, such as `ph_key`."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _transfer_attrs(source: PHBase, target: Any) -> None:
    """Give a node the attributes of a placeholder value that it does not have itself."""
    for name, value in vars(source).items():
        if not hasattr(target, name):
            setattr(target, name, value)


def is_fx_tracing() -> bool:
    """Whether a `Tracer` is tracing."""
    return _is_tracing


is_fx_symbolic_tracing = is_fx_tracing


def _assert_is_none(value: Any, msg: str) -> None:
    """Check an argument that was None when the function was traced. Raises AssertionError with the text `msg`."""
    if value is not None:
        raise AssertionError(msg)


def is_wrapped(function: Any) -> bool:
    """Whether `wrap` was told of a function."""
    return id(function) in _wrapped_functions or any(
        space.get(name) is function for (_, name), space in _wrapped_fns_to_patch.items()
    )


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Make calls of a function single nodes instead of tracing through it. Call this at the top level of a module.

    `fn_or_name` is the name of a function that the module uses, or a function of the module; as a decorator, too.
    Raises RuntimeError for other arguments, NotImplementedError elsewhere than at the top level.

    >>> import cygrad
    >>> from math import floor
    >>> cygrad.fx.wrap("floor")
    'floor'
    >>> print(cygrad.fx.symbolic_trace(lambda x: floor(x.sum())).code.strip().splitlines()[-1].strip())
    return floor
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    if callable(fn_or_name):
        if isinstance(fn_or_name, str):
            raise AssertionError("a name cannot be called")
        name = fn_or_name.__name__
        _wrapped_functions.add(id(fn_or_name))
    else:
        name = fn_or_name
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


class ProxyableClassMeta(type):
    """Metaclass of classes whose objects may be made while tracing: making one from proxies becomes a node.

    >>> import cygrad
    >>> class Pair(metaclass=cygrad.fx.ProxyableClassMeta):
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> def f(x, y):
    ...     return Pair(x, y)
    >>> [node.op for node in cygrad.fx.symbolic_trace(f).graph.nodes]
    ['placeholder', 'placeholder', 'call_function', 'output']
    """

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes[cls] = None
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)  # type: ignore[call-overload]
        found = _find_proxy((args, kwargs))
        if found is not None:
            return found.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
        return instance


def _find_proxy(values: Any) -> Proxy | None:
    """Return the first proxy in nested containers, or None."""
    found: list[Proxy] = []
    map_aggregate(values, lambda value: found.append(value) if isinstance(value, Proxy) else value)
    return found[0] if found else None


def _recorded_if_proxy(original: Callable[..., Any], kind: str, target: Any) -> Callable[..., Any]:
    """Return a form of a function that becomes a node if it is called with a proxy."""

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy((args, kwargs))
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy(kind, target, args, kwargs)

    return wrapped


class _Patcher:
    """Replaces attributes and globals for the time of a trace."""

    def __init__(self) -> None:
        self._undo = contextlib.ExitStack()

    def patch(self, space: Any, name: str, value: Any) -> None:
        """Set an attribute of a class or module, or an item of a dictionary of globals."""
        is_dict = isinstance(space, dict)
        before = (space if is_dict else vars(space)).get(name, _MISSING)
        put, remove = (dict.__setitem__, dict.__delitem__) if is_dict else (setattr, delattr)
        put(space, name, value)
        if before is _MISSING:
            self._undo.callback(remove, space, name)
        else:
            self._undo.callback(put, space, name, before)

    def __enter__(self) -> "_Patcher":
        return self

    def __exit__(self, *error: Any) -> None:
        self._undo.close()


class Tracer(TracerBase):
    """Traces functions and modules into graphs. Override its methods to change what becomes a node.

    Calls of the functions in the modules `autowrap_modules`, and of `autowrap_functions`, become nodes if they have a
    proxy among their arguments. With `param_shapes_constant`, questions about the shapes of parameters are answered
    while tracing.

    >>> import cygrad
    >>> class Whole(cygrad.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> print(Whole().trace(cygrad.nn.Sequential(cygrad.nn.Tanh())))
    graph():
        %input_1 : [num_users=1] = placeholder[target=input]
        %tanh : [num_users=1] = call_function[target=torch.tanh](args = (%input_1,), kwargs = {})
        return tanh
    >>> tracer = cygrad.fx.Tracer()
    >>> graph = tracer.trace(cygrad.nn.Sequential(cygrad.nn.Linear(2, 1)))
    >>> tracer.path_of_module(tracer.root[0]), tracer.get_fresh_qualname("_tensor_constant")
    ('0', '_tensor_constant0')
    >>> tracer.create_arg([1, (2.0, None)])
    [1, (2.0, None)]
    """

    root: Any
    graph: Graph

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(function) for function in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: dict[str, Any] = {}
        self.tensor_attrs: dict[int, str] = {}
        self._attribute_counts: dict[str, int] = {}

    # -- what to override --

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a call of this submodule becomes one node; by default, if it is one of the package's own layers."""
        is_own = m.__module__.startswith(("cygrad.nn", "cygrad.ao.nn", "torch.nn", "torch.ao.nn"))
        return is_own and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """Return the dotted name of a submodule. Raises NameError if the traced module does not contain it."""
        if self.submodule_paths is not None:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called for each call of a submodule: return a node's proxy, or what `forward(*args, **kwargs)` returns.

        >>> import cygrad
        >>> class Names(cygrad.fx.Tracer):
        ...     def call_module(self, m, forward, args, kwargs):
        ...         print(self.path_of_module(m))
        ...         return super().call_module(m, forward, args, kwargs)
        >>> graph = Names().trace(cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.ReLU()))
        0
        1
        """
        path = self.path_of_module(m)
        outer = self.scope
        self.scope = Scope(path, type(m))
        count = sum(key.partition("@")[0] == path for key in self.module_stack)
        key = f"{path}@{count}" if count else path
        self.module_stack[key] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            del self.module_stack[key]
            self.scope = outer

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Called when an attribute of a module is read: return the value, or a proxy for a parameter.

        >>> import cygrad
        >>> class Names(cygrad.fx.Tracer):
        ...     def getattr(self, attr, attr_val, parameter_proxy_cache):
        ...         print(attr, type(attr_val).__name__)
        ...         return super().getattr(attr, attr_val, parameter_proxy_cache)
        >>> class Scale(cygrad.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.scale = cygrad.nn.Parameter(cygrad.ones(1))
        ...     def forward(self, x):
        ...         return x * self.scale
        >>> graph = Names().trace(Scale())
        scale Parameter
        """
        if isinstance(attr_val, nn.Parameter):
            return self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, cygrad.Tensor):
            return self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _proxy_of(self, value: Any, members: Any, known: dict[str, Proxy]) -> Any:
        name = next((name for name, member in members if member is value), None)
        if name is None:
            return value
        if name not in known:
            how = None
            if self.param_shapes_constant:

                def how(node: Any) -> Proxy:
                    return ParameterProxy(self, node, name, value)

            known[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=how)
        return known[name]

    def create_arg(self, a: Any) -> Argument:
        """Return a value as an argument of a node. Parameters, buffers and other tensors become attributes."""
        if isinstance(a, nn.Parameter):
            name = next((name for name, p in self.root.named_parameters() if p is a), None)
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, cygrad.Tensor):
            name = next((name for name, buffer in self.root.named_buffers() if buffer is a), None)
            return self.create_node("get_attr", name or self._constant("_tensor_constant", a), (), {})
        if isinstance(a, nn.Module):
            name = next((name for name, module in self.root.named_modules() if module is a), None)
            if name is not None:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(item) for item in a), {})
        if type(a) in _proxyable_classes:  # made elsewhere
            return self.create_node("get_attr", self._constant(f"_{type(a).__name__}_constant_", a), (), {})
        return super().create_arg(a)

    def _constant(self, prefix: str, value: Any) -> str:
        """Return the name of the attribute of the root that holds a value that the function made itself."""
        name = self.tensor_attrs.get(id(value))
        if name is None:
            name = self.get_fresh_qualname(prefix)
            self.tensor_attrs[id(value)] = name
            setattr(self.root, name, value)
        return name

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name that begins with `prefix` and that the root has no attribute of."""
        number = self._attribute_counts.get(prefix, 0)
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._attribute_counts[prefix] = number
        return f"{prefix}{number}"

    # -- the arguments of the traced function --

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Return the function to call, and its arguments: the root if it is a module, then a proxy for each input.

        >>> import cygrad
        >>> class Names(cygrad.fx.Tracer):
        ...     def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        ...         fn, args = super().create_args_for_root(root_fn, is_module, concrete_args)
        ...         print(args)
        ...         return fn, args
        >>> graph = Names().trace(lambda x, y: x + y)
        [Proxy(x), Proxy(y)]
        """
        function = inspect.unwrap(root_fn)
        code = function.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:total])
        parameters = inspect.signature(function).parameters
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
            names.pop(0)
        if isinstance(concrete_args, tuple) and concrete_args and total == is_module and code.co_flags & _VARIADIC:
            return root_fn, args + [self._numbered_input(i, value) for i, value in enumerate(concrete_args)]
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        for name in names:
            args.append(self._proxy_placeholder(name, concrete_args, parameters, function))
        n_positional = len(args) - code.co_kwonlyargcount
        keywords = names[len(names) - code.co_kwonlyargcount :] if code.co_kwonlyargcount else []
        values = dict(zip(keywords, args[n_positional:], strict=True))
        variadic = []
        place = total
        if code.co_flags & inspect.CO_VARARGS:
            variadic.append(self._proxy_placeholder(f"*{code.co_varnames[place]}", None, parameters, function))
            place += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            variadic.append(self._proxy_placeholder(f"**{code.co_varnames[place]}", None, parameters, function))
        if values or variadic:
            root_fn = _with_values(function, values, bool(code.co_flags & inspect.CO_VARARGS), n_positional, variadic)
            return root_fn, args[:n_positional]
        given = args[is_module:]
        if all(map(pytree.tree_is_leaf, given)):
            return root_fn, args
        return self._taken_apart(root_fn, args[: len(args) - len(given)], given, names)

    def _taken_apart(self, function: Any, root: list[Any], given: list[Any], names: list[str]) -> tuple[Any, list[Any]]:
        """Return a function of the leaves of nested arguments, and these leaves."""
        leaves, in_spec = pytree.tree_flatten(given)

        def called(*values: Any) -> Any:
            inputs = pytree.tree_unflatten(list(values[len(root) :]), in_spec)
            results, out_spec = pytree.tree_flatten(function(*root, *inputs))
            self.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, in_spec, out_spec)))
            return results

        return called, [*root, *leaves]

    def _numbered_input(self, number: int, value: Any) -> Proxy:
        """Return the input for an argument of a function that takes any number of them."""
        held = self.create_proxy("placeholder", f"input_{number}", (), {})
        if isinstance(value, PHBase):
            _transfer_attrs(value, held.node)
        return held

    def _proxy_placeholder(
        self, name: str, concrete_args: dict[str, Any] | None, parameters: Any, function: Any
    ) -> Any:
        plain = name.lstrip("*")
        default = parameters[plain].default if plain in parameters else inspect.Parameter.empty
        args = () if name.startswith("*") or default is inspect.Parameter.empty else (default,)
        if concrete_args is None or name not in concrete_args:
            kind = annotations_of(function).get(plain)
            return self.create_proxy("placeholder", name, args, {}, type_expr=kind)
        count = itertools.count(1)

        def held(value: Any) -> Any:
            return self._specialized(name, value, self.create_proxy("placeholder", f"{name}_{next(count)}", args, {}))

        return pytree.tree_map(held, concrete_args[name])

    def _specialized(self, name: str, value: Any, held: Proxy) -> Any:
        """Return what an argument is in the function: a fixed value, which the graph checks, or an input."""
        if isinstance(value, PHBase):
            _transfer_attrs(value, held.node)
            return held
        text = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (held, text), {})
        elif isinstance(value, (bool, int, float, str, complex, cygrad.dtype, cygrad.device)):
            getattr(cygrad, "_assert")(held == value, text)  # noqa: B009 - the stub does not show it
        else:
            warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to "
                "the user to make sure that your inputs match the inputs you specialized the function with."
            )
        return value

    # -- tracing --

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Return the graph of a module or a function.

        `concrete_args` are values for arguments, by name, that the graph is specialized to: they may decide control
        flow. A module's parameters and submodules become nodes with their names.
        """
        global _is_tracing
        if isinstance(root, nn.Module):
            self.root, function = root, type(root).forward
            if self.traced_func_name != "forward":
                if not hasattr(type(root), self.traced_func_name):
                    raise AssertionError(
                        f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                    )
                function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = nn.Module(), root
            self.submodule_paths = None
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {id(value): name for name, value in _plain_tensors(self.root)}
        if not inspect.isroutine(inspect.unwrap(function)):
            raise AssertionError(f"Expected function, got {type(function)}")
        code = inspect.unwrap(function).__code__
        self.graph._origin = f" from {code.co_filename}:{code.co_firstlineno} in {code.co_name}"
        called, args = self.create_args_for_root(function, isinstance(root, nn.Module), concrete_args)
        outer, _is_tracing = _is_tracing, True
        try:
            with self._patched(function):
                result = called(*args)
        finally:
            _is_tracing = outer
        returned = annotations_of(inspect.unwrap(function)).get("return")
        self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=returned)
        self.submodule_paths = None
        return self.graph

    @contextlib.contextmanager
    def _patched(self, function: Any) -> Iterator[None]:
        """In the block, modules and wrapped functions ask this tracer."""
        plain_call, plain_getattr = nn.Module.__call__, nn.Module.__getattr__
        known: dict[str, Proxy] = {}
        tracer = self

        @functools.wraps(plain_getattr)
        def read(module: Any, attr: str) -> Any:
            return tracer.getattr(attr, plain_getattr(module, attr), known)

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return plain_call(module, *args, **kwargs)

            self._wrap_globals(patcher, getattr(type(module).forward, "__globals__", {}))
            return self.call_module(module, forward, args, kwargs)

        with _Patcher() as patcher:
            patcher.patch(nn.Module, "__getattr__", read)
            patcher.patch(nn.Module, "__call__", call)
            for (_, name), space in _wrapped_fns_to_patch.items():
                original = space.get(name, getattr(builtins, name, None))
                if original is not None:
                    patcher.patch(space, name, _recorded_if_proxy(original, "call_function", original))
            for cls, name in _wrapped_methods_to_patch:
                patcher.patch(cls, name, _recorded_if_proxy(getattr(cls, name), "call_method", name))
            self._wrap_globals(patcher, getattr(inspect.unwrap(function), "__globals__", {}))
            for module in self._autowrap_search:
                self._wrap_globals(patcher, vars(module))
            yield

    def _wrap_globals(self, patcher: _Patcher, space: dict[str, Any]) -> None:
        """Have the functions to wrap that are among a module's globals become nodes."""
        for name, value in list(space.items()):
            if not name.startswith("_") and callable(value) and id(value) in self._autowrap_function_ids:
                patcher.patch(space, name, _recorded_if_proxy(value, "call_function", value))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tracer":
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        for name, value in vars(self).items():
            copied.__dict__[name] = copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return copied


def annotations_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a function of the program; those of the package are for type checkers."""
    return (
        {}
        if (getattr(function, "__module__", None) or "").startswith("cygrad.")
        else getattr(function, "__annotations__", {})
    )


def _plain_tensors(module: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the tensors that are attributes of modules, but neither parameters nor buffers, with their names."""
    for name, value in vars(module).items():
        if isinstance(value, cygrad.Tensor):
            yield prefix + name, value
    for name, child in module.named_children():
        yield from _plain_tensors(child, f"{prefix}{name}.")


def _with_values(function: Any, keywords: dict[str, Any], has_args: bool, n: int, variadic: list[Any]) -> Any:
    """Return a function of the first `n` arguments, with values for the others.

    Proxies cannot be unpacked in a call. A copy of the function takes `*args` and `**kwargs` as usual arguments.
    """
    if not variadic:
        return lambda *args: function(*args, **keywords)
    code = function.__code__
    plain = code.replace(
        co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
        co_argcount=code.co_argcount + code.co_kwonlyargcount + len(variadic),
        co_kwonlyargcount=0,
    )
    copied = FunctionType(plain, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    return lambda *args: copied(*args, *keywords.values(), *variadic)


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """Return a GraphModule that computes what a module or function does, from a graph that can be changed.

    The function is called once with proxies in place of its arguments; what it does with them becomes the graph.
    Control flow that depends on tensors raises `TraceError`. `concrete_args` are fixed values for arguments, by name.

    >>> import cygrad
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x) + 1)
    >>> print(traced.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    >>> traced(cygrad.tensor([-1.0, 2.0]))
    tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)
