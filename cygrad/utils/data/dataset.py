"""Datasets: map-style (by index) and iterable."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import cygrad
from cygrad import Tensor
from cygrad.utils.warning import warn

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)
T_stack = TypeVar("T_stack", tuple[Any, ...], dict[str, Any])


class Dataset(Generic[T_co]):
    """Samples by index: subclasses define `__getitem__`, and `__len__` where the number of samples is needed.

    A subclass that can read many samples faster than one at a time also defines `__getitems__(indices)`, which returns
    a list of samples. `a + b` concatenates datasets.

    >>> from cygrad.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> (Squares())[3]
    9
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples: subclasses define `__iter__`.

    With several workers each iterates over its own copy; use `get_worker_info()` to select the samples that a worker
    yields.

    >>> from cygrad.utils.data import DataLoader, IterableDataset
    >>> class Stream(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(4))
    >>> list(DataLoader(Stream(), batch_size=3))
    [tensor([0, 1, 2]), tensor([3])]
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset[Any]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is the tuple of the i-th slices of tensors along their first dimension.

    Raises AssertionError if the first dimensions differ.

    >>> import cygrad
    >>> from cygrad.utils.data import TensorDataset
    >>> TensorDataset(cygrad.tensor([[1, 2], [3, 4]]), cygrad.tensor([0, 1]))[1]
    (tensor([3, 4]), tensor(1))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[T_stack]):
    """Sample i is a tuple, or dict, of the i-th samples of several datasets of the same length.

    Raises ValueError if the lengths differ, or if datasets are given both by position and by name.

    >>> from cygrad.utils.data import StackDataset
    >>> StackDataset(image="abc", label=[0, 1, 2])[1]
    {'image': 'b', 'label': 1}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        self._length = len(next(iter(self._parts())))
        if any(len(part) != self._length for part in self._parts()):
            raise ValueError("Size mismatch between datasets")

    def _parts(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, values: Iterable[Any]) -> Any:
        return dict(zip(self.datasets, values)) if isinstance(self.datasets, dict) else tuple(values)

    def __getitem__(self, index: Any) -> Any:
        return self._sample(part[index] for part in self._parts())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [_as_many(part, indices) for part in self._parts()]
        return [self._sample(values) for values in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The concatenation of several datasets; `cumulative_sizes` holds the end of each.

    Raises AssertionError for an empty list, and for iterable datasets.

    >>> from cygrad.utils.data import ConcatDataset
    >>> both = ConcatDataset(["ab", "cde"])
    >>> len(both), both[2], both[-1]
    (5, 'c', 'e')
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return the end of each of these datasets in their concatenation.

        >>> from cygrad.utils.data import ConcatDataset
        >>> ConcatDataset.cumsum([range(2), range(3)])
        [2, 5]
        """
        return list(itertools.accumulate(map(len, sequence)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        number = bisect_right(self.cumulative_sizes, idx)
        return self.datasets[number][idx - (self.cumulative_sizes[number - 1] if number else 0)]


class ChainDataset(IterableDataset[T_co]):
    """The samples of several iterable datasets, one dataset after another.

    >>> from cygrad.utils.data import ChainDataset, IterableDataset
    >>> class Stream(IterableDataset):
    ...     def __iter__(self):
    ...         return iter("ab")
    >>> "".join(ChainDataset([Stream(), Stream()]))
    'abab'
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _parts(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[T_co]:
        return itertools.chain.from_iterable(self._parts())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._parts())


class Subset(Dataset[T_co]):
    """The samples of a dataset at `indices`, in that order.

    >>> from cygrad.utils.data import Subset
    >>> part = Subset("abcde", [4, 0])
    >>> len(part), part[0]
    (2, 'e')
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return read_items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: cygrad.Generator | None = cygrad.default_generator
) -> list[Subset[Any]]:
    """Split a dataset randomly without overlap, into parts of given lengths or fractions of the whole.

    Remaining samples of fractions go to the first parts. Raises ValueError if the lengths do not sum to the whole.

    >>> from cygrad.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _shares(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = cygrad.randperm(len(dataset), generator=generator).tolist()
    ends = itertools.accumulate(map(int, lengths))
    return [Subset(dataset, order[end - int(length) : end]) for end, length in zip(ends, lengths)]


def _shares(total: int, fractions: Sequence[float]) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    lengths = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    return lengths


# -- Reading many samples --


def read_items(dataset: Any, indices: list[Any]) -> list[Any]:
    """Read samples of a dataset, with `__getitems__` if it has that: this may return a batch as a whole."""
    read = getattr(dataset, "__getitems__", None)
    return read(indices) if callable(read) else [dataset[index] for index in indices]


def _as_many(dataset: Any, indices: list[Any]) -> list[Any]:
    """Read samples of a part of a StackDataset, which must be as many as those of the other parts."""
    items = read_items(dataset, indices)
    if len(items) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}\n"
            f"  {type(dataset).__qualname__}.__getitems__ must return one sample for each index"
        )
    return items


def reader_of_batches(dataset: Any) -> Callable[[list[Any]], list[Tensor]] | None:
    """Return a function from indices to a collated batch that bypasses individual samples, or None if impossible."""
    if type(dataset) is Subset:
        inner = reader_of_batches(dataset.dataset)
        return inner and (lambda indices: inner([dataset.indices[i] for i in indices]))
    if getattr(type(dataset), "__getitem__", None) is TensorDataset.__getitem__:
        return None if hasattr(dataset, "__getitems__") else (lambda indices: [t[indices] for t in dataset.tensors])
    return None
