"""Declares the common path of all ops: run the kernel, then record the result."""

from cygrad._core.types.dtypes cimport dtype
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.opdef cimport OpDef, OpNode
from cygrad._core.graph.tensor cimport Tensor

# Recording of results that have been computed.
cdef Tensor record1(OpDef op, object array, Tensor a, tuple args)
cdef Tensor record2(OpDef op, object array, object a, object b, tuple args)
# `hint`: what the op will `keep`, or the arguments of its function, for modes and classes of `__torch_dispatch__`
cpdef Tensor record_n(OpDef op, object array, tuple inputs, tuple args=*, object hint=*)
cpdef tuple record_outputs(OpDef op, tuple arrays, tuple inputs, tuple args, int n_differentiable, object hint=*)
cpdef Tensor record_view(OpDef op, object array, Tensor a, tuple args)
cpdef tuple record_views(OpDef op, tuple arrays, Tensor a, tuple args)

cdef Tensor model_of(tuple inputs)          # the input whose subclass of Tensor the results get, or None

# Run the kernel, then record; with `out`, write into it (Note [Writing into a tensor]).
cdef Tensor prepared(str name, Tensor t)         # an operand on a GPU, cast as autocast requires
cpdef Tensor apply1(OpDef op, object a, object out)
cpdef Tensor apply1_args(OpDef op, object a, tuple args, object out)
cpdef Tensor apply2(OpDef op, object a, object b, object out)
cdef Tensor operate2(OpDef op, object a, object b)              # apply2 for operands known to be tensors or numbers
cdef bint may_write_directly(OpDef op, Tensor out, object a, object b) noexcept
cpdef Tensor apply_n(OpDef op, tuple inputs, tuple args=*, object out=*, object hint=*)

# A node with edges and saved inputs, not yet attached to a result; `mask` receives what else must be saved.
cdef OpNode node_of(OpDef op, tuple inputs, tuple args, unsigned int* mask, bint dual=*)

# The two halves of writing into `out`; in place if it is the first input. `label` names the change in error messages.
cdef OpNode begin_write(OpDef op, Tensor out, tuple inputs, tuple args, unsigned int* mask, str label=*)
cdef Tensor end_write(OpDef op, Tensor out, tuple inputs, OpNode node, unsigned int mask, str label=*)

cpdef Tensor recorded(OpDef op, object array, tuple inputs, tuple args, object out)  # record, or write into `out`
cpdef Tensor write_into(OpDef op, object target, object array, tuple inputs, tuple args)
cpdef Tensor written_in_place(OpDef op, Tensor t, tuple inputs, tuple args, object kept, object write, tuple given=*)
cpdef int write_resolved(Tensor t, object write, tuple given) except -1
cpdef object promoted(object a, object b, unsigned int flags)    # the operands as arrays of a common dtype
cpdef dtype result_type(tuple operands)                         # of tensors and numbers; None is ignored
cpdef object as_type(object value, dtype wanted)                 # a tensor or number as an array of that dtype
cdef object run2(OpDef op, object a, object b, object out, Tensor target=*)      # the result array of a binary op
cpdef Tensor tensor_argument(OpDef op, object value, str name, int position)    # or raises PyTorch's TypeError
