"""Graph nodes: edges, input metadata, hooks, site. Does not depend on Tensor."""

from cpython.object cimport PyObject
cimport numpy as cnp

from cygrad._core.runtime.thread_state cimport ThreadState

cdef extern from *:
    """
    /* CPython's trashcan frees a chain of objects without recursion: if few C calls are left, it defers deallocation. 3.13
     * assumes 10,000 calls, more than the stack of a small thread holds, so each of ours counts as 64. We defer only
     * where CPython does not process deferred objects; otherwise those processed by a tuple would be deferred again for
     * ever. From 3.14 on CPython checks the stack itself. */
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

ctypedef struct Meta:                   # shape and dtype of an output, and so of the incoming gradient
    int ndim                            # -1: stored in Node.metas instead
    int num                             # NumPy type number
    cnp.npy_intp[MAX_INLINE_DIMS] dims

cdef class NodeHooks:
    cdef object pre                     # {id: f(grad_outputs)}
    cdef object post                    # {id: f(grad_inputs, grad_outputs)}
    cdef dict tensor_pre                # {output number: {id: f(grad)}}
    cdef dict retains                   # {output number: weak reference to the tensor that retains its gradient}
    cdef object post_accumulate         # {id: f(tensor)}, AccumulateGrad only

cdef enum:                              # for `hooks_of`
    PRE
    POST
    TENSOR_PRE
    RETAINS
    POST_ACCUMULATE

cdef class Node:
    # Edges to the nodes of the inputs: the target (a node, a leaf tensor or None; Note [Leaf edges] in node.pyx) and
    # which output of the target the input was.
    cdef object edge0, edge1, edge2
    cdef int nr0, nr1, nr2
    cdef int n_edges
    cdef list more_edges                # [(target, nr), ...] from the fourth edge on
    # the incoming gradients
    cdef int n_outputs
    cdef Meta meta                      # of output 0
    cdef tuple metas                    # ((shape, num), ...) of all outputs; None if `meta` suffices
    # saved values, which belong to saved_slots.pyx (Note [Saved slots])
    cdef object saved0, saved1, saved2, saved3      # tensors, numbers, None, or Packed
    cdef long long version0, version1, version2, version3
    cdef list further                   # (value, version) of each further slot; None if there is none
    cdef object freed_by                # site of the backward call that freed the saved values
    # order of recording, and site
    cdef unsigned long long sequence_nr
    cdef object code
    cdef int lasti
    # rarely present
    cdef object stream                  # token of the stream the node was recorded in (streams.py)
    cdef NodeHooks hooks
    cdef dict metadata_
    cdef object __weakref__
    # scratch space of the run that owns this node (Note [Claims] in run.pyx)
    cdef unsigned long long run
    cdef Py_ssize_t slot

    cdef object call(self, object grad)  # takes one gradient, or a tuple if n_outputs > 1; returns one or a tuple
    cdef int release_variables(self, object freed_by) except -1
    cdef bint takes_undefined(self) noexcept    # whether the node runs even if no gradient arrives
    cdef bint stands_for_several(self) noexcept     # whether each output would have a node of its own in an eager step
    # The slots for saved values: how many, which output the value in slot i is (-1: none), and whose lock guards them.
    cdef Py_ssize_t n_places(self)
    cdef int output_in(self, Py_ssize_t i) except -2
    cdef object lock(self)
    cpdef str name(self)
    cdef object label(self)             # for the profiler: the name, or an object that has it and is cheaper to get
    cdef Node shown(self)               # as users see it; see Note [Types of nodes] in opdef.pyx
    cdef NodeHooks ensure_hooks(self)
    cdef int add_edge(self, object target, int nr) except -1
    cdef object target(self, int i)
    cdef int target_nr(self, int i) noexcept

cdef int forbid_making(type cls) except -1
cdef object hooks_of(Node node, int kind)               # the dictionary, created if missing
cdef int begin_node(Node node, ThreadState* state) except -1     # assign sequence number and site to a new node
cdef int set_meta(Node node, object array) except -1
cdef int set_metas(Node node, tuple arrays) except -1            # the same for several outputs
cdef tuple meta_of(Node node, int output_nr)            # (shape, num)
cdef int meta_matches(Node node, int output_nr, object array) except -1
