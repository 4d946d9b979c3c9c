"""Forward-mode hooks of the recording path, used while a dual level is open. See Note [Forward mode] in forward_mode.py."""

from cygrad._core.types.dtypes cimport is_float_num
from cygrad._core.graph.inplace cimport old_value
from cygrad._core.graph.node cimport set_meta, set_metas
from cygrad._core.graph.opdef cimport OUT0, RESULT, OpDef, OpNode
from cygrad._core.graph.record cimport node_of, record1, record_outputs
from cygrad._core.graph.saved_slots cimport save_value
from cygrad._core.runtime.thread_state cimport FORWARD, INFERENCE, ThreadState, is_recording, thread_state
from cygrad._core.runtime.thread_state import set_forward
from cygrad._core.graph.tensor cimport IS_INFERENCE, Tensor, counter_of, held_array, is_dual, requires_grad, wrap


cdef object found_tangents = None

cdef object tangents():
    """Return the module `tangents`, imported when the first dual level is opened."""
    global found_tangents
    if found_tangents is None:
        from cygrad._core.transforms import forward_mode as module  # needed only for forward mode or vmap
        found_tangents = module
    return found_tangents


cdef tuple _levels = ()


def take_levels(*parts):
    """Receive what `leave` needs from forward_mode.py: the thread state, `flush`, and a test for open batches."""
    global _levels
    _levels = parts


def leave(level):
    """Close a level, and any inner levels that an interrupted program left open.

    This is compiled so that a KeyboardInterrupt can arrive before or after it, but not before the level is closed.
    """
    thread, flush, has_batch = _levels
    cdef tuple inner = ()
    cdef Py_ssize_t i
    try:
        flush()
    finally:
        for i, each in enumerate(thread.levels):
            if each is level:
                inner, thread.levels = thread.levels[i:], thread.levels[:i]
                break
        set_forward(bool(thread.levels))
        thread.written = thread.writing = thread.looking = thread.step = None
        for each in inner:
            each.close()
        if not has_batch():
            thread.reads = {}


cpdef bint is_forward() noexcept:
    """Whether results get tangents, or the samples of a batch."""
    return thread_state().modes & FORWARD


cpdef object values_of(Tensor t):
    """Return the array of `t`, or that of all its samples, for rules whose choice depends on values."""
    return tangents().values_of(t) if thread_state().modes & FORWARD else held_array(t)


cpdef bint any_level() except -1:
    return len(_levels) > 0 and len(<tuple>_levels[0].levels) > 0


cdef int check_read(Tensor t, bint in_condition) except -1:
    """Check, before a value is read, that it is the same for all samples."""
    tangents().check_read(t, in_condition)
    return 0


cdef int note_read(Tensor t) except -1:
    """Record that the array of a tensor is accessed."""
    tangents().note_read(t)
    return 0


cdef bint any_dual(tuple inputs) noexcept:
    for value in inputs:
        if isinstance(value, Tensor) and is_dual(<Tensor>value):
            return True
    return False


cpdef bint is_recorded(Tensor t):
    """Whether results computed from `t` get a history or a tangent."""
    if thread_state().modes & FORWARD:
        tangents().flush()
        if is_dual(t) or tangents().has_samples(t):
            return True
    return requires_grad(t) and is_recording()


cpdef int keep(Tensor result, int slot, object value) except -1:
    """Save a value besides the inputs for the rule of the op that just made `result`; it adds no edge to the graph."""
    cdef OpNode node
    if result.grad_fn_ is not None:
        (<OpNode>result.grad_fn_).save_input(slot, value)
    if thread_state().modes & FORWARD:
        tangents().note_kept(result, slot, value)
        node = tangents().deferred_node(result)
        if node is not None:
            node.save_input(slot, value)
    return 0


# -- new results -------------------------------------------------------------------------------------------

cdef tuple record_dual(OpDef op, tuple arrays, tuple inputs, tuple args, int n_differentiable):
    """Record results, and defer the computation of their tangents."""
    cdef ThreadState* state = thread_state()
    cdef unsigned int modes = state.modes
    cdef unsigned int mask
    cdef OpNode node = None
    cdef tuple outs
    tangents().flush()
    state.modes = modes & ~FORWARD
    try:
        outs = record_outputs(op, arrays, inputs, args, n_differentiable)
        if op.rule != NULL and not modes & INFERENCE and any_dual(inputs):
            node = node_of(op, inputs, args, &mask, True)
            set_metas(node, arrays[:n_differentiable])
            node.save_outputs(list(outs), mask)
    finally:
        state.modes = modes
    tangents().note_step(op, outs, inputs, args)
    if node is not None:
        tangents().defer(node, op.flags, inputs, outs[:n_differentiable])
    return outs


