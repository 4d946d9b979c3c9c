"""The table of ONNX forms.

A form writes the ONNX nodes of a function: it receives the `Graph`, and the function's arguments as the program wrote
them, with a `Value` in place of each tensor and a `Formula` in place of a number that varies; it returns a `Value` for
each result. A form that cannot express the arguments raises `Unsupported`. Names are those of programs without the
namespaces `Tensor` and `nn.functional` (unless both have a function of that name), and without the underscore of
in-place functions: the graph sees to what these change.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["FAMILIES", "FORMS", "Unsupported", "base_name", "form", "form_of"]

FAMILIES = (
    "activations attention convolution creation elementwise images indexing losses matrices normalization order "
    "pooling products recurrent reduction shape"
).split()
FORMS: dict[str, Callable[..., Any]] = {}


class Unsupported(Exception):
    """Arguments that a form cannot express; the text says which."""


def form(*names: str) -> Callable[[Any], Any]:
    """Decorator that enters a form under the names of its functions."""

    def enter(function: Any) -> Any:
        for name in names:
            if name in FORMS:
                raise ValueError(f"{name!r} has two ONNX forms")
            FORMS[name] = function
        return function

    return enter


def base_name(target: str) -> str:
    """Return the name under which the form of a function is entered: "relu" for "Tensor.relu_"."""
    name = target.removeprefix("Tensor.").removeprefix("nn.functional.")
    return name if name.startswith("__") else name.rstrip("_")


@cache
def _families() -> None:
    for name in FAMILIES:
        import_module(f"cygrad.export._onnx_forms.{name}")


def form_of(target: str) -> Callable[..., Any] | None:
    """Return the form of a function, or None."""
    _families()
    return FORMS.get(target) or FORMS.get(base_name(target))
