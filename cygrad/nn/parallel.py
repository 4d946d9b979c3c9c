"""PyTorch's data-parallel wrappers, for at most one device."""

from __future__ import annotations

import sys
from typing import Any, Generic, TypeVar

from cygrad.nn.modules import Module

__all__ = ["DataParallel", "DistributedDataParallel"]

T = TypeVar("T", bound=Module)


class DataParallel(Module, Generic[T]):
    """Calls `module`, as PyTorch's class does on a single device.

    As in PyTorch, the names in its `state_dict()` start with `module.`. Raises ValueError for several devices.

    >>> import cygrad
    >>> model = cygrad.nn.DataParallel(cygrad.nn.Linear(2, 1))
    >>> model(cygrad.ones(3, 2)).shape, list(model.state_dict())
    (torch.Size([3, 1]), ['module.weight', 'module.bias'])
    """

    def __init__(self, module: T, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"nn.DataParallel(device_ids={list(device_ids)}): cygrad computes on one device\n"
                "  leave `device_ids` out"
            )
        self.module: T = module
        self.dim, self.device_ids, self.output_device = dim, list(device_ids or []), output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the wrapped module."""
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """Raises ValueError on construction: there are no process groups. Exists because programs import it regardless."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group.\n"
            "  cygrad trains in one process: use the module itself unless `torch.distributed.is_available()`"
        )


# PyTorch has a module for each of the two.
sys.modules.update({f"{__name__}.{_name}": sys.modules[__name__] for _name in ("data_parallel", "distributed")})
