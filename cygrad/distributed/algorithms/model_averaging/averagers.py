"""Averagers of models: `averager.average_parameters(model.parameters())` after each step."""

from abc import ABC, abstractmethod

import cygrad
from cygrad.distributed._c10d.collectives import all_reduce
from cygrad.distributed._c10d.groups import new_subgroups
from cygrad.distributed._c10d.membership import _rank_not_in_group, get_world_size
from cygrad.distributed.distributed_c10d import _get_default_group

__all__ = [
    "HierarchicalModelAverager", "ModelAverager", "PeriodicModelAverager", "average_parameters",
    "average_parameters_or_parameter_groups", "get_params_to_average",
]  # fmt: skip


def average_parameters(params, process_group=None):
    """Average parameters over all processes, in place.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.model_averaging.averagers import average_parameters
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.Linear(2, 1)
    >>> average_parameters(model.parameters(), dist.group.WORLD)
    >>> dist.destroy_process_group()
    """
    group = process_group if process_group is not None else _get_default_group()
    if _rank_not_in_group(group):
        return
    with cygrad.no_grad():
        for parameter in params:
            parameter.div_(get_world_size(group))
            all_reduce(parameter, group=group)


def get_params_to_average(params):
    """The parameters among parameters, or groups of parameters as in an optimizer, that have gradients.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.model_averaging.averagers import get_params_to_average
    >>> model = cygrad.nn.Linear(2, 1)
    >>> len(get_params_to_average(model.parameters()))
    0
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> len(get_params_to_average(model.parameters()))
    2
    """
    found = []
    for each in params:
        parameters = each["params"] if isinstance(each, dict) else [each]
        found += [parameter for parameter in parameters if parameter.grad is not None]
    return found


def average_parameters_or_parameter_groups(params, process_group=None):
    """Average parameters, or those of groups of parameters, that have gradients.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.model_averaging.averagers import average_parameters_or_parameter_groups
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> average_parameters_or_parameter_groups(optimizer.param_groups, dist.group.WORLD)
    >>> dist.destroy_process_group()
    """
    average_parameters(get_params_to_average(params), process_group)


class ModelAverager(ABC):
    """The base of averagers; `step` counts the calls of `average_parameters`.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.model_averaging.averagers import ModelAverager, PeriodicModelAverager
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> averager = PeriodicModelAverager(period=4)
    >>> averager.average_parameters(cygrad.nn.Linear(2, 1).parameters())
    >>> isinstance(averager, ModelAverager), averager.step
    (True, 1)
    >>> dist.destroy_process_group()
    """

    def __init__(self, process_group=None):
        self.process_group = process_group if process_group is not None else _get_default_group()
        self.step = 0

    @abstractmethod
    def average_parameters(self, params):
        """Average the parameters if it is time to."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters in every `period`-th call after the first `warmup_steps`.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.SGD(model.parameters(), lr=0.1)
    >>> averager = PeriodicModelAverager(period=2, warmup_steps=1)
    >>> for _ in range(3):
    ...     model(cygrad.ones(3, 2)).sum().backward()
    ...     optimizer.step()
    ...     averager.average_parameters(model.parameters())
    >>> averager.step
    3
    >>> dist.destroy_process_group()
    """

    def __init__(self, period, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params):
        """Average the parameters if it is time to."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1


class HierarchicalModelAverager(ModelAverager):
    """Averages parameters over groups of several sizes, each with a period of its own.

    >>> import cygrad
    >>> from collections import OrderedDict
    >>> from cygrad.distributed.algorithms.model_averaging.averagers import HierarchicalModelAverager
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> averager = HierarchicalModelAverager(period_group_size_dict=OrderedDict([(2, 1)]))
    >>> averager.average_parameters(cygrad.nn.Linear(2, 1).parameters())
    >>> dist.destroy_process_group()
    """

    def __init__(self, period_group_size_dict=None, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        sizes = list(period_group_size_dict.values())
        if sizes[-1] != self.process_group.size():
            raise ValueError(
                f"The last value in arg ``period_process_group_dict`` {sizes[-1]} must be equal to the size of arg "
                f"``process_group`` {self.process_group.size()}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        whole = self.process_group.size()
        self.period_process_group_dict = {
            period: self.process_group if size == whole else new_subgroups(size, self.process_group)[0]
            for period, size in period_group_size_dict.items()
        }
        self.warmup_steps = warmup_steps

    def average_parameters(self, params):
        """Average the parameters over the largest group whose time it is."""
        if self.step >= self.warmup_steps:
            for period, group in reversed(self.period_process_group_dict.items()):
                if self.step % period == 0:
                    average_parameters_or_parameter_groups(params, group)
                    break
        self.step += 1
