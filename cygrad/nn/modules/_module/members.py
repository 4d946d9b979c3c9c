"""The members of a module (parameters, buffers, submodules) and access to them by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import cygrad
from cygrad import Tensor
from cygrad.nn.modules._use import find_member
from cygrad.nn.parameter import Buffer, Parameter
from cygrad.utils import typename
from cygrad.utils.hooks import HookDict, RemovableHandle, add_hook

# The three dictionaries of members, and the names of their entries in error messages.
TABLES = {"_parameters": "parameters", "_modules": "module", "_buffers": "buffer"}

# Hooks of all modules that see each new member: {table: {number: hook}}.
registration_hooks: dict[str, HookDict] = {table: HookDict() for table in TABLES}


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever a module gets a parameter; it may return another one.

    >>> from cygrad import nn
    >>> from cygrad.nn.modules.module import register_module_parameter_registration_hook
    >>> handle = register_module_parameter_registration_hook(lambda module, name, parameter: print(name))
    >>> _ = nn.Linear(1, 1)
    weight
    bias
    >>> handle.remove()
    """
    return add_hook(registration_hooks["_parameters"], hook, prepend=False)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a module gets a buffer, or None for one; it may return another one.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.modules.module import register_module_buffer_registration_hook
    >>> handle = register_module_buffer_registration_hook(lambda module, name, buffer: print(name))
    >>> m = nn.BatchNorm1d(2)
    running_mean
    running_var
    num_batches_tracked
    >>> handle.remove()
    """
    return add_hook(registration_hooks["_buffers"], hook, prepend=False)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a module gets a submodule, or None; it may return another one.

    >>> import cygrad
    >>> from cygrad import nn
    >>> from cygrad.nn.modules.module import register_module_module_registration_hook
    >>> handle = register_module_module_registration_hook(lambda module, name, child: print(name, child))
    >>> m = nn.Sequential(nn.ReLU())
    0 ReLU()
    >>> handle.remove()
    """
    return add_hook(registration_hooks["_modules"], hook, prepend=False)


_INIT_FIRST = "\n  to fix it: call super().__init__() at the beginning of __init__"


def _remedy(value: Any) -> str:
    """Return a line for an error about what was added in place of a module."""
    if isinstance(value, (list, tuple)):
        return "\n  to fix it: pass the modules one by one, as in nn.Sequential(*modules)"
    if isinstance(value, type) and issubclass(value, Members):
        return f"\n  to fix it: pass an object of the class, as in {value.__name__}(...)"
    return ""


