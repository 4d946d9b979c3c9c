"""Gradients whose bits do not depend on the number of processes (`distributed.deterministic`).

Note [Ordered sums]
-------------------
A step has V micro-batches, whatever the number of processes: process r of W has those from r * V // W to (r + 1) * V //
W. Each backward pass gives one of them, a leaf of a binary tree: the node over the leaves [lo, hi) has the children
[lo, mid) and [mid, hi), where mid - lo is the largest power of two below hi - lo. Floating-point addition rounds, but a
+ b is the same wherever it is computed, so that the sum at the root has the same bits if only all sums follow this
tree.

A process adds up the nodes that lie within its own range as its leaves arrive (`Tree.add`). What remains are the few
largest nodes within it. For the rest of the tree each process takes a slice of the elements: they send each other these
slices of their nodes (`all_to_all`), each adds its slices up in the order of the tree, and all gather the results. If V
is a multiple of W and both are powers of two, each process has one node, and this takes as many bytes as the usual
all-reduce, which is a reduce-scatter and an all-gather too.
"""

import sys
from typing import Any

import cygrad
from cygrad.distributed._data_parallel.buckets import assignment_by_size
from cygrad.distributed._data_parallel.reducer import Reducer
from cygrad.distributed._deterministic import share

__all__ = ["OrderedReducer", "Tree", "largest_nodes", "middle", "ordered_sum"]


def middle(lo, hi):
    """Where the children of the node over the leaves [lo, hi) meet."""
    return lo + (1 << (hi - lo - 1).bit_length() - 1)


def largest_nodes(begin, end, shards):
    """The largest nodes of the tree over `shards` leaves that lie within [begin, end), from left to right."""
    found = []
    waiting = [(0, shards)]
    while waiting:
        lo, hi = waiting.pop()
        if begin <= lo and hi <= end:
            found.append((lo, hi))
        elif lo < end and begin < hi and hi - lo > 1:
            mid = middle(lo, hi)
            waiting += [(mid, hi), (lo, mid)]
    return found


class Tree:
    """Adds up the leaves of one process, which come in order, as far as they make nodes of the tree."""

    def __init__(self, begin, end, shards):
        self.nodes = largest_nodes(begin, end, shards)
        self._sums: list[Any] = []  # [(lo, hi, tensor)], from left to right

    def add(self, leaf, tensor):
        """Take the tensor of the next leaf, which is then the tree's own."""
        self._sums.append((leaf, leaf + 1, tensor))
        while len(self._sums) > 1 and self._are_siblings(*self._sums[-2:]):
            (_, hi, right), (lo, _, left) = self._sums.pop(), self._sums.pop()
            self._sums.append((lo, hi, left.add_(right)))

    def _are_siblings(self, left, right):
        lo, hi = left[0], right[1]
        node = next(((a, b) for a, b in self.nodes if a <= lo and hi <= b), None)
        while node is not None and node != (lo, hi):
            mid = middle(*node)
            node = (node[0], mid) if hi <= mid else (mid, node[1]) if lo >= mid else None
        return node is not None and middle(lo, hi) == right[0]

    def sums(self):
        """The sums at `nodes`."""
        return [tensor for _, _, tensor in self._sums]


def _root(sums, shards):
    """The sum at the root, from sums at the nodes {(lo, hi): tensor}."""

    def at(lo, hi):
        if (lo, hi) in sums:
            return sums[lo, hi]
        mid = middle(lo, hi)
        return at(lo, mid) + at(mid, hi)  # as deep as the logarithm of `shards`

    return at(0, shards)


