"""Modules and functions that run a recorded program."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import Any

from cygrad import Tensor
from cygrad.export._programs.files import from_text, read_package, to_text, write_package
from cygrad.export._programs.program import Program
from cygrad.export._programs.text import Graph, code_of
from cygrad.jit._script import RecursiveScriptModule, ScriptFunction, ScriptModule
from cygrad.nn import Module, Parameter

_KINDS = ("module", "function")


class TracedModule(ScriptModule):
    """A module inside a trace: it has the parameters and buffers; what they are used for is in the module around it.

    >>> import cygrad
    >>> traced = cygrad.jit.trace(cygrad.nn.Sequential(cygrad.nn.Linear(2, 1)), cygrad.ones(3, 2))
    >>> (inner,) = traced.children()
    >>> isinstance(inner, cygrad.jit.TracedModule), inner.extra_repr()
    (True, 'original_name=Linear')
    >>> inner.forward(cygrad.ones(3, 2))
    Traceback (most recent call last):
        ...
    NotImplementedError: Linear is a part of a traced module, whose program is one for the whole...
    """

    def __init__(self, original_name: str = "") -> None:
        super().__init__()
        self.original_name = original_name

    def _get_name(self) -> str:
        return self.original_name or type(self).__name__

    def extra_repr(self) -> str:
        """Return the name of the class that was traced."""
        return f"original_name={self.original_name}"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError: the program belongs to the whole module."""
        raise NotImplementedError(
            f"{self.original_name} is a part of a traced module, whose program is one for the whole\n"
            "  call the whole module, or trace this part alone"
        )


