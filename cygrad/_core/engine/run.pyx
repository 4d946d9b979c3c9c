"""One backward pass: which nodes run, in which order, with which gradients.

Nodes reachable from the roots are numbered as they are found (`discover`). Each gets an `Entry` with the number of
gradients that must arrive before it can run, and a buffer that accumulates them. Ready entries are kept in a heap ordered
by sequence number, so that the latest recorded node runs first. Nothing recurses.

Note [Claims]
-------------
For fast lookup of a node's entry, the run writes its own number and the entry's index into the node (`run`, `slot`),
unless another run has already done so. A node that another run owns (in another thread, or an outer backward pass of this
thread) is looked up in a dictionary of this run instead. Two runs over a shared subgraph thus never touch each other's
state.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset
from numpy cimport PyArray_SAMESHAPE, PyArray_SIZE, PyArray_TYPE, ndarray

from cygrad._core.graph.accumulate_grad cimport AccumulateGrad, is_sparse
from cygrad._core.types.dtypes cimport COMPLEX, category_of_num, dtype_of_num, is_float_num
from cygrad._core.engine.hooks cimport run_post_hooks, run_pre_hooks, run_tensor_pre_hooks
from cygrad._core.graph.observers cimport NODE, enter_all, leave_all
from cygrad._core.graph.inplace cimport CopySlices
from cygrad._core.graph.node cimport Node, meta_matches, meta_of
from cygrad._core.graph.opdef cimport IS_PART, PRODUCT, SELECTS, OpNode, is_op_node, lookup
from cygrad._core.graph.saved_slots cimport value_in
from cygrad._core.graph.spent_gradients cimport add_arrays, add_gradients, is_unshared, offer
from cygrad._core.runtime.thread_state cimport FORWARD, NO_GRAD, WATCH_INF, ThreadState, thread_state
from cygrad._core.graph.tensor cimport (
    DISPATCHES, GRAD_DTYPE_SHIFT, Tensor, accumulator_of, alias, num_of_grad, wrap_in_mode)
from cygrad._kernels.array_ops cimport cast, sum_to
from cygrad._kernels.cpu.reduction.non_finite cimport are_small, has_bad

cdef extern from "atomic_owner.h":
    bint cygrad_claim(unsigned long long* owner, unsigned long long run) noexcept
    void cygrad_release(unsigned long long* owner) noexcept
    unsigned long long cygrad_owner(unsigned long long* owner) noexcept
    unsigned long long cygrad_next(unsigned long long* counter) noexcept

from cygrad._core import graph_errors

cdef unsigned long long last_run = 0

cdef bint anomaly_mode = False          # shared by all threads, as in PyTorch
cdef bint anomaly_check = False         # check for NaN

cdef enum:
    LEAST_WHOLE = 1 << 12       # least number of elements for which avoiding a zero-filled array pays off
    TURN = 1024                 # nodes between two releases of the GIL, since short nodes never release it on their own
    POLL = 8                    # nodes between two calls of `poll`


@cython.final
cdef class Run:
    """The state of one backward pass."""

    def __cinit__(self):
        self.id = cygrad_next(&last_run)

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n_entries):
            if cygrad_owner(&(<Node>self.entries[i].node).run) == self.id:
                cygrad_release(&(<Node>self.entries[i].node).run)
        for i in range(self.n_entries):
            Py_XDECREF(self.entries[i].grad)
            Py_XDECREF(self.entries[i].target)
        free(self.entries)
        free(self.heap)

    # -- finding the graph ---------------------------------------------------------------------------------

    cdef Py_ssize_t find(self, object target):
        """Return the entry of an edge's target, or -1."""
        cdef Node node = node_of(target)
        if cygrad_owner(&node.run) == self.id:
            return node.slot
        if self.foreign is not None:
            return self.foreign.get(node, -1)
        return -1

    cdef Py_ssize_t add(self, object target) except -1:
        """Return the entry of an edge's target, creating it if necessary."""
        cdef Node node = node_of(target)
        cdef Py_ssize_t i = self.n_entries
        cdef Entry* grown
        if cygrad_owner(&node.run) == self.id:
            return node.slot
        if self.foreign is not None and node in self.foreign:
            return self.foreign[node]
        if i == self.capacity:
            grown = <Entry*>realloc(self.entries, max(64, 2 * self.capacity) * sizeof(Entry))
            if grown == NULL:
                raise MemoryError("no memory for the backward pass")
            self.entries = grown
            self.capacity = max(64, 2 * self.capacity)
        if cygrad_claim(&node.run, self.id):
            node.slot = i
        else:
            if self.foreign is None:
                self.foreign = {}
            self.foreign[node] = i
        memset(&self.entries[i], 0, sizeof(Entry))
        Py_INCREF(target)
        self.entries[i].target = <PyObject*>target
        self.entries[i].node = <PyObject*>node
        self.n_entries = i + 1
        return i

    @cython.final
    cdef inline int n_edges(self, Node node) except -1:
        return 0 if self.ends is not None and node in self.ends else node.n_edges

    cdef int discover(self) except -1:
        """Find everything reachable from the current entries, and count the gradients each will receive."""
        cdef Py_ssize_t i = 0, j
        cdef int k
        cdef Node node
        while i < self.n_entries:
            node = <Node>self.entries[i].node
            if node.stream is not None:
                self.has_streams = True
            for k in range(self.n_edges(node)):
                target = node.target(k)
                if target is not None and (self.oldest == 0 or node_of(target).sequence_nr >= self.oldest):
                    j = self.add(target)
                    self.entries[j].dependencies += 1
            i += 1
        return 0

    cdef int select(self) except -1:
        """Mark as needed all entries that lead to a needed or captured entry."""
        cdef Py_ssize_t i, j, n = 0
        cdef int k
        cdef Node node
        cdef Py_ssize_t* waiting = <Py_ssize_t*>malloc(2 * max(1, self.n_entries) * sizeof(Py_ssize_t))
        cdef Py_ssize_t* order = waiting + self.n_entries
        if waiting == NULL:
            raise MemoryError("no memory for the backward pass")
        try:
            for i in range(self.n_entries):
                waiting[i] = self.entries[i].dependencies
                if waiting[i] == 0:
                    order[n] = i
                    n += 1
            i = 0
            while i < n:                        # topological order
                node = <Node>self.entries[order[i]].node
                for k in range(self.n_edges(node)):
                    target = node.target(k)
                    j = -1 if target is None else self.find(target)
                    if j >= 0:
                        waiting[j] -= 1
                        if waiting[j] == 0:
                            order[n] = j
                            n += 1
                i += 1
            for i in range(n - 1, -1, -1):      # and back
                node = <Node>self.entries[order[i]].node
                for k in range(self.n_edges(node)):
                    target = node.target(k)
                    j = -1 if target is None else self.find(target)
                    if j >= 0:
                        if self.entries[j].needed or self.entries[j].captured:
                            self.entries[order[i]].needed = True
        finally:
            free(waiting)
        self.selective = True
        return 0

    # -- gradients -----------------------------------------------------------------------------------------

    cdef int give(self, Py_ssize_t entry, int nr, Tensor grad) except -1:
        """Add a gradient to those that have arrived at an entry."""
        cdef Entry* e = &self.entries[entry]
        cdef int n_outputs = (<Node>e.node).n_outputs
        cdef Tensor present, total
        cdef list grads
        if n_outputs == 1:
            if e.grad != NULL:
                present = <Tensor>e.grad
                Py_XDECREF(e.grad)              # now `present` holds the only reference, so that its memory can be reused
                e.grad = NULL
                total = add_gradients(present, grad)
            else:
                total = grad
            Py_INCREF(total)
            self.entries[entry].grad = <PyObject*>total
            return 0
        if e.grad == NULL:
            grads = [None] * n_outputs
            Py_INCREF(grads)
            e.grad = <PyObject*>grads
        grads = <list>e.grad
        present = grads[nr]
        if present is not None:
            grads[nr] = None
            grad = add_gradients(present, grad)
        grads[nr] = grad
        return 0

    cdef bint add_part(self, OpNode node, Tensor grad, ThreadState* state) except -1:
        """Add the gradient of a part to the whole's accumulated gradient in place, if unshared. Return whether it did.

        This way the gradients of many parts do not each allocate a zero-filled array.
        """
        cdef object target = node.target(0)
        if target is None:                      # a part of a view made in no_grad mode
            return False
        cdef Py_ssize_t j = self.find(target)
        cdef Entry* e = &self.entries[j]
        cdef Tensor present
        cdef bint fits
        if (j < 0 or e.grad == NULL or (<Node>e.node).n_outputs != 1 or not state.modes & NO_GRAD
                or state.modes & FORWARD or state.observers != NULL or state.watch or anomaly_check
                or node.hooks is not None or self.streams is not None):
            return False
        present = <Tensor>e.grad
        if (type(present.array) is not ndarray or type(grad.array) is not ndarray
                or PyArray_SIZE(<ndarray>present.array) < LEAST_WHOLE
                or PyArray_TYPE(<ndarray>present.array) != PyArray_TYPE(<ndarray>grad.array)
                or present.array.shape != node.arguments[0]):
            return False
        Py_XDECREF(e.grad)                      # now `present` holds the only reference
        e.grad = NULL
        fits = is_unshared(present, 1)
        Py_INCREF(present)
        e.grad = <PyObject*>present
        if fits:
            part = node.part_of(<ndarray>present.array)
            add_arrays(<ndarray>part, <ndarray>grad.array, <ndarray>part)
        return fits

    cdef tuple fitted(self, Node node, object grads):
        """Return a node's results as post-hooks see them: each input's gradient, or None if it is not wanted."""
        cdef int k
        cdef list fitted = list(results_of(node, grads))
        for k in range(node.n_edges):
            target = node.target(k)
            if target is None or fitted[k] is None:
                continue
            if not self.wants(self.find(target)) and not node.takes_undefined():
                fitted[k] = None
            else:
                fitted[k] = fit(<Tensor?>fitted[k], node, k)
        return tuple(fitted)

    cdef inline bint wants(self, Py_ssize_t entry) noexcept:
        return entry >= 0 and (
            not self.selective or self.entries[entry].needed or self.entries[entry].captured)

    cdef int distribute(self, Node node, object grads) except -1:
        """Pass a node's results on to the nodes of its inputs."""
        cdef int k
        cdef Py_ssize_t j
        cdef Tensor grad
        cdef bint several = type(grads) is tuple
        if several and len(<tuple>grads) < node.n_edges:
            raise graph_errors.too_few_gradients(node, len(<tuple>grads), node.n_edges)
        for k in range(node.n_edges):
            target = node.target(k)
            if target is None:
                continue
            j = self.find(target)
            if j < 0:
                continue
            value = (<tuple>grads)[k] if several else grads
            if value is not None and self.wants(j):
                grad = <Tensor?>value
                value = None
                if not fits(grad, target, node.target_nr(k)):
                    grad = fit_gradient(grad, target, node.target_nr(k), node, k)
                if self.streams is not None and self.entries[j].grad != NULL:
                    self.streams.add(j, <object>self.entries[j].grad)
                self.give(j, node.target_nr(k), grad)
                grad = None
                if self.streams is not None:
                    self.streams.gave(j, node_of(target).stream, type(node_of(target)) is AccumulateGrad)
            self.entries[j].dependencies -= 1
            if self.entries[j].dependencies == 0:
                self.push(j)
        return 0

    cdef int capture(self, Py_ssize_t entry, object grad) except -1:
        cdef int nr, n_outputs = (<Node>self.entries[entry].node).n_outputs
        for nr in range(n_outputs):
            for position in self.captures.get((entry, nr), ()):
                self.captured[position] = grad if n_outputs == 1 else None if grad is None else grad[nr]
        return 0

    # -- running -------------------------------------------------------------------------------------------

    cdef int execute(self) except -1:
        """Run until no entry is ready."""
        cdef ThreadState* state = thread_state()
        cdef unsigned int modes = state.modes
        cdef unsigned long long unwanted = state.unwanted       # set by the node whose rule started this (nested) pass
        cdef Py_ssize_t i, count = 0, entry = 0
        for i in range(self.n_entries):
            if self.entries[i].dependencies == 0:
                self.push(i)
        state.unwanted = 0
        try:
            while self.n_ready:
                count += 1
                if count % TURN == 0:
                    with nogil:
                        pass
                if self.poll is not None and count % POLL == 0:
                    self.poll()
                PyErr_CheckSignals()
                entry = self.pop()
                self.step(entry, state)
                state.modes = modes             # a hook may have changed them
        except Exception as error:
            graph_errors.note_node(error, <Node>self.entries[entry].node)
            raise
        finally:
            state.unwanted = unwanted
            state.spare = NULL      # after an error, another tensor may be allocated at this address
        return 0

    cdef int step(self, Py_ssize_t entry, ThreadState* state) except -1:
        """Run one node."""
        cdef Entry* e = &self.entries[entry]
        cdef Node node = <Node>e.node
        cdef object grad = None, grads = None
        if e.grad != NULL:
            grad = <object>e.grad
            Py_XDECREF(e.grad)
            e.grad = NULL
            if node.n_outputs > 1:
                grad = tuple(<list>grad)
        if self.selective and not e.needed and not e.captured:
            if self.one_root and node.hooks is not None and grad is not None:
                run_tensor_pre_hooks(node, grad)
            return 0
        if self.streams is not None:
            self.streams.enter(entry, node.stream, type(node) is AccumulateGrad, grad)
        if self.selective and e.captured:
            if node.hooks is not None and not e.needed:
                grad = run_tensor_pre_hooks(node, grad)
            self.capture(entry, grad)
            if not e.needed:
                return 0
        if node.hooks is not None:
            grad = run_pre_hooks(node, run_tensor_pre_hooks(node, grad))
        if grad is not None or node.takes_undefined():
            if self.selective and not node.takes_undefined():
                state.unwanted = self.unwanted_edges(node)
            with cython.critical_section(node):     # another run may free values that this one reads
                if self.cuts and type(node) is AccumulateGrad:
                    cut_and_accumulate(node, grad)
                elif is_op_node(node) and (<OpNode>node).op.flags & IS_PART and (
                        self.add_part(<OpNode>node, <Tensor>grad, state)):
                    pass
                else:
                    state.spare = NULL          # what the rule that started this pass was offered is not this node's
                    if not anomaly_check and (not state.watch or selects(node)):        # checks would read it afterwards
                        offer(node, grad, state)        # Note [Spent gradients]
                    grads = node.call(grad) if state.observers == NULL else observed_call(node, grad, state)
            state.spare = NULL
            state.unwanted = 0
            if anomaly_check or (state.watch and not selects(node)):
                check_gradients(self, node, grads, grad)
        if node.hooks is not None and node.hooks.post:
            grads = run_post_hooks(node, self.fitted(node, grads), grad)
        grad = None
        if not self.keep_graph:
            with cython.critical_section(node):
                node.release_variables(self.freed_by)
        return self.distribute(node, grads)

    cdef list nodes(self):
        return [<object>self.entries[i].node for i in range(self.n_entries)]

    cdef unsigned long long unwanted_edges(self, Node node) except? 0xFFFFFFFFFFFFFFFF:
        """Set bit k if edge k leads to nothing that this run needs to compute."""
        cdef unsigned long long edges = 0
        cdef int k
        for k in range(min(node.n_edges, 64)):
            target = node.target(k)
            if target is not None and not self.wants(self.find(target)):
                edges |= (<unsigned long long>1) << k
        return edges

