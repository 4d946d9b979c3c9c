"""Batching rules of ops that read or write at indices (see rules.py).

If all samples share the same indices, the op runs unchanged with its dimension shifted by one. If each sample has its
own, the sample number becomes an additional index.
"""

import numpy as np

from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import tensor_of
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.gpu.base.arrays import in_memory
from cygrad._ops.base.checks.indexing import BOOLEAN_MASK
from cygrad._ops.batching.rules import rule, vectors
from cygrad._ops.creation.ranges import arange
from cygrad._ops.elementwise.selection import where
from cygrad._ops.image.max_unpooling import unpool


def along(call, index, shape, dim):
    """Return a batch of indices along a dimension, as `gather` and `scatter` need them for samples of `shape`."""
    places = call.full(index).reshape(call.size, *(1,) * dim, index.numel(), *(1,) * (len(shape) - dim - 1))
    return places.expand(call.size, *shape)


def _line(call):
    """Return (the dimension along which an op on slices ran, the shape of its samples, or (1,) if they are 0-dim)."""
    t = call.inputs[0]
    return call.args[0] % max(t.ndim, 1), t.shape or (1,)


def _other_length(shape, dim, length):
    return (*shape[:dim], length, *shape[dim + 1 :])


@rule("gather")
def _gather(call):
    t, index = call.inputs[0], call.kept[2]
    if not index.numel():  # whose shape may be any
        zero = call.full(t).flatten(1).sum(1).to(t.dtype) if t.ndim else call.full(t)
        return zero.view(call.size, *(1,) * index.ndim).expand(call.size, *index.shape)
    found = vectors(call, t).gather(_line(call)[0] + 1, vectors(call, index))
    return call.shaped(found, call.out.shape)


@rule("put_back")
def _put_back(call):
    g, (dim, shape) = call.inputs[0], call.args
    zeros = call.full(g).new_zeros((call.size, *(shape or (1,))))
    if not g.numel():
        return zeros.view(call.size, *shape)
    found = zeros.scatter_add(dim % max(len(shape), 1) + 1, vectors(call, call.kept[2]), vectors(call, g))
    return call.shaped(found, shape)


@rule("index_select")
def _index_select(call):
    t, index = call.inputs[0], call.kept[2]
    dim, shape = _line(call)
    if call.has(index):
        places = along(call, index, _other_length(shape, dim, index.numel()), dim)
        found = vectors(call, t).gather(dim + 1, places)
    else:
        found = vectors(call, t).index_select(dim + 1, index)
    return call.shaped(found, call.out.shape)


@rule("index_add index_copy index_reduce")
def _write_slices(call):
    (t, source), index = call.inputs, call.kept[2]
    dim, shape = _line(call)
    shape = _other_length(shape, dim, index.numel())
    target, values = vectors(call, t), call.shaped(call.full(source), shape)
    return call.shaped(_written_slices(call, target, dim, index, values, shape), t.shape)


def _written_slices(call, target, dim, index, values, shape):
    if call.key == "index_reduce":
        _, how, include_self, _ = call.args
        if not call.has(index):
            return target.index_reduce(dim + 1, index, values, how, include_self=include_self)
        places = along(call, index, shape, dim)
        return target.scatter_reduce(dim + 1, places, values, how, include_self=include_self)
    if not call.has(index):
        more = {"alpha": call.args[1]} if call.key == "index_add" else {}
        return getattr(target, call.key)(dim + 1, index, values, **more)
    places = along(call, index, shape, dim)
    if call.key == "index_copy":
        return target.scatter(dim + 1, places, values)
    return target.scatter_add(dim + 1, places, values if call.args[1] == 1 else values * call.args[1])


