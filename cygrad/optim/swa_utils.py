"""Model averaging over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn.modules.module import Module
from cygrad.nn.modules.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from cygrad.optim.lr_scheduler.base import LRScheduler, for_each_group, set_value
from cygrad.optim.optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


# --- Averages --


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return an `avg_fn` for `AveragedModel`: the exponential average, decay * average + (1 - decay) * parameter.

    >>> import cygrad
    >>> average = cygrad.optim.swa_utils.get_ema_avg_fn(0.9)
    >>> average(cygrad.tensor([1.0]), cygrad.tensor([2.0]), 3)
    tensor([1.1000])
    """
    _check_decay(decay)

    @cygrad.no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return ema_param * decay + current_param * (1 - decay)

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return an `avg_fn` for `AveragedModel`: the mean of all models, average + (parameter - average) / (n + 1).

    >>> import cygrad
    >>> average = cygrad.optim.swa_utils.get_swa_avg_fn()
    >>> average(cygrad.tensor([4.0]), cygrad.tensor([8.0]), 1)
    tensor([6.])
    """

    @cygrad.no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[list[Tensor], list[Tensor], Any], None]:
    """Return a `multi_avg_fn` for `AveragedModel`: the exponential average of a list of tensors, in place.

    Each average becomes decay * average + (1 - decay) * parameter.

    >>> import cygrad
    >>> average = cygrad.optim.swa_utils.get_ema_multi_avg_fn(0.75)
    >>> averaged = [cygrad.tensor([4.0])]
    >>> average(averaged, [cygrad.tensor([8.0])], 1)
    >>> averaged
    [tensor([5.])]
    """
    _check_decay(decay)

    @cygrad.no_grad()
    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _: Any) -> None:
        for average, current in zip(ema_param_list, current_param_list):
            if _has_lerp(average):
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[list[Tensor], list[Tensor], Any], None]:
    """Return a `multi_avg_fn` for `AveragedModel`: the mean of all models so far, for a list of tensors, in place.

    Each average becomes average + (parameter - average) / (n + 1).

    >>> import cygrad
    >>> average = cygrad.optim.swa_utils.get_swa_multi_avg_fn()
    >>> averaged = [cygrad.tensor([4.0])]
    >>> average(averaged, [cygrad.tensor([8.0])], 1)
    >>> averaged
    [tensor([6.])]
    """

    @cygrad.no_grad()
    def swa_update(averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any) -> None:
        for average, current in zip(averaged_param_list, current_param_list):
            if _has_lerp(average):
                average.lerp_(current, 1 / (float(num_averaged) + 1))
            else:
                average.addcdiv_(current - average, cygrad.as_tensor(num_averaged) + 1)

    return swa_update


def _has_lerp(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over the models passed to `update_parameters`.

    `avg_fn(average, parameter, n)` returns the next average after n models; `multi_avg_fn` receives lists and works in
    place. If neither is given, the mean is computed, as average + (parameter - average) / (n + 1); passing both
    raises AssertionError. With `use_buffers` buffers are averaged as well; otherwise they are copied from the model.

    >>> import cygrad
    >>> from cygrad.optim.swa_utils import AveragedModel
    >>> model = cygrad.nn.Linear(1, 1, bias=False)
    >>> average = AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = cygrad.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average(cygrad.ones(1, 1)).item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[list[Tensor], list[Tensor], Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", cygrad.tensor(0, dtype=cygrad.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model.

        >>> import cygrad
        >>> m = cygrad.optim.swa_utils.AveragedModel(cygrad.nn.Linear(2, 3))
        >>> m(cygrad.ones(4, 2)).shape
        torch.Size([4, 3])
        """
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Include the current parameters of `model` in the average.

        >>> import cygrad
        >>> model = cygrad.nn.Linear(1, 1)
        >>> averaged = cygrad.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 3.0):
        ...     weight = cygrad.nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight.item()
        2.0
        """
        mine, theirs = (
            [tensor.detach() for tensor in (*each.parameters(), *(each.buffers() if self.use_buffers else ()))]
            for each in (self.module, model)
        )
        from cygrad._core.replay.decisions import decide  # few programs need it

        if decide(self.n_averaged == 0):
            for average, current in zip(mine, theirs):
                average.copy_(current)
        else:
            self._average(mine, theirs)
        if not self.use_buffers:
            for average, current in zip(self.module.buffers(), model.buffers()):
                average.detach().copy_(current.detach())
        self.n_averaged += 1

    def _average(self, mine: list[Tensor], theirs: list[Tensor]) -> None:
        if self.multi_avg_fn is None:
            avg_fn = self.avg_fn or get_swa_avg_fn()
            for average, current in zip(mine, theirs):
                average.copy_(avg_fn(average, current, self.n_averaged))
            return
        groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for pair in zip(mine, theirs):
            for tensors, tensor in zip(groups.setdefault(pair[0].dtype, ([], [])), pair):
                tensors.append(tensor)
        for of_one_type in groups.values():
            self.multi_avg_fn(*of_one_type, self.n_averaged)


@cygrad.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of a model's batch norms in one pass over the data.

    If batches are lists or tuples, their first element is the input. The mode of the model is restored afterwards.

    >>> import cygrad
    >>> norm = cygrad.nn.BatchNorm1d(1)
    >>> cygrad.optim.swa_utils.update_bn([cygrad.tensor([[1.0], [3.0]]), cygrad.tensor([[5.0], [7.0]])], norm)
    >>> norm.running_mean
    tensor([4.])
    """
    norms = [module for module in model.modules() if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d))]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # cumulative mean over the batches
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    model.train(was_training)


# --- The schedule --


class SWALR(LRScheduler):
    """Moves the learning rates to `swa_lr` over `anneal_epochs` epochs, along a cosine or a line, and keeps them there.

    With t = min(1, epoch / anneal_epochs) and s = (1 - cos(pi * t)) / 2, or s = t with
    `anneal_strategy="linear"`, the rate is
    (1 - s) * initial + s * swa_lr.

    `swa_lr` is a number, or a list with one per group. Raises `ValueError` if `anneal_strategy` is neither `"cos"`
    nor `"linear"`, and unless `anneal_epochs` is a nonnegative int.

    >>> import cygrad
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for group, rate in zip(optimizer.param_groups, for_each_group("swa_lr", optimizer, swa_lr)):
            if isinstance(group.get("swa_lr"), Tensor):
                set_value(group, "swa_lr", rate)
            else:
                group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates for this step, computed from the previous ones.

        >>> import cygrad
        >>> scheduler = cygrad.optim.swa_utils.SWALR(cygrad.optim.SGD([cygrad.ones(1)], lr=1.0), swa_lr=0.1)
        >>> scheduler.get_last_lr()
        [1.0]
        """
        rates = self._group_rates()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        found = []
        for group, rate in zip(self.optimizer.param_groups, rates):
            goal = group["swa_lr"]
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            found.append(goal * now + start * (1 - now))
        return found

    def _share(self, step: int) -> float:
        """Return the fraction of the way to `swa_lr` covered after `step` steps."""
        return self.anneal_func(max(0.0, min(1.0, step / max(1, self.anneal_epochs))))

    @property
    def anneal_func(self) -> Callable[[float], float]:
        """The function of the fraction of epochs that gives the fraction of the way."""
        return self._linear_anneal if self._anneal_strategy == "linear" else self._cosine_anneal

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t
