"""Type names in error messages."""

from typing import Any

from cygrad import Tensor


def typename(value: Any) -> str:
    """Return `torch.FloatTensor` etc. for a tensor, else the qualified name of the type (or class).

    >>> import cygrad
    >>> from cygrad.utils import typename
    >>> typename(3), typename(cygrad.nn.Linear)
    ('int', 'cygrad.nn.modules.linear.Linear')
    """
    if isinstance(value, Tensor):
        return value.type()
    named = value if hasattr(value, "__qualname__") else type(value)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"
