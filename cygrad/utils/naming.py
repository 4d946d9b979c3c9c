"""Makes argument errors of `__init__` name the class that was called, not the internal base class it inherits from."""

from collections.abc import Iterable
from types import FunctionType
from typing import Any


def name_initialisers(classes: Iterable[Any], kept: Iterable[str] = ()) -> None:
    """Give each class that inherits `__init__` its own copy under its name, unless inherited from a class in `kept`.

    >>> from cygrad.utils.naming import name_initialisers
    >>> class _Base:
    ...     def __init__(self, size):
    ...         self.size = size
    >>> class Layer(_Base):
    ...     pass
    >>> name_initialisers([Layer])
    >>> Layer()
    Traceback (most recent call last):
        ...
    TypeError: Layer.__init__() missing 1 required positional argument: 'size'
    """
    for cls in classes:
        if not isinstance(cls, type) or "__init__" in vars(cls):
            continue
        plain: Any = getattr(cls, "__init__")  # noqa: B009
        if not isinstance(plain, FunctionType) or plain.__qualname__.partition(".")[0] in kept:
            continue
        own = FunctionType(plain.__code__, plain.__globals__, "__init__", plain.__defaults__, plain.__closure__)
        own.__kwdefaults__, own.__annotations__, own.__doc__ = (
            plain.__kwdefaults__,
            plain.__annotations__,
            plain.__doc__,
        )
        own.__qualname__, own.__module__ = f"{cls.__name__}.__init__", plain.__module__
        setattr(cls, "__init__", own)  # noqa: B010
