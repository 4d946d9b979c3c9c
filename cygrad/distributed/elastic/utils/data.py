"""Data for programs that resume in the middle of an epoch."""

import math
import sys
from collections.abc import Iterator, Sized
from typing import Any

import cygrad
from cygrad.distributed._c10d.module_names import also_named
from cygrad.utils.data import DistributedSampler

__all__ = ["CyclingIterator", "ElasticDistributedSampler"]


class CyclingIterator(Iterator[Any]):
    """The elements of `n` iterators, of which `generator_fn(epoch)` makes one for each epoch.

    >>> from cygrad.distributed.elastic.utils.data import CyclingIterator
    >>> list(CyclingIterator(3, lambda epoch: iter([10 * epoch, 10 * epoch + 1]), start_epoch=1))
    [10, 11, 20, 21]
    """

    def __init__(self, n, generator_fn, start_epoch=0):
        self._epochs, self._epoch, self._make = n, start_epoch, generator_fn
        self._elements = generator_fn(start_epoch)

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            try:
                return next(self._elements)
            except StopIteration:
                if self._epoch >= self._epochs - 1:
                    raise
            self._epoch += 1
            self._elements = self._make(self._epoch)


class ElasticDistributedSampler(DistributedSampler):
    """A `DistributedSampler` of the samples from `start_index` on: those that a resumed epoch has not used yet.

    Raises ValueError if the data set has no sample at `start_index`.

    >>> from cygrad.distributed.elastic.utils.data import ElasticDistributedSampler
    >>> sampler = ElasticDistributedSampler(range(10), num_replicas=2, rank=0, start_index=6)
    >>> len(sampler), all(index >= 6 for index in sampler)
    (2, True)
    """

    def __init__(self, dataset, num_replicas=None, rank=None, start_index=0):
        super().__init__(dataset=dataset, num_replicas=num_replicas, rank=rank)
        if not isinstance(dataset, Sized):
            raise TypeError("Dataset must be an instance of collections.abc.Sized")
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index

    @property
    def num_samples(self):
        """The number of samples of each process."""
        return math.ceil((len(self.dataset) - self.start_index) / self.num_replicas)

    def __iter__(self):
        """The indices of this process, in an order that `set_epoch` changes."""
        generator = cygrad.Generator()
        generator.manual_seed(self.epoch)
        order = cygrad.randperm(len(self.dataset) - self.start_index, generator=generator)
        indices = (order + self.start_index).tolist()
        indices = [indices[i % len(indices)] for i in range(self.total_size)]  # some twice: all have equally many
        return iter(indices[self.rank : self.total_size : self.num_replicas])


also_named(__name__, cycling_iterator=sys.modules[__name__], elastic_distributed_sampler=sys.modules[__name__])
