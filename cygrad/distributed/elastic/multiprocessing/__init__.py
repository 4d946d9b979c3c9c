"""The processes that a launcher starts: their errors, and where their output goes."""

import re
import sys
from dataclasses import dataclass
from enum import IntFlag

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.elastic.multiprocessing import errors as errors
from cygrad.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ErrorHandler,
    ProcessFailure,
    get_error_handler,
    record,
)

__all__ = [
    "ChildFailedError", "DefaultLogsSpecs", "ErrorHandler", "LogsSpecs", "ProcessFailure", "SignalException", "Std",
    "get_error_handler", "record", "to_map",
]  # fmt: skip


class SignalException(Exception):
    """A launcher was told by a signal, `sigval`, to end.

    >>> import signal
    >>> from cygrad.distributed.elastic.multiprocessing import SignalException
    >>> SignalException("the job was cancelled", signal.SIGTERM).sigval.name
    'SIGTERM'
    """

    def __init__(self, msg, sigval):
        super().__init__(msg)
        self.sigval = sigval


class Std(IntFlag):
    """Which of the standard streams are redirected or shown.

    >>> from cygrad.distributed.elastic.multiprocessing import Std
    >>> Std.OUT | Std.ERR == Std.ALL
    True
    >>> Std.from_str("3") is Std.ALL, Std.from_str("0:1,1:0") == {0: Std.OUT, 1: Std.NONE}
    (True, True)
    """

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm):
        """Read "1" for all processes, or "0:1,1:3" for some. Raises ValueError for other texts."""
        if re.fullmatch("[0-3]", vm):
            return cls(int(vm))
        if not re.fullmatch(r"\d:[0-3](,\d:[0-3])*", vm):
            raise ValueError(
                f"std stream value must match: <{'^[0123]$'}> or <{'^(?:[0-9]:[0123],)*[0-9]:[0123]$'}>\n  got {vm!r}"
            )
        return {int(rank): cls(int(value)) for rank, value in (pair.split(":") for pair in vm.split(","))}


def to_map(val_or_map, local_world_size):
    """The streams of each process, from one value for all, or from a dict that may lack some.

    >>> from cygrad.distributed.elastic.multiprocessing import Std, to_map
    >>> to_map(Std.OUT, 2) == {0: Std.OUT, 1: Std.OUT}, to_map({1: Std.OUT}, 2) == {0: Std.NONE, 1: Std.OUT}
    (True, True)
    """
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclass
class LogsSpecs:
    """Where the output of processes goes.

    >>> from cygrad.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs
    >>> isinstance(DefaultLogsSpecs(), LogsSpecs)
    True
    """

    log_dir: str | None = None
    redirects: Std = Std.NONE
    tee: Std = Std.NONE
    local_ranks_filter: set[int] | None = None


@dataclass
class DefaultLogsSpecs(LogsSpecs):
    """The output of processes goes where that of this one goes.

    >>> from cygrad.distributed.elastic.multiprocessing import DefaultLogsSpecs
    >>> from cygrad.distributed.launcher import LaunchConfig
    >>> LaunchConfig(1, 1, 1, logs_specs=DefaultLogsSpecs()).nproc_per_node
    1
    """


also_named(__name__, api=sys.modules[__name__])
