"""Forms of the kernels in `cpu/loss`: CTC, and losses of labels."""

import numpy as np

from cygrad._kernels.meta.array import ndarray
from cygrad._kernels.meta.forms.describing import with_arrays_in_memory


@with_arrays_in_memory
def states_of(kernel, targets, lengths, blank):
    return ndarray((targets.shape[0], 2 * targets.shape[1] + 1), np.int64)


@with_arrays_in_memory
def forward(kernel, log_probs, states, input_lengths, target_lengths, blank):
    return ndarray(states.shape[:1], log_probs.dtype), ndarray((len(log_probs), *states.shape), log_probs.dtype)


@with_arrays_in_memory
def backward(kernel, grad, log_probs, *args):
    return ndarray(log_probs.shape, log_probs.dtype)


def multi_margin(kernel, x, target, weight, margin, p):
    return ndarray(x.shape[:1], x.dtype)


def multilabel_margin(kernel, x, target):
    return ndarray(x.shape[:1], x.dtype), ndarray(x.shape, x.dtype), ndarray(x.shape, x.dtype)
