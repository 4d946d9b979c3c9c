"""Errors of the processes that a launcher starts, and `record`, which leaves them in a file for the launcher."""

import faulthandler
import json
import os
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any

from cygrad.distributed._c10d.module_names import also_named
from cygrad.utils.warning import warn

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_UNKNOWN = "<N/A>"


@dataclass
class ProcessFailure:
    """A process that failed: its rank, its id, how it ended, and the file with its error, if it has left one.

    >>> from cygrad.distributed.elastic.multiprocessing import ProcessFailure
    >>> failure = ProcessFailure(local_rank=0, pid=1234, exitcode=-9, error_file="error.json")
    >>> failure.message, failure.signal_name(), failure.timestamp_isoformat()
    ('Signal 9 (SIGKILL) received by PID 1234', 'SIGKILL', '...')
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False, default="")
    timestamp: int = field(init=False)

    def __post_init__(self):
        self.error_file_data, self.timestamp = {"message": "<NONE>"}, int(time.time())
        if os.path.isfile(self.error_file):
            with open(self.error_file, encoding="utf-8") as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            inner = self.message.get("extraInfo", {}) if isinstance(self.message, dict) else self.error_file_data
            self.timestamp = int(inner.get("timestamp", 0))
        else:
            self.error_file = _UNKNOWN
        if not self.message and self.exitcode < 0:
            self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        elif not self.message:
            self.message = "decorate the main function with `record`, so that its error stands here"

    def signal_name(self):
        """The name of the signal that ended the process, "<N/A>" if none has."""
        known = {each.value: each.name for each in signal.Signals}
        return known.get(-self.exitcode, _UNKNOWN)

    def timestamp_isoformat(self):
        """When it failed."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Processes that a launcher started have failed: {rank: `ProcessFailure`}.

    >>> from cygrad.distributed.elastic.multiprocessing import ChildFailedError, ProcessFailure
    >>> failure = ProcessFailure(local_rank=1, pid=1234, exitcode=-9, error_file="error.json")
    >>> error = ChildFailedError("train.py", {1: failure})
    >>> rank, first = error.get_first_failure()
    >>> rank, first is failure
    (1, True)
    >>> print(error.format_msg())  # which is the error's text
    <BLANKLINE>
    =====...
    train.py FAILED
    ...
    """

    def __init__(self, name, failures):
        self.name, self.failures = name, failures
        if not failures:
            raise AssertionError("ChildFailedError needs a failure")
        super().__init__(self.format_msg())

    def get_first_failure(self):
        """Return (rank, failure) of the process that failed first."""
        rank = min(self.failures, key=lambda each: self.failures[each].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim="=", section_delim="-"):
        """Return a table of all failures, with the first one at its end."""
        first, _ = self.get_first_failure()
        parts = {rank: self._part(index, rank) for index, rank in enumerate(self.failures)}
        lines = [self.name + " FAILED", *(line for part in parts.values() for line in part.splitlines())]
        width = min(60, max(map(len, lines)))
        others = [part for rank, part in parts.items() if rank != first] or ["  <NO_OTHER_FAILURES>"]
        border, rule = boarder_delim * width, section_delim * width
        return "\n".join(
            ["", border, lines[0], rule, "Failures:", *others, rule, "Root Cause (first observed failure):",
             parts[first], border]
        )  # fmt: skip

    def _part(self, index, rank):
        """What a table says of one failure."""
        failure = self.failures[rank]
        text = failure.message
        if isinstance(text, dict):
            text = text.get("extraInfo", {}).get("py_callstack", text.get("message", _UNKNOWN)).replace("\n", "\n  ")
        name = failure.signal_name()
        return (
            f"[{index}]:\n"
            f"  time      : {failure.timestamp_isoformat()}\n"
            f"  host      : {socket.getfqdn()}\n"
            f"  rank      : {rank} (local_rank: {failure.local_rank})\n"
            f"  exitcode  : {failure.exitcode} (pid: {failure.pid}) {'' if name == _UNKNOWN else f' ({name})'}\n"
            f"  error_file: {failure.error_file}\n"
            f"  traceback : {text}"
        )


class ErrorHandler:
    """Writes an error to the file that the variable `TORCHELASTIC_ERROR_FILE` names.

    >>> import json, os, tempfile
    >>> from cygrad.distributed.elastic.multiprocessing import ErrorHandler
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.environ["TORCHELASTIC_ERROR_FILE"] = os.path.join(folder.name, "error.json")
    >>> handler = ErrorHandler()
    >>> handler.initialize()
    >>> handler.record_exception(ValueError("no data"))
    >>> handler.dump_error_file(os.environ["TORCHELASTIC_ERROR_FILE"], error_code=3)  # usually another one's file
    >>> with open(os.environ["TORCHELASTIC_ERROR_FILE"]) as file:
    ...     error = json.load(file)
    >>> error["message"]["message"], error["message"]["errorCode"]
    ('ValueError: no data', 3)
    >>> handler.override_error_code_in_rootcause_data("error.json", error, 4)
    >>> error["message"]["errorCode"]
    4
    >>> del os.environ["TORCHELASTIC_ERROR_FILE"]
    >>> folder.cleanup()
    """

    def initialize(self):
        """Prepare the process: a crash prints where the program was."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:  # stderr may be no file
            warn(f"Unable to enable fault handler. {type(error).__name__}: {error}")

    def record_exception(self, e):
        """Write an error to the file, if there is one."""
        extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
        self._write({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": extra}})

    def dump_error_file(self, rootcause_error_file, error_code=0):
        """Write the error of a child process, with its exit code, as if it were that of this one."""
        with open(rootcause_error_file, encoding="utf-8") as file:
            error = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, error, error_code)
        self._write(error)

    def override_error_code_in_rootcause_data(self, rootcause_error_file, rootcause_error, error_code=0):
        """Add the exit code to the error of a child process, unless its message is a text."""
        if isinstance(rootcause_error.get("message"), dict):
            rootcause_error["message"]["errorCode"] = error_code

    @staticmethod
    def _write(error):
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if path:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(error, file)


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
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            if failure.error_file != _UNKNOWN:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return main


also_named(__name__, error_handler=sys.modules[__name__], handlers=sys.modules[__name__])
