"""`Guard`: says where each process stands when one fails, is killed, does not come, or calls something else.

Each process writes its collectives to the `Board` of its machine. One that waits looks there 20 times a second: for a
failure, for a process that has left or died, and, after a while, for what the others do. One that fails waits for the
others to see it (those of other machines get a message), prints where each of them was, and ends the job, which MPI
alone leaves hanging. What is killed with all others cannot speak; a program of a few lines (`reporter.py`) then does.
"""

import atexit
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from functools import lru_cache

import numpy as np

import cygrad
from cygrad.distributed._c10d.errors import DistBackendError
from cygrad.distributed._c10d.supervision.board import (
    ENDING,
    FAILED,
    LEFT,
    RUNNING,
    THROUGH,
    WAITING,
    Board,
    is_alive,
    numbered,
    table,
)
from cygrad.distributed._c10d.supervision.debug import DebugLevel, get_debug_level
from cygrad.distributed._c10d.supervision.leftovers import files_of_mpi

__all__ = ["Guard", "RankFailure", "program_line"]

_NOTE_AFTER = 30.0  # seconds in one collective until where the others are is printed
_LEFT_FOR = 2.0  # seconds that a collective may last after a process that takes part has left its program
_ON_THE_WAY_FOR = 4.0  # the same, if that process has begun the collective, and its data may be on the way
_GRACE = 3.0  # seconds for the others to see a failure
_FORWARDED = 0.5  # seconds for the launcher to pass on what was printed: it drops what it has not read at the end
_ANSWER = 0.6  # seconds for the others to write where their programs are
_HANDED_OVER = 1.0  # seconds for MPI to send what a rank says when it leaves
_FAILED = 32003  # the tag of messages about failures to ranks of other machines
_LEFT = 32005  # the tag of messages to the first ranks of other machines, of a rank that leaves
_MEETING = 32004  # the tag of messages between the ranks of a group that is made
_SIGNATURE = 1024  # bytes of a call when calls are compared
_OURS = os.path.dirname(cygrad.__file__) + os.sep
_UNEQUAL = ("all_to_all", "gather_object", "all_gather_object", "broadcast_object_list", "scatter_object_list")


class RankFailure(DistBackendError):
    """Another rank has failed or left."""

    __module__ = "cygrad.distributed"


def program_line(frame):
    """The innermost line that is not in this package, as "train.py:38"."""
    return _place(*_program_place(frame))


def _program_place(frame):
    """The file and the number of that line, or (None, 0)."""
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return (None, 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


@lru_cache
def _place(file, number):
    return "?" if file is None else f"{os.path.basename(file)}:{number}"


def _failure_line(trace):
    """The innermost line of a traceback that is not in this package."""
    lines = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(trace)]
    for file, number in reversed(lines):
        if not file.startswith((_OURS, "<frozen")) and not file.endswith(".pyx"):
            return f"{os.path.basename(file)}:{number}"
    return "?"


class _Watch:
    """What one collective's waiting is watched by."""

    def __init__(self, guard, members, call, number, is_of_all=False):
        self._guard, self._members, self._call, self._number = guard, members, call, number
        self._is_of_all = is_of_all  # whether the number counts collectives of the group of all
        self._has_noted = False

    @property
    def _text(self):
        return numbered(self._number, self._call)

    def begin(self):
        self._guard.board.call(self._guard.index, self._number, self._call)
        self._guard.board.state(self._guard.index, WAITING)

    def end(self):
        self._guard.board.state(self._guard.index, RUNNING)

    def finished(self):
        """The collective is through in this process."""
        self._guard.count(-1)

    def __call__(self, waited):
        guard = self._guard
        board = guard.board
        if board.failure not in (None, guard.index):
            row = board.row(board.failure)
            raise RankFailure(f"rank {row.rank} has failed: {row.place}\n  this rank waited in {self._text}")
        if guard.far_failure is not None:
            rank, text = guard.far_failure
            raise RankFailure(f"rank {rank} has failed: {text}\n  this rank waited in {self._text}")
        if waited > _LEFT_FOR:
            self._look_for_those_who_left(waited)
        if waited > _NOTE_AFTER and not self._has_noted:
            self._has_noted = True
            print(
                f"[rank {guard.rank}] {self._text} has waited {waited:.0f} s for the other ranks:\n{self.table()}",
                file=sys.stderr,
                flush=True,
            )

    def _look_for_those_who_left(self, waited):
        for row in self._guard.board.rows():
            if row.rank not in self._members or row.rank == self._guard.rank:
                continue
            if row.state in (LEFT, THROUGH) and not self._took_part(row):
                self._raise_left(row.rank)
            if row.state == LEFT and waited > _ON_THE_WAY_FOR:
                self._raise_left(row.rank)
            if not is_alive(row.pid):
                raise RankFailure(
                    f"rank {row.rank} (pid {row.pid}) has ended without a word: was it killed?\n"
                    f"  this rank waited in {self._text}"
                )
        if waited > _ON_THE_WAY_FOR:
            for rank, number in self._guard.board.left_elsewhere().items():
                if rank in self._members and not (self._is_of_all and number >= self._number):
                    self._raise_left(rank)

    def _raise_left(self, rank):
        raise RankFailure(
            f"rank {rank} has left its program or the group, and does not come any more\n"
            f"  this rank waited in {self._text}"
        )

    def _took_part(self, row):
        """Whether a process left after it had begun this collective, so that its data may still be on the way."""
        if row.number == self._number:
            return row.call.partition(" at ")[0] == self._call.partition(" at ")[0]
        return row.number > self._number and _group_of(row.call) == _group_of(self._call)

    def table(self):
        """Where all processes of this machine are now."""
        self._guard.board.ask()
        time.sleep(_ANSWER)
        return table(self._guard.board)


