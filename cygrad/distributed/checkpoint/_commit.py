"""How the processes that write a checkpoint agree that all have, and end with the same result."""

import json
import os
import time

from cygrad.distributed._c10d.objects import all_gather_object, broadcast_object_list

__all__ = ["Alone", "ByCollectives", "ByFiles", "CheckpointException"]


class CheckpointException(BaseException):
    """Saving or loading failed in a process; `failures` has the error of each such process by its rank.

    >>> import cygrad
    >>> import cygrad.distributed.checkpoint as dcp
    >>> try:
    ...     dcp.load({"x": cygrad.zeros(2)}, checkpoint_id="nothing_is_here")
    ... except dcp.CheckpointException as error:
    ...     list(error.failures)
    [0]
    """

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self):
        """{rank: error}."""
        return self._failures

    def __str__(self):
        texts = "".join(f"\n  rank {rank}: {error}" for rank, error in self._failures.items())
        return f"CheckpointException ranks:{self._failures.keys()}{texts}"


class Alone:
    """One process."""

    rank, size = 0, 1

    def all(self, value):
        """The values of all processes, in each."""
        return [value]

    def final(self, make):
        """What `make()` returns in process 0, in each."""
        return make()


class ByCollectives(Alone):
    """The processes of a group, which all wait for each other."""

    def __init__(self, group):
        self.group, self.rank, self.size = group, group.rank(), group.size()

    def all(self, value):
        found = [None] * self.size
        all_gather_object(found, value, group=self.group)
        return found

    def final(self, make):
        holder = [make() if self.rank == 0 else None]
        broadcast_object_list(holder, group=self.group, group_src=0)
        return holder[0]


class ByFiles(Alone):
    """Processes that run on while threads of theirs write: they meet through files in the directory of the checkpoint.

    Process r leaves `<token>-<r>.done` with its result; process 0 waits for all and leaves `<token>.end`, for which the
    others wait. No collective is called outside of the main thread.
    """

    def __init__(self, path, token, rank, size, timeout):
        self.path, self.token, self.rank, self.size, self.timeout = path, token, rank, size, timeout

    def _write(self, name, value):
        target = os.path.join(self.path, name)
        with open(f"{target}.part", "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(f"{target}.part", target)

    def _read(self, name, who):
        target, end = os.path.join(self.path, name), time.monotonic() + self.timeout
        while not os.path.exists(target):
            if time.monotonic() > end:
                raise TimeoutError(f"async_save: nothing from {who} within {self.timeout:g} s")
            time.sleep(0.01)
        with open(target, encoding="utf-8") as file:
            return json.load(file)

    def all(self, value):
        self._write(f"{self.token}-{self.rank}.done", value)
        if self.rank:
            return [value]
        return [self._read(f"{self.token}-{rank}.done", f"rank {rank}") for rank in range(self.size)]

    def final(self, make):
        if self.rank:
            result = self._read(f"{self.token}.end", "rank 0")
            self._write(f"{self.token}-{self.rank}.seen", None)
            return result
        result = make()
        self._write(f"{self.token}.end", result)
        for rank in range(1, self.size):
            self._read(f"{self.token}-{rank}.seen", f"rank {rank}")
        for name in os.listdir(self.path):
            if name.startswith(self.token):
                os.remove(os.path.join(self.path, name))
        return result
