"""Lists of tensors by device and dtype, for optimizers of other packages."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor

__all__ = ["_group_tensors_by_device_and_dtype", "_has_foreach_support"]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the kinds of devices, besides the CPU, for which PyTorch joins the kernels of lists of tensors."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the kinds of devices for which PyTorch has fused optimizers."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device: Any) -> bool:
    """Whether the kernels of lists of tensors are joined on a device."""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    """Whether they are joined for these tensors."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Return {(device, dtype): (lists, indices)}: each list has the tensors whose counterparts in the first list are of
    that kind; `indices`, their places, only if asked for.

    >>> import cygrad
    >>> from cygrad.utils._foreach_utils import _group_tensors_by_device_and_dtype
    >>> params = [cygrad.ones(1), cygrad.ones(2, dtype=cygrad.float64), cygrad.ones(3)]
    >>> [(kind, places) for (_, kind), (_, places) in _group_tensors_by_device_and_dtype([params], True).items()]
    [(torch.float32, [0, 2]), (torch.float64, [1])]
    """
    places: dict[tuple[Any, Any], list[int]] = {}
    for i, tensor in enumerate(tensorlistlist[0]):
        places.setdefault((tensor.device, tensor.dtype), []).append(i)
    return {
        kind: ([[each[i] for i in at] if each else [] for each in tensorlistlist], at if with_indices else [])
        for kind, at in places.items()
    }
