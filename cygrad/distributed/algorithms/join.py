"""`Join`: training where processes have different numbers of batches."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import cygrad
from cygrad.distributed._c10d.collectives import all_reduce
from cygrad.distributed._c10d.membership import get_rank

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does once it is out of batches: `main_hook` until all are, then `post_hook`.

    >>> from cygrad.distributed.algorithms import JoinHook
    >>> class Hook(JoinHook):
    ...     def main_hook(self):
    ...         print("joins one collective")
    >>> hook = Hook()
    >>> hook.main_hook(), hook.post_hook(is_last_joiner=True)
    joins one collective
    (None, None)
    """

    def main_hook(self):
        """Take part in the collectives of one iteration of the other processes."""

    def post_hook(self, is_last_joiner):
        """Called once no process has a batch left; `is_last_joiner` in those that have had the most batches."""


@dataclass(frozen=True)
class _JoinConfig:
    """What an object in a `Join` context must know: whether it is to tell the others that it goes on."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """An object that takes part in `Join`, such as a model or an optimizer that uses collectives.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms import Joinable
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> isinstance(model, Joinable), type(model.join_hook()).__name__
    (True, 'DataParallelJoinHook')
    >>> dist.destroy_process_group()
    """

    _join_config = _JoinConfig()

    @abstractmethod
    def __init__(self):
        super().__init__()

    @abstractmethod
    def join_hook(self, **kwargs):
        """Return the `JoinHook` of this object."""

    @property
    @abstractmethod
    def join_device(self):
        """The device for the collectives of `Join`."""

    @property
    @abstractmethod
    def join_process_group(self):
        """The group for the collectives of `Join`."""


Joinable.register(cygrad.nn.parallel.DistributedDataParallel)


class Join:
    """A context in which processes may have different numbers of batches.

    Each iteration begins with a small all-reduce in which processes tell each other whether they still have a batch.
    Once a process has left its loop, its objects' hooks take the place of its iterations until all have left theirs.
    With `throw_on_early_termination` all processes raise RuntimeError instead, as soon as one is out of batches.
    Raises ValueError without an object, or if the objects' groups differ.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed.algorithms.join import Join
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
    >>> with Join([model]):
    ...     for _ in range(3):
    ...         model(cygrad.ones(1, 2)).sum().backward()
    >>> dist.destroy_process_group()
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable = list(joinables), enable
        self._throw_on_early_termination = throw_on_early_termination
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables] if enable else []
        groups = [joinable.join_process_group for joinable in joinables]
        if any(group is not groups[0] for group in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._process_group, self._device = groups[0], joinables[0].join_device
        self._rank = get_rank(self._process_group) if enable else 0

    def __enter__(self):
        for place, joinable in enumerate(self._joinables):
            joinable._join_config = _JoinConfig(self._enable, self._throw_on_early_termination, place == 0)
        return self

    def __exit__(self, kind, value, traceback):
        try:
            if self._enable and kind is None:
                self._accompany()
        finally:
            for joinable in self._joinables:
                joinable._join_config = _JoinConfig()

    def _accompany(self):
        """Take part in the iterations of the others until none has a batch left."""
        is_last = True
        while _count_active(self._process_group, self._device, 0):
            if self._throw_on_early_termination:
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.\n  others still have batches")
            for hook in self._join_hooks:
                hook.main_hook()
            is_last = False
        for hook in self._join_hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable):
        """Tell the others that this process still has batches; called before the collectives of each iteration.

        Returns the number of processes that have, or None outside of a `Join` context, and for all but its first
        object.

        >>> import cygrad
        >>> from cygrad.distributed.algorithms import Join
        >>> import cygrad.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = cygrad.nn.parallel.DistributedDataParallel(cygrad.nn.Linear(2, 1))
        >>> with Join([model]):
        ...     print(Join.notify_join_context(model))  # how many processes have a batch
        1
        >>> dist.destroy_process_group()
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        count = _count_active(joinable.join_process_group, joinable.join_device, 1)
        group = joinable.join_process_group
        if config.throw_on_early_termination and count < group.size():
            raise RuntimeError(
                "Detected at least one rank that exhausted inputs. Throwing across all ranks.\n"
                f"  rank {group.rank()} still has batches"
            )
        return count


def _count_active(group, device, mine):
    count = cygrad.full((1,), mine, dtype=cygrad.int64, device=device)
    all_reduce(count, group=group)
    return int(count.item())
