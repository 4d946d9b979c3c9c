"""The graph of what a captured step returns, and backward passes over it, before any program replays them."""

cimport cython
cimport numpy as cnp

import numpy as np

from cygrad._core.engine.backward cimport gradients_up_to
from cygrad._core.graph.node cimport Node, forbid_making
from cygrad._core.graph.opdef cimport OpNode, is_op_node
from cygrad._core.graph.saved_slots cimport value_in
from cygrad._core.graph.tensor cimport REQUIRES_GRAD, Tensor, accumulator_of, grad_fn_of, wrap

from cygrad._core.engine.arguments import GradientEdge
from cygrad._core.replay.parts import Unfit

cnp.import_array()

_PERIOD = 4093      # elements after which a gradient of our own making repeats itself: a prime


@cython.final
cdef class Witness(Node):

    cpdef str name(self):
        return self.named

forbid_making(Witness)


cdef Witness witness_of(Node node):
    cdef Witness found = Witness.__new__(Witness)
    found.named, found.code, found.lasti, found.n_outputs = node.name(), node.code, node.lasti, node.n_outputs
    return found


cdef class Graph:
    def __init__(self, list roots, list arguments, dict before):
        cdef Tensor t
        cdef Node node
        cdef int i
        cdef set seen = set()
        cdef list todo = list(roots), leaves = []
        cdef dict given = {}
        self.nodes = []
        outer = set()
        for k, t in enumerate(arguments):
            fn = grad_fn_of(t)
            if fn is None and not t.flags & REQUIRES_GRAD:
                continue
            end = id(t if fn is None else fn), t.output_nr_
            if end in given:
                raise Unfit("two arguments have one history")
            given[end] = k
            if fn is not None:
                outer.add(id(fn))
        reached = set()
        while todo:
            node = todo.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if id(node) in outer:
                raise Unfit("a result has the history of an argument")
            if not is_op_node(node):
                raise Unfit(f"a result carries a graph with a node that is no built-in op ({node.name()})")
            if node.hooks is not None:
                raise Unfit("a result carries a graph with hooks, or with a tensor that retains its gradient")
            self.nodes.append(node)
            for i in range(node.n_edges):
                target, nr = node.target(i), node.target_nr(i)
                if target is None:
                    continue
                if (id(target), nr) in given:
                    reached.add(given[id(target), nr])
                elif not isinstance(target, Tensor):
                    todo.append(target)
                elif id(target) not in before:
                    raise Unfit("a result's history begins at a new tensor")
                elif id(target) not in seen:
                    seen.add(id(target))
                    leaves.append(target)
        self.nodes.sort(key=sequence_of, reverse=True)
        self.edges = [(True, k) for k in sorted(reached)] + [(False, t) for t in leaves]

    cdef list kept(self):
        """All tensors that nodes keep: (node, place or -1, tensor)."""
        cdef Node node
        cdef Py_ssize_t i
        cdef list found = []
        for node in self.nodes:
            for i in range(node.n_places()):
                for t in tensors_in(value_in(node, i)):
                    found.append((node, i, t))
            for t in tensors_in((<OpNode>node).arguments):
                found.append((node, -1, t))
        return found


def sequence_of(Node node not None):
    """The sort key of nodes."""
    return node.sequence_nr


cdef list tensors_in(object value):
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for each in value for t in tensors_in(each)]
    if isinstance(value, dict):
        return [t for each in value.values() for t in tensors_in(each)]
    if value is None or isinstance(value, (int, float, complex, str, bytes, slice, type, np.ndarray, np.dtype, np.generic)):
        return []
    return [t for t in vars(value).values() if isinstance(t, Tensor)] if hasattr(value, "__dict__") else []


# ----------------------------------------------------------------------------------------------- layouts


cdef object layout_of(object grad):
    """What distinguishes gradients of one output: strides; None if there is none."""
    return None if grad is None else (<Tensor>grad).array.strides


cdef Tensor placeholder(Tensor output, object strides, double first):
    """A gradient of an output in a given layout, with values of our own."""
    cdef object array = output.array, base
    cdef Py_ssize_t n = 1
    for length, step in zip(array.shape, strides):
        if step < 0 or step % array.itemsize:
            raise Unfit("a gradient runs backward through memory")
        n += (length - 1) * (step // array.itemsize) if array.size else 0
    base = np.resize(np.sin(np.arange(min(max(n, 1), _PERIOD)) + first).astype(array.dtype), max(n, 1))
    return wrap(np.ndarray(array.shape, array.dtype, base, 0, strides))


cdef object edge_of(bint is_argument, object which, list arguments):
    """(target, output number) of an edge of the node."""
    cdef Tensor t = arguments[which] if is_argument else which
    cdef Node fn = grad_fn_of(t)
    return (t if fn is None else fn), t.output_nr_


cdef tuple inner_gradients(list outputs, tuple grads, list edges, list arguments, unsigned long long unwanted,
                           bint retain, bint create):
    """The gradients that arrive at the edges, or None for each. No hook at these runs.

    The histories of arguments are not part of the pass: what they lead to may be an edge, too, and their nodes get the
    gradients of the arguments later."""
    cdef list roots = [], given = [], ends = [], nodes = [], hooks = [], found = [None] * len(edges), places = []
    cdef Node node
    cdef Tensor t
    cdef Py_ssize_t i
    for t, grad in zip(outputs, grads):
        if grad is not None:
            roots.append(t)
            given.append(grad)
    for i, (is_argument, which) in enumerate(edges):
        if i < 64 and (unwanted >> i) & 1:
            continue
        target, nr = edge_of(is_argument, which, arguments)
        node = accumulator_of(<Tensor>target) if isinstance(target, Tensor) else target
        nodes.append(node)
        hooks.append(node.hooks)
        ends.append(GradientEdge(node, 0 if isinstance(target, Tensor) else nr))
        places.append(i)
    for node in nodes:
        node.hooks = None
    try:
        histories = {grad_fn_of(t) for t in arguments}
        results = gradients_up_to(histories, tuple(roots), tuple(given), tuple(ends), retain, create)
    finally:
        for node, former in zip(nodes, hooks):
            if node.hooks is None:
                node.hooks = former
    for i, grad in zip(places, results):
        found[i] = grad
    return tuple(found)
