"""Functions that run in several processes at once, and the errors of those that fail."""

from __future__ import annotations

import multiprocessing as _processes
import pickle
import traceback
from collections.abc import Callable
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """Raised when a process has failed: its index (`error_index`) and process ID (`pid`).

    >>> import cygrad
    >>> issubclass(cygrad.multiprocessing.ProcessRaisedException, cygrad.multiprocessing.ProcessException)
    True
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """Raised when a process has failed with an exception, whose traceback is in the text.

    >>> import cygrad
    >>> error = cygrad.multiprocessing.ProcessRaisedException("Traceback ...", error_index=1, pid=1234)
    >>> error.error_index, error.pid
    (1, 1234)
    """


class ProcessExitedException(ProcessException):
    """Raised when a process has ended with a nonzero exit code, or by a signal.

    >>> import cygrad
    >>> error = cygrad.multiprocessing.ProcessExitedException("ended", error_index=1, error_pid=1234, exit_code=3)
    >>> error.error_index, error.exit_code
    (1, 3)
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


class ProcessContext:
    """The processes started by a call of `spawn`.

    >>> import cygrad
    >>> import time
    >>> context = cygrad.multiprocessing.spawn(time.sleep, nprocs=2, join=False)  # sleep(0) and sleep(1)
    >>> len(context.pids())
    2
    >>> while not context.join():  # True once all have ended
    ...     pass
    """

    def __init__(self, processes: Any, errors: Any) -> None:
        self.processes, self._errors = processes, errors

    def pids(self) -> list[int]:
        """Return the process IDs."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for the processes; return whether all have ended successfully.

        When one fails, the others are terminated, and its error is raised: ProcessRaisedException or
        ProcessExitedException. `timeout`, in seconds, limits the wait for the next process that ends.
        """
        from multiprocessing.connection import wait  # few programs need it

        alive = {process.sentinel: process for process in self.processes if process.is_alive()}
        for sentinel in wait(list(alive), timeout) if alive else ():
            alive[sentinel].join()
        failed = [i for i, process in enumerate(self.processes) if process.exitcode]
        if not failed:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(grace_period)
            if process.is_alive():
                process.kill()
                process.join()
        raise self._error_of(failed[0])

    def _error_of(self, index):
        process = self.processes[index]
        try:
            told = self._errors[index].recv()
        except EOFError:  # it ended before it could send the error
            pass
        else:
            text = f"\n\n-- Process {index} terminated with the following error:\n{told}"
            return ProcessRaisedException(text, index, process.pid)
        if process.exitcode < 0:
            import signal  # needed only for this error

            name = signal.Signals(-process.exitcode).name
            text = f"process {index} terminated with signal {name}"
            return ProcessExitedException(text, index, process.pid, process.exitcode, name)
        text = f"process {index} terminated with exit code {process.exitcode}"
        return ProcessExitedException(text, index, process.pid, process.exitcode)


def _run(fn, i, args, errors):
    """Main function of a started process."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent has been interrupted as well, and reports it
    except Exception:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in `nprocs` processes, for i = 0, 1, ...

    With `join`, waits for all processes, and raises the error of the first that fails; otherwise returns a
    `ProcessContext`. Arguments must be picklable, unless `start_method` is "fork".

    Raises ProcessRaisedException or ProcessExitedException if a process fails. `fn` must be importable.

    >>> import cygrad
    >>> import time
    >>> cygrad.multiprocessing.spawn(time.sleep, nprocs=1)  # time.sleep(0) in another process
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start processes as `spawn` does, by any start method.

    >>> import cygrad
    >>> import time
    >>> context = cygrad.multiprocessing.start_processes(time.sleep, nprocs=1, start_method="spawn")
    """
    context: Any = _processes.get_context(start_method)
    if start_method != "fork":
        pickle.dumps((fn, args))  # errors are raised here, before a process is half started
    processes, errors = [], []
    for i in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    found = ProcessContext(processes, errors)
    while join and not found.join():
        pass
    return None if join else found
