"""Schedules that multiply the learning rates by a factor."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from cygrad.optim.lr_scheduler.base import LRScheduler, saved_function
from cygrad.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]


class _ByFunctions(LRScheduler):
    """Base of schedules defined by a function of the epoch, or one per group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(functions) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(functions)}")
        self.lr_lambdas: list[Any] = functions
        self._check_functions()
        super().__init__(optimizer, last_epoch)

    def _check_functions(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        """Return the full state, with only the attributes of functions that are callable objects."""
        return {**super().state_dict(), "lr_lambdas": [saved_function(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state returned by `state_dict`, keeping this schedule's own functions."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if saved is not None:
                function.__dict__.update(saved)


class LambdaLR(_ByFunctions):
    """Sets the rate to the initial one times `lr_lambda(epoch)`; a list holds one function per group.

    The rate is initial * lr_lambda(epoch).

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1))
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[Any]:
        """Return the rates for `last_epoch`.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0)
        >>> lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch).get_last_lr()
        [1.0]
        """
        self._group_rates()  # called for its warning
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunctions):
    """Multiplies the rate by `lr_lambda(epoch)` in each epoch.

    The rate is initial * lr_lambda(1) * ... * lr_lambda(epoch).

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def _check_functions(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")

    def get_lr(self) -> list[Any]:
        """Return the rates for `last_epoch`, computed from the previous ones.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0)
        >>> scheduler = lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
        """
        rates = self._group_rates()
        if self._is_initial:
            return rates
        return [rate * f(self.last_epoch) for rate, f in zip(rates, self.lr_lambdas, strict=True)]


class _ByFactor(LRScheduler):
    """Base of schedules whose rate in epoch n is the initial rate times `_factor(n)`.

    A step multiplies the current rates by `_ratio(n)`, so that schedules can be chained.
    """

    def _factor(self, n: int) -> float:
        raise NotImplementedError

    def _ratio(self, n: int) -> float:
        if n == 0:
            return self._factor(0)
        return 1.0 if self._is_initial else self._factor(n) / self._factor(n - 1)

    def get_lr(self) -> list[Any]:
        """Return the rates for `last_epoch`, computed from the previous ones."""
        rates = self._group_rates()
        ratio = self._ratio(self.last_epoch)
        return [rate * ratio for rate in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._factor(self.last_epoch)
        return [base * factor for base in self.base_lrs]


class StepLR(_ByFactor):
    """Multiplies the rate by `gamma` every `step_size` epochs: `initial * gamma ** (epoch // step_size)`.

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return self.gamma ** (n // self.step_size)

    def _ratio(self, n: int) -> float:
        return self.gamma if n and n % self.step_size == 0 else 1.0


class MultiStepLR(_ByFactor):
    """Multiplies the rate by `gamma` at each epoch in `milestones`: after k of them, it is `initial * gamma ** k`.

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return self.gamma ** bisect.bisect_right(sorted(self.milestones.elements()), n)

    def _ratio(self, n: int) -> float:
        return self.gamma ** self.milestones.get(n, 0)


class ConstantLR(_ByFactor):
    """Scales the initial rate by `factor` until epoch `total_iters`.

    The rate is initial * factor if epoch < total_iters, else initial.

    Raises `ValueError` for a factor outside [0, 1].

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> cygrad.optim.lr_scheduler.ConstantLR(optimizer, factor=0.25).get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return 1.0 if n >= self.total_iters else self.factor

    def _ratio(self, n: int) -> float:
        if n == 0:
            return self.factor
        return 1.0 / self.factor if n == self.total_iters else 1.0


class LinearLR(_ByFactor):
    """Scales the initial rate by a factor going linearly from `start_factor` to `end_factor` in `total_iters` epochs.

    The factor is start_factor + (end_factor - start_factor) * min(epoch, total_iters) / total_iters.

    Raises `ValueError` unless `start_factor` is in (0, 1] and `end_factor` in [0, 1].

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return self.start_factor + (self.end_factor - self.start_factor) * min(self.total_iters, n) / self.total_iters

    def _ratio(self, n: int) -> float:
        if n == 0:
            return self.start_factor
        if self._is_initial or n > self.total_iters:
            return 1.0
        gain = self.end_factor - self.start_factor
        return 1.0 + gain / (self.total_iters * self.start_factor + (n - 1) * gain)  # rounded as PyTorch's


class ExponentialLR(_ByFactor):
    """Multiplies the rate by `gamma` in each epoch: `initial * gamma ** epoch`.

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return self.gamma**n

    def _ratio(self, n: int) -> float:
        return 1.0 if self._is_initial else self.gamma


class PolynomialLR(_ByFactor):
    """Scales the initial rate by `(1 - epoch / total_iters)**power`, which is 0 from epoch `total_iters` on.

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self, n: int) -> float:
        return (1.0 - min(self.total_iters, n) / self.total_iters) ** self.power

    def _ratio(self, n: int) -> float:
        if self._is_initial or n > self.total_iters:
            return 1.0
        return ((1.0 - n / self.total_iters) / (1.0 - (n - 1) / self.total_iters)) ** self.power  # likewise
