"""Containers of modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from cygrad.nn.modules.module import Module
from cygrad.utils import typename

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


def __getattr__(name: str) -> Any:
    """Resolve the containers of parameters, which PyTorch also defines in this module."""
    if name in ("ParameterDict", "ParameterList"):
        from cygrad.nn.modules import parameter_containers  # which needs this module

        return getattr(parameter_containers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _ModuleRow(Module):
    """Modules named "0", "1", ...: the common base of `Sequential` and `ModuleList`."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self._slice(idx)
        return self._modules[self._key(idx)]

    def __setitem__(self, idx: Any, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: Any) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        self._renumber([module for key, module in self._modules.items() if key not in keys])

    def _slice(self, index: slice) -> Self:
        return type(self)(list(self)[index])

    def _key(self, index: Any) -> str:
        """Return the name of the module at `index`, which may be negative."""
        position = operator.index(index)
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range")
        return list(self._modules)[position]

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def _insert(self, index: int, module: Module) -> None:
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def append(self, module: Module) -> Self:
        """Append a module."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Remove and return the module at an index."""
        module = self[key]
        del self[key]
        return module


class Sequential(_ModuleRow):
    """Calls modules in order, passing the output of each to the next.

    Takes modules, or one dictionary of modules by name. Indexing, slicing, `append`, `insert`,
    `extend`, `pop`, `+` and `*` work as for lists.

    >>> import cygrad
    >>> from cygrad import nn
    >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> model(cygrad.ones(5, 4)).shape
    torch.Size([5, 2])
    >>> model
    Sequential(
      (0): Linear(in_features=4, out_features=3, bias=True)
      (1): ReLU()
      (2): Linear(in_features=3, out_features=2, bias=True)
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        is_named = len(args) == 1 and isinstance(args[0], dict)
        for name, module in args[0].items() if is_named else ((str(i), each) for i, each in enumerate(args)):
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """Pass `input` through all modules.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Sequential(nn.ReLU(), nn.Flatten(0))(cygrad.tensor([[-1.0, 2.0]]))
        tensor([0., 2.])
        """
        for module in self._modules.values():
            input = module(input)
        return input

    def _slice(self, index: slice) -> Self:
        return type(self)(dict(list(self._modules.items())[index]))  # keeps the names

    def __add__(self, other: Sequential) -> Sequential:
        self._require_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        self._require_sequential(other)
        return self.extend(other)

    def _require_sequential(self, other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

    def __mul__(self, other: int) -> Sequential:
        self._require_factor(other)
        return Sequential(*(module for _ in range(other) for module in self))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Self:
        self._require_factor(other)
        return self.extend([module for _ in range(other - 1) for module in self])

    def _require_factor(self, other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at `index`.

        Raises IndexError for a place out of range, AssertionError for anything but a module.

        >>> from cygrad import nn
        >>> nn.Sequential(nn.ReLU(), nn.Tanh()).insert(1, nn.Identity())
        Sequential(
          (0): ReLU()
          (1): Identity()
          (2): Tanh()
        )
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert(index, module)
        return self

    def extend(self, sequential: Iterable[Any]) -> Self:
        """Append several modules.

        >>> from cygrad import nn
        >>> nn.Sequential(nn.ReLU()).extend([nn.Tanh()])
        Sequential(
          (0): ReLU()
          (1): Tanh()
        )
        """
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(_ModuleRow):
    """A list of modules. How they are called is up to the enclosing model.

    >>> from cygrad import nn
    >>> nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Any]) -> Self:
        return self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before the one at `index`.

        >>> from cygrad import nn
        >>> m = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        >>> m.insert(1, nn.Identity())
        >>> m
        ModuleList(
          (0): ReLU()
          (1): Identity()
          (2): Tanh()
        )
        """
        self._insert(index, module)

    def extend(self, modules: Iterable[Any]) -> Self:
        """Append several modules.

        Raises TypeError for what cannot be iterated over.

        >>> from cygrad import nn
        >>> nn.ModuleList([nn.ReLU()]).extend([nn.Tanh(), nn.Identity()])
        ModuleList(
          (0): ReLU()
          (1): Tanh()
          (2): Identity()
        )
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        if not len(self):
            return f"{self._get_name()}()"
        runs: list[tuple[int, int, str]] = []  # first, last, text: equal neighbors are shown once
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        lines = [
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]
        body = "".join("\n  " + line.replace("\n", "\n  ") for line in lines)
        return f"{self._get_name()}({body}\n)"


class ModuleDict(Module):
    """A dictionary of modules. How they are called is up to the enclosing model.

    >>> from cygrad import nn
    >>> choices = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
    >>> choices["tanh"]
    Tanh()
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules.

        >>> from cygrad import nn
        >>> m = nn.ModuleDict({"a": nn.ReLU()})
        >>> m.clear()
        >>> len(m)
        0
        """
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove and return the module named `key`.

        Raises KeyError if there is none.

        >>> from cygrad import nn
        >>> m = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        >>> m.pop("a"), list(m)
        (ReLU(), ['b'])
        """
        return self._modules.pop(key)

    def keys(self) -> Any:
        """Return the names.

        >>> from cygrad import nn
        >>> list(nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()}).keys())
        ['a', 'b']
        """
        return self._modules.keys()

    def items(self) -> Any:
        """Return (name, module) pairs.

        >>> from cygrad import nn
        >>> list(nn.ModuleDict({"a": nn.ReLU()}).items())
        [('a', ReLU())]
        """
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules.

        >>> from cygrad import nn
        >>> list(nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()}).values())
        [ReLU(), Tanh()]
        """
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from (name, module) pairs.

        Raises TypeError for what is neither, ValueError for what are no pairs.

        >>> from cygrad import nn
        >>> m = nn.ModuleDict({"a": nn.ReLU()})
        >>> m.update({"a": nn.Tanh(), "b": nn.Identity()})
        >>> m
        ModuleDict(
          (a): Tanh()
          (b): Identity()
        )
        """
        for key, module in pairs_of(modules, "ModuleDict"):
            self[key] = module


def pairs_of(source: Any, container: str) -> list[tuple[str, Any]]:
    """Return the (key, value) pairs in the argument of a container's `update`."""
    if not isinstance(source, Iterable):
        raise TypeError(
            f"{container}.update should be called with an iterable of key/value pairs, but got {typename(source)}"
        )
    if isinstance(source, Mapping) or hasattr(source, "items"):
        return list(source.items())
    pairs = list(source)
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{container} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{container} update sequence element #{i} has length {len(pair)}; "  # type: ignore[arg-type]
                "2 is required"
            )
    return pairs
