"""What losses share."""

from cygrad._core.opdef cimport OpDef, OpNode
from cygrad._core.tensor cimport Tensor

cpdef int reduction_of(object reduction, object size_average, object reduce) except -1   # as loss_reductions counts

# The node of a loss, from the losses of all elements; its args begin with (reduction, number of elements). `kept` is
# saved as a third input is, but has no edge.
cpdef Tensor finished(OpDef op, object losses, tuple inputs, int reduction, tuple more=*, object kept=*)
cpdef Tensor spread(OpNode n, Tensor g)         # from the gradient of the whole that of each element's loss