# -- the heap of ready entries, ordered by descending sequence number ------------------------------------

    cdef int push(self, Py_ssize_t entry) except -1:
        cdef Ready* grown
        cdef Py_ssize_t i = self.n_ready, parent
        cdef unsigned long long sequence_nr = (<Node>self.entries[entry].node).sequence_nr
        if i == self.heap_capacity:
            grown = <Ready*>realloc(self.heap, max(64, 2 * i) * sizeof(Ready))
            if grown == NULL:
                raise MemoryError("no memory for the backward pass")
            self.heap = grown
            self.heap_capacity = max(64, 2 * i)
        self.n_ready += 1
        while i > 0:
            parent = (i - 1) // 2
            if self.heap[parent].sequence_nr >= sequence_nr:
                break
            self.heap[i] = self.heap[parent]
            i = parent
        self.heap[i].sequence_nr = sequence_nr
        self.heap[i].entry = entry
        return 0

    cdef Py_ssize_t pop(self) noexcept:
        cdef Py_ssize_t top = self.heap[0].entry
        cdef Ready last
        cdef Py_ssize_t i = 0, child, n
        self.n_ready -= 1
        n = self.n_ready
        if n:
            last = self.heap[n]
            while True:
                child = 2 * i + 1
                if child >= n:
                    break
                if child + 1 < n and self.heap[child + 1].sequence_nr > self.heap[child].sequence_nr:
                    child += 1
                if last.sequence_nr >= self.heap[child].sequence_nr:
                    break
                self.heap[i] = self.heap[child]
                i = child
            self.heap[i] = last
        return top


