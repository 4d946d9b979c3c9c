"""Reads and replaces parameters, buffers and submodules of a module by their full names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cygrad import Tensor
from cygrad.nn.modules.module import Module

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_submodule", "swap_tensor"]

_ABSENT: Any = object()


def _table_of(module: Module, name: str) -> dict[str, Any]:
    """Return the dictionary of the module that has, or would have, a tensor of this name."""
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for table in (module._parameters, module._buffers):
        if name in table:
            return table
    return vars(module)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of a parameter, buffer or attribute of a module, and return what was there."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _ABSENT and not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    table = _table_of(module, name)
    before = table.get(name, _ABSENT)
    if before is _ABSENT and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _ABSENT and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _ABSENT:
        del table[name]
    else:
        table[name] = tensor
    return before


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Put a tensor in the place of a parameter, buffer or attribute of a module."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Put a module in the place of a submodule, and return what was there."""
    if not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of torch.nn.Module")
    if module._modules.get(name) is None:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    before, module._modules[name] = module._modules[name], submodule
    return before


class NamedMemberAccessor:
    """Reads and replaces the members of a module: `accessor.get_tensor("layer.weight")`.

    >>> import cygrad
    >>> from cygrad.nn.utils._named_member_accessor import NamedMemberAccessor
    >>> accessor = NamedMemberAccessor(cygrad.nn.Sequential(cygrad.nn.Linear(1, 1)))
    >>> accessor.set_tensor("0.bias", cygrad.ones(1))
    >>> accessor.get_tensor("0.bias")
    tensor([1.])
    """

    def __init__(self, module: Module) -> None:
        self.module = module

    def get_submodule(self, name: str) -> Module:
        """Return a submodule; the module itself for an empty name."""
        return self.module.get_submodule(name)

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Put a module in the place of a submodule, and return what was there."""
        prefix, _, name = path.rpartition(".")
        return swap_submodule(self.get_submodule(prefix), name, value)

    def get_tensor(self, name: str) -> Any:
        """Return a parameter, a buffer or an attribute that is a tensor."""
        prefix, _, attribute = name.rpartition(".")
        found: Any = getattr(self.get_submodule(prefix), attribute)
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Put a tensor in the place of another."""
        self.swap_tensor(name, value, allow_missing=True)

    def del_tensor(self, name: str) -> None:
        """Remove a tensor."""
        self.swap_tensor(name, _ABSENT)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Put a tensor in the place of another, and return that."""
        prefix, _, attribute = name.rpartition(".")
        return swap_tensor(self.get_submodule(prefix), attribute, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """Return tensors by their names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Put tensors in the places of others. Raises ValueError unless there is a name for each."""
        self.swap_tensors(names, values, allow_missing=True)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Put tensors in the places of others, by name."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Remove tensors."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        """Put tensors in the places of others, and return those."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise ValueError("names and values must have the same length")
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values)]

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the names that are missing among `keys`, and those that the module does not have."""
        given, own = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(own - given), sorted(given - own)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yield the parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yield the parameters and the buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Yield the submodules."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
