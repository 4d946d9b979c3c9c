"""Classes of datasets that are chained: `IterDataPipe`, `MapDataPipe` and `functional_datapipe`.

>>> from cygrad.utils.data import IterDataPipe, functional_datapipe
>>> class Numbers(IterDataPipe):
...     def __iter__(self):
...         yield from range(3)
>>> @functional_datapipe("doubled")
... class Doubler(IterDataPipe):
...     def __init__(self, source):
...         self.source = source
...     def __iter__(self):
...         return (2 * number for number in self.source)
>>> list(Numbers().doubled())
[0, 2, 4]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from cygrad.utils.data.dataset import Dataset, IterableDataset

__all__ = [
    "IterDataPipe",
    "MapDataPipe",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
]


class _Chained:
    """What both kinds of pipes have: functions that are registered for them are their methods."""

    functions: dict[str, Callable]

    def __getattr__(self, name: str) -> Any:
        if name in type(self).functions:
            return functools.partial(type(self).functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Register a function of a pipe, and of further arguments, by a name."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: type, **options: Any) -> None:
        """Register a class whose constructor takes a pipe. Raises Exception for a name in use."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        @functools.wraps(cls_to_register, updated=())
        def made(source: Any, *args: Any, **named: Any) -> Any:
            return cls_to_register(source, *args, **named)

        cls.functions[function_name] = made


class IterDataPipe(_Chained, IterableDataset):
    """A dataset that is iterated over, and that others are made from by methods (see `functional_datapipe`).

    >>> from cygrad.utils.data import IterDataPipe
    >>> class Numbers(IterDataPipe):
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def __iter__(self):
    ...         yield from range(self.n)
    >>> list(Numbers(3)), Numbers(3).reset()
    ([0, 1, 2], None)
    """

    functions: dict[str, Callable] = {}

    def __iter__(self) -> Iterator[Any]:
        """As in PyTorch a pipe may lack it, other than an IterableDataset; it is then its own iterator."""
        return self

    def reset(self) -> None:
        """Begin anew: called before an iteration by programs that traverse pipes; does nothing."""


class MapDataPipe(_Chained, Dataset):
    """A dataset whose samples are read by their keys, and that others are made from by methods.

    >>> from cygrad.utils.data import MapDataPipe
    >>> class Squares(MapDataPipe):
    ...     def __getitem__(self, index):
    ...         return index**2
    ...     def __len__(self):
    ...         return 4
    >>> Squares()[3], len(Squares())
    (9, 4)
    """

    functions: dict[str, Callable] = {}


class _IterDataPipeSerializationWrapper(IterDataPipe):
    """Holds a pipe for worker processes. PyTorch pickles lambdas within it; here the pipe itself must be picklable."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __iter__(self) -> Iterator[Any]:
        return iter(self._datapipe)

    def __len__(self) -> int:
        return len(self._datapipe)


class _MapDataPipeSerializationWrapper(MapDataPipe):
    """Same for a pipe whose samples are read by their keys."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]

    def __len__(self) -> int:
        return len(self._datapipe)


class functional_datapipe:
    """Decorate a class of pipes: other pipes have it as the method `name`.

    >>> from cygrad.utils.data import IterDataPipe, functional_datapipe
    >>> @functional_datapipe("docs_doubled")
    ... class Doubled(IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         return (2 * x for x in self.source)
    >>> class Numbers(IterDataPipe):
    ...     def __iter__(self):
    ...         return iter([1, 2])
    >>> list(Numbers().docs_doubled())
    [2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: type) -> type:
        """Register the class. Raises TypeError unless it is a class of pipes."""
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe")


_is_determined = False


class guaranteed_datapipes_determinism:
    """A block in which no pipe may be made whose order is random (see `non_deterministic`).

    >>> from cygrad.utils.data import IterDataPipe, guaranteed_datapipes_determinism
    >>> with guaranteed_datapipes_determinism():
    ...     pipe = IterDataPipe()
    """

    def __init__(self) -> None:
        global _is_determined
        self.prev, _is_determined = _is_determined, True

    def __enter__(self) -> None:
        """The setting holds since this object was made, as in PyTorch."""

    def __exit__(self, *error: Any) -> None:
        global _is_determined
        _is_determined = self.prev


def non_deterministic(cls: type) -> type:
    """Decorate a class of pipes whose order is random: where determinism is guaranteed, making one raises TypeError.

    >>> from cygrad.utils.data import IterDataPipe, guaranteed_datapipes_determinism, non_deterministic
    >>> @non_deterministic
    ... class Noise(IterDataPipe):
    ...     pass
    >>> with guaranteed_datapipes_determinism():
    ...     pipe = Noise()
    Traceback (most recent call last):
        ...
    TypeError: Noise is non-deterministic...
    """
    plain: Any = cls.__init__  # type: ignore[misc]

    @functools.wraps(plain)
    def checked(self: Any, *args: Any, **named: Any) -> None:
        if _is_determined:
            raise TypeError(
                f"{cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can turn "
                "off determinism for this DataPipe if that is acceptable for your application"
            )
        plain(self, *args, **named)

    cls.__init__ = checked  # type: ignore[misc]
    return cls
