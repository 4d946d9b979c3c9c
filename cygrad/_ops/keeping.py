"""Several tensors in one place of a node, for rules that need more than a node has places."""

from cygrad._core import faults
from cygrad._core.dual import keep


def keep_tensors(result, slot, tensors):
    """Save tensors, or None, beside the inputs, for the rule of what just made `result`."""
    keep(result, slot, (tensors, [None if t is None else t._version for t in tensors]))


def kept_tensors(n, slot):
    """What `keep_tensors` saved. Raises RuntimeError for a tensor that has changed since."""
    tensors, versions = n.saved(slot)
    for tensor, version in zip(tensors, versions):
        if tensor is not None and tensor._version != version:
            raise faults.modified_error(tensor, n, version, tensor._version, False)
    return tensors
