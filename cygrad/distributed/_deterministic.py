"""Results that do not depend on the number of processes: the setting, and which micro-batches each process has."""

from collections.abc import Iterator, Sized
from typing import Any

import cygrad
from cygrad.distributed._c10d.world import current
from cygrad.utils.data.sampler import Sampler

__all__ = ["MicroBatchSampler", "deterministic", "get_shards", "my_shards", "share"]


class deterministic:
    """`deterministic(True)` makes the weights after training the same, bit for bit, for any number of processes.

    A step then has `shards` micro-batches, whatever the number of processes, and each process has some of them
    (`my_shards`; `MicroBatchSampler` reads them). Every backward pass through a `DistributedDataParallel` made while
    this is on gives the gradient of one micro-batch. After the last one of a step `.grad` has the mean over all
    micro-batches of all processes, added up in a fixed order (Note [Ordered sums] in `_data_parallel/ordered.py`).
    Dropout and other random numbers in `forward` depend on the micro-batch and not on the process; running statistics
    of batch norms are the mean over micro-batches. Seed all processes alike.

    `deterministic(False)` ends it. As a context manager it restores what was set before. Raises ValueError unless
    `shards` is positive.

    >>> import cygrad.distributed as dist
    >>> with dist.deterministic(True, shards=8):
    ...     [list(dist.my_shards(rank=rank, world_size=3)) for rank in range(3)]
    [[0, 1], [2, 3, 4], [5, 6, 7]]
    """

    def __init__(self, mode: bool = True, *, shards: int = 8) -> None:
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise ValueError(f"deterministic(): shards must be a positive int, but got {shards!r}")
        world = current()
        self._former, world.shards = world.shards, shards if mode else None

    def __enter__(self) -> "deterministic":
        return self

    def __exit__(self, *_: object) -> None:
        current().shards = self._former


def get_shards() -> int | None:
    """The number of micro-batches in a step, or None if `deterministic` is off.

    >>> import cygrad.distributed as dist
    >>> print(dist.get_shards())
    None
    >>> with dist.deterministic(shards=4):
    ...     dist.get_shards()
    4
    """
    return current().shards


def share(shards: int, size: int, rank: int) -> tuple[int, int]:
    """The first micro-batch of a process and the one behind its last: contiguous, and as even as possible."""
    return rank * shards // size, (rank + 1) * shards // size


def my_shards(group: Any = None, *, rank: int | None = None, world_size: int | None = None) -> range:
    """The micro-batches of a step that this process has, or process `rank` of `world_size`. See `deterministic`.

    Raises RuntimeError if `deterministic` is off.

    >>> import cygrad.distributed as dist
    >>> with dist.deterministic(shards=4):
    ...     [list(dist.my_shards(rank=rank, world_size=2)) for rank in range(2)]
    [[0, 1], [2, 3]]
    """
    shards = get_shards()
    if shards is None:
        raise RuntimeError("my_shards(): call `distributed.deterministic(True)` first")
    size = cygrad.distributed.get_world_size(group) if world_size is None else world_size
    rank = cygrad.distributed.get_rank(group) if rank is None else rank
    return range(*share(shards, size, rank))


class MicroBatchSampler(Sampler[list[int]]):
    """The micro-batches that this process reads in an epoch, as lists of indices: a `batch_sampler` for `DataLoader`.

    A step has `shards` of them, of `batch_size` elements, and consists of the same elements whatever the number of
    processes. `shards` is that of `deterministic` by default; `num_replicas` and `rank` are those of the process group.
    `seed` and the epoch (`set_epoch`) determine the order. Elements that do not fill a step are left out.

    >>> import cygrad.distributed as dist
    >>> for rank in range(2):
    ...     list(dist.MicroBatchSampler(range(9), 2, shards=2, num_replicas=2, rank=rank, shuffle=False))
    [[0, 1], [4, 5]]
    [[2, 3], [6, 7]]
    >>> sampler = dist.MicroBatchSampler(range(9), 2, shards=2, num_replicas=1, rank=0)
    >>> first = list(sampler)
    >>> sampler.set_epoch(1)
    >>> list(sampler) == first
    False
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        *,
        shards: int | None = None,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        shards = get_shards() if shards is None else shards
        if shards is None:
            raise RuntimeError("MicroBatchSampler(): pass `shards`, or call `distributed.deterministic(True)` first")
        if batch_size < 1 or shards < 1:
            raise ValueError(f"batch_size and shards must be positive, but got {batch_size} and {shards}")
        size = cygrad.distributed.get_world_size() if num_replicas is None else num_replicas
        rank = cygrad.distributed.get_rank() if rank is None else rank
        if not 0 <= rank < size:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {size - 1}]")
        self.dataset, self.batch_size, self.shards = dataset, batch_size, shards
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self._mine = range(*share(shards, size, rank))

    @property
    def steps(self) -> int:
        """The number of steps in an epoch."""
        return len(self.dataset) // (self.batch_size * self.shards)

    def __len__(self) -> int:
        return self.steps * len(self._mine)

    def __iter__(self) -> Iterator[list[int]]:
        length = len(self.dataset)
        if self.shuffle:
            generator = cygrad.Generator().manual_seed(self.seed + self.epoch)
            order = cygrad.randperm(length, generator=generator).tolist()
        else:
            order = list(range(length))
        for step in range(self.steps):
            for shard in self._mine:
                first = (step * self.shards + shard) * self.batch_size
                yield order[first : first + self.batch_size]

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the shuffled order."""
        self.epoch = epoch
