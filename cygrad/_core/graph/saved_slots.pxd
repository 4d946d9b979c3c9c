"""Values that nodes save: saving, unpacking, releasing and traversing them; Note [Saved slots] in saved_slots.pyx."""

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport IS_INFERENCE, Tensor, version_of

cdef enum:
    N_FIELDS = 4            # slots that have fields of their own

cdef class Packed:
    cdef readonly object packed, unpack_hook    # the result of the pack hook, and the hook that turns it back into a tensor
    cdef object shape, dtype            # of the tensor that was packed
    cdef object history                 # its node or leaf; None if it had neither, or is the node's own result
    cdef object tangents                # {level: tangent}, or None
    cdef int output_nr                  # which output of `history`, or of the node; -1 for a tensor without history

    cdef Tensor unpacked(self, Node node)       # the tensor that was packed, with its history


cdef inline object read_slot(Node node, Py_ssize_t i, long long* version):
    """Return the value in a slot as stored, and set the version at which it was saved."""
    if i == 0:
        version[0] = node.version0
        return node.saved0
    if i == 1:
        version[0] = node.version1
        return node.saved1
    if i == 2:
        version[0] = node.version2
        return node.saved2
    if i == 3:
        version[0] = node.version3
        return node.saved3
    return read_further(node, i, version)


cdef inline int put(Node node, Py_ssize_t i, object value, long long version) except -1:
    if i == 0:
        node.saved0 = value
        node.version0 = version
    elif i == 1:
        node.saved1 = value
        node.version1 = version
    elif i == 2:
        node.saved2 = value
        node.version2 = version
    elif i == 3:
        node.saved3 = value
        node.version3 = version
    else:
        put_further(node, i, value, version)
    return 0


cdef inline int save_value(Node node, Py_ssize_t i, object value) except -1:
    """Save an input, or another value that the gradients need: a tensor, a number, None."""
    cdef long long version = 0
    if isinstance(value, Tensor):
        if (<Tensor>value).flags & IS_INFERENCE:
            refuse_inference(<Tensor>value)
        version = version_of(<Tensor>value)
    return put(node, i, value, version)


cdef inline object unpacked(Node node, object value, long long version, bint is_result):
    """Return a stored value as it was saved. Raises RuntimeError if it has been changed since."""
    if isinstance(value, Tensor):
        if version_of(<Tensor>value) != version:
            refuse_modified(node, <Tensor>value, version, is_result)
    elif type(value) is Packed:
        return (<Packed>value).unpacked(node)
    return value


cdef inline int check_not_freed(Node node) except -1:
    if node.freed_by is not None:
        refuse_freed(node)
    return 0


cdef inline object value_in(Node node, Py_ssize_t i):
    """Return the value in a slot as stored."""
    cdef long long version
    return read_slot(node, i, &version)


cdef inline bint forget(Node node) except -1:
    """Release the saved values. Return whether there were any."""
    if (node.saved0 is None and node.saved1 is None and node.saved2 is None and node.saved3 is None
            and node.further is None):
        return False
    node.saved0 = node.saved1 = node.saved2 = node.saved3 = None
    node.further = None
    return True

cdef int save_output(Node node, Py_ssize_t i, Tensor out) except -1     # save a result of this node
cdef Tensor as_output(Node node, Tensor kept, int output_nr)         # a saved result as an output of this node
cdef tuple place_in(Node node, Py_ssize_t i)
cdef object read_further(Node node, Py_ssize_t i, long long* version)
cdef int put_further(Node node, Py_ssize_t i, object value, long long version) except -1
cdef int refuse_modified(Node node, Tensor changed, long long version, bint is_result) except -1
cdef int refuse_inference(Tensor saved) except -1
cdef int refuse_freed(Node node) except -1
