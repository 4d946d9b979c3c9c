"""Python's `multiprocessing` under PyTorch's name, and `spawn`.

Tensors whose memory was shared (`share_memory_()`) before a process was forked are the same memory in both; on Linux
also those in the arguments of a spawned process. What goes through a queue or a pipe is a copy.
"""

import multiprocessing as _processes
import pickle
import traceback
from multiprocessing import *  # noqa: F403

__all__ = [*_processes.__all__, "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "spawn"]
__all__ += ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]


def get_all_sharing_strategies():
    """The names of the ways to share memory: one, by files without names."""
    return {"file_descriptor"}


def get_sharing_strategy():
    """The way to share memory in use."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy):
    """Choose a way to share memory. Any of PyTorch's is taken and changes nothing."""
    if new_strategy not in ("file_descriptor", "file_system"):
        raise AssertionError(f"expected 'file_descriptor' or 'file_system', got {new_strategy!r}")


class ProcessException(Exception):
    """A process has failed: which one (`error_index`), and its number in the system (`pid`)."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """A process has failed by an exception, whose traceback is in the text."""


class ProcessExitedException(ProcessException):
    """A process has ended with an exit code, or by a signal."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


class ProcessContext:
    """Processes that `spawn` has started."""

    def __init__(self, processes, errors):
        self.processes, self._errors = processes, errors

    def pids(self):
        """The numbers of the processes in the system."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait for the processes; returns whether all have ended well.

        When one fails, the others are ended, and its error is raised: ProcessRaisedException or ProcessExitedException.
        With `timeout`, in seconds, it waits for the next process that ends only as long.
        """
        from multiprocessing.connection import wait

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
        except EOFError:  # it could not tell
            pass
        else:
            text = f"\n\n-- Process {index} terminated with the following error:\n{told}"
            return ProcessRaisedException(text, index, process.pid)
        if process.exitcode < 0:
            import signal

            name = signal.Signals(-process.exitcode).name
            text = f"process {index} terminated with signal {name}"
            return ProcessExitedException(text, index, process.pid, process.exitcode, name)
        text = f"process {index} terminated with exit code {process.exitcode}"
        return ProcessExitedException(text, index, process.pid, process.exitcode)


def _run(fn, i, args, errors):
    """What a started process does."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent has been interrupted as well, and says so
    except Exception:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Call `fn(i, *args)` in `nprocs` processes, for i = 0, 1, ...

    With `join`, waits for all, and raises the error of the first that fails; else returns a `ProcessContext`. What is
    passed must be picklable, unless `start_method` is "fork".
    """
    context = _processes.get_context(start_method)
    if start_method != "fork":
        pickle.dumps((fn, args))  # an error here is the caller's, and leaves no half-started process
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
