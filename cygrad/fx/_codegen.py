"""Python source for a graph: one statement for each node."""

import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import cygrad
from cygrad import Tensor, dtype
from cygrad.fx._namespace import _custom_builtins, _Namespace
from cygrad.fx.node import Node, _get_qualified_name, map_arg

reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}
magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **reflectable_magic_methods,
}
inplace_methods = {
    "iadd": "{} += {}",
    "iand": "{} &= {}",
    "ifloordiv": "{} //= {}",
    "ilshift": "{} <<= {}",
    "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "ior": "{} |= {}",
    "ipow": "{} **= {}",
    "irshift": "{} >>= {}",
    "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}


# Names in `typing` of generic types: `List[int]` is written differently from `list[int]`
_GENERIC = {dict: "Dict", frozenset: "FrozenSet", list: "List", set: "Set", tuple: "Tuple"}


@dataclass
class PythonCode:
    """Source for a function `forward`, and the globals that it needs.

    >>> import cygrad
    >>> code = cygrad.fx.symbolic_trace(lambda x: x + 1).graph.python_code("self")
    >>> print(code.src.strip().splitlines()[0])
    def forward(self, x):
    >>> sorted(code.globals)
    ['NoneType', 'device', 'inf', 'nan', 'torch']
    """

    src: str
    globals: dict[str, Any]


def _format_target(base: str, target: str) -> str:
    """Return the expression for a dotted attribute of `base`; parts that are no identifiers are quoted.

    >>> from cygrad.fx.graph import _format_target
    >>> _format_target("self", "layers.0.weight")
    'getattr(self.layers, "0").weight'
    """
    found = base
    for part in target.split("."):
        found = f"{found}.{part}" if part.isidentifier() else f'getattr({found}, "{part}")'
    return found


def _resolve(name: str) -> Any:
    """Return the object that a dotted name beginning with `torch` refers to in generated code, or None."""
    found: Any = cygrad
    first, *parts = name.split(".")
    if first != "torch":
        return None
    for part in parts:
        found = getattr(found, part, None)
    return found


class CodeGen:
    """Writes the source of a graph. A subclass may change the signature, and what is returned.

    >>> import cygrad
    >>> class Pairs(cygrad.fx.CodeGen):
    ...     def process_inputs(self, pair):
    ...         return pair
    ...     def generate_output(self, output_args, *, repr_fn=repr):
    ...         return f"return [{repr_fn(output_args)}]"
    >>> traced = cygrad.fx.symbolic_trace(lambda x, y: x + y)
    >>> traced.graph.set_codegen(Pairs())
    >>> _ = traced.recompile()
    >>> print(traced.code.strip().splitlines()[-1])
        return [add]
    >>> generator = cygrad.fx.CodeGen()
    >>> print(generator.gen_fn_def(["x"], ""))
    def forward(self, x):
    >>> generator.process_inputs(1, 2), generator.process_outputs(3), generator.additional_globals()
    ((1, 2), 3, [])
    """

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the line `def forward(self, ...):`."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        if expanded_def:
            inner = "".join(f"\n    {one}," for one in free_vars)
            return f"def {self._func_name}({inner}\n){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """Return the statement that returns the result."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the placeholders for the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return what a call returns for the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return pairs of names and objects that the source needs besides those of the nodes."""
        return []

    def _gen_python_code(
        self,
        nodes: Iterable[Node],
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        expanded_def: bool = False,
        **appearance: Any,
    ) -> PythonCode:
        writer = _Writer(list(nodes), root_module, namespace, self, verbose)
        for name, obj in self.additional_globals():
            writer.add_global(name, obj)
        for node in writer.nodes:
            writer.write(node)
        return writer.finished(expanded_def)


def _called(method: Callable[..., str], *args: Any, **options: Any) -> str:
    """Call a method of a generator; those of older programs do not take the options."""
    taken = inspect.signature(method).parameters
    return method(*args, **{name: value for name, value in options.items() if name in taken})


class _Writer:
    """Writes the statements of one graph."""

    def __init__(
        self, nodes: list[Node], root_module: str, namespace: _Namespace, codegen: CodeGen, verbose: bool
    ) -> None:
        self.nodes, self.root, self.namespace, self.codegen, self.verbose = (
            nodes,
            root_module,
            namespace,
            codegen,
            verbose,
        )
        self.free_vars: list[str] = []
        self.body: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: list[str] = []
        self.annotation = ""
        self._shown_trace: str | None = ""
        for name, (_, obj) in _custom_builtins.items():
            self.add_global(name, obj)
        self.last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(nodes):

            def note(used: Node, user: Node = node) -> None:
                if used not in seen:
                    seen.add(used)
                    self.last_uses.setdefault(user, []).append(used)

            map_arg((node.args, node.kwargs), note)

    def add_global(self, name: str, obj: Any) -> str:
        """Return the name by which the source refers to an object."""
        if obj is not cygrad.device and _resolve(name) is obj and obj is not None and "." in name:
            return name
        found = self.namespace.create_name(name, obj)
        self.globals.setdefault(found, obj)
        return found

    # -- parts of statements --

    def text(self, arg: Any) -> str:
        """Return the expression for an argument."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            name = self.add_global(_get_qualified_name(type(arg)), type(arg))
            return f"{name}{tuple(_Text(self.text(item)) for item in arg)!r}"
        if isinstance(arg, tuple):
            return f"({', '.join(map(self.text, arg))}{',' * (len(arg) == 1)})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.text, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{key!r}: {self.text(value)}" for key, value in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.text(arg.start)}, {self.text(arg.stop)}, {self.text(arg.step)})"
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(_get_qualified_name(type(arg)), type(arg))}.{arg.name}"
        if isinstance(arg, type):
            return self.type_text(arg)
        if isinstance(arg, cygrad.Tensor):
            return f"torch.Tensor(size={list(arg.shape)}, dtype={arg.dtype})"
        if callable(arg) and hasattr(arg, "__name__"):
            return self.add_global(_get_qualified_name(arg), arg)
        return repr(arg)

    def arguments(self, args: tuple[Any, ...], kwargs: Any) -> str:
        return ", ".join([*map(self.text, args), *(f"{key} = {self.text(value)}" for key, value in kwargs.items())])

    def type_text(self, kind: Any) -> str:
        """Return the expression for a type in an annotation."""
        origin = typing.get_origin(kind)
        if origin is not None:
            parts = ",".join("()" if part == () else self.type_text(part) for part in typing.get_args(kind))
            if isinstance(kind, types.UnionType) or origin is typing.Union:
                return f"{self.add_global('typing_Union', typing.Union)}[{parts}]"
            base = self.type_text(origin)
            if origin in _GENERIC and not isinstance(kind, types.GenericAlias):
                base = self.add_global(f"typing_{_GENERIC[origin]}", getattr(typing, _GENERIC[origin]))
            return f"{base}[{parts}]" if parts else base
        if kind is ... or kind is None or isinstance(kind, str):
            return "..." if kind is ... else repr(kind)
        if isinstance(kind, type):
            if kind.__module__ == "builtins" and kind is not type(None):
                return kind.__qualname__
            return self.add_global(_get_qualified_name(kind), kind)
        return self.add_global(str(kind).replace(".", "_"), kind)

    # -- statements --

    def write(self, node: Node) -> None:
        if self.verbose and node.op not in ("placeholder", "output"):
            self.write_trace(node)
        if node.op == "placeholder":
            default = f" = {self.text(node.args[0])}" if node.args else ""
            kind = self.kind_text(node)
            self.free_vars.append(f"{node.target}{kind}{default}")
            plain = str(node.target).replace("*", "")
            if plain != repr(node):
                self.body.append(f"{node!r} = {plain}\n")
        elif node.op == "output":
            if node.type is not None:
                self.annotation = f" -> {self.type_text(node.type)}"
            self.body.append(_called(self.codegen.generate_output, node.args[0], repr_fn=self.text) + "\n")
        else:
            kind = self.kind_text(node)
            self.body.append(self.statement(node, f"{node!r}{kind} = ") + self.deletions(node))

    def kind_text(self, node: Node) -> str:
        """Return the annotation of a node: its type, or what is known of its tensor if the code is for reading."""
        if node.type is not None:
            return f" : {self.type_text(node.type)}"
        value = node.meta.get("val") if self.verbose else None
        return f': "{_short_dtype(value.dtype)}{list(value.shape)}"' if isinstance(value, Tensor) else ""

    def write_trace(self, node: Node) -> None:
        """Say, in a comment, where the following nodes come from."""
        trace = node.stack_trace
        if trace != self._shown_trace:
            self._shown_trace = trace
            lines = [line.strip() for line in (trace or "").strip().split("\n")]
            place = re.fullmatch(r'File "(.+)", line (\d+), in (.+)', lines[-2]) if len(lines) > 1 else None
            if place is not None:
                where = f"# File: {place[1]}:{place[2]} in {place[3]}, code: {lines[-1]}"
            else:
                where = f"# {' code: '.join(lines[-2:])}" if trace else "# No stacktrace found for following nodes"
            self.body.append(f"\n{where}\n")

    def statement(self, node: Node, assigned: str) -> str:
        if node.op == "get_attr":
            return assigned + _format_target(self.root, str(node.target))
        if node.op == "call_module":
            return f"{assigned}{_format_target(self.root, str(node.target))}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            first, *rest = node.args
            target = _format_target(self.text(first), str(node.target))
            return f"{assigned}{target}({self.arguments(tuple(rest), node.kwargs)})"
        return self.call_of_function(node, assigned)

    def call_of_function(self, node: Node, assigned: str) -> str:
        target: Any = node.target
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            operands = [self.text(arg) for arg in node.args]
            if name in magic_methods and len(operands) == magic_methods[name].count("{}"):
                return assigned + magic_methods[name].format(*operands)
            if name in inplace_methods and len(operands) == inplace_methods[name].count("{}"):
                return f"{inplace_methods[name].format(*operands)};  {assigned}{operands[0]}"
        qualified = _get_qualified_name(target)
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            self.add_global(qualified, target)
            return f"{assigned}{_format_target(self.text(node.args[0]), node.args[1])}"
        found = self.add_global(qualified, target)
        if getattr(target, "__module__", "").partition(".")[0] not in ("cygrad", "torch") and self.is_wrapped(target):
            self.wrapped.append(found)
        return f"{assigned}{found}({self.arguments(node.args, node.kwargs)})"

    @staticmethod
    def is_wrapped(target: Any) -> bool:
        """Whether `wrap` has made calls of this function a node, as it must be when the source is traced again."""
        from cygrad.fx._symbolic_trace import is_wrapped  # which imports this module

        return is_wrapped(target)

    def deletions(self, node: Node) -> str:
        """Return the statement that lets go of the values that this node was the last to use."""
        unused = list(self.last_uses.get(node, ()))
        if not node.users:
            unused.append(node)
        return f";  {' = '.join([*map(repr, unused), 'None'])}\n" if unused else "\n"

    def finished(self, expanded_def: bool) -> PythonCode:
        body = self.body or ["pass\n"]
        if self.codegen._body_transformer:
            body = self.codegen._body_transformer(body)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in dict.fromkeys(self.wrapped))
        head = _called(self.codegen.gen_fn_def, self.free_vars, self.annotation, expanded_def=expanded_def)
        code = "".join(body).lstrip("\n")
        lines = "\n".join("    " + line for line in code.split("\n"))
        return PythonCode(f"\n{wraps}\n\n{head}\n{lines}", self.globals)


def _short_dtype(kind: dtype) -> str:
    """Return the short name of a dtype: `f32`, `i64`, `b8`."""
    name = str(kind).removeprefix("torch.")
    for word, letter in (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i")):
        if name.startswith(word):
            return letter + name.removeprefix(word).replace("_", "")
    return "b8" if name == "bool" else name


class _Text:
    """Shows a text without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def source_of(graph: "cygrad.fx.Graph", root_module: str, **appearance: Any) -> PythonCode:
    """Return the source of a graph. The names of its nodes are kept unless they clash with those of globals."""
    namespace = _Namespace()
    names: dict[Node, str] = {}
    for node in graph.nodes:
        names[node] = namespace.create_name(node.name, None)
    outer = {node: node._repr_fn for node in graph.nodes}
    try:
        for node in graph.nodes:
            node._repr_fn = names.__getitem__
        return graph._codegen._gen_python_code(graph.nodes, root_module, namespace, **appearance)
    finally:
        for node, shown in outer.items():
            node._repr_fn = shown
