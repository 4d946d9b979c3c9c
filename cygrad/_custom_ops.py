"""The old form of `torch.library`."""

from collections.abc import Callable, Iterable
from typing import Any

from cygrad import library

__all__ = ["custom_op", "impl", "impl_abstract"]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Declare an op by its schema, or by a function whose annotations give it: `library.define`."""
    if isinstance(func_or_schema, str):
        library.define(qualname, func_or_schema)
        return None
    if func_or_schema is None:
        return lambda function: custom_op(qualname, function)
    library.define(qualname, library.infer_schema(func_or_schema, mutates_args=()))
    return func_or_schema


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Any = None) -> Any:
    """Give an op a function for these kinds of devices: `library.impl`."""
    return library.impl(qualname, device_types, func)


def impl_abstract(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """Give an op a function that computes shapes: `library.register_fake`."""
    return library.register_fake(qualname, func)
