"""Modules as functions of their parameters."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad._ops.shape.stacking import stack
from cygrad.nn.utils.stateless import call_with as functional_call

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (parameters, buffers) of several modules of one class: {name: stack of all models' tensors}.

    The stacks are leaves: changing them does not change the models. Use them with `vmap` over `functional_call`. Raises
    RuntimeError if there are no models, and for models of different classes or modes, or with other frozen parameters.

    >>> import cygrad
    >>> models = [cygrad.nn.Linear(2, 3) for _ in range(4)]
    >>> parameters, buffers = cygrad.func.stack_module_state(models)
    >>> parameters["weight"].shape
    torch.Size([4, 3, 2])
    """
    check_alike(models, "stack_module_state")
    parameters = _stacked([dict(model.named_parameters()) for model in models])
    return parameters, _stacked([dict(model.named_buffers()) for model in models])


def check_alike(models: Any, function: str) -> None:
    """Raise RuntimeError unless there are models, all of one class and in one mode; the error names the function."""
    if len(models) == 0:
        raise RuntimeError(f"{function}: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(f"{function}: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError(f"{function}: Expected all models to be of the same class.")


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Remove the running statistics of a module's batch norms, which `vmap` could not change; return the module.

    >>> import cygrad
    >>> cygrad.func.replace_all_batch_norm_modules_(cygrad.nn.BatchNorm1d(3)).running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, cygrad.nn.modules.batchnorm._BatchNorm):
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None
    return root


def _stacked(states):
    found = {}
    for name, first in states[0].items():
        if any(state[name].requires_grad != first.requires_grad for state in states):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        whole = stack([state[name].detach() for state in states])
        found[name] = whole.requires_grad_() if first.requires_grad else whole
    return found
