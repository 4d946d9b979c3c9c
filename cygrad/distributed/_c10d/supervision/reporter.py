"""The program that says how a job ended whose processes were killed, as they cannot.

`python reporter.py FD FILE...`: FD is the file of a `Board`. It ends with the processes of the board: without a word if
all of them have left in order or someone has reported a failure, and else with a table on stderr. Then it removes the
files in /dev/shm that MPI leaves there when its processes are killed: each FILE, and what else it has seen them share.
It needs no packages.
"""

import os
import select
import sys
import time

_GRACE = 0.5  # seconds for the others to end, once one has


def _wait_for_an_end(pids):
    """Return the rows of the processes that have ended first, of those that still run."""
    if not hasattr(os, "pidfd_open"):
        while all(board_module.is_alive(pid) for pid in pids.values()):
            time.sleep(0.05)
        return [index for index, pid in pids.items() if not board_module.is_alive(pid)]
    poll, rows = select.poll(), {}
    for index, pid in pids.items():
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended before this program has begun
            return [index for index, pid in pids.items() if not board_module.is_alive(pid)]
        rows[fd] = index
        poll.register(fd, select.POLLIN)
    ended = [rows[fd] for fd, _ in poll.poll()]
    for fd in rows:
        os.close(fd)
    return ended


def main(fd, files):
    """Wait for the end, report it, and remove these files and the others that the processes share."""
    board = board_module.Board(fd)
    pids = [row.pid for row in board.rows()]
    files = {*files, *leftovers.files_of_mpi(pids)}
    try:
        report(board)
    finally:
        leftovers.remove(files, pids, board_module.is_alive)


def _not_waiting(board, indices):
    harmless = board_module.LEFT, board_module.THROUGH, board_module.WAITING
    return [index for index in indices if board.row(index).state not in harmless]


def report(board):
    """Wait until all processes have left, or one has ended otherwise, and say so unless another process has."""
    pids = {index: row.pid for index, row in enumerate(board.rows())}
    left = board_module.LEFT, board_module.THROUGH
    while pids:
        ended = _wait_for_an_end(pids)
        killed = [index for index in ended if board.row(index).state not in left]
        if killed:
            break
        for index in ended:
            del pids[index]
    else:
        return
    time.sleep(_GRACE)
    if board.is_reported:
        return
    board.set_reported()
    # Launchers kill all once one has ended, and one with much memory may be gone later than those. Hence those that
    # waited were hardly the first, even if their end was seen first.
    gone = [index for index, pid in pids.items() if not board_module.is_alive(pid)]
    first = _not_waiting(board, killed) or _not_waiting(board, gone) or killed
    ranks = " or ".join(f"{board.row(index).rank} (pid {board.row(index).pid})" for index in first)
    how = "as below" if any(board.row(index).state == board_module.FAILED for index in first) else "killed?"
    print(
        f"[cygrad.distributed] the job has ended; on this machine rank {ranks} was the first to end ({how}):\n"
        f"{board_module.table(board)}",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import board as board_module  # type: ignore[import-not-found]  # the files beside this one
    import leftovers  # type: ignore[import-not-found]

    main(int(sys.argv[1]), sys.argv[2:])
