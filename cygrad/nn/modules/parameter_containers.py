"""Containers of parameters: ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from cygrad import Tensor
from cygrad.nn.modules.container import pairs_of
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["ParameterDict", "ParameterList"]


class ParameterList(Module):
    """A list of parameters. Tensors added to it become parameters; other values are kept as they are.

    >>> import cygrad
    >>> from cygrad import nn
    >>> weights = nn.ParameterList([cygrad.zeros(2, 2), cygrad.zeros(3)])
    >>> [p.requires_grad for p in weights.parameters()]
    [True, True]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(i)) for i in range(self._size))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._key(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, self._key(index), _as_parameter(value))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def _key(self, index: Any) -> str:
        position = operator.index(index)
        if not -self._size <= position < self._size:
            raise IndexError(f"index {position} is out of range")
        return str(position % self._size)

    def append(self, value: Any) -> Self:
        """Append a value.

        A tensor becomes a parameter.

        >>> import cygrad
        >>> from cygrad import nn
        >>> values = nn.ParameterList().append(cygrad.ones(2))
        >>> type(values[0]).__name__
        'Parameter'
        """
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Append several values.

        Raises TypeError for what cannot be iterated over.

        >>> import cygrad
        >>> from cygrad import nn
        >>> len(nn.ParameterList().extend([cygrad.ones(1), cygrad.ones(2)]))
        2
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """Return one line per value.

        >>> import cygrad
        >>> from cygrad import nn
        >>> print(nn.ParameterList([cygrad.ones(2)]).extra_repr())
          (0): Parameter containing: [torch.float32 of size 2]
        """
        return "\n".join(_line(i, value, show_type=False) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters. Tensors added to it become parameters; other values are kept as they are.

    >>> import cygrad
    >>> from cygrad import nn
    >>> weights = nn.ParameterDict({"left": cygrad.zeros(2), "right": cygrad.zeros(3)})
    >>> sorted(name for name, _ in weights.named_parameters())
    ['left', 'right']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}  # in insertion order
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._attribute(key)
        self._keys[key] = None
        setattr(self, attribute, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Any) -> ParameterDict:
        merged = ParameterDict(other)
        merged.update(self)
        return merged

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def _attribute(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need "
                "non-string keys."
            )
        return key

    def copy(self) -> ParameterDict:
        """Return a new dictionary with the same parameters.

        >>> import cygrad
        >>> from cygrad import nn
        >>> d = nn.ParameterDict({"a": cygrad.ones(2)})
        >>> d.copy()["a"] is d["a"]
        True
        """
        return ParameterDict(self)

    def clear(self) -> None:
        """Remove everything.

        >>> import cygrad
        >>> from cygrad import nn
        >>> d = nn.ParameterDict({"a": cygrad.ones(2)})
        >>> d.clear()
        >>> len(d)
        0
        """
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return the value named `key`.

        Raises AttributeError if there is none.

        >>> import cygrad
        >>> from cygrad import nn
        >>> d = nn.ParameterDict({"a": cygrad.ones(2)})
        >>> d.pop("a").shape, len(d)
        (torch.Size([2]), 0)
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last (key, value) pair.

        Raises KeyError if the dictionary is empty.

        >>> import cygrad
        >>> from cygrad import nn
        >>> d = nn.ParameterDict({"a": cygrad.ones(1), "b": cygrad.ones(2)})
        >>> name, value = d.popitem()
        >>> name, list(d)
        ('b', ['a'])
        """
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value named `key`, or `default`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> d = nn.ParameterDict({"a": cygrad.ones(2)})
        >>> d.get("a").shape, d.get("b")
        (torch.Size([2]), None)
        """
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value named `key`, after setting it to `default` if missing.

        >>> import cygrad
        >>> from cygrad import nn
        >>> d = nn.ParameterDict()
        >>> d.setdefault("a", cygrad.ones(2)) is d["a"]
        True
        """
        if key not in self:
            self[key] = default
        return self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary that maps these keys to one value.

        >>> import cygrad
        >>> from cygrad import nn
        >>> list(nn.ParameterDict().fromkeys(["a", "b"], cygrad.ones(2)))
        ['a', 'b']
        """
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """Return the names.

        >>> import cygrad
        >>> from cygrad import nn
        >>> list(nn.ParameterDict({"a": cygrad.ones(2)}).keys())
        ['a']
        """
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return (name, value) pairs.

        >>> import cygrad
        >>> from cygrad import nn
        >>> for name, value in nn.ParameterDict({"a": cygrad.ones(2)}).items():
        ...     print(name, value.requires_grad)
        a True
        """
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """Return the values.

        >>> import cygrad
        >>> from cygrad import nn
        >>> [value.shape for value in nn.ParameterDict({"a": cygrad.ones(2)}).values()]
        [torch.Size([2])]
        """
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values from a mapping or from (name, value) pairs.

        Entries of a plain `dict` are added sorted by name, as in PyTorch: saved optimizer states depend on this order.

        >>> import cygrad
        >>> from cygrad import nn
        >>> d = nn.ParameterDict()
        >>> d.update({"b": cygrad.ones(1), "a": cygrad.ones(2)})
        >>> list(d)
        ['a', 'b']
        """
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items(), key=operator.itemgetter(0))
        for key, value in pairs_of(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        """Return one line per value.

        >>> import cygrad
        >>> from cygrad import nn
        >>> print(nn.ParameterDict({"a": cygrad.ones(2)}).extra_repr())
          (a): Parameter containing: [torch.FloatTensor of size 2]
        """
        return "\n".join(_line(key, value, show_type=True) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


def _as_parameter(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value, requires_grad=value.requires_grad or _can_require_grad(value))
    return value


def _can_require_grad(value: Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


def _line(name: Any, value: Any, show_type: bool) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    what = value.type() if show_type else value.dtype
    return f"  ({name}): {kind} containing: [{what} of size {'x'.join(map(str, value.shape))}]"
