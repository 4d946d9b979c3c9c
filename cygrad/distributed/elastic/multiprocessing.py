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
    """Which of the standard streams are redirected or shown."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR


@dataclass
class LogsSpecs:
    """Where the output of processes goes."""

    log_dir: str | None = None
    redirects: Std = Std.NONE
    tee: Std = Std.NONE
    local_ranks_filter: set[int] | None = None


@dataclass
class DefaultLogsSpecs(LogsSpecs):
    """The output of processes goes where that of this one goes."""


@dataclass
class ProcessFailure:
    """A process that failed: its rank, its id, how it ended and the file with its error."""

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
    """Processes that a launcher started have failed: {rank: `ProcessFailure`}."""

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
    """Writes an error to the file that the variable `TORCHELASTIC_ERROR_FILE` names."""

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
    """Return an `ErrorHandler`."""
    return ErrorHandler()


def record(fn, error_handler=None):
    """Decorate the main function of a program: an error that ends it is written for the launcher too."""
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
