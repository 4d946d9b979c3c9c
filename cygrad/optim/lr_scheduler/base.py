"""LRScheduler, the base of all schedules, and helpers that read and set group options."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any, Self

from cygrad import Tensor
from cygrad.optim.optimizer import Optimizer
from cygrad.utils.warning import warn

__all__ = ["LRScheduler"]

_ORDER_PAGE = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make "
    "sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at " + _ORDER_PAGE
)
_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. See more details at " + _ORDER_PAGE
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)


class LRScheduler:
    """Sets the learning rates of an optimizer's groups, step by step.

    Subclasses define `get_lr`, which computes the rates for `self.last_epoch`. The initial rates
    are stored as `"initial_lr"` in the groups. A `last_epoch` other than -1 resumes a schedule.

    Raises `TypeError` unless `optimizer` is an optimizer, `KeyError` if a schedule is resumed whose
    groups have no `"initial_lr"`.

    >>> import cygrad
    >>> class Halves(cygrad.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = Halves(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0.\nLoad the state of the optimizer first, or leave last_epoch out."
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, after the optimizer's step (or to the given epoch: deprecated).

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0)
        >>> scheduler = lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
        """
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_is_watched"):
                warn(_OVERRIDDEN)
            elif not getattr(self.optimizer, "_has_stepped", False):
                warn(_ORDER)
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set_rates(closed_form or self.get_lr)

    def _set_rates(self, compute: Callable[[], list[Any]]) -> None:
        with _enable_get_lr_call(self):
            rates = compute()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", rate)
        self._last_lr = values_of(self.optimizer, "lr")

    def get_lr(self) -> list[Any]:
        """Return the rates for `last_epoch`, one per group; use `get_last_lr` to read the current ones.

        A schedule defines this method.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> class Halving(lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
        >>> optimizer = cygrad.optim.SGD([cygrad.ones(1)], lr=1.0)
        >>> scheduler = Halving(optimizer)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
        """
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """Return the rates set by the last step, one per group.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> lr_scheduler.StepLR(cygrad.optim.SGD([cygrad.ones(1)], lr=1.0), step_size=2).get_last_lr()
        [1.0]
        """
        return self._last_lr

    def _group_rates(self) -> list[Any]:
        """Return the current rates of the groups, for a `get_lr` that modifies them."""
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return values_of(self.optimizer, "lr")

    def state_dict(self) -> dict[str, Any]:
        """Return the full state of the schedule, except the optimizer.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> scheduler = lr_scheduler.StepLR(cygrad.optim.SGD([cygrad.ones(1)], lr=1.0), step_size=2)
        >>> scheduler.state_dict()["step_size"]
        2
        """
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state returned by `state_dict`.

        >>> import cygrad
        >>> from cygrad.optim import lr_scheduler
        >>> scheduler = lr_scheduler.StepLR(cygrad.optim.SGD([cygrad.ones(1)], lr=1.0), step_size=2)
        >>> scheduler.load_state_dict({**scheduler.state_dict(), "last_epoch": 7})
        >>> scheduler.last_epoch
        7
        """
        self.__dict__.update(state_dict)


class _enable_get_lr_call:
    """A block in which `get_lr` of a schedule may be called, for schedules of other packages."""

    _name = "_get_lr_called_within_step"

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> Self:
        setattr(self.o, self._name, True)
        return self

    def __exit__(self, *error: Any) -> None:
        setattr(self.o, self._name, False)


class _initial_mode(_enable_get_lr_call):
    """A block in which a schedule makes its first step."""

    _name = "_is_initial"


def _watch_steps(optimizer: Any) -> None:
    """Record calls of the optimizer's `step`, for the warning about the call order."""
    if hasattr(optimizer.step, "_is_watched"):
        return
    step = optimizer.step.__func__
    weak = weakref.ref(optimizer)  # avoids a cycle: the optimizer holds this function

    @functools.wraps(step)
    def noted(*args: Any, **kwargs: Any) -> Any:
        stepping: Any = weak()
        stepping._has_stepped = True
        return step(stepping, *args, **kwargs)

    noted._is_watched = True  # type: ignore[attr-defined]
    optimizer.step = noted


# --- Shared helpers --


def check_optimizer(optimizer: Any) -> None:
    """Raise `TypeError` unless this is an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def warn_of_epoch() -> None:
    """Warn the caller of `step` that its argument is deprecated."""
    warn(EPOCH_DEPRECATION_WARNING)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


class _LRScheduler(LRScheduler):
    """Deprecated alias, for user-defined schedules derived from it."""


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """Return an option of each group; tensors are copied, since steps modify them in place."""
    return [_copied(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option of a group; an existing tensor is updated in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return one value per group as a list, given one for all or a list; raise `ValueError` for a wrong length."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {groups}."
        )
    return [_copied(v) for v in value]


def saved_function(function: Any) -> dict[str, Any] | None:
    """Return the part of a function that a state dict keeps: the attributes of a callable object."""
    return None if function is None or isinstance(function, types.FunctionType) else function.__dict__.copy()
