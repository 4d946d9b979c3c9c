"""Small things that several parts of the library share."""

from cygrad.utils import hooks, interop
from cygrad.utils._names import typename

__all__ = ["hooks", "interop", "typename"]
