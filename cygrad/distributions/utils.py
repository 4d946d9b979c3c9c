"""Building blocks for custom distributions, under PyTorch's module path."""

from functools import cached_property as lazy_property

import cygrad
from cygrad.distributions.discrete import clamp_probs
from cygrad.distributions.distribution import broadcast

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]


def broadcast_all(*values):
    """Broadcast tensors and numbers to tensors of one shape.

    >>> import cygrad
    >>> cygrad.distributions.utils.broadcast_all(cygrad.zeros(2), 1.0)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    return tuple(broadcast(*values))


def logits_to_probs(logits, is_binary=False):
    """Convert logits to probabilities: sigmoid, or softmax along the last dimension."""
    return cygrad.sigmoid(logits) if is_binary else logits.softmax(-1)


def probs_to_logits(probs, is_binary=False):
    """Convert probabilities to finite logits: log(p / (1 - p)), or log(p)."""
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()
