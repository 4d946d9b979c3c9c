"""Ending a training in order when the scheduler takes the machines away: `should_stop`.

Slurm and others warn a job by a signal some time before they end it (`sbatch --signal=USR1@120 --requeue`). Not all
processes get it, nor all in the same step, so that they have to agree on the step after which they save and leave.
"""

import signal
import threading
from collections.abc import Iterable
from typing import Any

import cygrad
from cygrad.distributed._c10d.membership import _get_group, _rank_not_in_group
from cygrad.distributed._c10d.reduce_ops import ReduceOp

__all__ = ["should_stop"]

_watched: set[int] = set()  # signals whose handler is ours
_has_come = threading.Event()


def should_stop(group: Any = None, *, signals: Iterable[str] = ("SIGUSR1",)) -> bool:
    """Whether a process of the group has been told by a signal to stop: a collective, with the same answer in all.

    Call it once per step, in all processes, and save and leave the loop if it is True. From its first call on the
    `signals` (names, such as "SIGTERM") no longer end the process; a handler that the program has set before is called
    as well. When a signal comes a second time, it does what it did before that call. Once True, it stays True.

    It costs an `all_reduce` of one element. Only the main thread can watch signals: called first in another, it
    answers for the other processes alone. Raises ValueError for an unknown name of a signal, and if there is no group.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.should_stop()
    False
    >>> dist.destroy_process_group()
    """
    _watch([_number(name) for name in signals])
    if _rank_not_in_group(group):
        return _has_come.is_set()
    group = _get_group(group)
    device = group._device_types[0]
    told = cygrad.tensor([int(_has_come.is_set())], dtype=cygrad.int32, device=device)
    group.allreduce([told], ReduceOp.MAX).wait()
    if told.item():
        _has_come.set()
    return bool(told.item())


def _number(name: str) -> int:
    """The number of a signal; 0 for one that this system does not have."""
    if not isinstance(name, str) or not name.startswith("SIG") or not name.isalnum():
        raise ValueError(f'should_stop(): expected names of signals, such as "SIGUSR1", but got {name!r}')
    number = getattr(signal, name, None)
    if number is None and not hasattr(signal, "SIGUSR1"):
        return 0  # Windows has few signals, and no scheduler that sends others
    if number is None:
        raise ValueError(f"should_stop(): there is no signal {name}")
    return int(number)


def _watch(numbers: list[int]) -> None:
    """Let signals set the flag, from now on."""
    if _has_come.is_set() or threading.current_thread() is not threading.main_thread():
        return
    for number in set(numbers) - _watched - {0}:
        _watched.add(number)
        former = signal.getsignal(number)

        def note(got: int, frame: Any, former: Any = former) -> None:
            _has_come.set()
            signal.signal(got, former if former is not None else signal.SIG_DFL)
            _watched.discard(got)
            if callable(former):
                former(got, frame)

        signal.signal(number, note)