cdef inline bint selects(Node node) noexcept:
    """Whether the node's gradients pass `nan_check` whenever the incoming gradient does."""
    return is_op_node(node) and (<OpNode>node).op.flags & SELECTS != 0


cdef object observed_call(Node node, object grad, ThreadState* state):
    """Call `node.call(grad)` while others observe."""
    cdef tuple grads = grad if type(grad) is tuple else (grad,)
    entered = enter_all(node, NODE, grads, state)
    try:
        return node.call(grad)
    finally:
        leave_all(entered, node, NODE, True)


cdef int cut_and_accumulate(Node node, Tensor grad) except -1:
    """Accumulate a gradient so that `.grad` gets neither history nor tangents."""
    cdef ThreadState* state = thread_state()
    cdef unsigned int modes = state.modes
    state.modes = (modes | NO_GRAD) & ~FORWARD
    try:
        node.call(alias(grad))
    finally:
        state.modes = modes
    return 0


cdef inline Node node_of(object target):
    """Return the node of an edge's target (Note [Leaf edges] in node.pyx)."""
    if type(target) is OpNode:
        return <Node>target
    if isinstance(target, Tensor):
        return accumulator_of(<Tensor>target)
    return <Node?>target


cdef tuple results_of(Node node, object grads):
    """Return a node's results as a tuple with one gradient or None for each input."""
    if type(grads) is not tuple:
        return (grads,) if node.n_edges == 1 else (None,) * node.n_edges
    if len(grads) < node.n_edges:
        raise graph_errors.too_few_gradients(node, len(grads), node.n_edges)
    return grads


