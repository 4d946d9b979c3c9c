"""`Join`: training where processes have different numbers of batches."""

from abc import ABC, abstractmethod

from cygrad.distributed._c10d.groups import get_rank

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does once it is out of batches: `main_hook` until all are, then `post_hook`."""

    def main_hook(self):
        """Take part in the collectives of one iteration of the other processes."""

    def post_hook(self, is_last_joiner):
        """Called once no process has a batch left."""


class Joinable(ABC):
    """An object that takes part in `Join`, such as a model or an optimizer that uses collectives."""

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


class Join:
    """A context in which processes may have different numbers of batches.

    Once a process has left its loop, its objects' hooks take the place of its iterations until all have left
    theirs. In a group of one process this is at once.
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable = list(joinables), enable
        self._throw_on_early_termination = throw_on_early_termination
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables] if enable else []
        self._rank = get_rank(joinables[0].join_process_group) if enable else 0

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if self._enable and kind is None:
            for hook in self._join_hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable):
        """Tell the others that this process still has batches; called before the collectives of each iteration."""
