"""Schedules composed of other schedules."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

from cygrad.optim.lr_scheduler.base import LRScheduler, set_value, values_of
from cygrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from cygrad.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Combined(LRScheduler):
    """Base of schedules composed of others, stored in `_schedulers`."""

    _schedulers: Sequence[Any]

    def _check(self, optimizer: Any, schedulers: Sequence[Any]) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Return the full state of the schedules, except the optimizer."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state returned by `state_dict`."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            scheduler.load_state_dict(saved)


class SequentialLR(_Combined):
    """Runs schedules one after another: at each epoch in `milestones` the next one starts, at its epoch 0.

    Raises `ValueError` unless there is one more schedule than milestones, all for this optimizer.

    >>> import cygrad
    >>> from cygrad.optim import lr_scheduler
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> warm_up = lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> decay = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = lr_scheduler.SequentialLR(optimizer, [warm_up, decay], milestones=[2])
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(scheduler.get_last_lr())
    [0.75]
    [1.0]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # undo the initial step that each schedule has made
            set_value(group, "lr", group["initial_lr"])
        _uncount(schedulers)
        current = schedulers[bisect.bisect_right(milestones, 0)]
        current._initial_step()
        self._last_lr = current.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Advance the active schedule to the next epoch.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0)
        >>> parts = [lr_scheduler.ConstantLR(optimizer, 0.1), lr_scheduler.ExponentialLR(optimizer, 0.5)]
        >>> scheduler = lr_scheduler.SequentialLR(optimizer, parts, milestones=[1])
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [1.0]
        """
        self.last_epoch += 1
        current = self._schedulers[bisect.bisect_right(self._milestones, self.last_epoch)]
        if self.last_epoch in self._milestones:  # the first epoch of the active schedule
            current._update_lr(0)
        else:
            current.step()
        self._last_lr = current.get_last_lr()


def _uncount(schedulers: Sequence[Any]) -> None:
    """Undo the epoch that each schedule counted on construction; recurse into combined ones."""
    for scheduler in schedulers:
        if isinstance(scheduler, _Combined):
            _uncount(scheduler._schedulers)
        else:
            scheduler.last_epoch -= 1


class ChainedScheduler(_Combined):
    """Applies several schedules at once: each modifies the rates left by the previous ones.

    Raises `ValueError` unless there are schedules, all for one optimizer.

    >>> import cygrad
    >>> from cygrad.optim import lr_scheduler
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> first = lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=4)
    >>> second = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = lr_scheduler.ChainedScheduler([first, second])
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = values_of(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Advance every schedule to the next epoch.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0)
        >>> parts = [lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.ConstantLR(optimizer, 0.1)]
        >>> scheduler = lr_scheduler.ChainedScheduler(parts)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.05]
        """
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values_of(self.optimizer, "lr")