cdef inline bint fits(Tensor grad, object target, int nr) except -1:
    """Whether a gradient has exactly the shape and dtype of the tensor it belongs to."""
    cdef object wanted
    if isinstance(target, Tensor):
        wanted = (<Tensor>target).array
        if (<Tensor>target).flags >> GRAD_DTYPE_SHIFT:
            return False
        if type(wanted) is ndarray and type(grad.array) is ndarray:
            return (PyArray_TYPE(<ndarray>wanted) == PyArray_TYPE(<ndarray>grad.array)
                    and PyArray_SAMESHAPE(<ndarray>wanted, <ndarray>grad.array))
        return wanted.dtype == grad.array.dtype and wanted.shape == grad.array.shape
    return meta_matches(<Node>target, nr, grad.array)


cdef Tensor fit(Tensor grad, Node node, int k):
    """Convert a node's result for its input `k` to the shape and dtype of that input."""
    target = node.target(k)
    if target is None or fits(grad, target, node.target_nr(k)):
        return grad
    return fit_gradient(grad, target, node.target_nr(k), node, k)


def run_alone(Node node, grad, unsigned long long unwanted=0):
    """Return the gradients of `node`'s inputs; `grad` is one gradient, a tuple for several outputs, or None.

    Bit i of `unwanted` marks an input whose gradient may be omitted.
    """
    cdef int k
    if grad is None and not node.takes_undefined():
        return (None,) * node.n_edges
    grads = unfitted(node, grad, unwanted)
    return tuple([None if grads[k] is None else fit(<Tensor?>grads[k], node, k) for k in range(node.n_edges)])


