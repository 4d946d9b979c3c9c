"""What the recording path does while a dual level is open. Note [Forward mode] in tangents.py tells the rest."""

from cygrad._core.types.dtypes cimport is_float_num
from cygrad._core.graph.inplace cimport old_value
from cygrad._core.graph.node cimport set_meta, set_metas
from cygrad._core.graph.opdef cimport OUT0, OpDef, OpNode
from cygrad._core.graph.record cimport node_of, record1, record_outputs
from cygrad._core.runtime.thread_state cimport FORWARD, INFERENCE, ThreadState, is_recording, thread_state
from cygrad._core.runtime.thread_state import set_forward
from cygrad._core.graph.tensor cimport IS_INFERENCE, Tensor, counter_of, held_array, is_dual, requires_grad, wrap


cdef object found_tangents = None

cdef object tangents():
    """The module of that name, imported with the first dual level."""
    global found_tangents
    if found_tangents is None:
        from cygrad._core.transforms import forward_mode as module
        found_tangents = module
    return found_tangents


cdef tuple _levels = ()


def take_levels(*parts):
    """What of tangents.py `leave` needs: the state of the thread, `flush`, and whether a batch is open."""
    global _levels
    _levels = parts


def leave(level):
    """Close a level, and those that an interrupted program left open inside of it.

    It is compiled, so that Ctrl-C can come before it or after it, but not before the level is closed.
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
    """Do results get tangents, or the samples of a batch?"""
    return thread_state().modes & FORWARD


cpdef object values_of(Tensor t):
    """The array of `t`, or that of all its samples: what a rule looks at before it decides."""
    return tangents().values_of(t) if thread_state().modes & FORWARD else held_array(t)


cdef bint any_level() except -1:
    return len(_levels) > 0 and len(<tuple>_levels[0].levels) > 0


cdef int check_read(Tensor t, bint in_condition) except -1:
    """A value is about to be read."""
    tangents().check_read(t, in_condition)
    return 0


cdef int note_read(Tensor t) except -1:
    """Somebody asks for the array of a tensor."""
    tangents().note_read(t)
    return 0


cdef bint any_dual(tuple inputs) noexcept:
    for value in inputs:
        if isinstance(value, Tensor) and is_dual(<Tensor>value):
            return True
    return False


cpdef bint is_recorded(Tensor t):
    """Does what is computed from `t` get a history, or a tangent?"""
    if thread_state().modes & FORWARD:
        tangents().flush()
        if is_dual(t) or tangents().has_samples(t):
            return True
    return requires_grad(t) and is_recording()


cpdef int keep(Tensor result, int slot, object value) except -1:
    """Save a value beside the inputs, for the rule of what just made `result`; it becomes no edge of the graph."""
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
    """Record, and leave word how to find the tangents of the results."""
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
    """`out` has become a view."""
    tangents().leave_to_base(out)
    return 0


cpdef Tensor record_same(OpDef op, Tensor a, tuple args):
    """The same memory with one node more: no view of `a`, so that it may have another tangent.

    Its array is another object, by which a batch knows samples: where nothing is recorded, those of `a` stay as they are.
    """
    cdef Tensor out = record1(op, a.array.view(), a, args)
    if not a.flags & IS_INFERENCE:
        out.counter = counter_of(a)
    return out


def kept_results(node):
    """The tensors that may be what a node saved of its results."""
    if not isinstance(node, OpNode):
        return ()
    kept = (<OpNode>node).result, (<OpNode>node).saved1, (<OpNode>node).saved2
    return tuple([value for value in kept if isinstance(value, Tensor)])


# -- writing into a tensor ---------------------------------------------------------------------------------

cdef bint concerns_tangents(OpDef op, tuple inputs, tuple args, Tensor out) except -1:
    """Does a write into `out`? Raises if it can not."""
    tangents().before_write(op, out, inputs, args)
    if not is_dual(out) and not any_dual(inputs):
        return False
    if out is not inputs[0]:
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name}_out that does not support it because it is an out= function")
    return is_float_num(out.array.dtype.num)


cdef int keep_samples(Tensor t, Tensor copy) except -1:
    """Let a copy of `t`, which is about to be changed in place, have the samples of now."""
    if thread_state().modes & FORWARD:
        tangents().keep_samples(t, copy)
    return 0


cpdef int spread(Tensor t, Tensor blank) except -1:
    """Let a new tensor have samples if `t` has, like which it was made, so that it can be changed in place."""
    if thread_state().modes & FORWARD:
        tangents().spread(t, blank)
    return 0


cdef int begin_carrying(OpDef op, Tensor out, Tensor original, tuple inputs, tuple args) except -1:
    """Before `out` is changed, of which `original` has the old value."""
    cdef unsigned int mask = 0
    original.tangents = tangents().all_of(out)
    inputs = tuple([original if value is out else unchanged(value, out) for value in inputs])
    node = node_of(op, inputs, args, &mask, True)
    tangents().begin_write(node, mask, op.flags, inputs, out)
    return 0


cdef object unchanged(object value, Tensor out):
    """An input; a copy if it shares memory with `out`, which is about to be changed."""
    cdef Tensor copy
    if not isinstance(value, Tensor) or (<Tensor>value).counter is None or (<Tensor>value).counter is not out.counter:
        return value
    copy = old_value(<Tensor>value)
    keep_samples(<Tensor>value, copy)
    copy.tangents = tangents().all_of(value)
    return copy


cdef int begin_looking(OpDef op, Tensor x, tuple args) except -1:
    """The same for an op after which `x` shows the same memory otherwise."""
    tangents().before_look(op, x, args)
    if is_dual(x) and x.view is None:
        begin_carrying(op, x, wrap(x.array), (x,), args)
    return 0


cdef int keep_written(OpNode node, object kept) except -1:
    """`keep` in the third place, between the two halves of a write."""
    cdef OpNode dual = None
    if thread_state().modes & FORWARD:
        tangents().note_kept_write(kept)
        dual = tangents().written_node()
    if node is not None:
        node.save_input(2, kept)
    if dual is not None:
        dual.save_input(2, kept)
    return 0


cdef int end_carrying(Tensor out, OpNode node) except -1:
    """After `out` was changed; `node` is that of its history, or None."""
    tangents().end_write(out, node)
    return 0


def complete(OpNode node, Tensor out, unsigned int mask):
    """Tell a node what was made, once it is there."""
    set_meta(node, out.array)
    if mask & OUT0:
        node.save_result(out)
