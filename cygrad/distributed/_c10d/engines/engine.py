"""`Engine`: what moves and reduces arrays between the processes of a group, and `Handle`: one such transfer."""

import os
import time
from abc import ABC, abstractmethod
from contextlib import nullcontext

__all__ = ["FINISHED", "Engine", "Handle", "give_way"]

_SPINS = 500  # looks at a transfer before the first pause between two
_SHORT, _LONG, _OFTEN = 5e-5, 1e-3, 0.05  # seconds: pauses, and the time between two looks at the other processes
give_way = getattr(os, "sched_yield", lambda: None)  # lets whom this process waits for run, if they share a core


class Handle(ABC):
    """A transfer that is under way. It moves on while someone calls `test` or `wait`, and perhaps only then."""

    @abstractmethod
    def test(self):
        """Move on, and return whether the transfer is finished. Raises the error it failed with."""

    def wait(self, timeout=None, watch=None):
        """Wait until it is finished. Raises TimeoutError after `timeout` seconds.

        watch: a function of the seconds waited that is called some 20 times a second; it may raise too.
        """
        for _ in range(_SPINS):
            if self.test():
                return
            give_way()
        begin = looked = time.monotonic()
        while not self.test():
            now = time.monotonic()
            if timeout is not None and now - begin > timeout:
                raise TimeoutError
            if watch is not None and now - looked > _OFTEN:
                looked = now
                watch(now - begin)
            time.sleep(_SHORT if now - begin < 1 else _LONG)

    def abort(self):
        """Give the transfer up, if the engine can: a receipt, that is."""
        return None

    def source(self):
        """The rank in the group that has sent what was received; None for other transfers."""
        return None


class _Finished(Handle):
    def test(self):
        return True

    def wait(self, timeout=None, watch=None):
        pass


FINISHED = _Finished()


class Engine(ABC):
    """Transfers between the processes of one group. Every method returns a `Handle`; arrays are the caller's to keep.

    Arrays are one-dimensional and contiguous; those of bytes are moved, others are reduced too, and have a dtype of
    NumPy's own. `op` is "sum", "product", "min", "max", "band", "bor" or "bxor". Ranks are those in the group. All
    processes of a group call the same methods in the same order, with arrays that match: the caller has checked it.
    """

    rank: int
    size: int
    on_device = False  # whether arrays are in the memory of a GPU

    @property
    def host(self):
        """The engine for the main memory of the same processes: this one, unless its arrays are on a GPU."""
        return self

    @abstractmethod
    def all_reduce(self, buffer, op):
        """Reduce `buffer` over all processes, in place."""

    @abstractmethod
    def reduce(self, buffer, root, op):
        """Reduce `buffer` over all processes into that of `root`; the others keep theirs."""

    @abstractmethod
    def broadcast(self, buffer, root):
        """Send the `buffer` of `root` to all."""

    @abstractmethod
    def all_gather(self, output, input):
        """Gather `input`, of n elements in each process, into `output` of size * n."""

    @abstractmethod
    def reduce_scatter(self, output, input, op):
        """Reduce `input`, of size * n elements, and leave in `output` the n elements of this process."""

    @abstractmethod
    def all_to_all(self, output, input, output_sizes, input_sizes):
        """Send process i the i-th part of `input`; `output` has the parts from all, of the sizes given in elements."""

    @abstractmethod
    def gather(self, output, input, root):
        """Gather `input` into the `output` of `root`, which is None in the others."""

    @abstractmethod
    def scatter(self, output, input, root):
        """Send each process its part of the `input` of `root`, which is None in the others."""

    @abstractmethod
    def send(self, buffer, peer, tag):
        """Send `buffer` to process `peer`."""

    @abstractmethod
    def recv(self, buffer, peer, tag):
        """Receive into `buffer` what process `peer`, or any if it is None, sends with this tag."""

    @abstractmethod
    def barrier(self):
        """Finished once all processes are here."""

    @abstractmethod
    def split(self, ranks):
        """Return the engine of a group of these processes, in this order, which all of them call for (no others)."""

    def together(self):
        """A context in which transfers are begun at the end, together, if the engine can: sends and receipts, too."""
        return nullcontext()

    def close(self):
        """Leave the group. No transfer is under way any more."""
        return None
