"""The tensors of an optimizer's state: their dtypes and devices, also after loading."""

from __future__ import annotations

from numbers import Real
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.utils.interop import as_tensor, is_tensor_like

_NUMBERS = ("step", "eta", "mu", "mu_product")  # state entries that the CPU reads in each step
# State entries with squares of gradients, or made of them, which stay in float32 for parameters of half precision: the
# square of 1e-4 is 0 in float16, and a bfloat16 does not change when it is multiplied by 0.999.
_SQUARES = frozenset(
    """
    exp_avg_sq max_exp_avg_sq square_avg acc_delta grad_avg sum row_var col_var variance
    d prev_flat_grad old_dirs old_stps ro H_diag
    """.split()
)


def is_half(tensor: Tensor) -> bool:
    """Whether a tensor is of half precision, in which no step is computed: in float16 the usual `eps` is 0."""
    return tensor.dtype.itemsize == 2 and tensor.is_floating_point()


def widened(tensor: Tensor) -> Tensor:
    """Convert half precision to float32; return other tensors as they are."""
    return tensor.float() if is_half(tensor) else tensor


def state_dtype(name: str, parameter: Tensor) -> Any:
    """Return the dtype of an entry of a parameter's state."""
    return cygrad.float32 if name in _SQUARES and is_half(parameter) else parameter.dtype


def adapted(name: str, value: Any, parameter: Tensor) -> Any:
    """Convert a loaded value to this parameter's state: tensors are copied, with the parameter's dtype and device."""
    if isinstance(value, dict):
        return {k: adapted(k, v, parameter) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(adapted(name, item, parameter) for item in value)
    if not is_tensor_like(value):
        return value
    tensor = as_tensor(value).detach()
    wanted = state_dtype(name, parameter) if name != "step" and parameter.is_floating_point() else tensor.dtype
    return tensor.to("cpu" if name in _NUMBERS else parameter.device, wanted, copy=True)


def converted(parameter: Tensor, values: Any, way: str) -> Any:
    """What is saved ("_state_out") of a parameter's state, or loaded ("_state_in"), if the parameter's class says so.

    A parameter of which this process has only a part (`fully_shard`) turns parts to DTensors and back.
    """
    convert = getattr(type(parameter), way, None)
    return values if convert is None else convert(parameter, values)


def count_in_tensors(state: dict[str, Any], parameter: Tensor, capturable: Any) -> None:
    """Replace numbers in a loaded state by tensors: old PyTorch releases saved step counts as Python numbers."""
    counts = {name: cygrad.tensor(float(n), device="cpu") for name, n in state.items() if isinstance(n, Real)}
    if capturable and parameter.is_cuda:
        count_on_gpu(counts, parameter)
    state.update(counts)


def count_on_gpu(state: dict[str, Any], parameter: Tensor) -> None:
    """Move step counts and similar scalars to the parameter's device, in single precision."""
    for name, value in state.items():
        if isinstance(value, Tensor) and not value.is_cuda and value.dim() == 0:
            state[name] = value.to(parameter.device, cygrad.float32)


def as_real(array: Any) -> Any:
    """View a complex array as real and imaginary parts, which have separate running averages."""
    if array.dtype.kind != "c":
        return array
    return array[..., None].view(array.dtype.char.lower())
