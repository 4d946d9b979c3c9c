"""Where the output of the processes that `cygrad.distributed.run` starts goes, as `torchrun`'s options say.

With `--log-dir`, `--redirects` or `--tee` each process has a folder, `LOG_DIR/ID_.../attempt_N/RANK`, with
`stdout.log`, `stderr.log` and, once it has raised an error, `error.json`. The processes redirect their own streams,
since `mpiexec` may have started them on other machines (`enter`). `--tee` shows what arrives in the files, if they are
here (`shown`).
"""

import json
import os
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cygrad.distributed.elastic.multiprocessing import Std, get_error_handler, to_map

__all__ = ["Logs", "enter", "leave_error"]

_VARIABLE = "CYGRAD_DISTRIBUTED_LOGS"  # what `Logs` tells the processes
_OFTEN = 0.05  # seconds between two looks into the files
_STREAMS = {Std.OUT: ("stdout", 1), Std.ERR: ("stderr", 2)}


class Logs:
    """What the options of `run` say about the output of its processes."""

    def __init__(self, args, local_size):
        redirects, tee = (to_map(Std.from_str(text), local_size) for text in (args.redirects, args.tee))
        self._tee = tee
        self._streams = {rank: redirects[rank] | tee[rank] for rank in range(local_size)}
        self._shown = _ranks(args.local_ranks_filter, local_size)
        self._role = args.role
        self._folder: Any = None
        self.reports = True
        if args.log_dir is not None or any(self._streams.values()):
            self._folder = _new_folder(args.log_dir, args.rdzv_id)

    @property
    def are_needed(self):
        """Whether any output goes elsewhere than to the output of this process."""
        return self._folder is not None or len(self._shown) < len(self._streams)

    def variables(self, restart):
        """What the processes of a start find in their environment."""
        if not self.are_needed:
            return {}
        folder = None if self._folder is None else str(self._of_start(restart))
        hidden = [rank for rank in self._streams if rank not in self._shown]
        return {_VARIABLE: json.dumps({"folder": folder, "streams": self._streams, "hidden": hidden})}

    def _of_start(self, restart):
        return self._folder / f"attempt_{restart}"

    @contextmanager
    def shown(self, restart):
        """Within this context, what arrives in the files of `--tee` is shown, with the rank before each line."""
        if self._folder is None or not any(self._tee.values()):
            yield
            return
        through = threading.Event()
        thread = threading.Thread(target=self._show, args=(self._of_start(restart), through), daemon=True)
        thread.start()
        try:
            yield
        finally:
            through.set()
            thread.join()

    def _show(self, folder, through):
        """Show new lines until nothing more comes, nor has come since it was `through`."""
        tails: dict = {}
        while True:
            is_last = through.is_set()
            for path in folder.glob("*/std*.log"):
                rank = int(path.parent.name)
                local_rank = rank % len(self._tee)
                name, stream = (path.stem, sys.stdout if path.stem == "stdout" else sys.stderr)
                kind = Std.OUT if name == "stdout" else Std.ERR
                if self._tee[local_rank] & kind and local_rank in self._shown and path not in tails:
                    tails[path] = _Tail(path, f"[{self._role}{rank}]:", stream)
            for tail in tails.values():
                tail.show(is_last)
            if is_last:
                return
            through.wait(_OFTEN)

    def report(self, restart):
        """Say which process of a start that failed has left which error, the first one first."""
        if self._folder is None or not self.reports:
            return
        folder = self._of_start(restart)
        found = sorted(folder.glob("*/error.json"), key=lambda path: path.stat().st_mtime)
        lines = [f"  rank {path.parent.name}: {_message(path)} ({path})" for path in found]
        text = "\n".join([f"[cygrad.distributed.run] the logs of the processes are in {folder}", *lines])
        print(text, file=sys.stderr, flush=True)


class _Tail:
    """A file to which another process writes, and of which whole lines are shown."""

    def __init__(self, path, prefix, stream):
        self._file, self._prefix, self._stream = open(path, "rb"), prefix, stream
        self._rest = b""

    def show(self, is_last):
        """Show the lines that have come, and at last also one without an end."""
        self._rest += self._file.read()
        *lines, self._rest = self._rest.split(b"\n")
        if is_last:
            lines, self._rest = lines + ([self._rest] if self._rest else []), b""
            self._file.close()
        for line in lines:
            self._stream.write(f"{self._prefix}{line.decode(errors='replace')}\n")
        if lines:
            self._stream.flush()


def _ranks(text, local_size):
    """The local ranks in "0,2", by default all."""
    if not text:
        return set(range(local_size))
    try:
        return {int(each) for each in text.split(",")}
    except ValueError:
        raise ValueError(
            "--local_ranks_filter must be a comma-separated list of integers e.g. --local_ranks_filter=0,1,2\n"
            f"  got {text!r}"
        ) from None


def _new_folder(log_dir, name):
    """A folder for one run, in `log_dir` or among temporary ones."""
    if log_dir is not None and os.path.isfile(log_dir):
        raise NotADirectoryError(f"log_dir: {log_dir} is a file")
    base = log_dir or tempfile.mkdtemp(prefix="cygrad_run_")
    os.makedirs(base, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{name}_", dir=base)).absolute()


def _message(path):
    try:
        message = json.loads(path.read_text(encoding="utf-8"))["message"]
    except (OSError, ValueError, KeyError):  # the process was killed while it wrote
        return "an error that cannot be read"
    text = message["message"] if isinstance(message, dict) else message
    return text.partition("\n")[0]


# --- In the processes ----------------------------------------------------------------------------


def enter(rank, local_rank):
    """Let the streams of this process go where `run` has said."""
    told = os.environ.pop(_VARIABLE, None)
    if told is None:
        return
    told = json.loads(told)
    streams = Std(told["streams"].get(str(local_rank), 0))
    folder = None if told["folder"] is None else Path(told["folder"]) / str(rank)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["TORCHELASTIC_ERROR_FILE"] = str(folder / "error.json")
    for kind, (name, number) in _STREAMS.items():
        if folder is not None and streams & kind:
            _redirect(number, folder / f"{name}.log")
        elif local_rank in told["hidden"]:
            _redirect(number, os.devnull)


def _redirect(number, path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(fd, number)
    os.close(fd)


def leave_error(error):
    """Write an error that ends this process for `run`, unless `record` has."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path and not os.path.exists(path):
        get_error_handler().record_exception(error)
