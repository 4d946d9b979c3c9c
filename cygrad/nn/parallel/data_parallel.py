"""`DataParallel`, for one device."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from cygrad.nn.modules import Module

__all__ = ["DataParallel", "data_parallel"]

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
        """Call the wrapped module.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.DataParallel(nn.Linear(2, 3))
        >>> m(cygrad.ones(4, 2)).shape
        torch.Size([4, 3])
        """
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call `module(*inputs, **module_kwargs)`, as PyTorch's function does on a single device.

    >>> import cygrad
    >>> from cygrad import nn
    >>> nn.parallel.data_parallel(nn.Linear(2, 3), cygrad.ones(4, 2)).shape
    torch.Size([4, 3])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
