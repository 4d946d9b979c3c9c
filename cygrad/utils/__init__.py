"""Small things that several parts of the library share."""

from cygrad.utils import dlpack, hooks, interop
from cygrad.utils._names import typename

__all__ = ["dlpack", "hooks", "interop", "typename"]
