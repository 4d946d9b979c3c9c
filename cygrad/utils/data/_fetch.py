"""Objects that read batches, as libraries use them that have iterators or workers of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad.utils.data._worker import Reading, take


class _BaseDatasetFetcher:
    """Reads the samples of a dataset, and collates them."""

    _is_iterable = False

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = (
            dataset, auto_collation, collate_fn, drop_last
        )  # fmt: skip

    def _reading(self, dataset: Any) -> Reading:
        return Reading(dataset, self._is_iterable, self.auto_collation, self.drop_last, self.collate_fn)

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the batch with these indices, or the sample with this one. Raises StopIteration after the last one."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Reads samples by their indices."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the batch with these indices, or the sample with this one."""
        return self._reading(self.dataset).reader()(possibly_batched_index)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Reads samples in the order of the dataset; `dataset_iter` gives them, and `ended` tells whether all are read."""

    _is_iterable = True

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the next sample, or as many as there are indices. Raises StopIteration after the last one."""
        if self.ended:
            raise StopIteration
        samples = self.dataset_iter
        if not self.auto_collation:
            return self.collate_fn(next(samples))
        count = len(possibly_batched_index)
        batch = take(samples, count)
        self.ended = len(batch) < count
        if not batch or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(batch)
