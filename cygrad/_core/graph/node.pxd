"""Graph nodes: edges, input metadata, hooks, site. Knows no Tensor."""

from cpython.object cimport PyObject
cimport numpy as cnp

from cygrad._core.runtime.thread_state cimport ThreadState

cdef extern from *:
    """
    /* CPython's trashcan frees a chain of objects without recursion: where few C calls are left, it puts objects off. 3.13
     * reckons with 10,000 calls, more than the stack of a small thread holds; so each of ours counts as 64. We put off only
     * where CPython does not fetch what was put off, or what a tuple fetches would be put off again for ever. From 3.14 on
     * CPython looks at the stack itself. */
    #if PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
    #undef Py_TRASHCAN_BEGIN
    #define Py_TRASHCAN_BEGIN(op, dealloc) \\
        do { \\
            PyThreadState *tstate = PyThreadState_Get(); \\
            if (tstate->c_recursion_remaining < 2 * Py_TRASHCAN_HEADROOM \\
                    && Py_TYPE(op)->tp_dealloc == (destructor)(dealloc)) { \\
                _PyTrash_thread_deposit_object(tstate, (PyObject *)(op)); \\
                break; \\
            } \\
            tstate->c_recursion_remaining -= 64;
    #undef Py_TRASHCAN_END
    #define Py_TRASHCAN_END \\
            tstate->c_recursion_remaining += 64; \\
            if (tstate->delete_later && tstate->c_recursion_remaining > 2 * Py_TRASHCAN_HEADROOM) \\
                _PyTrash_thread_destroy_chain(tstate); \\
        } while (0);
    #endif
    """

cdef enum:
    MAX_INLINE_DIMS = 4

ctypedef struct Meta:                   # shape and dtype of an output, i.e. of the gradient that comes in
    int ndim                            # -1: not inline, see Node.metas
    int num                             # NumPy type number
    cnp.npy_intp[MAX_INLINE_DIMS] dims

cdef class NodeHooks:
    cdef object pre                     # {id: f(grad_outputs)}
    cdef object post                    # {id: f(grad_inputs, grad_outputs)}
    cdef dict tensor_pre                # {output number: {id: f(grad)}}
    cdef dict retains                   # {output number: weak reference to the tensor whose .grad is kept}
    cdef object post_accumulate         # {id: f(tensor)}, AccumulateGrad only

cdef enum:                              # for `hooks_of`
    PRE
    POST
    TENSOR_PRE
    RETAINS
    POST_ACCUMULATE

cdef class Node:
    # edges to the nodes of the inputs: target (node, leaf tensor or None; Note [Leaf edges] in node.pyx) and
    # which of its outputs the input was
    cdef object edge0, edge1, edge2
    cdef int nr0, nr1, nr2
    cdef int n_edges
    cdef list more_edges                # [(target, nr), ...] from the fourth edge on
    # what comes in
    cdef int n_outputs
    cdef Meta meta                      # of output 0
    cdef tuple metas                    # ((shape, num), ...) of all outputs; None if `meta` says it all
    # who and where
    cdef unsigned long long sequence_nr
    cdef object code
    cdef int lasti
    # rarely there
    cdef object stream                  # the place of the stream it was made in (streams.py)
    cdef NodeHooks hooks
    cdef dict metadata_
    cdef object __weakref__
    # scratch of the run that owns this node (Note [Claims] in run.pyx)
    cdef unsigned long long run
    cdef Py_ssize_t slot

    cdef object call(self, object grad)  # one gradient, or a tuple of them if n_outputs > 1; gives a tuple or one
    cdef int release_variables(self, object freed_by) except -1
    cdef bint takes_undefined(self) noexcept    # is it run even if no gradient came?
    # places where tensors may be saved: their number, what is there, which output that is or -1
    cdef Py_ssize_t n_places(self)
    cdef object value_in(self, Py_ssize_t i)
    cdef int output_in(self, Py_ssize_t i) except -2
    cdef int put_packed(self, Py_ssize_t i, object packed) except -1
    cpdef str name(self)
    cdef object label(self)             # the name, or at less cost what has the name, for the profiler
    cdef Node shown(self)               # as users see it: Note [Types of nodes] in opdef.pyx
    cdef NodeHooks ensure_hooks(self)
    cdef int add_edge(self, object target, int nr) except -1
    cdef object target(self, int i)
    cdef int target_nr(self, int i) noexcept

cdef int forbid_making(type cls) except -1
cdef object hooks_of(Node node, int kind)               # the dictionary, made if missing
cdef int begin_node(Node node, ThreadState* state) except -1     # sequence number and site of a new node
cdef int set_meta(Node node, object array) except -1
cdef int set_metas(Node node, tuple arrays) except -1            # of several outputs
cdef tuple meta_of(Node node, int output_nr)            # (shape, num)
cdef int meta_matches(Node node, int output_nr, object array) except -1