class Members:
    """Registers parameters, buffers and submodules on assignment, and iterates over them.

    Base of `Module`. Members are stored in the dictionaries `_parameters`, `_buffers` and `_modules`
    instead of the instance's `__dict__`; `__getattr__` makes them accessible as attributes.
    """

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, cygrad.nn.Module | None]
    _non_persistent_buffers_set: set[str]

    def _init_members(self) -> None:
        state = self.__dict__
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_modules"] = {}
        state["_non_persistent_buffers_set"] = set()

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`; None reserves the name, as `Linear(bias=False)` does.

        Raises `KeyError` if the name is taken, empty or contains a dot, `TypeError` for anything other
        than a `Parameter`, `ValueError` for a parameter computed by an operation (a non-leaf).
        """
        self._check_new_name("parameter", "_parameters", name)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another "
                    "Tensor, compute the value in the forward() method."
                )
            param = self._after_hooks("_parameters", name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer under `name`: state that is not a parameter, such as a running mean.

        A buffer that is not `persistent` is omitted from `state_dict`. None reserves the name. Raises
        `KeyError` if the name is taken, empty or contains a dot, `TypeError` for anything other than a
        tensor.

        >>> import cygrad
        >>> from cygrad import nn
        >>> model = nn.Module()
        >>> model.register_buffer('mean', cygrad.zeros(2))
        >>> model.state_dict()
        OrderedDict([('mean', tensor([0., 0.]))])
        """
        self._check_new_name("buffer", "_buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._set_buffer(name, tensor, persistent)

    def register_module(self, name: str, module: cygrad.nn.Module | None) -> None:
        """Alias of `add_module`."""
        self.add_module(name, module)

    def add_module(self, name: str, module: cygrad.nn.Module | None) -> None:
        """Add a submodule under `name`.

        Raises `KeyError` if the name is taken, empty or contains a dot, `TypeError` for anything other
        than a module.
        """
        if module is not None and not isinstance(module, Members):
            raise TypeError(f"{typename(module)} is not a Module subclass{_remedy(module)}")
        self._check_new_name("module", "_modules", name)
        self._modules[name] = self._after_hooks("_modules", name, module)

    def _after_hooks(self, table: str, name: str, value: Any) -> Any:
        """Return a new member, or what the registration hooks of all modules put in its place."""
        for hook in list(registration_hooks[table].values()):
            found = hook(self, name, value)
            value = value if found is None else found
        return value

    def _check_new_name(self, kind: str, table: str, name: str) -> None:
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call{_INIT_FIRST}")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute '{name}' already exists")

    def _set_buffer(self, name: str, tensor: Tensor | None, persistent: bool) -> None:
        self._buffers[name] = self._after_hooks("_buffers", name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    # Attributes

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    else:
        __getattr__ = find_member

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if isinstance(value, Parameter):
            self._forget_others("_parameters", name)
            self.register_parameter(name, value)
        elif name in state.get("_parameters", ()):
            self._require_none(value, name, "parameter", "torch.nn.Parameter or None")
            self._parameters[name] = None
        elif isinstance(value, Members):
            self._forget_others("_modules", name)
            state["_modules"][name] = self._after_hooks("_modules", name, value)
        elif name in state.get("_modules", ()):
            self._require_none(value, name, "child module", "torch.nn.Module or None")
            self._modules[name] = self._after_hooks("_modules", name, None)
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif name in state.get("_buffers", ()):
            if not isinstance(value, Tensor):
                allowed = "torch.nn.Buffer, torch.Tensor or None"
                self._require_none(value, name, "buffer", allowed)
            self._buffers[name] = self._after_hooks("_buffers", name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget_others(self, table: str, name: str) -> None:
        """Make room for a member whose name may be in use by an attribute or a member of another kind."""
        state = self.__dict__
        if table not in state:
            raise AttributeError(f"cannot assign {TABLES[table]} before Module.__init__() call{_INIT_FIRST}")
        state.pop(name, None)
        for other in TABLES:
            if other != table:
                state[other].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _require_none(self, value: Any, name: str, kind: str, allowed: str) -> None:
        if value is not None:
            raise TypeError(f"cannot assign '{typename(value)}' as {kind} '{name}' ({allowed} expected)")

    def __delattr__(self, name: str) -> None:
        for table in TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = set(dir(type(self))) | set(self.__dict__)
        names.update(*(self.__dict__.get(table, ()) for table in TABLES))
        # Children of a Sequential are named "0", "1", ...: useless for tab completion.
        return sorted(name for name in names if not name[:1].isdigit())

    # Iteration over all members

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (name, parameter) pairs, including submodules' if `recurse`; shared ones only once.

        >>> from cygrad import nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        >>> [name for name, parameter in model.named_parameters()]
        ['0.weight', '0.bias', '1.weight', '1.bias']
        """
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, to pass to an optimizer.

        >>> import cygrad
        >>> [tuple(p.shape) for p in cygrad.nn.Linear(2, 3).parameters()]
        [(3, 2), (3,)]
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (name, buffer) pairs, including submodules' if `recurse`; shared ones only once."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, including submodules' if `recurse`."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, cygrad.nn.Module]]:
        """Yield (name, module) pairs of the direct submodules; shared ones only once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[cygrad.nn.Module]:
        """Yield the direct submodules."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield (dotted name, module) pairs: this module (named `prefix`), then all submodules recursively.

        >>> import cygrad
        >>> model = cygrad.nn.Sequential(cygrad.nn.Linear(2, 3), cygrad.nn.ReLU())
        >>> [name for name, _ in model.named_modules()]
        ['', '0', '1']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _join(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yield this module and all submodules recursively."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        else:
            modules = iter([(prefix, self)])
        for module_name, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield _join(module_name, name), member

    # Access by dotted name

    def get_submodule(self, target: str) -> Any:
        """Return the module at a dotted path such as `"encoder.0"`; `""` is this module.

        Raises an `AttributeError` that names the step that failed.
        """
        module = self
        for name in target.split(".") if target else ():
            parent, module = module, _attribute_of(module, name)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module{_path(parent, self, target)}")
        return module

    def set_submodule(self, target: str, module: cygrad.nn.Module, strict: bool = False) -> None:
        """Put `module` at a dotted path; with `strict`, only if a module already exists there."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Members):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            if not isinstance(_attribute_of(parent, name), Members):
                raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path such as `"encoder.0.weight"`."""
        path, _, name = target.rpartition(".")
        parameter = _attribute_of(self.get_submodule(path), name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path such as `"norm.running_mean"`."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = _attribute_of(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _attribute_of(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    return getattr(module, name)


def _path(parent: Any, root: Any, target: str) -> str:
    """Describe where a lookup failed if the path has several steps."""
    return "" if parent is root else f"\nIn the path `{target}` of {type(root).__name__}."