@rule("scatter scatter_add scatter_reduce scatter_reduce.sum scatter.value")
def _scatter(call):
    t, index = call.inputs[0], call.kept[2]
    if not index.numel():
        return call.full(t).clone()
    operands = vectors(call, t), _line(call)[0] + 1, vectors(call, index)
    if call.key == "scatter.value":
        found = Tensor.scatter(*operands, value=call.args[1])
    elif call.op.name == "scatter_reduce":
        _, how, include_self, _ = call.args
        found = Tensor.scatter_reduce(*operands, vectors(call, call.inputs[1]), how, include_self=include_self)
    else:
        found = getattr(Tensor, call.key)(*operands, vectors(call, call.inputs[1]))
    return call.shaped(found, t.shape)


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


@rule("masked_scatter")
def _masked_scatter(call):
    (t, source), mask = call.inputs, call.kept[2]
    ndim, count = call.out.ndim, source.numel()
    chosen = call.aligned(mask, ndim).expand(call.size, *call.out.shape).flatten(1) if ndim else vectors(call, mask)
    if in_memory(values_of(chosen.sum(1))).max(initial=0) > count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    x = call.aligned(t, ndim).expand(call.size, *call.out.shape)
    if not count:
        return x.clone()
    values = call.full(source).reshape(call.size, count)
    given = values.gather(1, _number_of_each(chosen).clamp(min=0))
    return call.shaped(where(chosen, given, x.reshape(chosen.shape)), call.out.shape)


@rule("masked_scatter_backward")
def _masked_scatter_backward(call):
    g, mask, count = call.inputs[0], call.kept[2], call.out.numel()
    shape = np.broadcast_shapes(g.shape, mask.shape)
    chosen = call.aligned(mask, len(shape)).expand(call.size, *shape).reshape(call.size, -1)
    values = call.aligned(g, len(shape)).expand(call.size, *shape).reshape(call.size, -1)
    places = where(chosen, _number_of_each(chosen), count)  # the others write past the end
    zeros = values.new_zeros((call.size, count + 1))
    return call.shaped(zeros.scatter_add(1, places, values)[:, :count], call.out.shape)


def _number_of_each(chosen):
    """Return, for each masked position in a row, the number of masked positions before it."""
    return chosen.cumsum(1) - 1


@rule("max_unpool2d max_unpool3d")
def _max_unpool(call):
    t, index, (dims,) = call.inputs[0], call.kept[1], call.args
    images, places = (call.full(x).flatten(0, x.ndim - dims - 1) for x in (t, index))
    size = list(call.out.shape[t.ndim - dims :])
    return call.shaped(unpool(dims, images, places, size), call.out.shape)


@rule("unravel_index")
def _unravel_index(call):
    return registry["unravel_index"].entry(call.samples(call.inputs[0]), *call.args)


@rule("index_fill index_fill.Tensor")
def _index_fill(call):
    t, index = call.inputs[0], call.kept[2]
    dim, shape = _line(call)
    value = call.inputs[1] if len(call.inputs) > 1 else tensor_of(call.args[1]).to(t.device)
    target = vectors(call, t)
    places = along(call, index, _other_length(shape, dim, index.numel()), dim) % max(shape[dim], 1)
    named = target.new_zeros(target.shape).bool().scatter(dim + 1, places, value=True)
    values = call.near(value).to(t.dtype)
    found = where(named, values.view(len(values), *(1,) * len(shape)), target)
    return call.shaped(found, t.shape)


@rule("embedding")
def _embedding(call):
    table, indices = call.inputs[0], call.kept[1]
    padding, by_frequency, sparse, _ = call.args
    entry, row = registry["embedding"].entry, None if padding < 0 else padding
    if not call.has(table) and not by_frequency:
        return entry(call.samples(indices), table, row, sparse=sparse)
    if padding < 0 and not by_frequency:
        return Places(call, (indices,), 2).read(call.full(table))
    tables = call.full(table)
    numbers = arange(call.size, device=table.device).view(-1, *(1,) * indices.ndim) * len(table) + call.near(indices)
    found = entry(numbers, tables.flatten(0, 1), scale_grad_by_freq=by_frequency, sparse=sparse)
    if row is None:
        return found
    is_padding = (call.full(indices) == row).unsqueeze(-1)
    return where(is_padding, found.detach(), found)


# -- x[indices] --


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
