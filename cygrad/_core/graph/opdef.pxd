"""The row of an op (OpDef), and the node of all built-in ops (OpNode). opdef.pyx documents the row format."""

from cpython.object cimport Py_TYPE, PyObject, PyTypeObject
from numpy cimport ndarray

from cygrad._core.graph.node cimport Node
from cygrad._core.runtime.thread_state cimport ThreadState
from cygrad._core.graph.tensor cimport Tensor
from cygrad._kernels.cpu.base.ufunc cimport Ufunc

# Takes a node and the incoming gradient (a tuple of them if the op has several outputs). Returns a tuple with a gradient or
# None for each input, or the bare gradient if there is one input.
ctypedef object (*rule_t)(OpNode n, object g)

cpdef enum:             # what is saved
    IN0 = 1
    IN1 = 2
    IN2 = 4
    OUT0 = 8
    OUT1 = 16               # stored in the slots of IN1 and IN2
    OUT2 = 32

cpdef enum:             # OpDef.flags
    LINEAR = 1              # linear in its tensor inputs
    ELEMENTWISE = 2         # each output element depends only on the input elements at the same position
    VIEW = 4                # the output shares the input's memory
    NONDIFF = 8             # has no derivative; never recorded
    FLOAT_RESULT = 16       # integer input is first converted to the default float type
    INPLACE = 32            # has an in-place form, named with a trailing underscore
    METHOD_ONLY = 64        # a Tensor method, but no function of the package
    FUNCTION_ONLY = 128     # a function of the package, but no Tensor method
    PRIVATE = 256           # neither; used by rules and other entry points
    MAY_OVERLAP = 512       # in place, elements of the tensor may alias: all writes to an address are equal
    ONE_PASS = 1024         # the elementwise rule allocates no large array besides the gradients
    SELECTS = 2048          # gradient elements are those of the incoming gradient, or 0, so a rule cannot produce a NaN
    PRODUCT = 8192          # gradients are matrix products of the incoming gradient and a saved other input
    IMAGE = 16384           # the results are channels-last images if the first input is one,
    IMAGE_GRADIENT = 32768  # and the gradient of the first input if that of the result is
    IS_PART = 4096          # the result is the elements selected by `part_of`; the gradient is zero elsewhere

cdef class OpDef:
    cdef readonly str name              # 'mul'
    cdef readonly str node_name         # 'MulBackward0'
    cdef str in_place                   # 'mul_'
    cdef rule_t rule                    # NULL: not differentiable
    cdef object python_rule             # called by `rule` if the family is written in Python
    cdef readonly Ufunc ufunc           # NumPy's loop, if the op is one
    cdef readonly object kernel         # takes arrays, then the other arguments; returns an array or a tuple of them
    cdef unsigned int[3] saves          # saved values that the gradients of inputs 0, 1, 2 (and later) need
    cdef readonly unsigned int flags
    cdef readonly tuple inputs          # names of the tensor inputs, for `_saved_<name>`
    cdef readonly tuple outputs         # names of the results, likewise
    cdef readonly tuple attributes      # names of the other arguments, likewise
    cdef readonly tuple aliases         # other public names
    cdef public object entry            # the public function

cdef enum:
    RESULT = 3                              # the slot of the result; slots 0 to 2 are those of the inputs

cdef class OpNode(Node):
    cdef OpDef op
    cdef tuple arguments                    # the other arguments, `args` in Python

    cpdef bint needs(self, int i) noexcept          # whether the gradient of input i is wanted
    cpdef object saved(self, int i)                 # saved input i, checked
    cpdef Tensor saved_result(self)                 # saved output, checked
    cpdef Tensor saved_output(self, int i)          # saved output i of several, checked
    cdef object part_of(self, ndarray whole)        # the elements of an array of the whole that the part selects
    cpdef int save_input(self, int i, object value) except -1       # input i, or another value in its slot
    cdef int save_outputs(self, list outs, unsigned int mask) except -1
    cdef unsigned int mask(self) noexcept

cdef inline bint is_op_node(object node) noexcept:
    return Py_TYPE(node).tp_dealloc == (<PyTypeObject*>OpNode).tp_dealloc

cdef OpDef op(str name, rule_t rule=*)      # to be followed by .row(...), which fills in the rest
cpdef OpDef variant(OpDef row, str node=*, unsigned int flags=*, str name=*)    # with another node, or no derivative
cdef OpDef lookup(str name)
cdef OpDef flat(OpDef op)
cdef bint is_bad_result(OpDef op, object array, ThreadState* state) except -1
cdef int refuse_result(OpDef op, object array, tuple inputs, ThreadState* state) except -1

ctypedef int (*EnterGpu)(PyObject* const*, Py_ssize_t) except -2
ctypedef int (*LeaveGpu)(int) except -1

cdef void attend_gpus(EnterGpu enter, LeaveGpu leave) noexcept      # called once, if there are several: several_gpus.pyx
cdef bint keeps_no_class() noexcept     # whether results are plain tensors, whatever the class of the operands is
cdef bint asks_nobody() noexcept        # whether no autocast, mode or overriding class may change calls of this thread
cdef bint overrides_nothing() noexcept  # whether no mode or overriding class may
