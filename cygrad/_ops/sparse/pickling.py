"""Copies and pickles of sparse tensors."""

import copy

from cygrad._core import graph_errors
from cygrad._core.graph.internals import array_of, attributes_of, tensor_of
from cygrad._core.tensor.predicates import layouts
from cygrad._kernels.sparse.array import Coordinates
from cygrad._ops.sparse.tensor import array, of_parts, wrapped


def reduced(tensor):
    """Support pickling of layout, indices and values. History, `requires_grad` and hooks are not included."""
    a = array(tensor)
    parts = tuple(tensor_of(part) for part in a.parts)
    more = (a.is_coalesced,) if isinstance(a, Coordinates) else ()
    return _rebuild_sparse_tensor, (tensor.layout, (*parts, tensor.shape, *more))


def _rebuild_sparse_tensor(layout, data):
    """Return the sparse tensor that was pickled."""
    if layout is layouts["sparse_coo"]:
        indices, values, size, *more = data
        return wrapped(of_parts(layout._name, (array_of(indices), array_of(values)), size, bool(more and more[0])))
    *parts, size = data
    return wrapped(of_parts(layout._name, tuple(map(array_of, parts)), size))


def copied(tensor):
    """Return a leaf with the same parts and the attributes of the user."""
    new = wrapped(array(tensor))
    new.requires_grad_(tensor.requires_grad)
    for name, value in attributes_of(tensor).items():
        setattr(new, name, value)
    return new


def deep_copied(tensor, memo):
    """Return a copy of a leaf, with its gradient and the attributes of the user."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise graph_errors.not_a_leaf_to_copy(tensor)
    new = memo[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
    for name, value in attributes_of(tensor).items():
        setattr(new, name, copy.deepcopy(value, memo))
    if tensor._grad is not None:
        new.grad = copy.deepcopy(tensor._grad, memo)
    return new