class Guard:
    """Watches over the collectives of this process.

    everyone, here: mpi4py's communicators of all processes, and of those of this machine.
    """

    _last: "Guard | None" = None  # the last one, if ranks of other machines may still say goodbye to it

    def __init__(self, everyone, here):
        self.rank, self.index = everyone.rank, here.rank
        self._pid, self._abort, self._everyone = os.getpid(), everyone.Abort, everyone
        self._has_far = here.size < everyone.size
        self.far_failure = None  # rank and text of a failure on another machine
        self._is_ended = threading.Event()
        self._under_way, self._lock, self._number_of_all = 0, threading.Lock(), 0
        self._is_closed = False
        self.board = self._meet(here)
        first = here.bcast(self.rank, 0)
        self._is_first, self._goodbyes_to_come = first == self.rank, everyone.size - here.size
        self._firsts = {*everyone.allgather(first)} - {first}  # of the other machines
        self._follow()
        self._keep_answering()
        self._last_hook, sys.excepthook = sys.excepthook, self._failed
        atexit.register(self._left)

    def _meet(self, here):
        """Share a board with the processes of this machine: a file that has no name any more once all have it open."""
        path = None
        if self.index == 0:
            file, path = tempfile.mkstemp(prefix="cygrad-")
            board = Board(file, here.size, self._everyone.size)
        path = here.bcast(path, 0)
        if self.index != 0:
            board = Board(os.open(path, os.O_RDWR))
        board.enter(self.index, self.rank, self._pid)
        here.Barrier()  # all have entered
        if self.index == 0:
            os.unlink(path)
            program = os.path.join(os.path.dirname(__file__), "reporter.py")
            # This process names the files: it may be killed before the program has begun to look.
            self._reporter = subprocess.Popen(
                [sys.executable, "-I", program, str(board.fd), *sorted(files_of_mpi([self._pid]))],
                pass_fds=[board.fd],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._reporter.returncode = 0  # it outlives this process, and nobody waits for it
        return board

    def _keep_answering(self):
        """Write where the program is, when someone asks: in a thread, as the program may be anywhere."""
        self._main = main = threading.main_thread().ident or 0
        board, index = self.board, self.index

        def answer():
            answered = 0
            while not self._is_ended.wait(_ANSWER / 3):
                if self._has_far and self._everyone.iprobe(tag=_FAILED):
                    self.far_failure = self._everyone.recv(tag=_FAILED)
                self._hear_goodbyes()
                row = board.row(index)
                if row.asked != answered and row.state in (RUNNING, WAITING):
                    answered = row.asked
                    board.place(index, program_line(sys._current_frames().get(main)))

        self._thread = threading.Thread(target=answer, name="cygrad.distributed", daemon=True)
        self._thread.start()

    def _follow(self):
        """Take over from the guard of a group that was destroyed, to which all have said goodbye by now."""
        if Guard._last is not None:
            Guard._last._hear_the_last()
            atexit.unregister(Guard._last._hear_the_last)
        Guard._last = self if self._is_first and self._goodbyes_to_come else None
        if Guard._last is not None:
            atexit.register(self._hear_the_last)  # which comes after `_left`, as it is registered before

    # --- Collectives -----------------------------------------------------------------------------

    def entered(self, group, name, tensors, details, peer=None):
        """A collective begins: check what can be checked, and return what watches while it is waited for.

        peer: the only other rank of the group that takes part, if not all do.
        """
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"{name}: this process was forked after init_process_group, and is not one of the ranks\n"
                "  to fix it: fork before init_process_group, or leave collectives to the process that called it"
            )
        is_between_two = name.startswith(("send", "recv"))
        group.count += not is_between_two
        number = group.count
        is_of_all = group.group_desc == "default_pg"
        if is_of_all:
            self._number_of_all = number
        what = name, None if is_of_all else group.group_name, *[(each.shape, each.dtype) for each in tensors]
        if get_debug_level() is DebugLevel.DETAIL and not is_between_two:
            self._compare(group, number, _described(what), name, tensors, details)
        text = _call_at(what, *_program_place(sys._getframe(1)))
        self.board.call(self.index, number, text)
        self.board.state(self.index, RUNNING)
        self.count(1)
        members = group._ranks if peer is None else [group._ranks[peer]]
        return _Watch(self, members, text, number, is_of_all and not is_between_two)

    def count(self, change):
        """Count the collectives that are under way."""
        with self._lock:
            self._under_way += change

    def meet(self, ranks, engine, timeout):
        """Wait until all of these ranks are about to make a group, in which MPI would wait without a look around."""
        text = f"new_group({ranks}) at {program_line(sys._getframe(1))}"
        watch = _Watch(self, ranks, text, self.board.row(self.index).number)
        watch.begin()
        byte, root = np.zeros(1, np.uint8), ranks[0]
        others = ranks[1:] if self.rank == root else [root]
        try:
            for peer in others:
                (engine.recv if self.rank == root else engine.send)(byte, peer, _MEETING).wait(timeout, watch)
            for peer in others:
                (engine.send if self.rank == root else engine.recv)(byte, peer, _MEETING).wait(timeout, watch)
        except TimeoutError:
            raise DistBackendError(
                f"Timed out waiting {timeout * 1000:.0f}ms for all ranks of {text}\n{watch.table()}"
            ) from None
        watch.end()

    def _compare(self, group, number, text, name, tensors, details):
        """Raise if some rank of the group calls something else."""
        what = name if name in _UNEQUAL else text
        line = program_line(sys._getframe(2))
        signature = f"{what} {_details(details)}\0{text}{_details(details)} at {line}".encode()[:_SIGNATURE]
        mine = np.zeros(_SIGNATURE, np.uint8)
        mine[: len(signature)] = np.frombuffer(signature, np.uint8)
        everyones = np.empty(_SIGNATURE * group.size(), np.uint8)
        watch = _Watch(self, group._ranks, f"{text} at {line}", number)
        watch.begin()
        group._bytes_engine().all_gather(everyones, mine).wait(group._timeout, watch)
        watch.end()
        calls = [
            bytes(each).rstrip(b"\0").decode(errors="replace").split("\0") for each in everyones.reshape(-1, _SIGNATURE)
        ]
        if any(call[0] != calls[0][0] for call in calls):
            lines = "\n".join(f"  rank {rank}: {call[-1]}" for rank, call in zip(group._ranks, calls))
            raise DistBackendError(
                f"Detected mismatch between collectives on ranks, in #{number}; no data has moved:\n{lines}"
            )

    # --- The end ---------------------------------------------------------------------------------

    def _failed(self, kind, error, trace):
        """An exception has reached the top of the program: let all ranks know, and end them."""
        if self._is_closed or os.getpid() != self._pid:
            return self._last_hook(kind, error, trace)
        text = f"{kind.__name__}: {error}".rstrip(": ")
        if isinstance(error, RankFailure):
            print(f"[rank {self.rank}] cygrad.distributed.{text}", file=sys.stderr, flush=True)
            if self.far_failure is not None or self.board.failure not in (None, self.index):
                self._wait_for_the_end()
        else:
            self._last_hook(kind, error, trace)
        first_line, _, _ = text.partition("\n")
        self._end(first_line, _failure_line(trace))

    def end_later(self, error):
        """A collective has failed that the program cannot see: end the job, unless the program does, in some seconds.

        Called from a thread; the program may be waiting for a GPU, or go on with what the collective has not written.
        """
        print(f"[rank {self.rank}] {error}", file=sys.stderr, flush=True)

        def end():
            if not self._is_ended.wait(_GRACE) and not self._is_closed:
                self._end(str(error).partition("\n")[0], program_line(sys._current_frames().get(self._main)))

        threading.Thread(target=end, name="cygrad.distributed end", daemon=True).start()

    def _end(self, first_line, place):
        """Let all ranks know of this one's failure, print where they are, and end the job."""
        self.board.place(self.index, f"{first_line} at {place}", FAILED)
        if self.board.failure is None:
            self.board.failure = self.index
        if self.board.failure != self.index:
            self._wait_for_the_end()
        if self._has_far:
            self._tell_others(f"{first_line} at {place}")
        self._let_others_see()
        if not self.board.is_reported:
            self.board.set_reported()
            print(f"[rank {self.rank}] ends the job: {first_line}\n{table(self.board)}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        time.sleep(_FORWARDED)
        self._abort(1)

    def _wait_for_the_end(self):
        """Another rank ends the job; if it does not, this one does."""
        if self.board.row(self.index).state == WAITING:
            self.board.state(self.index, ENDING)
        time.sleep(2 * _GRACE)
        self._abort(1)

    def _tell_others(self, text):
        """Let the ranks of other machines know of a failure."""
        here = {row.rank for row in self.board.rows()}
        for rank in range(self._everyone.size):
            if rank not in here:
                self._everyone.isend((self.rank, text), rank, _FAILED)
        time.sleep(2 * _ANSWER)

    def _let_others_see(self):
        """Wait until the others that wait have seen the failure, and those that do not have said where they are."""
        self.board.ask()
        time.sleep(_ANSWER)
        end = time.monotonic() + _GRACE
        others = [index for index in range(self.board.count) if index != self.index]
        while time.monotonic() < end:
            rows = [self.board.row(index) for index in others]
            if not any(row.state == WAITING and is_alive(row.pid) for row in rows):
                return
            time.sleep(0.05)

    def _left(self):
        if os.getpid() == self._pid:
            self._is_ended.set()
            self._thread.join()  # before MPI ends
        if os.getpid() == self._pid and not self._is_closed and self.board.row(self.index).state != FAILED:
            self.board.state(self.index, LEFT if self._under_way else THROUGH)
            self._say_goodbye()

    def _say_goodbye(self):
        """Let other machines know that this rank does not come any more, as they do not see it."""
        word = self.rank, self._number_of_all if not self._under_way else -1
        sent = [self._everyone.isend(word, rank, _LEFT) for rank in sorted(self._firsts)]
        end = time.monotonic() + _HANDED_OVER
        while sent and time.monotonic() < end:
            sent = [each for each in sent if not each.test()[0]]

    def _hear_goodbyes(self):
        """Receive what ranks of other machines say when they leave; True once all of them have."""
        while self._is_first and self._goodbyes_to_come and self._everyone.iprobe(tag=_LEFT):
            self.board.leave_elsewhere(*self._everyone.recv(tag=_LEFT))
            self._goodbyes_to_come -= 1
        return not self._is_first or not self._goodbyes_to_come

    def _hear_the_last(self):
        """Before MPI ends, receive what is left: MPI would complain. It waits for all other ranks, too."""
        while os.getpid() == self._pid and not self._hear_goodbyes():
            time.sleep(0.01)

    def close(self):
        """The group of all is destroyed: this process goes on alone."""
        self._left()
        self._is_closed = True
        if sys.excepthook == self._failed:
            sys.excepthook = self._last_hook
        atexit.unregister(self._left)


@lru_cache  # a loop makes the same call again and again
def _call_at(what, file, line):
    """A call as "all_reduce of (2, 3) float32 at train.py:38"."""
    return f"{_described(what)} at {_place(file, line)}"


def _described(what):
    """A call as "all_reduce of (2, 3) float32": its name, the group unless it is that of all, shapes and dtypes."""
    name, group, *tensors = what
    shown = ", ".join([f"{tuple(shape)} {str(dtype).rpartition('.')[2]}" for shape, dtype in tensors[:3]])
    more = f", ... {len(tensors)} tensors" if len(tensors) > 3 else ""
    of = f" of {shown}{more}" if tensors else ""
    return name + of + (f" in group {group}" if group is not None else "")


def _group_of(call):
    """The name of the group in a call's text, "" for that of all."""
    return call.partition(" at ")[0].partition(" in group ")[2]


def _details(details):
    """What else must be equal, in words."""
    if details in ("", None):
        return ""
    kinds = details if isinstance(details, tuple) else (details,)
    return ", " + ", ".join(f"root {each}" if isinstance(each, int) else str(each) for each in kinds)
