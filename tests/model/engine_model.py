"""A minimal reverse-mode engine, the reference model for cygrad's engine.

Values are NumPy arrays, and views are NumPy views. All shape ops are one op, `take` (select elements by flat index),
whose transpose is `scatter`. An in-place change writes to the array, increments the version, and gives the tensor (or,
for a view, its base) the history of the op that computed the new values.
"""

import contextlib
import itertools

import numpy as np

numbers = itertools.count()
recording = True


@contextlib.contextmanager
def grad_mode(mode):
    global recording
    before, recording = recording, mode
    try:
        yield
    finally:
        recording = before


def no_grad():
    return grad_mode(False)


class Node:
    """A recorded op: the nodes of its inputs, the rule for their gradients, the saved tensors."""

    def __init__(self, inputs=(), rule=None, saved=()):
        self.inputs, self.rule, self.hooks = inputs, rule, []
        self.number = next(numbers)
        self.saved = [(value, value.counter[0]) for value in saved]

    def unpack(self):
        if self.saved is None:
            raise RuntimeError("Trying to backward through the graph a second time")
        if any(value.counter[0] != version for value, version in self.saved):
            raise RuntimeError("modified by an inplace operation")
        return [value for value, _ in self.saved]


class Tensor:
    """An array with its history; views and `detach` share the version counter."""

    def __init__(self, array, node=None, counter=None, base=None, index=None):
        self.array, self.own_node = np.asarray(array), node
        self.counter = [0] if counter is None else counter
        self.base, self.index, self.seen = base, index, self.counter[0]
        self.shape = self.array.shape

    @property
    def node(self):
        """The node that produced the values; for a view, regenerated after its base has changed."""
        if self.base is not None and self.seen != self.counter[0]:
            self.own_node, self.seen = take_node(self.base, self.index), self.counter[0]
        return self.own_node

    @property
    def requires_grad(self):
        return self.node is not None

    def register_hook(self, hook):
        self.node.hooks.append(hook)

    def tolist(self):
        return self.array.tolist()

    def detach(self):
        return Tensor(self.array, counter=self.counter)

    def __add__(self, other):
        return record(self.array + other.array, [self, other], lambda g: (g, g))

    def __mul__(self, other):
        saved = [other] * self.requires_grad + [self] * other.requires_grad
        rule = lambda g, *kept: (g * kept[0], g * kept[-1])  # noqa: E731
        return record(self.array * other.array, [self, other], rule, saved)

    def sin(self):
        cos = lambda x: (x + Tensor(np.pi / 2)).sin()  # noqa: E731
        return record(np.sin(self.array), [self], lambda g, x: (g * cos(x),), [self])

    def tanh(self):
        rule = lambda g, y: (g * (Tensor(1.0) + y * y * Tensor(-1.0)),)  # noqa: E731
        result = record(np.tanh(self.array), [self], rule)
        if result.node is not None:
            result.node.saved = [(result, 0)]
        return result

    def sum(self):
        return scatter(self, np.zeros(self.shape, int), ())

    def __getitem__(self, key):
        return self.view(lambda array: array[key])

    def reshape(self, *shape):
        return self.view(lambda array: array.reshape(shape))

    def view(self, change):
        local = np.arange(self.array.size).reshape(self.shape)
        index = change(local if self.index is None else self.index)
        node = take_node(self, change(local))
        return Tensor(change(self.array), node, self.counter, self.base or self, index)

    def add_(self, other):
        return self.write(other, Tensor.__add__)

    def mul_(self, other):
        return self.write(other, Tensor.__mul__)

    def write(self, other, op):
        base = self.base or self
        if recording and base.node is not None and base.node.rule is None:
            raise RuntimeError("a leaf Variable" if base is self else "a view of a leaf Variable")
        exactly = self.shape == other.shape and self.array.ctypes.data == other.array.ctypes.data
        if np.may_share_memory(self.array, other.array) and not exactly:
            raise RuntimeError("refer to a single memory location")
        history = self.node if base is self else take_node(base, self.index)  # directly from the base
        result = op(Tensor(self.array.copy(), history), other)
        self.array[...] = result.array
        self.counter[0] += 1
        if result.node is not None:
            base.own_node = result.node if base is self else put_node(self, result.node)


def record(array, inputs, rule, saved=()):
    """Create a tensor. Gradients larger than their input (only a 0-dim one) are summed."""
    if not recording or not any(x.requires_grad for x in inputs):
        return Tensor(array)
    shapes = [x.shape for x in inputs]

    def fitting(g, *kept):
        parts = zip(rule(g, *kept), shapes, strict=True)
        return [part if part.shape == shape else part.sum() for part, shape in parts]

    return Tensor(array, Node([x.node for x in inputs], fitting, saved))


def take_node(x, index):
    """The node for selecting the elements `index` (flat indices) of x."""
    return x.node and Node([x.node], lambda g: [scatter(g, index, x.shape)])


def put_node(view, node):
    """The node of a base after its part `view` has been assigned values from `node`."""
    kept = np.ones(view.base.shape)
    kept.reshape(-1)[view.index] = 0.0
    return Node([view.base.own_node, node], lambda g: [g * Tensor(kept), take(g, view.index)])


def take(x, index):
    return Tensor(x.array.ravel()[index], take_node(x, index) if recording else None)


def scatter(x, index, shape):
    """Zeros of `shape` to which the elements of x are added at `index`."""
    array = np.zeros(shape)
    np.add.at(array.reshape(-1), index, x.array)
    return record(array, [x], lambda g: [take(g, index)])


def cat(parts):
    ends = np.cumsum([0] + [len(part.array) for part in parts])
    rule = lambda g: [take(g, np.arange(a, b)) for a, b in itertools.pairwise(ends)]  # noqa: E731
    return record(np.concatenate([part.array for part in parts]), parts, rule)


def tensor(values, requires_grad=False):
    return Tensor(np.array(values, dtype=float), Node() if requires_grad else None)


def reachable(node, found):
    todo = [node]
    while todo:
        node = todo.pop()
        if node is not None and node not in found:
            found.add(node)
            todo.extend(node.inputs)
    return sorted(found, key=lambda node: node.number)


def grad(root, inputs, create_graph=False, retain_graph=False):
    """The gradient of the 0-dim `root` for each of `inputs`, or None if there is no path to it."""
    if root.node is None:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    targets = {x.node for x in inputs}
    graph, needed = reachable(root.node, set()), set(targets)
    for node in graph:  # nodes in the order of recording
        if not needed.isdisjoint(node.inputs):
            needed.add(node)
    grads, found = {root.node: Tensor(np.ones(()))}, {}
    with grad_mode(create_graph):
        for node in reversed(graph):
            if node not in needed or node not in grads:
                continue
            before_hooks = g = grads.pop(node)
            for hook in node.hooks:
                g = hook(g)
            ends_here = needed.isdisjoint(node.inputs)
            if node in targets:  # if the node also has to run, PyTorch captures the gradient before the hooks
                found[node] = g if ends_here else before_hooks
            if ends_here:
                continue
            saved = node.unpack()
            for child, part in zip(node.inputs, node.rule(g, *saved), strict=True):
                if child in needed:
                    grads[child] = grads[child] + part if child in grads else part
            if saved and not (retain_graph or create_graph):
                node.saved = None
    return [found.get(x.node) for x in inputs]
