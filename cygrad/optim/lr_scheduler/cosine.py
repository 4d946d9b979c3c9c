"""Schedules along half a cosine: I. Loshchilov and F. Hutter, "SGDR", 2016."""

from __future__ import annotations

import math
from typing import Any

from cygrad.optim.lr_scheduler.base import LRScheduler
from cygrad.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


def _half_cosine(base: Any, eta_min: float, epoch: float, period: float) -> Any:
    """Interpolate from `base` (epoch 0) down to `eta_min` (epoch = period)."""
    return eta_min + (base - eta_min) * (1 + math.cos(math.pi * epoch / period)) / 2


class CosineAnnealingLR(LRScheduler):
    """Anneals to `eta_min` in `T_max` epochs along half a cosine, and back up again:

        eta_min + (initial - eta_min) * (1 + cos(pi * epoch / T_max)) / 2

    Each step scales the current rates, so that other changes to them are preserved.

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates for `last_epoch`, computed from the previous ones.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> scheduler = lr_scheduler.CosineAnnealingLR(cygrad.optim.SGD([cygrad.ones(1)], lr=1.0), T_max=10)
        >>> scheduler.get_last_lr()
        [1.0]
        """
        rates = self._group_rates()
        n, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return rates
        if self._step_count == 1 and n > 0:  # resumed
            return self._get_closed_form_lr()
        if (n - 1 - period) % (2 * period) == 0:  # at the minimum, where the ratio is undefined
            rise = (1 - math.cos(math.pi / period)) / 2
            return [rate + (base - low) * rise for rate, base in zip(rates, self.base_lrs, strict=True)]
        ratio = (1 + math.cos(math.pi * n / period)) / (1 + math.cos(math.pi * (n - 1) / period))
        return [low + (rate - low) * ratio for rate in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        return [_half_cosine(base, self.eta_min, self.last_epoch, self.T_max) for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Anneals along half a cosine with restarts, first in `T_0` epochs, then in periods growing by the factor `T_mult`.

    With T_cur the epochs since the last restart, and T_i the length of the current period:

        eta_min + (initial - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2

    Raises `ValueError` for periods that are not positive integers.

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(scheduler.get_last_lr())
    [0.5]
    [1.0]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0  # the current period
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch  # epochs since the last restart
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates for `T_cur` epochs after the last restart.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> scheduler = lr_scheduler.CosineAnnealingWarmRestarts(cygrad.optim.SGD([cygrad.ones(1)], lr=1.0), T_0=10)
        >>> scheduler.step(5)
        >>> scheduler.get_last_lr()
        [0.5]
        """
        self._group_rates()  # called for its warning
        return [_half_cosine(base, self.eta_min, self.T_cur, self.T_i) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to the given one, which may be fractional.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> scheduler = lr_scheduler.CosineAnnealingWarmRestarts(cygrad.optim.SGD([cygrad.ones(1)], lr=1.0), T_0=10)
        >>> scheduler.step(10)
        >>> scheduler.get_last_lr()
        [1.0]
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._find_period(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _find_period(self, epoch: float) -> None:
        first, growth = self.T_0, self.T_mult
        if epoch < first:
            self.T_i, self.T_cur = first, epoch
        elif growth == 1:
            self.T_cur = epoch % first
        else:  # n complete periods, a geometric sum
            n = int(math.log(epoch / first * (growth - 1) + 1, growth))
            self.T_i = first * growth**n
            self.T_cur = epoch - first * (growth**n - 1) / (growth - 1)
