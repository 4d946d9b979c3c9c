"""The program that says how a job ended whose processes were killed, as they cannot.

`python reporter.py FD`: FD is the file of a `Board`. It ends with the processes of the board: without a word if all of
them have left in order or someone has reported a failure, and else with a table on stderr. It needs no packages.
"""

import os
import select
import sys
import time

_GRACE = 0.5  # seconds for the others to end, once one has


def _wait_for_an_end(board, pids):
    """Return the row of the process that ends first, of those that still run."""
    if hasattr(os, "pidfd_open"):
        poll, rows = select.poll(), {}
        for index, pid in pids.items():
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                return index
            rows[fd] = index
            poll.register(fd, select.POLLIN)
        first = rows[poll.poll()[0][0]]
        for fd in rows:
            os.close(fd)
        return first
    while True:
        for index, pid in pids.items():
            if not board_module.is_alive(pid):
                return index
        time.sleep(0.05)


def main(fd):
    board = board_module.Board(fd)
    pids = {index: row.pid for index, row in enumerate(board.rows())}
    while pids:
        first = _wait_for_an_end(board, pids)
        del pids[first]
        if board.row(first).state != board_module.LEFT:
            break
    else:
        return
    time.sleep(_GRACE)
    if not board.is_reported:
        board.set_reported()
        row = board.row(first)
        print(
            f"[cygrad.distributed] the job has ended; the first process to end here was rank {row.rank} "
            f"(pid {row.pid}):\n{board_module.table(board, first)}",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import board as board_module

    main(int(sys.argv[1]))
