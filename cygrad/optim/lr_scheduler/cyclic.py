"""Cyclic schedules of learning rates and momentum, after L. Smith."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from cygrad.optim.lr_scheduler.base import LRScheduler, check_optimizer, for_each_group, saved_function, set_value
from cygrad.optim.optimizer import Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


class _WithMomentum(LRScheduler):
    """Base of schedules that move the momentum (or beta1) inversely to the learning rate."""

    use_beta1: bool

    def _begin_momentum(
        self, optimizer: Optimizer, lowest: Any, highest: Any, first: bool
    ) -> tuple[list[Any], list[Any]]:
        """Return the momentum bounds of each group; with `first`, start the momentum at the upper bound."""
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        highs = for_each_group("max_momentum", optimizer, highest)
        lows = for_each_group("base_momentum", optimizer, lowest)
        if first:
            for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return lows, highs

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Raises rates from `base_lr` to `max_lr` in `step_size_up` steps and lowers them in `step_size_down`, repeatedly.

    The rate is base_lr + (max_lr - base_lr) * h * a, where h goes linearly from 0 up to 1 and back in each cycle, and a
    is the amplitude.

    The amplitude of the cycles is constant (`mode="triangular"`), halved after each (`"triangular2"`),
    scaled by `gamma**step` (`"exp_range"`), or by `scale_fn` of the cycle number or of the step
    (`scale_mode="iterations"`). With `cycle_momentum` the momentum moves inversely.

    See L. Smith, "Cyclical Learning Rates for Training Neural Networks", 2015.
    Raises `ValueError` for an unknown mode and optimizers without momentum.

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = cygrad.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.5, max_lr=1.0, step_size_up=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(scheduler.get_last_lr())
    [0.75]
    [1.0]
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        first = last_epoch == -1
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if first:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            bounds = self._begin_momentum(optimizer, base_momentum, max_momentum, first)
            self.base_momentums, self.max_momentums = bounds
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the amplitude of cycle x, or in step x.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0, momentum=0.9)
        >>> scheduler = lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, mode="triangular2")
        >>> [scheduler.scale_fn(cycle) for cycle in (1, 2, 3)]
        [1.0, 0.5, 0.25]
        """
        return self._scale_fn_ref(x) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    def _init_scale_fn(self) -> None:
        """Choose the function of the mode; it is an attribute of this name in PyTorch's files."""
        if self._scale_fn_custom is None:
            functions: dict[str, Callable[[float], float]] = {
                "triangular": self._triangular_scale_fn,
                "triangular2": self._triangular2_scale_fn,
                "exp_range": partial(self._exp_range_scale_fn, self.gamma),
            }
            self._scale_fn_ref = functions[self.mode]

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 0.5 ** (x - 1)

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def get_lr(self) -> list[Any]:
        """Return the rates for `last_epoch`, which counts steps; also sets the momentum.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0, momentum=0.9)
        >>> scheduler = lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, step_size_up=4)
        >>> scheduler.get_last_lr()
        [0.1]
        """
        self._group_rates()  # called for its warning
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        done, top = 1.0 + self.last_epoch / self.total_size - cycle, self.step_ratio  # rounded as PyTorch's
        height = done / top if done <= top else (done - 1) / (top - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return the full state, with only the attributes of `scale_fn` if it is a callable object.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0, momentum=0.9)
        >>> scheduler = lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5)
        >>> scheduler.state_dict()["last_epoch"]
        0
        """
        state = {**super().state_dict(), "_scale_fn_custom": saved_function(self._scale_fn_custom)}
        state.pop("_scale_fn_ref", None)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state returned by `state_dict`, keeping this schedule's own function.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0, momentum=0.9)
        >>> scheduler = lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5)
        >>> scheduler.load_state_dict({**scheduler.state_dict(), "last_epoch": 7})
        >>> scheduler.last_epoch
        7
        """
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])
        self._init_scale_fn()


# The phases of OneCycleLR: the rates and the momenta that each interpolates between.
_UP = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
_DOWN = ("max_lr", "min_lr", "base_momentum", "max_momentum")
_BACK = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
_OUT = ("initial_lr", "min_lr", "max_momentum", "max_momentum")


def _phase(end_step: float, names: tuple[str, str, str, str]) -> dict[str, Any]:
    keys = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return {"end_step": end_step, **dict(zip(keys, names, strict=True))}


class OneCycleLR(_WithMomentum):
    """Raises rates to `max_lr` in the fraction `pct_start` of the steps, from `max_lr / div_factor`, then lowers them.

    At the fraction t of a phase from rate a to rate b, the rate is b + (a - b) * (1 + cos(pi * t)) / 2 with
    `anneal_strategy="cos"`, and a + (b - a) * t with "linear".

    The final rate is the initial one divided by `final_div_factor`. With `three_phase` the descent
    mirrors the ascent, and the remaining steps anneal to the final rate. Phases are half cosines
    (`anneal_strategy="cos"`) or `"linear"`. With `cycle_momentum` the momentum moves inversely.

    See L. Smith and N. Topin, "Super-Convergence: Very Fast Training of Neural Networks Using
    Large Learning Rates", 2017. Raises `ValueError` for options out of range, and when stepping
    past `total_steps` (or `epochs` times `steps_per_epoch`).

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = cygrad.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        up, last = float(pct_start * self.total_steps), self.total_steps - 1
        if three_phase:
            back = float(2 * pct_start * self.total_steps) - 2
            self._schedule_phases = [_phase(up - 1, _UP), _phase(back, _BACK), _phase(last, _OUT)]
        else:
            self._schedule_phases = [_phase(up - 1, _UP), _phase(last, _DOWN)]
        self._anneal_func_type = anneal_strategy
        first = last_epoch == -1
        max_lrs = for_each_group("max_lr", optimizer, max_lr)
        if first:
            for group, rate in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, first)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates for `last_epoch`, which counts steps; also sets the momentum.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0, momentum=0.9)
        >>> scheduler = lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
        >>> [round(lr, 4) for lr in scheduler.get_last_lr()]
        [0.04]
        """
        self._group_rates()  # called for its warning
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start, phase = 0.0, self._schedule_phases[0]
        for following in self._schedule_phases[1:]:
            if step <= phase["end_step"]:
                break
            start, phase = phase["end_step"], following
        done = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], done))
            if self.cycle_momentum:
                momentum = self._anneal_func(group[phase["start_momentum"]], group[phase["end_momentum"]], done)
                self._set_momentum(group, momentum)
        return rates

    def _anneal_func(self, start: Any, end: Any, pct: float) -> Any:
        """Return the rate or momentum at the fraction `pct` of the way from `start` to `end`."""
        if not hasattr(self, "_anneal_func_type"):  # PyTorch's old files hold the function in its place
            return vars(self)["anneal_func"](start, end, pct)
        return (self._annealing_cos if self._anneal_func_type == "cos" else self._annealing_linear)(start, end, pct)

    @staticmethod
    def _annealing_cos(start: Any, end: Any, pct: float) -> Any:
        """Go from `start` to `end` along half a cosine."""
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * pct))

    @staticmethod
    def _annealing_linear(start: Any, end: Any, pct: float) -> Any:
        """Go from `start` to `end` along a line."""
        return (end - start) * pct + start


def _steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is not None:
        return _positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value
