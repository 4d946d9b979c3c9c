"""The legacy spectral norm, which recomputes the weight before each `forward`."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.parameter import Parameter, is_lazy
from cygrad.nn.utils._before_forward import hook_on, take_hook
from cygrad.nn.utils.parametrizations import as_matrix, iterate, output_dim
from cygrad.utils.interop import as_tensor

__all__ = ["remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook: the weight divided by an estimate of its largest singular value."""

    version = 1  # of its part of a state dict, numbered as in PyTorch

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """Return the normalized weight, after refining the estimate if `do_power_iteration`."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            iterate(matrix.H, v, u, self.n_power_iterations, self.eps)
        # Clone, so that the graph keeps these values while the next step updates the buffers.
        return weight / cygrad.vdot(u.clone(), matrix.mv(v.clone()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def complete(self, module: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *_: Any) -> None:
        """Before loading, replace the normalized weight that states without a version hold by the vector `v`.

        As v is not saved there, it becomes the least-squares solution of W v = u, with its length chosen so that
        u^T W v is the norm by which the weight was divided.
        """
        noted = local_metadata.get("spectral_norm", {}).get(self.name + ".version")
        weight, original, u = (prefix + self.name + part for part in ("", "_orig", "_u"))
        if (noted is not None and noted >= self.version) or not {weight, original, u} <= state_dict.keys():
            return
        with cygrad.no_grad():
            divided, whole, left = (as_tensor(state_dict[key]) for key in (weight, original, u))
            del state_dict[weight]
            matrix = as_matrix(whole, self.dim)
            right = cygrad.linalg.pinv(matrix) @ left
            norm = (whole / divided).mean()
            state_dict[f"{prefix}{self.name}_v"] = right * (norm / cygrad.dot(left, matrix @ right))

    def note_version(self, module: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        """Write the version into the metadata of a state dict."""
        local_metadata.setdefault("spectral_norm", {})[self.name + ".version"] = self.version


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """The legacy form of `nn.utils.parametrizations.spectral_norm`.

    The parameter becomes `weight_orig`, the estimates of singular vectors are the buffers `weight_u` and
    `weight_v`. Raises `RuntimeError` if the weight is already normalized, `ValueError` if it is uninitialized.

    >>> import cygrad
    >>> from cygrad import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(20, 40))
    >>> sorted(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    hook = SpectralNorm(name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    if hook_on(module, SpectralNorm, name):
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    weight = module._parameters[name]
    if is_lazy(weight):
        raise ValueError(
            "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
            "forward before applying spectral normalization"
        )
    rows, columns = as_matrix(weight.detach(), hook.dim).shape
    u, v = (F.normalize(weight.detach().new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (rows, columns))
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(hook.note_version)
    module._register_load_state_dict_pre_hook(hook.complete, with_module=True)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`: the divided weight is a parameter again. Raises `ValueError` if it is not normalized.

    >>> from cygrad import nn
    >>> m = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> m = nn.utils.remove_spectral_norm(m)
    >>> [name for name, _ in m.named_parameters()]
    ['bias', 'weight']
    """
    hook = take_hook(module, SpectralNorm, name, "spectral_norm")
    with cygrad.no_grad():
        weight = hook.compute_weight(module, do_power_iteration=False)
    delattr(module, name)
    for part in ("orig", "u", "v"):
        delattr(module, f"{name}_{part}")
    module.register_parameter(name, Parameter(weight))
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number, other in list(hooks.items()):
            if getattr(other, "function", other) in (hook.note_version, hook.complete):
                del hooks[number]
    return module
