"""PyTorch's module that formats tensors as text, by the names that libraries use."""

from __future__ import annotations

from typing import Any

from cygrad._core.tensor import tensor_str
from cygrad._core.tensor.tensor_str import get_printoptions, printoptions, set_printoptions

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


class __PrinterOptions:
    """The print options, as attributes that can be read and set."""

    def __getattr__(self, name: str) -> Any:
        if name not in get_printoptions():
            raise AttributeError(name)
        return get_printoptions()[name]

    def __setattr__(self, name: str, value: Any) -> None:
        kept = {"sci_mode": get_printoptions()["sci_mode"]}  # which is reset when it is omitted
        set_printoptions(**{**kept, name: value})

    def __repr__(self) -> str:
        return f"__PrinterOptions({', '.join(f'{name}={value}' for name, value in get_printoptions().items())})"


PRINT_OPTS = __PrinterOptions()


def _str(self: Any, *, tensor_contents: Any = None) -> str:
    """Return what `repr` gives for a tensor."""
    return tensor_str.repr_of(self) if tensor_contents is None else f"tensor({tensor_contents})"


_str_intern = _str


def _tensor_str(self: Any, indent: int) -> str:
    """Return the elements of a tensor in brackets; further lines are indented."""
    return tensor_str._contents(tensor_str.array_of(self), indent, tensor_str._options)


def _add_suffixes(tensor_str_: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """Return the text of a tensor with suffixes such as a dtype, on new lines where they do not fit, and a bracket."""
    if force_newline and suffixes:
        tensor_str_, suffixes = f"{tensor_str_},\n{' ' * indent}{suffixes[0]}", suffixes[1:]
    return tensor_str._with_suffixes(tensor_str_, suffixes, 0, indent, tensor_str._options) + ")"
