"""Errors of the processes that a launcher starts, and `record`, which reports them."""

import json
import os
import sys
import time
import traceback
from dataclasses import dataclass, field
from enum import IntFlag
from functools import wraps

from cygrad.distributed._c10d.module_names import also_named

__all__ = [
    "ChildFailedError", "DefaultLogsSpecs", "ErrorHandler", "LogsSpecs", "ProcessFailure", "Std", "get_error_handler",
    "record",
]  # fmt: skip


class Std(IntFlag):
    """Which of the standard streams are redirected or shown.

    >>> from cygrad.distributed.elastic.multiprocessing import Std
    >>> Std.OUT | Std.ERR == Std.ALL
    True
    """

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR


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


@dataclass
class ProcessFailure:
    """A process that failed: its rank, its id, how it ended and the file with its error.

    >>> from cygrad.distributed.elastic.multiprocessing import ProcessFailure
    >>> failure = ProcessFailure(local_rank=0, pid=1234, exitcode=1, error_file="error.json")
    >>> failure.exitcode, failure.timestamp_isoformat()
    (1, '...')
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    message: str = field(init=False, default="")
    timestamp: int = field(init=False, default=0)

    def __post_init__(self):
        self.timestamp = int(time.time())
        if os.path.isfile(self.error_file):
            with open(self.error_file, encoding="utf-8") as file:
                self.message = str(json.load(file).get("message", ""))

    def timestamp_isoformat(self):
        """When it failed."""
        return time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.timestamp))


class ChildFailedError(Exception):
    """Processes that a launcher started have failed: {rank: `ProcessFailure`}.

    >>> from cygrad.distributed.elastic.multiprocessing import ChildFailedError, ProcessFailure
    >>> failure = ProcessFailure(local_rank=1, pid=1234, exitcode=1, error_file="error.json")
    >>> error = ChildFailedError("train.py", {1: failure})
    >>> rank, first = error.get_first_failure()
    >>> rank, first is failure
    (1, True)
    """

    def __init__(self, name, failures):
        self.name, self.failures = name, failures
        if not failures:
            raise AssertionError("ChildFailedError needs a failure")
        super().__init__(f"{name} FAILED: rank {self.get_first_failure()[0]}, {self.get_first_failure()[1]}")

    def get_first_failure(self):
        """Return (rank, failure) of the process that failed first."""
        rank = min(self.failures, key=lambda each: self.failures[each].timestamp)
        return rank, self.failures[rank]


class ErrorHandler:
    """Writes an error to the file that the variable `TORCHELASTIC_ERROR_FILE` names.

    >>> import json, os, tempfile
    >>> from cygrad.distributed.elastic.multiprocessing import ErrorHandler
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.environ["TORCHELASTIC_ERROR_FILE"] = os.path.join(folder.name, "error.json")
    >>> handler = ErrorHandler()
    >>> handler.initialize()
    >>> handler.record_exception(ValueError("no data"))
    >>> with open(os.environ["TORCHELASTIC_ERROR_FILE"]) as file:
    ...     json.load(file)["message"]["message"]
    'ValueError: no data'
    >>> del os.environ["TORCHELASTIC_ERROR_FILE"]
    >>> folder.cleanup()
    """

    def initialize(self):
        """Prepare the process."""

    def record_exception(self, error):
        """Write an error to the file, if there is one."""
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if path:
            message = {
                "message": f"{type(error).__name__}: {error}",
                "extraInfo": {"py_callstack": traceback.format_exc()},
            }
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"message": message}, file)


def get_error_handler():
    """Return an `ErrorHandler`.

    >>> from cygrad.distributed.elastic.multiprocessing import ErrorHandler, get_error_handler
    >>> isinstance(get_error_handler(), ErrorHandler)
    True
    """
    return ErrorHandler()


def record(fn, error_handler=None):
    """Decorate the main function of a program: an error that ends it is written for the launcher too.

    >>> from cygrad.distributed.elastic.multiprocessing import record
    >>> @record
    ... def main():
    ...     return "trained"
    >>> main()
    'trained'
    """
    handler = error_handler or get_error_handler()

    @wraps(fn)
    def main(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return main


also_named(__name__, api=sys.modules[__name__], errors=sys.modules[__name__])
