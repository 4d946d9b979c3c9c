"""`GraphModule`: a module whose `forward` is generated from a graph."""

import copy
import itertools
import linecache
import os
import pickle
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import cygrad
from cygrad import nn
from cygrad.fx._attributes import follow
from cygrad.fx.graph import Graph, PythonCode, _custom_builtins

__all__ = ["GraphModule", "reduce_graph_module"]

_numbers = itertools.count()
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # in `meta`: those that copies get, too
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


def _forward_from_src(src: str, globals: dict[str, Any], origin: str = "") -> Callable[..., Any]:
    """Compile source and return its function `forward`. Tracebacks show its lines, and where it was traced."""
    space = globals.copy()
    file = f"<eval_with_key>.{next(_numbers)}{origin}"
    linecache.cache[file] = (len(src), None, src.splitlines(True), file)
    exec(compile(src, file, "exec"), space)
    return space["forward"]


def _format_import_statement(name: str, obj: Any) -> str:
    """Return the statement by which generated code gets an object that it calls `name`."""
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if isinstance(obj, types.ModuleType):
        return f"import {obj.__name__} as {name}"
    module = getattr(obj, "__module__", None)
    qualified = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if module is None or qualified is None:
        raise RuntimeError(f"cannot import {obj!r}: it does not tell its module and name")
    first, *rest = qualified.split(".")
    if rest:
        return f"from {module} import {first} as _{name}_of\n{name} = _{name}_of.{'.'.join(rest)}"
    return f"from {module} import {first} as {name}"


def _format_import_block(globals: dict[str, Any]) -> str:
    return "\n".join(sorted(_format_import_statement(name, obj) for name, obj in globals.items()))


