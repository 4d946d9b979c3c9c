"""Means over the elements of all processes, which may have different numbers of them.

The mean of the processes' means is not the mean over all elements unless each process has as many: with texts of
different lengths, say, a token would count for more in a process with few.
"""

from typing import Any

import cygrad
from cygrad.distributed._c10d.membership import _get_group
from cygrad.distributed._deterministic import get_shards

__all__ = ["AVERAGES", "check_average", "mean_loss"]

AVERAGES = ("ranks", "sum")


def check_average(average: str, where: str) -> None:
    """Raise ValueError unless `average` is one of `AVERAGES`."""
    if average not in AVERAGES:
        raise ValueError(f'{where}: average must be "ranks" or "sum", but got {average!r}')


def mean_loss(sum: Any, count: Any, group: Any = None, *, average: str = "ranks") -> Any:
    """The loss of this process whose gradients, reduced over all processes, are those of the mean over all elements.

    sum: the loss added up over the elements of this process. count: how many there are, a number or a tensor of one
    element; 0 in a process without any. The result is `sum * world_size / total count`, for a
    `DistributedDataParallel` or `fully_shard`, which average gradients over processes; the mean of its values over
    processes is the mean loss. With `average="sum"` it is `sum / total count`, for a `DistributedDataParallel` made
    with that argument, which adds them up.

    All processes of the group call it, equally often. With several backward passes before a step, `count` is each time
    that of all of them. Gradients flow to `sum`, not to `count`; without any element the result is NaN.

    Raises RuntimeError within `deterministic`, where processes have different numbers of micro-batches, and TypeError
    unless `sum` is a tensor of floating-point numbers.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed._fake import simulate
    >>> def train():
    ...     losses = cygrad.arange(1.0, 2.0 + 2 * dist.get_rank())  # one in rank 0, three in rank 1
    ...     return dist.mean_loss(losses.sum(), len(losses)).item()
    >>> simulate(train, 2)  # with the mean 1.75, as of 1, 1, 2 and 3
    [0.5, 3.0]
    """
    check_average(average, "mean_loss()")
    if get_shards() is not None:
        raise RuntimeError(
            "mean_loss(): with distributed.deterministic(True) processes have different numbers of micro-batches, and "
            "cannot meet in each\n"
            '  to fix it: divide by the number of elements in the step, and pass `average="sum"` to '
            "`DistributedDataParallel`"
        )
    group = _get_group(group)
    if not isinstance(sum, cygrad.Tensor) or not sum.is_floating_point():
        kind = f"one of {sum.dtype}" if isinstance(sum, cygrad.Tensor) else type(sum).__name__
        raise TypeError(f"mean_loss(): sum must be a floating-point tensor, but got {kind}")
    if isinstance(count, cygrad.Tensor):
        if count.numel() != 1:
            raise ValueError(f"mean_loss(): count must have one element, but has the shape {tuple(count.shape)}")
        total = count.detach().to(device=sum.device, dtype=cygrad.float64, copy=True).reshape(())
    else:
        total = cygrad.tensor(float(count), dtype=cygrad.float64, device=sum.device)
    group.allreduce([total]).wait()
    scale = group.size() / total if average == "ranks" else 1 / total
    return (sum * scale).to(sum.dtype)
