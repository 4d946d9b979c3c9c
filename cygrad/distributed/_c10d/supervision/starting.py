"""The program that watches a process while MPI starts, as nothing of Python runs there meanwhile.

`python starting.py PID SECONDS PLACE`: PID is the process, its parent, which calls `init_process_group` at PLACE. MPI
waits without end for ranks that do not come. This program ends the job, and says which rank is missing, if one of this
machine has ended, or after so many seconds. It ends with its parent, which kills it once MPI has started.

Ranks are found where Linux shows processes: they are the launcher's children, and have its variables.
"""

import os
import signal
import sys
import time

_OFTEN = 0.2  # seconds between two looks
_GONE_FOR = 1.0  # seconds for which a rank must not be seen: the launcher may not have started it yet
_AFTER_THE_FIRST = 2.0  # seconds until another rank than the first one that waits ends the job
_FORWARDED = 0.5  # seconds for the launcher to pass on what was printed
_UNTIL_KILLED = 1.0  # seconds until what does not end by SIGTERM is killed: MPI keeps handlers from running


def _read(pid, name):
    """The text of a file of a process, "" if it has ended, or is another user's."""
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _launch_of(pid):
    """What the launcher has told a process, or None."""
    pairs = (each.partition("=") for each in _read(pid, "environ").split("\0"))
    return launchers.launched({name: value for name, _, value in pairs})


def _fields(pid):
    """The state and the parent of a process, or none if it has ended."""
    return _read(pid, "stat").rpartition(")")[2].split()[:2]


def _is_alive(pid):
    return _fields(pid)[:1] not in ([], ["Z"], ["X"])


def _children(pid):
    listed = _read(pid, f"task/{pid}/children").split()
    if not listed:  # a kernel without these lists
        numbers = [name for name in os.listdir("/proc") if name.isdecimal()]
        listed = [number for number in numbers if _fields(number)[1:] == [str(pid)]]
    return [int(number) for number in listed]


class Ranks:
    """The ranks of this machine, as far as they have been seen."""

    def __init__(self, pid):
        self._mine = _launch_of(pid)
        self._pids = {}  # rank: the process that the launcher has started
        self._local = {}  # rank: local rank
        self._launcher = self._found(pid)
        self.rank = -1 if self._mine is None else self._mine.rank

    def _found(self, pid):
        """The process of the launcher; None if it cannot be seen, e.g. from within a container."""
        if self._mine is None:
            return None
        while True:
            parent = int((_fields(pid)[1:] or ["0"])[0])
            if parent <= 1:
                return None
            if _launch_of(parent) != self._mine:  # else a shell, say, that has started the program
                return parent
            pid = parent

    def look(self):
        """Return those that have ended, in words."""
        if self._launcher is None:
            return []
        for pid in _children(self._launcher):
            launch = None if pid in self._pids.values() else _launch_of(pid)
            if launch is not None and launch.size == self._mine.size:
                self._pids[launch.rank], self._local[launch.rank] = pid, launch.local_rank
        ended = [f"rank {rank}" for rank, pid in sorted(self._pids.items()) if not _is_alive(pid)]
        if self.rank in self._pids and self._mine.local_size > len(self._pids):
            ended += [self._named(local) for local in range(self._mine.local_size) if local not in self._local.values()]
        return ended

    def _named(self, local_rank):
        is_whole = self._mine.local_size == self._mine.size
        return f"rank {local_rank}" if is_whole else f"the rank with LOCAL_RANK {local_rank} on this machine"

    def _waits(self, rank):
        """Whether a rank waits for MPI: a program like this one watches it."""
        todo = [self._pids[rank]]
        for pid in todo:
            if os.path.basename(__file__) in _read(pid, "cmdline"):
                return True
            if _launch_of(pid) is not None:
                todo += _children(pid)
        return False

    def pids(self):
        """The processes of these ranks."""
        return list(self._pids.values())

    def table(self):
        """A line for each rank that has been seen, and the first rank that waits."""
        lines, first = [], self.rank
        for rank, pid in sorted(self._pids.items(), reverse=True):
            text = "has ended"
            if _is_alive(pid):
                waits = rank == self.rank or self._waits(rank)
                first = rank if waits else first
                text = "waits in init_process_group" if waits else "has not called init_process_group"
            lines.append(f"\n  rank {rank} (pid {pid}) {text}")
        return "".join(reversed(lines)), first


def _end(pid, text, delay):
    """End the process, and with it the job, unless another one has ended it."""
    time.sleep(delay)
    if os.getppid() != pid:
        return
    os.write(2, text.encode())
    time.sleep(_FORWARDED)
    for number, seconds in ((signal.SIGTERM, _UNTIL_KILLED), (signal.SIGKILL, _UNTIL_KILLED)):
        if os.getppid() == pid:
            os.kill(pid, number)
            end = time.monotonic() + seconds
            while os.getppid() == pid and time.monotonic() < end:
                time.sleep(0.02)


def main(pid, seconds, place):
    """Watch until the parent kills this program or ends, or a rank is missing; then remove what MPI leaves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ranks, files = Ranks(pid), set()
    begin = seen = time.monotonic()
    while os.getppid() == pid:
        files |= leftovers.files_of_mpi([pid])
        ended, now = ranks.look(), time.monotonic()
        seen = seen if ended else now
        is_late = now - begin > seconds
        if is_late or now - seen > _GONE_FOR:
            verb = "has" if len(ended) == 1 else "have"
            why = f"{', '.join(ended)} {verb} ended, and MPI cannot start without"
            if not ended:
                why = f"timed out after {seconds:g} s, in which not all ranks have come"
            table, first = ranks.table()
            text = f"[rank {ranks.rank}] ends the job: RuntimeError: init_process_group() at {place}: {why}{table}\n"
            _end(pid, text, 0 if first == ranks.rank else _AFTER_THE_FIRST)
            break
        time.sleep(_OFTEN)
    leftovers.remove(files, ranks.pids(), _is_alive)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import launchers  # type: ignore[import-not-found]  # the files beside this one
    import leftovers  # type: ignore[import-not-found]

    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