def unfitted(Node node, grad, unsigned long long unwanted=0):
    """Same as `run_alone`, but leave gradients in the shapes and dtypes that the rule gave them."""
    cdef ThreadState* state = thread_state()
    cdef unsigned long long former = state.unwanted
    state.unwanted = unwanted
    try:
        with cython.critical_section(node):
            return results_of(node, node.call(grad))
    finally:
        state.unwanted = former


cdef int check_gradients(Run run, Node node, object grads, object grad) except -1:
    """For anomaly mode and `nan_check`: raise if a node produced a NaN from its gradient."""
    cdef bint inf = thread_state().watch & WATCH_INF
    for i, value in enumerate(grads if type(grads) is tuple else (grads,)):
        check_gradient(run, node, i, value, grad, inf)
    return 0


cdef int check_gradient(Run run, Node node, Py_ssize_t i, object value, object grad, bint inf) except -1:
    if value is grad and not anomaly_check:         # already checked
        return 0
    if isinstance(value, Tensor) and not is_small_product(node, i, value, grad) and has_bad((<Tensor>value).array, inf):
        from cygrad._core.diagnostics import non_finite  # needed only if a check fails
        non_finite.bad_gradient(node, i, value, grad, run.nodes(), inf)
    return 0


cdef bint is_small_product(Node node, Py_ssize_t i, Tensor product, object grad) except -1:
    """Whether a gradient is a product of factors so small that it must be finite."""
    cdef OpNode n
    if type(node) is not OpNode or not (<OpNode>node).op.flags & PRODUCT or type(grad) is not Tensor:
        return False
    n = <OpNode>node
    other = value_in(n, 1 if i != 1 else 2 if n.n_edges == 3 else 0)
    return type(other) is Tensor and are_small((<Tensor>grad).array, (<Tensor>other).array, product.array)