def ordered_sum(tensors, shards, group):
    """The sum over all leaves, from each process's flat tensors at its `largest_nodes`."""
    rank, size = group.rank(), group.size()
    nodes = [largest_nodes(*share(shards, size, each), shards) for each in range(size)]
    if size == 1:
        return _root(dict(zip(nodes[0], tensors)), shards)
    length = tensors[0].numel()
    width = -(-length // size)
    bounds = [min(width * each, length) for each in range(size + 1)]
    widths = [stop - start for start, stop in zip(bounds, bounds[1:])]
    sent = cygrad.cat([each[start:stop] for start, stop in zip(bounds, bounds[1:]) for each in tensors])
    arriving = [len(theirs) * widths[rank] for theirs in nodes]
    received = sent.new_empty(sum(arriving))
    cygrad.distributed.all_to_all_single(
        received, sent, arriving, [len(tensors) * each for each in widths], group=group
    )
    pieces = received.split(widths[rank]) if widths[rank] else [received] * sum(map(len, nodes))
    mine = sent.new_zeros(width)
    mine[: widths[rank]] = _root(dict(zip([node for theirs in nodes for node in theirs], pieces)), shards)
    whole = sent.new_empty(width * size)
    cygrad.distributed.all_gather_into_tensor(whole, mine, group=group)
    return whole[:length]


class OrderedReducer(Reducer):
    """Averages the gradients of the micro-batches of all processes in a fixed order; each backward pass gives one."""

    keeps_earlier = True

    def __init__(self, names, parameters, is_sparse, group, model, shards):
        if any(is_sparse):
            raise RuntimeError("distributed.deterministic(True): gradients that are sparse cannot be added up in order")
        if group.size() > shards:
            raise RuntimeError(
                f"distributed.deterministic(True, shards={shards}): there are {group.size()} processes, and each needs "
                "a micro-batch in each step\n  to fix it: raise `shards`"
            )
        super().__init__(names, parameters, is_sparse, group, model)
        self._is_rebuilt = True
        self.shards = shards
        self.begin, self.end = share(shards, group.size(), group.rank())
        self._statistics = statistics_of(model.module)
        self._begin_step()

    def first_assignment(self):
        order = list(range(len(self.parameters) - 1, -1, -1))
        return assignment_by_size([self.parameters[n] for n in order], [sys.maxsize], self.is_sparse, order)

    def _begin_step(self):
        self.leaf = self.begin
        self._trees: dict = {}
        self._seed: Any = None
        self._earlier: Any = None  # gradients from before this step
        self._lacked: set = set()

    # --- A micro-batch ---------------------------------------------------------------------------

    def before_forward(self):
        """Begin a micro-batch: the same statistics and random numbers as it would have in any other process."""
        if self._seed is None:
            self._seed = int(cygrad.randint(0, 2**62, (1,)).item())
            self._before = [buffer.detach().clone() for buffer in self._statistics]
        else:
            self._restore_statistics()
        self._random_state = cygrad.get_rng_state()
        cygrad.default_generator.manual_seed((self._seed * 1_000_003 + self.leaf) % 2**63)

    def after_forward(self, output):
        """Let random numbers outside of the module go on as if it had taken none."""
        cygrad.set_rng_state(self._random_state)
        super().after_forward(output)

    def set_hook(self, state, hook):
        raise RuntimeError("register_comm_hook: distributed.deterministic(True) reduces gradients in its own order")

    def send_buffers(self, buffers, root=0):
        if self._seed is None:  # processes have different numbers of micro-batches, and a step is what they share
            super().send_buffers(buffers, root)

    def _restore_statistics(self):
        with cygrad.no_grad():
            for buffer, value in zip(self._statistics, self._before):
                buffer.copy_(value)

    def _begin(self):
        super()._begin()
        if self._earlier is None:
            self._earlier = [None if touched else p.grad for p, touched in zip(self.parameters, self.touched)]
            for parameter, gradient in zip(self.parameters, self._earlier):
                if gradient is not None:
                    parameter.grad = None

    def _launch_full(self):
        """Nothing is sent before the last micro-batch is complete."""

    def _poll(self):
        """Nothing is under way."""

    def _finish(self):
        try:
            with cygrad.no_grad():
                self._take_leaf()
                self.leaf += 1
                if self.leaf == self.end:
                    self._finish_step()
        except BaseException:
            self._begin_step()
            raise
        finally:
            self._end()

    def _take_leaf(self):
        for bucket in self.buckets:
            bucket.fill(1, self.touched)
            self._add(bucket.index, bucket.flat.clone())
        self._lacked.update(number for number, touched in enumerate(self.touched) if not touched)
        for parameter in self.parameters:
            parameter.grad = None
        for place, (buffer, before) in enumerate(zip(self._statistics, self._before)):
            if buffer.is_floating_point():
                self._add(("statistics", place), (buffer - before).reshape(-1))

    def _add(self, key, tensor):
        if key not in self._trees:
            self._trees[key] = Tree(self.begin, self.end, self.shards)
        self._trees[key].add(self.leaf, tensor)

    # --- The end of a step -----------------------------------------------------------------------

    def _finish_step(self):
        totals = {key: ordered_sum(tree.sums(), self.shards, self.group) for key, tree in self._trees.items()}
        for bucket in self.buckets:
            bucket.flat.copy_(totals[bucket.index])
            if not self.adds_up:
                bucket.data.mul_(1 / self.shards)
        for place, (buffer, before) in enumerate(zip(self._statistics, self._before)):
            if buffer.is_floating_point():
                buffer.copy_(before + (totals["statistics", place] * (1 / self.shards)).view(buffer.shape))
        lacked, earlier = self._lacked, self._earlier
        self.touched = [number not in lacked for number in range(len(self.parameters))]
        self._begin_step()
        self._hand_over()
        for parameter, gradient in zip(self.parameters, earlier):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else gradient.add_(parameter.grad)
        self.passes += 1


def statistics_of(module):
    """The running statistics of batch norms: the buffers that micro-batches change."""
    found = []
    for inner in module.modules():
        if getattr(inner, "track_running_stats", False):
            found += [b for b in (inner.running_mean, inner.running_var, inner.num_batches_tracked) if b is not None]
    return found
