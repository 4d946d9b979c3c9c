"""Copies between devices with gradients, by the names under which PyTorch's wrappers use them."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]


class Broadcast:
    """Copies of tensors on each of several devices.

    >>> import cygrad
    >>> [copy.shape for copy in Broadcast.apply(["cpu", "meta"], cygrad.ones(2))]
    [torch.Size([2]), torch.Size([2])]
    """

    @staticmethod
    def apply(target_gpus: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors on the first device, then on the second, and so on."""
        return tuple(tensor.to(device) for device in target_gpus for tensor in inputs)


class ReduceAddCoalesced:
    """Sums of tensors from several devices, on one of them.

    >>> import cygrad
    >>> ReduceAddCoalesced.apply("cpu", 1, cygrad.ones(1), cygrad.ones(1))
    (tensor([2.]),)
    """

    @staticmethod
    def apply(destination: Any, num_inputs: int, *grads: Tensor) -> tuple[Tensor, ...]:
        """Return `num_inputs` sums, given that many tensors of each device in turn."""
        here = [grad.to(destination) for grad in grads]
        return tuple(sum(here[i + num_inputs :: num_inputs], here[i]) for i in range(num_inputs))


class Gather:
    """Tensors of several devices, joined on one of them.

    >>> import cygrad
    >>> Gather.apply("cpu", 0, cygrad.ones(1), cygrad.zeros(1))
    tensor([1., 0.])
    """

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Tensor) -> Tensor:
        """Return the tensors one after another along `dim`; numbers (0-dim) become a vector."""
        here = [tensor.to(target_device) for tensor in inputs]
        return cygrad.stack(here) if dim == 0 and not here[0].dim() else cygrad.cat(here, dim)


class Scatter:
    """Parts of a tensor, each on a device of its own.

    >>> import cygrad
    >>> Scatter.apply(["cpu", "cpu"], None, 0, cygrad.arange(3))
    (tensor([0, 1]), tensor([2]))
    """

    @staticmethod
    def apply(target_gpus: Any, chunk_sizes: Any, dim: int, input: Tensor) -> tuple[Tensor, ...]:
        """Return equal parts along `dim`, or parts of the sizes `chunk_sizes`."""
        parts = input.chunk(len(target_gpus), dim) if chunk_sizes is None else input.split(chunk_sizes, dim)
        return tuple(part.to(device) for part, device in zip(parts, target_gpus))


def _get_stream(device: Any) -> None:
    """Return the stream for copies to a device: None, since they are made on the current one."""
