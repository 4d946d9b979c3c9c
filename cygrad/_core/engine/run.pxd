"""Declares Run, the state of one backward pass."""

from cpython.object cimport PyObject

from cygrad._core.graph.opdef cimport OpNode
from cygrad._core.graph.node cimport Node
from cygrad._core.runtime.thread_state cimport ThreadState
from cygrad._core.graph.tensor cimport Tensor

cdef struct Entry:              # a node as seen by this run
    PyObject* target            # owned: the node, or the leaf tensor that owns it
    PyObject* node              # not owned
    PyObject* grad              # owned: the incoming gradient, or a list of them; NULL until one arrives
    Py_ssize_t dependencies     # number of gradients still to come
    bint needed                 # on the path to a requested input
    bint captured               # its incoming gradient was requested

cdef struct Ready:
    unsigned long long sequence_nr
    Py_ssize_t entry

cdef class Run:
    cdef unsigned long long id
    cdef Entry* entries
    cdef Py_ssize_t n_entries, capacity
    cdef Ready* heap
    cdef Py_ssize_t n_ready, heap_capacity
    cdef dict foreign           # {node: entry} for nodes owned by another run
    cdef bint keep_graph
    cdef bint selective         # only some entries are needed
    cdef bint one_root          # run tensor hooks of a root that leads to no needed entry, as PyTorch does
    cdef bint cuts              # recorded only for the tangents: results that leave the pass have no history
    cdef unsigned long long oldest  # nodes recorded before this sequence number are not part of the pass
    cdef set ends               # nodes beyond which the pass does not go, or None
    cdef dict captures          # {(entry, output number): [positions in `captured`]}
    cdef list captured
    cdef bint has_streams       # whether a node was recorded in a non-default stream
    cdef object streams         # None, or the `Pass` of streams.py
    cdef list callbacks
    cdef str caller             # 'backward' or 'grad'
    cdef object freed_by        # (caller, code, lasti, next sequence number, thread); stored in the nodes this run frees
    cdef object failure
    cdef dict notes             # data that the package's Python code keeps until this pass ends
    cdef object poll            # None, or a function to call every few nodes

    cdef Py_ssize_t find(self, object target)
    cdef Py_ssize_t add(self, object target) except -1
    cdef int n_edges(self, Node node) except -1                 # that the pass follows
    cdef int discover(self) except -1
    cdef int give(self, Py_ssize_t entry, int nr, Tensor grad) except -1
    cdef bint add_part(self, OpNode node, Tensor grad, ThreadState* state) except -1
    cdef int select(self) except -1
    cdef int execute(self) except -1
    cdef int step(self, Py_ssize_t entry, ThreadState* state) except -1
    cdef int distribute(self, Node node, object grads) except -1
    cdef bint wants(self, Py_ssize_t entry) noexcept            # whether a gradient for this entry is needed
    cdef unsigned long long unwanted_edges(self, Node node) except? 0xFFFFFFFFFFFFFFFF
    cdef tuple fitted(self, Node node, object grads)
    cdef list nodes(self)
    cdef int push(self, Py_ssize_t entry) except -1
    cdef Py_ssize_t pop(self) noexcept
    cdef int capture(self, Py_ssize_t entry, object grad) except -1

cdef bint is_looking_for_anomalies() noexcept     # whether anomaly mode is on
cdef unsigned long long passes_begun() noexcept    # how many backward passes have begun in this process
