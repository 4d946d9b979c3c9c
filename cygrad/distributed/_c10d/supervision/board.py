"""`Board`: where each process of a machine stands, in memory that all of them see, and that outlives them.

A row has fixed fields (`Row`) and two texts: the last collective, and where the program was when it was last asked.
Only the row's own process writes to it; a reader may see a text half written, and shows it all the same. Behind the
rows is a number for each rank of all machines: once it has left on another machine, one more than its last collective.
This file has no imports of cygrad: the reporter runs it alone.
"""

import mmap
import os
import struct
from typing import NamedTuple

__all__ = ["ENDING", "FAILED", "LEFT", "RUNNING", "THROUGH", "WAITING", "Board", "Row", "is_alive", "numbered", "table"]

# LEFT: perhaps with collectives under way; THROUGH: without. ENDING: it waits for the one that failed to end the job.
RUNNING, WAITING, FAILED, LEFT, ENDING, THROUGH = range(6)
_HEAD = struct.Struct("<qqq")  # number of rows, row of the first failure or -1, whether it has been reported
_ROW = struct.Struct("<qqqqq")  # rank, pid, state, asked, number of the last collective
_FIELD = struct.Struct("<q")  # one of them
_TEXT = 448
_SIZE = 1024
_CALL_AT, _PLACE_AT = 64, 64 + _TEXT + 2


class Row(NamedTuple):
    """What a process has written: its rank, pid, state, how often it was asked, its last collective, and its place."""

    rank: int
    pid: int
    state: int
    asked: int
    number: int
    call: str
    place: str


class Board:
    """The rows of the processes of one machine, of `ranks` in all, in a file that is open as `fd`."""

    def __init__(self, fd, rows=None, ranks=0):
        if rows is not None:
            os.ftruncate(fd, (rows + 1) * _SIZE + 8 * ranks)
        self.fd = fd
        self._memory = mmap.mmap(fd, os.fstat(fd).st_size)
        if rows is not None:
            _HEAD.pack_into(self._memory, 0, rows, -1, 0)
        self.count = _HEAD.unpack_from(self._memory, 0)[0]
        self._last_call = ""  # that this process has written

    def row(self, index):
        """What a process has written."""
        at = (index + 1) * _SIZE
        rank, pid, state, asked, number = _ROW.unpack_from(self._memory, at)
        return Row(rank, pid, state, asked, number, self._text(at + _CALL_AT), self._text(at + _PLACE_AT))

    def rows(self):
        """All rows."""
        return [self.row(index) for index in range(self.count)]

    def _text(self, at):
        (length,) = struct.unpack_from("<H", self._memory, at)
        return self._memory[at + 2 : at + 2 + min(length, _TEXT - 2)].decode(errors="replace")

    def _write(self, at, text):
        data = text.encode()[: _TEXT - 2]
        struct.pack_into("<H", self._memory, at, len(data))
        self._memory[at + 2 : at + 2 + len(data)] = data

    def enter(self, index, rank, pid):
        """Take a row."""
        _ROW.pack_into(self._memory, (index + 1) * _SIZE, rank, pid, RUNNING, 0, 0)

    def call(self, index, number, text):
        """Say which collective has begun."""
        at = (index + 1) * _SIZE
        _FIELD.pack_into(self._memory, at + 32, number)
        if text != self._last_call:  # in a loop it is the same again
            self._write(at + _CALL_AT, text)
            self._last_call = text

    def state(self, index, state):
        """Say what the process does."""
        _FIELD.pack_into(self._memory, (index + 1) * _SIZE + 16, state)

    def place(self, index, text, state=None):
        """Say where the program is, or how it failed."""
        self._write((index + 1) * _SIZE + _PLACE_AT, text)
        if state is not None:
            self.state(index, state)

    def ask(self):
        """Ask all processes to write where their programs are."""
        for index in range(self.count):
            at = (index + 1) * _SIZE + 24
            _FIELD.pack_into(self._memory, at, _FIELD.unpack_from(self._memory, at)[0] + 1)

    def leave_elsewhere(self, rank, number):
        """Say that a rank of another machine has left, after this many collectives of the group of all."""
        _FIELD.pack_into(self._memory, (self.count + 1) * _SIZE + 8 * rank, number + 1)

    def left_elsewhere(self):
        """{rank: number of its last collective} for the ranks of other machines that have left."""
        numbers = enumerate(_FIELD.iter_unpack(self._memory[(self.count + 1) * _SIZE :]))
        return {rank: number - 1 for rank, (number,) in numbers if number}

    @property
    def failure(self):
        """The row of the process that failed first, or None."""
        index = _HEAD.unpack_from(self._memory, 0)[1]
        return None if index < 0 else index

    @failure.setter
    def failure(self, index):
        _FIELD.pack_into(self._memory, 8, index)

    @property
    def is_reported(self):
        """Whether someone has printed how the job ended."""
        return bool(_HEAD.unpack_from(self._memory, 0)[2])

    def set_reported(self):
        """Say that it has been printed."""
        _FIELD.pack_into(self._memory, 16, 1)


def is_alive(pid):
    """Whether a process of this machine still runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state_of(pid) not in ("Z", "X")


def _state_of(pid):
    """The letter that Linux shows for a process: "Z" for one that has ended, "T" for one that is stopped."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def numbered(number, call):
    """A collective as "#4 barrier"; a transfer between two processes has no number."""
    return call if call.startswith(("send", "recv")) else f"#{number} {call}"


def table(board):
    """A line for each process: what it does, or did last."""
    lines = []
    for row in board.rows():
        call = numbered(row.number, row.call) if row.call else "before its first collective"
        if row.state == FAILED:
            text = f"failed: {row.place}" + (f"\n      after {call}" if row.call else "")
        elif row.state in (LEFT, THROUGH):
            text = f"has left its program, after {call}" if row.call else "has left its program"
        elif row.state in (WAITING, ENDING):
            text = f"waited in {call}"
        else:
            text = f"after {call}" if row.call else call
            text += f", its program is at {row.place}" if row.place else ""
        if row.state not in (FAILED, LEFT, THROUGH) and _state_of(row.pid) == "T":
            text = f"is stopped: {text}"
        lines.append(f"  rank {row.rank} (pid {row.pid}) {text}")
    return "\n".join(lines)
