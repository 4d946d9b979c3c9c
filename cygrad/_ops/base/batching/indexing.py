"""Batching rules of the ops in `_ops/base/indexing.pyx`."""

from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.indexing import BOOLEAN_MASK
from cygrad._ops.creation.ranges import arange


class Places:
    """Index tensors of a tensor with `ndim` dimensions, with None for unindexed dimensions."""

    def __init__(self, call, indices, ndim):
        self.call = call
        found = []
        for index in indices:
            if index is not None and index.dtype.name == "bool":
                if call.has(index):
                    raise RuntimeError(BOOLEAN_MASK)
                found += index.nonzero(as_tuple=True)
            else:
                found.append(index)
        found += [None] * (ndim - len(found))
        self.dims = [i for i, index in enumerate(found) if index is not None]
        rest = [i for i, index in enumerate(found) if index is None]
        self.order = [0, *[i + 1 for i in (*self.dims, *rest)]]  # the indexed dimensions first
        self.count = max(found[i].ndim for i in self.dims)
        sample = arange(call.size, device=found[self.dims[0]].device)
        self.indices = (sample.view(-1, *(1,) * self.count), *[call.aligned(found[i], self.count) for i in self.dims])
        together = self.dims == list(range(self.dims[0], self.dims[-1] + 1))
        self.lead = self.dims[0] if together else 0  # number of dimensions before those of the indices in the result

    def read(self, x):
        """Return the elements of a batch at these indices."""
        found = x.permute(self.order)[self.indices]
        return found.movedim(list(range(1, self.count + 1)), [i + self.lead for i in range(1, self.count + 1)])

    def written(self, x, values, accumulate):
        """Return a copy of a batch with new values at these indices; `values` broadcasts to the shape of `read`."""
        x = x.permute(self.order)
        inner = values.movedim([i + self.lead for i in range(1, self.count + 1)], list(range(1, self.count + 1)))
        found = x.index_put(self.indices, inner, accumulate)
        return found.permute([self.order.index(i) for i in range(len(self.order))])


@rule("index")
def _index(call):
    t, indices = call.inputs[0], call.kept[2]
    return Places(call, indices, t.ndim).read(call.full(t))


@rule("index_backward")
def _index_backward(call):
    shape, indices, g = call.args[0], call.kept[2], call.full(call.inputs[0])
    zeros = g.new_zeros((call.size, *shape))
    return Places(call, indices, len(shape)).written(zeros, g, True)


@rule("index_put")
def _index_put(call):
    (t, values), indices = call.inputs, call.kept[2]
    x = call.full(t)
    places = Places(call, indices, t.ndim)
    shape = places.read(x.detach()).shape
    new = call.aligned(values, len(shape) - 1).expand(shape).to(x.device)  # a number may be on the CPU
    return places.written(x, new, call.args[0])