class _Running:
    """What a module that runs programs has in addition."""

    _programs: dict[str, Program]
    original_name: str

    def _program(self, name: str = "forward") -> Program:
        programs = self.__dict__.get("_programs", {})
        if name not in programs:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return programs[name]

    def _run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._program(name).run(args, kwargs, self._attribute)

    def _attribute(self, name: str) -> Tensor:
        *path, last = name.split(".")
        module: Any = self
        for part in path:
            module = module._modules[part]
        found = module._parameters.get(last)
        return module._buffers[last] if found is None else found

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        return self._run("forward", args, kwargs)

    def parameter_names(self) -> list[str]:
        """Return the names of the arguments."""
        return [name for name, _ in self._program().parameters]

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_programs", {}):
            return lambda *args, **kwargs: self._run(name, args, kwargs)
        return super().__getattr__(name)  # type: ignore[misc]

    @property
    def graph(self) -> Graph:
        """The program as a graph."""
        return Graph(self._program(), self.original_name)

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The program as Python code."""
        return code_of(self._program(), True)

    @property
    def code_with_constants(self) -> Any:
        """The program as Python code, and the tensors it has besides parameters and buffers."""
        return self.code, self._program().constants

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "ScriptModules cannot be saved using torch.save. Mixed serialization of script and non-script modules is "
            "not supported. For purely script modules use my_script_module.save(<filename>) instead."
        )

    def __deepcopy__(self, memo: Any) -> Any:
        made = mirrored(self, type(self), TracedModule)  # type: ignore[arg-type]
        for module in made.modules():
            for table in (module._parameters, module._buffers):
                for name, t in table.items():
                    table[name] = copy.deepcopy(t, memo)
        own = {key: value for key, value in self.__dict__.items() if key in ("_programs", "_shapes")}
        made.__dict__.update(own)
        return made

    def save(self, f: Any, _extra_files: Any = None, **kwargs: Any) -> None:
        """Save the program with its weights; see `torch.jit.save`."""
        write_module(self, self._programs, f, _extra_files)


class TopLevelTracedModule(_Running, TracedModule):
    """What `torch.jit.trace` makes of a module: it runs the recorded program with the same parameters and buffers.

    >>> import cygrad
    >>> traced = cygrad.jit.trace(cygrad.nn.Linear(2, 1), cygrad.ones(3, 2))
    >>> isinstance(traced, cygrad.jit.TopLevelTracedModule), traced(cygrad.ones(5, 2)).shape
    (True, torch.Size([5, 1]))
    """


class LoadedModule(_Running, RecursiveScriptModule):
    """What `torch.jit.load` returns for a module."""

    __module__ = "cygrad.jit"

    def __init__(self, original_name: str = "") -> None:
        super().__init__()
        self.original_name = original_name

    def _get_name(self) -> str:
        return self.original_name or "RecursiveScriptModule"

    def extra_repr(self) -> str:
        """Return the name of the class that was traced."""
        return f"original_name={self.original_name}"


LoadedModule.__name__ = LoadedModule.__qualname__ = "RecursiveScriptModule"


class TracedFunction(ScriptFunction):
    """What `torch.jit.trace` makes of a function."""

    __module__ = "cygrad.jit"
    _program: Program
    name: str
    __name__: str

    def __new__(cls, program: Program) -> Any:
        made = object.__new__(cls)
        made._program = program
        made.__name__ = made.name = program.name
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._program.run(args, kwargs, _no_attribute)

    def parameter_names(self) -> list[str]:
        """Return the names of the arguments."""
        return [name for name, _ in self._program.parameters]

    @property
    def graph(self) -> Graph:
        """The program as a graph."""
        return Graph(self._program, None)

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The program as Python code."""
        return code_of(self._program, False)

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Save the program; see `torch.jit.save`."""
        write_package(f, "function", {**_programs({self.name: self._program}), "extra_files": _files(_extra_files)})

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'torch.jit.ScriptFunction' object\n  torch.jit.save writes it to a file")


TracedFunction.__name__ = TracedFunction.__qualname__ = "ScriptFunction"


def _no_attribute(name: str) -> Tensor:
    raise KeyError(name)


def mirrored(module: Module, top: Any, inner: Any, memo: dict[int, Any] | None = None) -> Any:
    """Return a module of class `top` with the same parameters, buffers and submodules, these of class `inner`."""
    memo = {} if memo is None else memo
    if id(module) in memo:
        return memo[id(module)]
    made = memo[id(module)] = top(getattr(module, "original_name", type(module).__name__))
    made.training = module.training
    for name, parameter in module._parameters.items():
        made.register_parameter(name, parameter)
    for name, buffer in module._buffers.items():
        made.register_buffer(name, buffer, name not in module._non_persistent_buffers_set)
    for name, child in module._modules.items():
        made.add_module(name, None if child is None else mirrored(child, inner, inner, memo))
    return made


# -- files -------------------------------------------------------------------------------------------------


def _programs(programs: Mapping[str, Program]) -> dict[str, Any]:
    return {
        "programs": {name: to_text(program) for name, program in programs.items()},
        "constants": {name: dict(program.constants) for name, program in programs.items()},
    }


def _files(extra: Any) -> dict[str, Any]:
    return {name: text.encode() if isinstance(text, str) else bytes(text) for name, text in (extra or {}).items()}


def write_module(
    module: Any, programs: Mapping[str, Program], f: Any, extra: Any, kind: str = "module", **more: Any
) -> None:
    """Save a module with the programs that it runs."""
    modules, tensors, ties = [], [], []
    known: dict[int, str] = {}
    for path, each in module.named_modules(remove_duplicate=False):
        modules.append([path, getattr(each, "original_name", type(each).__name__), each.training])
        for sort, table in (("parameter", each._parameters), ("buffer", each._buffers)):
            for name, t in table.items():
                if t is None:
                    continue
                full = f"{path}.{name}" if path else name
                if id(t) in known:
                    ties.append([full, known[id(t)]])
                    continue
                known[id(t)] = full
                persistent = name not in each._non_persistent_buffers_set
                tensors.append([full, sort, t.detach(), t.requires_grad, persistent])
    content = {"modules": modules, "tensors": tensors, "ties": ties, "extra_files": _files(extra), **more}
    write_package(f, kind, {**content, **_programs(programs)})


def load(f: Any, map_location: Any, extra: Any) -> Any:
    """Return the module or function in a file."""
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {os.fspath(f)} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {os.fspath(f)} is a directory")
    content = read_package(f, _KINDS, map_location)
    return module_in(content, extra)


def module_in(content: dict[str, Any], extra: Any) -> Any:
    """Return the module or function that a file describes, and fill in the values of `extra`."""
    try:
        found = _function(content) if content["kind"] == "function" else _module(content)
        files = content["extra_files"]
        for name in extra or {}:
            if name in files:
                extra[name] = files[name]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RuntimeError(f"the file holds no program that can be run: {error}") from None
    return found


def _function(content: dict[str, Any]) -> TracedFunction:
    ((name, text),) = content["programs"].items()
    return TracedFunction(from_text(text, _tensors(content["constants"][name]), set()))


def _tensors(table: Any) -> dict[str, Tensor]:
    if not all(isinstance(name, str) and isinstance(t, Tensor) for name, t in table.items()):
        raise TypeError("a constant is no tensor")
    return table


def _module(content: dict[str, Any]) -> LoadedModule:
    made: dict[str, LoadedModule] = {}
    for path, original_name, training in content["modules"]:
        module = LoadedModule(str(original_name))
        module.training = bool(training)
        made[path] = module
        if path:
            parent, _, name = path.rpartition(".")
            made[parent].add_module(name, module)
    tensors: dict[str, Any] = {}
    for path, kind, t, requires_grad, persistent in content["tensors"]:
        tensors[path] = _register(made, path, kind, t, requires_grad, persistent)
    for path, other in content["ties"]:
        parent, _, name = path.rpartition(".")
        t = tensors[other]
        is_parameter = isinstance(t, Parameter)
        (made[parent].register_parameter if is_parameter else made[parent].register_buffer)(name, t)
        tensors[path] = t
    programs = {
        str(name): from_text(text, _tensors(content["constants"][name]), set(tensors))
        for name, text in content["programs"].items()
    }
    made[""].__dict__["_programs"] = programs
    return made[""]


def _register(made: Any, path: str, kind: str, t: Any, requires_grad: Any, persistent: Any) -> Tensor:
    if not isinstance(t, Tensor):
        raise TypeError(f"{path} is no tensor")
    parent, _, name = path.rpartition(".")
    if kind == "parameter":
        t = Parameter(t, bool(requires_grad))
        made[parent].register_parameter(name, t)
    else:
        made[parent].register_buffer(name, t, bool(persistent))
    return t
