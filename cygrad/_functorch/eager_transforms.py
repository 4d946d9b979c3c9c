"""The other transforms by PyTorch's private name."""

from typing import Any

from cygrad.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from cygrad.func.transforms import checked_argnums

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _slice_argnums(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> Any:
    """Return the arguments at the positions `argnums`; without `as_tuple`, a single one by itself."""
    found = tuple(args[place] for place in checked_argnums(argnums, len(args)))
    return found if as_tuple or isinstance(argnums, tuple) else found[0]
