"""Several tensors in one place of a node, for rules that need more than a node has places."""

from cygrad._core import faults, messages
from cygrad._core.access import was_made_in_inference_mode
from cygrad._core.dual import keep


def version_of(tensor):
    """How often a tensor has changed; None for no tensor, and for those of inference mode, which do not count."""
    return None if tensor is None or was_made_in_inference_mode(tensor) else tensor._version


def check_unchanged(n, tensor, version):
    """Raise RuntimeError if a tensor that node `n` keeps has changed since it had this version."""
    if version is not None and tensor._version != version:
        raise faults.modified_error(tensor, n, version, tensor._version, False)


def keep_tensors(result, slot, tensors):
    """Save tensors, or None, beside the inputs, for the rule of what just made `result`.

    Raises RuntimeError for tensors of inference mode, if `result` requires grad.
    """
    if result.requires_grad and any(t is not None and was_made_in_inference_mode(t) for t in tensors):
        raise RuntimeError(messages.INFERENCE_SAVED)
    keep(result, slot, (tensors, [version_of(t) for t in tensors]))


def kept_tensors(n, slot):
    """What `keep_tensors` saved. Raises RuntimeError for a tensor that has changed since."""
    tensors, versions = n.saved(slot)
    for tensor, version in zip(tensors, versions):
        check_unchanged(n, tensor, version)
    return tensors
