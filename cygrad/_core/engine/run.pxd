"""One backward pass."""

from cpython.object cimport PyObject

from cygrad._core.graph.opdef cimport OpNode
from cygrad._core.graph.node cimport Node
from cygrad._core.runtime.thread_state cimport ThreadState
from cygrad._core.graph.tensor cimport Tensor

cdef struct Entry:              # a node in this run
    PyObject* target            # owned: the node, or the leaf tensor that owns it
    PyObject* node              # not owned
    PyObject* grad              # owned: the incoming gradient, or a list of them; NULL if none came yet
    Py_ssize_t dependencies     # how many gradients are still to come
    bint needed                 # on the way to an input that was asked for
    bint captured               # its incoming gradient was asked for

cdef struct Ready:
    unsigned long long sequence_nr
    Py_ssize_t entry

cdef class Run:
    cdef unsigned long long id
    cdef Entry* entries
    cdef Py_ssize_t n_entries, capacity
    cdef Ready* heap
    cdef Py_ssize_t n_ready, heap_capacity
    cdef dict foreign           # {node: entry} for nodes that another run owns
    cdef bint keep_graph
    cdef bint selective         # only some entries are needed
    cdef bint one_root          # hooks on a root that leads to nothing that is needed are called, as in PyTorch
    cdef bint cuts              # recorded for the tangents alone: what leaves the pass has no history
    cdef unsigned long long oldest  # what was recorded before this number is no part of the pass
    cdef dict captures          # {(entry, output number): [positions in `captured`]}
    cdef list captured
    cdef bint has_streams       # was a node made in a stream beside the default one?
    cdef object streams         # None, or the `Pass` of streams.py
    cdef list callbacks
    cdef str caller             # 'backward' or 'grad'
    cdef object freed_by        # (caller, code, lasti, next sequence number, thread): given to the nodes that this run frees
    cdef object failure
    cdef dict notes             # what Python code of the package keeps until this pass ends

    cdef Py_ssize_t find(self, object target)
    cdef Py_ssize_t add(self, object target) except -1
    cdef int discover(self) except -1
    cdef int give(self, Py_ssize_t entry, int nr, Tensor grad) except -1
    cdef bint add_part(self, OpNode node, Tensor grad, ThreadState* state) except -1
    cdef int select(self) except -1
    cdef int execute(self) except -1
    cdef int step(self, Py_ssize_t entry, ThreadState* state) except -1
    cdef int distribute(self, Node node, object grads) except -1
    cdef bint wants(self, Py_ssize_t entry) noexcept            # is a gradient for this entry of use?
    cdef unsigned long long unwanted_edges(self, Node node) except? 0xFFFFFFFFFFFFFFFF
    cdef tuple fitted(self, Node node, object grads)
    cdef list nodes(self)
    cdef int push(self, Py_ssize_t entry) except -1
    cdef Py_ssize_t pop(self) noexcept
    cdef int capture(self, Py_ssize_t entry, object grad) except -1
