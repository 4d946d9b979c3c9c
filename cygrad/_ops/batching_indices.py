"""Batching rules of ops that read or write at indices (see batching.py).

Where the indices are the same for all samples the op runs as it is, one dimension further. Where each sample has its
own, the number of the sample is one index more.
"""

from cygrad._core.access import tensor_of
from cygrad._core.batches import NoBatchingRule
from cygrad._core.opdef import registry
from cygrad._ops.batching import rule
from cygrad._ops.index_checks import BOOLEAN_MASK
from cygrad._ops.ranges import arange


def along(call, index, shape, dim):
    """A batch of 1-dim indices of places along a dimension, as `gather` and `scatter` want them."""
    places = call.full(index)
    places = places.view(call.size, *(1,) * dim, -1, *(1,) * (len(shape) - dim - 1))
    return places.expand(call.size, *shape)


@rule("gather")
def _gather(call):
    t, dim = call.inputs[0], call.args[0]
    if not t.ndim or call.kept[2].ndim != t.ndim:
        raise NoBatchingRule("gather")
    return call.full(t).gather(dim % t.ndim + 1, call.full(call.kept[2]))


@rule("put_back")
def _put_back(call):
    g, (dim, shape) = call.full(call.inputs[0]), call.args
    if not shape or g.ndim <= len(shape):
        raise NoBatchingRule("gather")
    return g.new_zeros((call.size, *shape)).scatter_add(dim % len(shape) + 1, call.full(call.kept[2]), g)


@rule("index_select")
def _index_select(call):
    t, dim, index = call.inputs[0], call.args[0], call.kept[2]
    if not t.ndim or index.ndim != 1:
        raise NoBatchingRule("index_select")
    dim %= t.ndim
    if not call.has(index):
        return call.samples(t).index_select(dim + 1, index)
    return call.full(t).gather(dim + 1, along(call, index, call.out.shape, dim))


@rule("index_add index_copy")
def _index_add(call):
    (t, source), dim, index = call.inputs, call.args[0], call.kept[2]
    if not t.ndim or source.ndim != t.ndim or index.ndim != 1:
        raise NoBatchingRule(call.key)
    dim %= t.ndim
    target, values = call.full(t), call.full(source)
    more = {"alpha": call.args[1]} if call.key == "index_add" else {}
    if not call.has(index):
        return getattr(target, call.key)(dim + 1, index, values, **more)
    places = along(call, index, source.shape, dim)
    if call.key == "index_copy":
        return target.scatter(dim + 1, places, values)
    return target.scatter_add(dim + 1, places, values * call.args[1])


@rule("scatter scatter_add")
def _scatter(call):
    (t, source), dim, index = call.inputs, call.args[0], call.kept[2]
    if not t.ndim or index.ndim != t.ndim or source.ndim != t.ndim:
        raise NoBatchingRule(call.key)
    return getattr(call.full(t), call.key)(dim % t.ndim + 1, call.full(index), call.full(source))


@rule("scatter.value")
def _scatter_value(call):
    t, (dim, value), index = call.inputs[0], call.args, call.kept[2]
    if not t.ndim or index.ndim != t.ndim:
        raise NoBatchingRule("scatter")
    return call.full(t).scatter(dim % t.ndim + 1, call.full(index), value)


@rule("scatter_reduce scatter_reduce.sum")
def _scatter_reduce(call):
    (t, source), (dim, how, include_self, *_), index = call.inputs, call.args, call.kept[2]
    if not t.ndim:
        raise NoBatchingRule("scatter_reduce")
    places = call.full(index)
    return call.full(t).scatter_reduce(dim % t.ndim + 1, places, call.full(source), how, include_self=include_self)


@rule("take")
def _take(call):
    places, x = call.full(call.kept[2]), call.full(call.inputs[0])
    places = places.reshape(call.size, -1) % max(1, call.inputs[0].numel())
    return call.shaped(x.reshape(call.size, -1).gather(1, places), call.out.shape)


@rule("put")
def _put(call):
    (t, source), (accumulate, _) = call.inputs, call.args
    x, count = call.full(t), t.numel()
    numbers = call.full(call.kept[2]).reshape(call.size, -1) % max(1, count)
    numbers = numbers + arange(call.size, device=x.device).view(-1, 1) * count
    values = call.full(source).reshape(call.size, -1)
    return call.shaped(registry["put"].entry(x.reshape(-1), numbers, values, accumulate), call.out.shape)


@rule("index_fill index_fill.Tensor")
def _index_fill(call):
    t, dim, index = call.inputs[0], call.args[0], call.kept[2]
    if not t.ndim or call.has(index):
        raise NoBatchingRule("index_fill")
    value = call.inputs[1] if len(call.inputs) > 1 else tensor_of(call.args[1]).to(t.device)
    values = call.near(value).to(t.dtype)
    shape = (call.size, *t.shape[:dim], index.numel(), *t.shape[dim + 1 :])
    values = values.view(-1, *(1,) * t.ndim).expand(shape)
    return call.full(t).index_copy(dim % t.ndim + 1, index.reshape(-1) % t.shape[dim], values)


@rule("embedding")
def _embedding(call):
    table, indices, padding = call.inputs[0], call.kept[1], call.args[0]
    entry = registry["embedding"].entry
    if not call.has(table):
        row = None if padding < 0 else padding
        return entry(call.samples(indices), table, row, scale_grad_by_freq=call.args[1], sparse=call.args[2])
    if padding >= 0 or call.args[1]:
        raise NoBatchingRule("embedding")
    return Places(call, (indices,), 2).read(call.full(table))


# -- x[indices] --


class Places:
    """Index tensors, and None for dimensions that are taken whole, of a tensor of `ndim` dimensions."""

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
        self.lead = self.dims[0] if together else 0  # how many dimensions stand before what the indices give

    def read(self, x):
        """The elements of a batch at these places."""
        found = x.permute(self.order)[self.indices]
        return found.movedim(list(range(1, self.count + 1)), [i + self.lead for i in range(1, self.count + 1)])

    def written(self, x, values, accumulate):
        """A batch with other values at these places, which have the shape that `read` gives, or broadcast to it."""
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
