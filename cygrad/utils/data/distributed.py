"""DistributedSampler, which gives each of several processes its part of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any

import cygrad
from cygrad.utils.data.sampler import Sampler, T_co

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[T_co]):
    """The indices that process `rank` of `num_replicas` reads, equally many in each process.

    The order is shuffled by `seed` and the epoch, which `set_epoch` sets before each iteration. If the parts are
    uneven, indices are repeated from the beginning, or, with `drop_last`, dropped at the end. `num_replicas` and
    `rank` are by default those of the process group. Raises ValueError if there is none, or for a `rank` out of range.

    >>> from cygrad.utils.data import DistributedSampler
    >>> [list(DistributedSampler("abcde", 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    >>> sampler = DistributedSampler(range(8), num_replicas=2, rank=0)
    >>> first = list(sampler)
    >>> sampler.set_epoch(1)
    >>> list(sampler) == first
    False
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = cygrad.distributed.get_world_size()
        if rank is None:
            rank = cygrad.distributed.get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0

    @property
    def num_samples(self) -> int:
        """The number of indices each process reads."""
        share = len(self.dataset) / self.num_replicas
        return math.floor(share) if self.drop_last else math.ceil(share)

    @property
    def total_size(self) -> int:
        """The number of indices all processes read together."""
        return self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[Any]:
        length = len(self.dataset)
        if self.shuffle:
            generator = cygrad.Generator().manual_seed(self.seed + self.epoch)
            order = cygrad.randperm(length, generator=generator).tolist()
        else:
            order = list(range(length))
        return iter([order[i % length] for i in range(self.rank, self.total_size, self.num_replicas)])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the shuffled order."""
        self.epoch = epoch
