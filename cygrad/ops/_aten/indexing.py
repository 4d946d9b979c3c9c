"""Indexing by lists of tensors, and unique elements."""

import cygrad
from cygrad.ops._aten.table import aten

_ALL = slice(None)


def _key(indices):
    return tuple([_ALL if index is None else index for index in indices])


@aten
def index(self, indices):
    """Return `self[indices]`, where None stands for all places of a dimension."""
    return self[_key(indices)]


@aten
def _unsafe_index(self, indices):
    """Return `self[indices]`, where None stands for all places of a dimension."""
    return self[_key(indices)]


def _put(tensor, indices, values, accumulate):
    if all(one is not None for one in indices):
        return tensor.index_put_(tuple(indices), values, accumulate)
    places = cygrad.arange(tensor.numel(), device=tensor.device).view(tensor.shape)[_key(indices)]
    return tensor.put_(places, values.expand(places.shape), accumulate)


@aten
def index_put(self, indices, values, accumulate=False):
    """Return a copy with `values` at the indices, where None stands for all places of a dimension."""
    return _put(self.clone(), indices, values, accumulate)


@aten
def index_put_(self, indices, values, accumulate=False):
    """Write `values` at the indices, where None stands for all places of a dimension."""
    return _put(self, indices, values, accumulate)


@aten
def _unsafe_index_put(self, indices, values, accumulate=False):
    """Return a copy with `values` at the indices, where None stands for all places of a dimension."""
    return _put(self.clone(), indices, values, accumulate)


def _with_places(found, return_inverse, return_counts):
    """Return three results, of which those not asked for are empty."""
    found = list(found) if isinstance(found, tuple) else [found]
    empty = found[0].new_empty(0, dtype=cygrad.int64)
    inverse = found.pop(1) if return_inverse else empty
    return found[0], inverse, found[1] if return_counts else empty


@aten
def _unique2(self, sorted=True, return_inverse=False, return_counts=False):
    """Return the distinct elements, their places and their counts; the last two are empty unless asked for."""
    return _with_places(cygrad.unique(self, sorted, return_inverse, return_counts), return_inverse, return_counts)


@aten
def _unique(self, sorted=True, return_inverse=False):
    """Return the distinct elements and their places, which are empty unless asked for."""
    return _unique2(self, sorted, return_inverse)[:2]


@aten
def unique_dim(self, dim, sorted=True, return_inverse=False, return_counts=False):
    """Return the distinct slices along a dimension; see `_unique2`."""
    return cygrad.unique(self, sorted, True, True, dim)


@aten
def unique_dim_consecutive(self, dim, return_inverse=False, return_counts=False):
    """Return the first of each run of equal slices along a dimension; see `_unique2`."""
    found = cygrad.unique_consecutive(self, return_inverse, return_counts, dim)
    return _with_places(found, return_inverse, return_counts)
