"""Forward-mode hooks of the recording path, used while a dual level is open. See Note [Forward mode] in forward_mode.py."""

cimport cython

from cygrad._core.types.dtypes cimport is_float_num
from cygrad._core.graph.inplace cimport old_value
from cygrad._core.graph.node cimport set_meta, set_metas
from cygrad._core.graph.observers cimport GEOMETRY, OP, Observer, Recorded, carry_by, forget_changes
from cygrad._core.graph.opdef cimport OUT0, RESULT, OpDef, OpNode
from cygrad._core.graph.record cimport node_of, record1
from cygrad._core.graph.saved_slots cimport save_output, save_value, value_in
from cygrad._core.runtime.thread_state cimport FORWARD, INFERENCE, is_recording, thread_state
from cygrad._core.runtime.thread_state import set_forward
from cygrad._kernels.device.unresolved cimport resolved
from cygrad._kernels.tape.tape cimport tape_open
from cygrad._kernels.tape.tape import look_at_caller
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
        if thread.paused is not None and level in thread.paused:
            i = thread.paused.index(level)
            inner, thread.paused = thread.paused[i:], thread.paused[:i]
        set_forward(bool(thread.levels))
        thread.written = thread.writing = thread.looking = thread.step = None
        forget_changes()
        for each in inner:
            each.close()
        if not has_batch():
            thread.reads = {}


cpdef bint is_forward() noexcept:
    """Whether results get tangents, or the samples of a batch."""
    return thread_state().modes & FORWARD


cpdef object values_of(Tensor t):
    """Return the array of `t`, or that of all its samples, for rules whose choice depends on values."""
    if tape_open:
        look_at_caller()
    return tangents().values_of(t) if thread_state().modes & FORWARD else resolved(held_array(t))


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


# -- as an observer ----------------------------------------------------------------------------------------

@cython.final
cdef class Carrier(Observer):
    """Forward mode and `vmap`, which carry tangents and samples along with each op (Note [Observers] in observers.pyx)."""

    cdef int before_op(self, Recorded done) except -1:
        cdef Tensor x
        if done.kind == OP:
            tangents().flush()
        elif done.kind == GEOMETRY:
            x = done.outs[0]
            tangents().before_look(done)
            if is_dual(x) and x.view is None:
                begin_carrying(done.op, x, wrap(x.array), done.inputs, done.arguments)
        else:
            tangents().before_write(done)
        return 0

    cdef int after_op(self, Recorded done) except -1:
        if type(done.op) is not OpDef:          # a new tensor, which has neither
            return 0
        if done.kind != OP:
            tangents().end_write(done.outs[0], done.node)
            return 0
        tangents().note_step(done)
        if (<OpDef>done.op).rule != NULL and not thread_state().modes & INFERENCE and any_dual(done.inputs):
            tangents().defer(dual_node(done), (<OpDef>done.op).flags, done.inputs, done.outs[:done.n_differentiable])
        return 0

carry_by(Carrier())


cdef OpNode dual_node(Recorded done):
    """Return a node for the tangents of the results, with an edge for each input that has a tangent."""
    cdef unsigned int mask
    cdef OpNode node = node_of(done.op, done.inputs, done.arguments, &mask, True)
    set_metas(node, tuple([(<Tensor>out).array for out in done.outs[:done.n_differentiable]]))
    node.save_outputs(list(done.outs), mask)
    return node


# -- new results -------------------------------------------------------------------------------------------

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
    kept = [value_in(<OpNode>node, i) for i in (RESULT, 1, 2)]
    return tuple([value for value in kept if isinstance(value, Tensor)])


# -- writing into a tensor ---------------------------------------------------------------------------------

cdef bint concerns_tangents(OpDef op, tuple inputs, Tensor out) except -1:
    """Whether a write into `out` affects tangents. Raises if the write is not supported."""
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


def complete(OpNode node, Tensor out, unsigned int mask):
    """Set a node's metadata and saved result, once the result exists."""
    set_meta(node, out.array)
    if mask & OUT0:
        save_output(node, RESULT, out)
