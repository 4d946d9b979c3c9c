"""Saves a list of tensors in one slot of a node, for rules that need more tensors than a node has slots."""

from cygrad._core import graph_errors
from cygrad._core.graph.dual import keep
from cygrad._core.graph.internals import versions_of


def check_unchanged(n, tensors, versions):
    """Raise RuntimeError if a tensor saved by node `n` was modified since `versions_of` returned `versions`."""
    now = versions_of(tensors)
    if now == versions:
        return
    for tensor, version, current in zip(tensors, versions, now):
        if version is not None and current != version:
            raise graph_errors.modified_error(tensor, n, version, current, False)


def keep_tensors(result, slot, tensors, changing=()):
    """Save tensors (or None), in addition to the inputs, for the rule of the op that just made `result`.

    Tensors at the indices in `changing` may be modified later. Raises RuntimeError for inference tensors if `result`
    requires grad.
    """
    versions = versions_of(tensors)
    for tensor, version in zip(tensors, versions):
        if version is None and tensor is not None and result.requires_grad:
            raise graph_errors.inference_saved(tensor)
    if changing:
        versions = [None if i in changing else version for i, version in enumerate(versions)]
    keep(result, slot, (tensors, versions))


def kept_tensors(n, slot):
    """Return the tensors saved by `keep_tensors`. Raises RuntimeError if one was modified since."""
    tensors, versions = n.saved(slot)
    check_unchanged(n, tensors, versions)
    return tensors
