"""Samplers: the order in which samples of a dataset are read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import cygrad

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """An order of indices: subclasses define `__iter__`, and `__len__` if it is known.

    >>> from cygrad.utils.data import Sampler
    >>> class Backwards(Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(Backwards())
    [2, 1, 0]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """The indices of `data_source` in order.

    >>> from cygrad.utils.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


_GROUP = 32  # indices drawn at a time, as by PyTorch


class RandomSampler(Sampler[int]):
    """The indices of `data_source`, reshuffled for each iteration; with `replacement`, drawn independently.

    Yields `num_samples` of them, by default all. Without a `generator` the default one seeds each iteration.
    Raises TypeError or ValueError for invalid arguments, ValueError for an empty `data_source`.

    >>> from cygrad.utils.data import RandomSampler
    >>> sorted(RandomSampler("abc", num_samples=6))
    [0, 0, 1, 1, 2, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: cygrad.Generator | None = None,
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        try:
            _check_positive("num_samples", self.num_samples)
        except ValueError as error:
            if num_samples is None:
                raise ValueError(f"{error}\n  the dataset is empty: there is nothing to shuffle") from None
            raise

    @property
    def num_samples(self) -> int:
        """The number of indices per iteration."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        length, wanted = len(self.data_source), self.num_samples
        generator = self.generator or cygrad.Generator().manual_seed(draw_seed())
        if self.replacement:
            for start in range(0, wanted, _GROUP):
                size = (min(_GROUP, wanted - start),)
                yield from cygrad.randint(length, size, generator=generator).tolist()
            return
        for _ in range(wanted // length):
            yield from cygrad.randperm(length, generator=generator).tolist()
        # PyTorch draws once more even if nothing is left to give
        yield from cygrad.randperm(length, generator=generator).tolist()[: wanted % length]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices, reshuffled for each iteration.

    >>> from cygrad.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([5, 3]))
    [3, 5]
    """

    def __init__(self, indices: Sequence[int], generator: cygrad.Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in cygrad.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, each drawn with a probability proportional to its weight.

    Raises ValueError for invalid arguments; RuntimeError, when iterated, for more samples than weights without
    `replacement`.

    >>> from cygrad.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: cygrad.Generator | None = None,
    ) -> None:
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = cygrad.as_tensor(weights, dtype=cygrad.double)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = cygrad.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler; `drop_last` drops a shorter last one.

    >>> from cygrad.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        length = len(self.sampler)  # type: ignore[arg-type]
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def draw_seed(generator: cygrad.Generator | None = None) -> int:
    """Draw a seed for another stream, from the default generator if `generator` is None."""
    return int(cygrad.empty((), dtype=cygrad.int64).random_(generator=generator))


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
