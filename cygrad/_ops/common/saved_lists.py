"""Several tensors in one place of a node, for rules that need more than a node has places."""

from cygrad._core.diagnostics import graph_errors
from cygrad._core.graph.dual import keep
from cygrad._core.graph.internals import versions_of


def check_unchanged(n, tensors, versions):
    """Raise RuntimeError if one of the tensors that node `n` keeps has changed since `versions_of` gave these."""
    now = versions_of(tensors)
    if now == versions:
        return
    for tensor, version, current in zip(tensors, versions, now):
        if version is not None and current != version:
            raise graph_errors.modified_error(tensor, n, version, current, False)


def keep_tensors(result, slot, tensors, changing=()):
    """Save tensors, or None, beside the inputs, for the rule of what just made `result`.

    Those of the numbers `changing` may change. Raises RuntimeError for tensors of inference mode, if `result` requires
    grad.
    """
    versions = versions_of(tensors)
    for tensor, version in zip(tensors, versions):
        if version is None and tensor is not None and result.requires_grad:
            raise graph_errors.inference_saved(tensor)
    if changing:
        versions = [None if i in changing else version for i, version in enumerate(versions)]
    keep(result, slot, (tensors, versions))


def kept_tensors(n, slot):
    """What `keep_tensors` saved. Raises RuntimeError for a tensor that has changed since."""
    tensors, versions = n.saved(slot)
    check_unchanged(n, tensors, versions)
    return tensors
