"""Buckets: gradients that are reduced together, in one flat tensor."""

from typing import Any

import cygrad
from cygrad.distributed._c10d.sparse import elements, total

__all__ = ["Bucket", "SparseBucket", "assignment_by_size"]

FIRST_BUCKET_BYTES = _DEFAULT_FIRST_BUCKET_BYTES = 1024 * 1024


def assignment_by_size(tensors, bucket_size_limits, expect_sparse_gradient=(), tensor_indices=()):
    """Divide tensors into buckets of one dtype and device; returns lists of indices, and the limit of each bucket.

    A bucket is full once its tensors have as many bytes as its limit; the last limit serves for all further ones. A
    tensor whose gradient is sparse has a bucket of its own. Tensors are numbered from 0, or as `tensor_indices` says;
    buckets are in the order of their smallest number, or, with `tensor_indices`, in that in which they were filled.
    """
    if len(tensors) == 0 or not bucket_size_limits:
        raise RuntimeError("Expected tensors and bucket_size_limits that are not empty")
    full: list = []
    filling: dict = {}  # {kind: [indices, bytes, number of limits that buckets of this kind have used]}
    for place, tensor in enumerate(tensors):
        index = tensor_indices[place] if len(tensor_indices) else place
        if len(expect_sparse_gradient) and expect_sparse_gradient[index]:
            full.append(([index], 0))
            continue
        state = filling.setdefault((tensor.dtype, tensor.device), [[], 0, 0])
        state[0].append(index)
        state[1] += tensor.numel() * tensor.element_size()
        limit = bucket_size_limits[min(state[2], len(bucket_size_limits) - 1)]
        if state[1] >= limit:
            full.append((state[0], limit))
            state[:] = [[], 0, state[2] + 1]
    for indices, _, used in filling.values():
        if indices:
            full.append((indices, bucket_size_limits[min(used, len(bucket_size_limits) - 1)]))
    if not len(tensor_indices):
        full.sort(key=lambda pair: min(pair[0]))
    return [indices for indices, _ in full], [limit for _, limit in full]


_compute_bucket_assignment_by_size = assignment_by_size


class Bucket:
    """The gradients of some parameters of one dtype, one after the other in `data`, with what travels with them.

    `flat` is `data` and the `header`: for each parameter the number of processes that lack its gradient, and then of
    those that have it.
    """

    def __init__(self, index, numbers, parameters):
        self.index, self.numbers, self.parameters = index, numbers, parameters
        self.sizes = [parameter.numel() for parameter in parameters]
        total, count = sum(self.sizes), len(parameters)
        self.flat = cygrad.zeros(total + 2 * count, dtype=parameters[0].dtype, device=parameters[0].device)
        self.data, self.header = self.flat[:total], self.flat[total:]
        self.lacking, self.having = self.header[:count], self.header[count:]
        self.views = [part.view(parameter.shape) for part, parameter in zip(self.data.split(self.sizes), parameters)]
        self._complete_header = cygrad.cat([cygrad.zeros_like(self.lacking), cygrad.ones_like(self.having)])
        self.expected = count  # gradients in a pass
        self.begin()

    def begin(self):
        """Forget the last pass."""
        self.left = self.expected
        self.work: Any = None
        self.is_launched = False

    def fill(self, scale, touched, is_shadow=False, untouched_scale=None):
        """Take over the gradients, scaled; parameters without a gradient count as zeros.

        touched: for the number of each parameter, whether it has got a gradient since the last reduction. The others
        are scaled by `untouched_scale`, if that is given.
        """
        if is_shadow:
            self.flat.zero_()
            return
        self.header.copy_(self._complete_header)
        if untouched_scale is not None:
            for number, parameter, view in zip(self.numbers, self.parameters, self.views):
                self._take(parameter.grad, view, scale if touched[number] else untouched_scale)
        elif all(parameter.grad is view for parameter, view in zip(self.parameters, self.views)):
            if scale != 1:
                self.data.mul_(scale)
        else:
            for parameter, view in zip(self.parameters, self.views):
                self._take(parameter.grad, view, scale)
        for place, number in enumerate(self.numbers):
            if not touched[number]:
                self.lacking[place], self.having[place] = 1, 0

    @staticmethod
    def _take(gradient, view, scale):
        if gradient is None:
            view.zero_()
        elif gradient is view:
            view.mul_(scale)
        else:
            gradient = gradient.detach()
            if gradient.dtype == view.dtype:
                cygrad.mul(gradient, scale, out=view)
            else:
                view.copy_(gradient * scale)

    def write(self, as_views, is_used):
        """Write the reduced gradients to the parameters, or let these have the views.

        is_used: for each place whether any process has a gradient; None if all have.
        """
        for place, (parameter, view) in enumerate(zip(self.parameters, self.views)):
            if is_used is not None and not is_used[place]:
                continue
            gradient = parameter.grad
            if as_views:
                if gradient is not view:
                    parameter.grad = view
            elif gradient is None or gradient.requires_grad or gradient.is_sparse:
                parameter.grad = view.clone()
            else:
                gradient.copy_(view)


class SparseBucket:
    """The sparse gradient of one parameter. All processes' elements are gathered, as each has others."""

    def __init__(self, index, numbers, parameters):
        self.index, self.numbers, self.parameters = index, numbers, parameters
        self.expected, self.lacking_ranks = 1, []
        self.begin()

    def begin(self):
        """Forget the last pass."""
        self.left, self.work, self.is_launched = self.expected, None, False

    def reduce(self, gather, scale, own_scale=1):
        """Add up the gradients of all processes; `gather(object)` returns those of all. Returns who lacks it.

        All are scaled by `scale`, and this process's by `own_scale` before.
        """
        parameter = self.parameters[0]
        mine = parameter.grad
        if mine is not None:
            mine = mine if own_scale == 1 else mine * own_scale
            mine = elements(mine if mine.is_sparse else mine.to_sparse())
        found = gather(mine)
        parts = [each for each in found if each is not None]
        if parts:
            parameter.grad = total(parts, parameter, scale)
        return [rank for rank, each in enumerate(found) if each is None]
