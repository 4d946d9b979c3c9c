"""Backward passes that come after a captured step. See histories.pyx."""

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.replay.graphs cimport Graph
from cygrad._core.replay.program cimport History, Program

cdef class Saved:                   # a value that a node of the eager graph has saved
    cdef object place               # (kind, number) of the tensor whose memory it is: see Past.watched
    cdef Node node                  # names the node in errors, without its graph
    cdef Tensor value               # describes the value in errors
    cdef bint is_result

cdef class Pass:                    # the backward pass for gradients of one layout
    cdef object program             # a Program, or, on a GPU, a GpuPass
    cdef list arrives               # of each edge of the node: which result of the program is its gradient, or -1
    cdef set reads                  # (kind, number) of what is watched, as far as the pass reads it; None: all

cdef class Past(History):
    cdef readonly list outputs      # the results with a history
    cdef list edges                 # of the node: (True, number of the argument) or (False, tensor)
    cdef int from_arguments         # the first edges
    cdef list further               # the edges from the fourth on, if all nodes share them
    cdef list memory                # of each block: (True, result) or (False, further result) that is on it, or None
    cdef list needed                # of the arguments, and after them of the blocks: whether a pass reads it
    cdef readonly list watched      # (kind, number) of tensors whose versions are compared
    cdef list saved                 # of Saved: all that the eager graph has saved
    cdef readonly dict passes       # {key of the layout: Pass}
    cdef Pass dense                 # that for dense gradients of all results
    cdef readonly dict refused      # {key: why such a pass cannot be replayed}
    cdef Program program            # whose history this is; None on a GPU
    cdef list outside               # of External: what the step reads or changes
    cdef unsigned int modes         # of the thread, in the captured call
    cdef dict casts                 # {number of an output that is the cast of a parameter: the edge to that}
    cdef object flatten
    cdef object function, guard, learn      # set by `bind`
    cdef dict unknown               # {key: how many passes were of that layout, which is not captured}
    cdef int begin(self, Graph graph, list leaves, list outputs, object flatten, list outside, unsigned int modes) except -1
    cdef Tensor tensor_at(self, object kind, Py_ssize_t i, list found, list arguments)
    cdef bint takes(self, tuple grads) except -1
    cdef list memory_of(self, list found, list arguments)
    cdef int capture(self, object by, Graph graph, list leaves, list arguments, list blocks, tuple layouts,
                     Py_ssize_t n_shown) except -1
    cdef Pass captured(self, tuple key, object by, Graph graph, list outputs, list arguments, list saved, list blocks)
    cdef object as_written(self, CompiledFunctionBackward node, tuple grads, unsigned long long unwanted, bint create)
    cdef list of_casts(self, tuple grads)
    cdef list again(self, CompiledFunctionBackward node)
    cdef int note_unknown(self, tuple key) except -1

cdef class CompiledFunctionBackward(Node):
    cdef Past past
    cdef list saved                 # what passes read: see `memory_of`
    cdef list arguments             # of the program
    cdef tuple given                # the arguments of the function
    cdef list counters, versions    # of what is watched
    cdef bint is_passed             # whether the edges lead to the graph of the function, made once more
    cdef tuple states               # of random numbers before the call, and copies of what it changed
    cdef int lead_to(self, list outputs) except -1
    cdef int check_versions(self, Pass found) except -1

cdef list places_of(list externals, list outside)
cdef int watch(Past past, Graph graph, list arguments, list leaves) except -1
