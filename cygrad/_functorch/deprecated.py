"""The names of the package `functorch`, each with its warning that another one has taken its place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cygrad import func
from cygrad._functorch import make_functional as _modules
from cygrad.utils.warning import warn

__all__ = ["combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev"]
__all__ += ["jvp", "make_functional", "make_functional_with_buffers", "vjp", "vmap"]


def warn_deprecated(api: str, new_api: str | None = None) -> None:
    """Warn that `functorch.<api>` is deprecated."""
    warn(
        f"`functorch.{api}` is deprecated as of PyTorch 2.0, which has its functions as `torch.func`. Please use "
        f"`{new_api or f'torch.func.{api}'}` instead",
        FutureWarning,
    )


def _deprecated(function: Any, new_api: str | None = None) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        warn_deprecated(function.__name__, new_api)
        return function(*args, **kwargs)

    return wrapper


vmap = _deprecated(func.vmap, "torch.vmap")
grad, grad_and_value = _deprecated(func.grad), _deprecated(func.grad_and_value)
vjp, jvp = _deprecated(func.vjp), _deprecated(func.jvp)
jacrev, jacfwd, hessian = _deprecated(func.jacrev), _deprecated(func.jacfwd), _deprecated(func.hessian)
functionalize = _deprecated(func.functionalize)
make_functional = _deprecated(_modules.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _deprecated(_modules.make_functional_with_buffers, "torch.func.functional_call")
combine_state_for_ensemble = _deprecated(_modules.combine_state_for_ensemble, "torch.func.stack_module_state")