def reduce_graph_module(body: dict[Any, Any], import_block: str) -> Any:
    """Rebuild a pickled GraphModule from its attributes and its source.

    >>> import cygrad
    >>> import pickle
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.ReLU())
    >>> traced.__reduce__()[0].__name__
    'reduce_graph_module'
    >>> pickle.loads(pickle.dumps(traced))(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    from cygrad.fx._symbolic_trace import Tracer  # which imports this module

    class KeepModules(Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    state = dict(body)
    forward = _forward_from_src(import_block + state.pop("_code"), {})
    name = state.pop("_graphmodule_cls_name", "GraphModule")
    code_only = _CodeOnlyModule(state)
    code_only_class = type(name, (_CodeOnlyModule,), {"forward": forward})
    code_only.__class__ = code_only_class
    graph = KeepModules().trace(code_only)
    module = GraphModule(code_only, graph, class_name=name)
    for key, value in state.items():
        if key not in module.__dict__:
            module.__dict__[key] = value
    return module


class _CodeOnlyModule(nn.Module):
    """Holds the attributes of a pickled module while its source is traced."""

    def __init__(self, body: dict[Any, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _get_attr(module: Any, target: str) -> Any:
    """Return the value of a dotted attribute."""
    return attrgetter(target)(module)


def _has_attr(model: Any, attr_name: str) -> bool:
    """Whether there is a dotted attribute."""
    return not follow(model, attr_name)[1]


def _del_attr(model: Any, attr_name: str) -> None:
    """Delete a dotted attribute."""
    *path, name = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, path), name)


def _get_attr_via_attr_list(model: Any, attr_list: list[str]) -> Any:
    """Return the value of an attribute, given the parts of its dotted name."""
    return _get_attr(model, ".".join(attr_list)) if attr_list else model


def _assign_attr(value: Any, module: Any, target: str) -> None:
    """Set a dotted attribute; the modules on the way to it are made if they are missing."""
    *path, name = target.split(".")
    for part in path:
        inner = getattr(module, part, None)
        if inner is None:
            inner = nn.Module()
            module.add_module(part, inner)
        module = inner
    if isinstance(value, cygrad.Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _copy_attr(source: Any, target: Any, name: str) -> None:
    found = _get_attr(source, name)
    if not hasattr(target, name):
        _assign_attr(found, target, name)


class GraphModule(nn.Module):
    """A module whose `forward` is generated from `graph`, and that holds the members of `root` that the graph uses.

    `root` is a module, or a dictionary of the values that nodes refer to by their dotted names. After changes of the
    graph, call `recompile()`.

    >>> import cygrad, operator
    >>> traced = cygrad.fx.symbolic_trace(lambda x, y: x + y)
    >>> for node in traced.graph.nodes:
    ...     if node.target is operator.add:
    ...         node.target = operator.mul
    >>> _ = traced.recompile()
    >>> traced(cygrad.tensor(3.0), cygrad.tensor(4.0))
    tensor(12.)
    >>> traced.add_submodule("extra.layer", cygrad.nn.Linear(2, 1)), traced.delete_submodule("extra.layer")
    (True, True)
    >>> traced.delete_all_unused_submodules()
    >>> print(traced.print_readable(print_output=False).strip().splitlines()[0])
    class <lambda>(torch.nn.Module):
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # A class for each object: `forward` belongs to the class.
        base = next(kind for kind in cls.__mro__ if not kind.__dict__.get("_made_for_one"))

        class GraphModuleImpl(base):  # type: ignore[valid-type, misc]
            _made_for_one = True

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            missing = next((target for target in targets if target not in root), None)
            if missing is not None:
                node = next(node for node in graph.nodes if node.target == missing)
                raise RuntimeError(
                    f"Node {node} referenced target {missing} but that target was not provided in ``root``!"
                )
            for target in sorted(targets, key=lambda name: name.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        for hooks in _HOOKS:
            self.__dict__[hooks] = []
        self.__dict__["meta"] = dict(getattr(root, "meta", None) or {})
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}

    # -- the graph and its source --

    @property
    def graph(self) -> Graph:
        """The graph. Assigning another one generates the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self.__dict__["_code"]

    def recompile(self) -> PythonCode:
        """Generate `forward` from the graph as it is now."""
        python_code = self._graph.python_code(root_module="self")
        self.__dict__["_code"] = python_code.src
        nested = getattr(self._graph._codegen, "pytree_info", None)
        if nested is not None:
            self._in_spec, self._out_spec = nested.in_spec, nested.out_spec
        forward = _forward_from_src(python_code.src, python_code.globals, self._graph._origin)
        type(self).forward = forward  # type: ignore[method-assign]
        return python_code

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """Return the source of the module and of the GraphModules in it, as classes; print it unless told not to."""
        code = self._graph.python_code(root_module="self", verbose=True, expanded_def=expanded_def)
        lines = code.src.strip().split("\n")
        text = f"class {self._get_name()}(torch.nn.Module):\n" + "".join(
            f"    {line}".rstrip() + "\n" for line in lines
        )
        for child in self.children():
            if hasattr(child, "print_readable"):
                inner = child.print_readable(print_output=False)
                text += "".join(f"\n    {line}".rstrip(" ") for line in inner.rstrip("\n").split("\n")) + "\n"
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__str__()}\n{self._code}\n{hint}"

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write a Python package that defines the module as a class of this name, with its parameters.

        >>> import cygrad
        >>> import os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.Linear(2, 1)))
        >>> traced.to_folder(os.path.join(folder.name, "model"), "Model")
        >>> "module.py" in os.listdir(os.path.join(folder.name, "model"))
        True
        >>> folder.cleanup()
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        cygrad.save(self.state_dict(), folder / "state_dict.pt")
        code = self._graph.python_code(root_module="self")
        lines = [
            "        super().__init__()",
            *(self._construction(folder, name, child) for name, child in self.named_children()),
            *(
                f"        self.register_buffer({name!r}, torch.empty({list(buffer.shape)}, dtype={buffer.dtype}))"
                for name, buffer in self._buffers.items()
                if buffer is not None
            ),
            *(
                f"        setattr(self, {name!r}, torch.nn.Parameter(torch.empty({list(p.shape)}, dtype={p.dtype})))"
                for name, p in self._parameters.items()
                if p is not None
            ),
            f"        self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))",
        ]
        forward = "\n".join(f"    {line}" for line in code.src.split("\n"))
        head = f"import pathlib\nimport pickle\n{_format_import_block(code.globals)}\n\nfrom cygrad.nn import *\n"
        body = f"class {module_name}(torch.nn.Module):\n    def __init__(self):\n" + "\n".join(lines)
        (folder / "module.py").write_text(f"{head}{body}\n{forward}\n", encoding="utf-8")
        (folder / "__init__.py").write_text("from .module import *\n", encoding="utf-8")

    @staticmethod
    def _construction(folder: Path, name: str, child: Any) -> str:
        """Return the line that makes a submodule: from its text if that is enough, else from a file."""
        if type(child).__module__.startswith("cygrad.nn.modules") and not list(child.children()):
            return f"        setattr(self, {name!r}, {child!r})"
        file = folder / f"{name}.pickle"
        file.write_bytes(pickle.dumps(child))
        return f"        setattr(self, {name!r}, pickle.loads(pathlib.Path(r'{file}').read_bytes()))"

    # -- submodules --

    def add_submodule(self, target: str, m: Any) -> bool:
        """Add a submodule with a dotted name, and empty modules on the way to it. Return whether it worked."""
        *path, name = target.split(".")
        module: Any = self
        for part in path:
            if not hasattr(module, part):
                setattr(module, part, nn.Module())
            module = getattr(module, part)
            if not isinstance(module, nn.Module):
                return False
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the submodule with this dotted name. Return whether there was one."""
        *path, name = target.split(".")
        module: Any = self
        for part in path:
            module = getattr(module, part, None)
            if not isinstance(module, nn.Module):
                return False
        if not isinstance(getattr(module, name, None), nn.Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the submodules that the graph does not call and does not read an attribute of."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                path = str(node.target).split(".")
                used.update(".".join(path[:i]) for i in range(1, len(path) + 1))
                if node.op == "call_module":
                    called = self.get_submodule(str(node.target))
                    used.update(f"{node.target}.{name}" for name, _ in called.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # -- copies --

    def __reduce__(self) -> Any:
        state = {key: value for key, value in self.__dict__.items() if key not in ("_graph", *_HOOKS)}
        state["_graphmodule_cls_name"] = type(self).__name__
        code = self._graph.python_code(root_module="self")
        return reduce_graph_module, (state, _format_import_block(code.globals) + "\n")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = self._copied(copy.deepcopy(self._members(), memo), copy.deepcopy(self._graph, memo))
        memo[id(self)] = copied
        copied.__dict__["meta"] = copy.deepcopy(self.meta, memo)  # which may refer to the module
        for name, value in copied.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(copied, name, value)
        return copied

    def __copy__(self) -> Any:
        return self._copied(self._members(), self._graph.__deepcopy__())

    def _members(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_graph", "meta", *_HOOKS)}

    def _copied(self, members: dict[str, Any], graph: Graph) -> Any:
        base = next(kind for kind in type(self).__mro__ if not kind.__dict__.get("_made_for_one"))
        copied = GraphModule.__new__(base)
        type(copied).__name__ = type(self).__name__
        copied.__dict__.update(members)
        for hooks in _HOOKS:
            copied.__dict__[hooks] = list(self.__dict__[hooks])
        copied.__dict__["meta"] = dict(self.meta)
        copied.graph = graph
        for hook in copied._deepcopy_hooks:
            hook(copied)
        return copied

    # -- hooks that see changes of the graph --

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.remove(f)

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._deepcopy_hooks.remove(f)