cdef int leave_to_base(Tensor out) except -1:
    """Notify the forward mode that `out` has become a view."""
    tangents().leave_to_base(out)
    return 0


cpdef Tensor record_same(OpDef op, Tensor a, tuple args):
    """Return the same memory with one more node. The result is not a view of `a`, so it may have a different tangent.

    Its array is a new object, because a batch looks samples up by array; while nothing is recorded, `a` keeps its samples.
    """
    cdef Tensor out = record1(op, a.array.view(), a, args)
    if not a.flags & IS_INFERENCE:
        out.counter = counter_of(a)
    return out


def kept_results(node):
    """Return the tensors that a node may have saved as its results."""
    if not isinstance(node, OpNode):
        return ()
    kept = [(<OpNode>node).value_in(i) for i in (RESULT, 1, 2)]
    return tuple([value for value in kept if isinstance(value, Tensor)])


# -- writing into a tensor ---------------------------------------------------------------------------------

cdef bint concerns_tangents(OpDef op, tuple inputs, tuple args, Tensor out) except -1:
    """Whether a write into `out` affects tangents. Raises if the write is not supported."""
    tangents().before_write(op, out, inputs, args)
    if not is_dual(out) and not any_dual(inputs):
        return False
    if out is not inputs[0]:
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name}_out that does not support it because it is an out= function")
    return is_float_num(out.array.dtype.num)


cdef int keep_samples(Tensor t, Tensor copy) except -1:
    """Give a copy of `t`, which is about to be changed in place, the current samples of `t`."""
    if thread_state().modes & FORWARD:
        tangents().keep_samples(t, copy)
    return 0


cpdef int spread(Tensor t, Tensor blank) except -1:
    """Give `blank`, which was made like `t`, samples if `t` has them, so that it can be changed in place."""
    if thread_state().modes & FORWARD:
        tangents().spread(t, blank)
    return 0


cdef int begin_carrying(OpDef op, Tensor out, Tensor original, tuple inputs, tuple args) except -1:
    """Prepare the tangents of a write, before `out` is changed; `original` holds its old value."""
    cdef unsigned int mask = 0
    original.tangents = tangents().all_of(out)
    inputs = tuple([original if value is out else unchanged(value, out) for value in inputs])
    node = node_of(op, inputs, args, &mask, True)
    tangents().begin_write(node, mask, op.flags, inputs, out)
    return 0


cdef object unchanged(object value, Tensor out):
    """Return an input, or a copy if it shares memory with `out`, which is about to be changed."""
    cdef Tensor copy
    if not isinstance(value, Tensor) or (<Tensor>value).counter is None or (<Tensor>value).counter is not out.counter:
        return value
    copy = old_value(<Tensor>value)
    keep_samples(<Tensor>value, copy)
    copy.tangents = tangents().all_of(value)
    return copy


cdef int begin_looking(OpDef op, Tensor x, tuple args) except -1:
    """Same as `begin_carrying`, for an op that only changes how `x` views its memory."""
    tangents().before_look(op, x, args)
    if is_dual(x) and x.view is None:
        begin_carrying(op, x, wrap(x.array), (x,), args)
    return 0


cdef int keep_written(OpNode node, object kept) except -1:
    """Save a value in the third slot, between the two halves of a write (see `keep`)."""
    cdef OpNode dual = None
    if thread_state().modes & FORWARD:
        tangents().note_kept_write(kept)
        dual = tangents().written_node()
    if node is not None:
        save_value(node, 2, kept)
    if dual is not None:
        save_value(dual, 2, kept)
    return 0


cdef int end_carrying(Tensor out, OpNode node) except -1:
    """Update the tangents after `out` was changed; `node` is the one of its history, or None."""
    tangents().end_write(out, node)
    return 0


def complete(OpNode node, Tensor out, unsigned int mask):
    """Set a node's metadata and saved result, once the result exists."""
    set_meta(node, out.array)
    if mask & OUT0:
        node.save_output(RESULT, out)