cdef bint is_looking_for_anomalies() noexcept:
    return anomaly_mode


cdef unsigned long long passes_begun() noexcept:
    return last_run


def get_anomaly():
    """Return (enabled, whether NaN is checked for)."""
    return anomaly_mode, anomaly_check


def set_anomaly(tuple wanted not None):
    """Set anomaly mode from a pair as returned by `get_anomaly`."""
    global anomaly_mode, anomaly_check
    anomaly_mode, anomaly_check = wanted
    anomaly_check = anomaly_check and anomaly_mode


# -- undoing broadcasting and promotion, in one place for all rules ------------------------------------------
#
# A rule returns the gradient of an input in the shape and dtype of the *result*. If the input was smaller, its gradient is
# the sum over the broadcast elements; if it had another dtype, the gradient is cast.

cdef inline bint is_dispatched(Tensor grad) noexcept:
    """Whether modes or a class of `__torch_dispatch__` must see what is done with a gradient."""
    return grad.flags & DISPATCHES or thread_state().dispatching


cdef Tensor fit_gradient(Tensor grad, object target, int nr, Node source, int index):
    cdef int num
    if isinstance(target, Tensor):
        shape = (<Tensor>target).array.shape
        num = num_of_grad(<Tensor>target)
    else:
        shape, num = meta_of(<Node>target, nr)
    if grad.array.shape != shape:
        if not expands_to(shape, grad.array.shape):
            raise graph_errors.invalid_gradient_shape(source, index, grad.array.shape, shape)
        if thread_state().modes & NO_GRAD and not is_dispatched(grad):
            grad = wrap_in_mode(sum_to(grad.array, shape))
        else:
            grad = lookup("sum_to_size").entry(grad, shape)
    if num < 0:         # any dtype will do; but a conversion gives the gradient the dtype of what it converted
        num = (<Tensor>target).array.dtype.num if is_conversion(source) else grad.array.dtype.num
    if grad.array.dtype.num != num:
        if isinstance(target, Tensor) and (<Tensor>target).flags >> GRAD_DTYPE_SHIFT and not is_float_num(num):
            raise RuntimeError(f"grad_dtype must be a floating-point or complex dtype, but is {dtype_of_num(num)}")
        if category_of_num(grad.array.dtype.num) == COMPLEX and category_of_num(num) != COMPLEX:
            if not is_op_node(source) and not changes_by_op(source):
                raise graph_errors.complex_gradient(source, index)
            grad = lookup("real_part").entry(grad)
        if thread_state().modes & NO_GRAD and not is_dispatched(grad) and not is_sparse(grad):
            grad = wrap_in_mode(cast(grad.array, num))
        else:
            grad = grad.to(dtype_of_num(num))
    return grad


cdef bint is_conversion(Node source) except -1:
    """Whether this is the node of `x.to(dtype)`."""
    return is_op_node(source) and source.name() == "ToCopyBackward0"


cdef bint changes_by_op(Node source) noexcept:
    """Whether this is the history of a tensor that a built-in op changed in place through a view."""
    return type(source) is CopySlices and is_op_node((<CopySlices>source).fn)


cdef bint expands_to(tuple small, tuple large):
    """Whether broadcasting could expand shape `small` to shape `large`."""
    cdef Py_ssize_t i, before = len(large) - len(small)
    for i in range(len(small)):
        if before < 0 or small[i] != 1 and small[i] != large[before + i]:
            return False
    return True
