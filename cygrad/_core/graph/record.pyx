"""The common path of all ops: run the kernel, then record the result.

The fast path tests one thing: whether an input requires grad. Only then does recording check the thread's modes, create
the node, link its edges, save what the row requires and note the site.

Note [Writing into a tensor]
----------------------------
Entry points take `out`. `mul(x, y, out=z)` writes into z and records nothing (PyTorch refuses to differentiate it); z
is resized to the shape of the result, with a warning if it had elements. If `out` is the first input itself, the call
*is* the in-place op `x.mul_(y)`: the gradient may need the old value of x, so it is copied if the row saves it; the
version counter is incremented; x gets the new node as its history (`rebase_history` in inplace.pyx). All checks precede
the first write.
"""

cimport numpy as cnp
from numpy cimport ndarray, PyArray_ITEMSIZE, PyArray_TYPE, PyArray_SAMESHAPE

import numpy as np

from cygrad._core.types.dtypes cimport (
    FLOATING, category_of_num, category_of_number, combine, default_dtype, dtype, dtype_of_scalar, promote_types)
from cygrad._core.graph.dual cimport (
    begin_carrying, concerns_tangents, keep_samples, keep_written, leave_to_base)
from cygrad._core.graph.observers cimport (
    IN_PLACE, OP, WITH_OUT, Recorded, after, before, begin_change, described, dispatch_change, dispatch_later,
    dispatched, dispatches,
    forget_changes, is_observed, mark_start, take_change)
from cygrad._core.graph.kernel_call cimport run_kernel
from cygrad._core.graph.inplace cimport (
    check_inplace, check_memory, check_operand_memory, check_out, check_result, keeps_shape, old_value, out_argument,
    rebase_history, set_array, take_shape)
from cygrad._core.graph.node cimport begin_node, set_meta, set_metas
from cygrad._core.graph.opdef cimport (
    FLOAT_RESULT, IMAGE, IN0, IN1, MAY_OVERLAP, NONDIFF, OUT0, RESULT, OpDef, OpNode, flat, is_bad_result, keeps_no_class,
    refuse_result)
from cygrad._core.graph.saved_slots cimport save_output, save_value
from cygrad._core.runtime.thread_state cimport FORWARD, IN_RULE, INFERENCE, NO_GRAD, ThreadState, current_site, thread_state
from cygrad._core.graph.tensor cimport (
    CUT_INFERENCE, CUT_NO_GRAD, CUT_NON_DIFFERENTIABLE, CUT_NONE, DISPATCHES, IS_INFERENCE, IS_VOLATILE, REQUIRES_GRAD,
    KEEPS_CLASS,
    VIEW_DEFAULT, VIEW_INFERENCE, VIEW_MULTI_OUTPUT, VIEW_NO_GRAD, WAS_WRAPPED, Tensor, ViewMeta, alias, become_volatile,
    bump, counter_of, cut, dtype_of, grad_fn_of, held_array, is_dual, is_tensor, requires_grad, version_of, wrap, wrap_as)
from cygrad._core.errors import messages
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.array_ops cimport are_of_one_shape, cast, typenum_of
from cygrad._kernels.cpu.base.arrays cimport broadcasts_to, copy_array, is_on_cpu
from cygrad._kernels.device.unresolved cimport behind, is_unresolved, resolved
from cygrad._kernels.cpu.base.view_geometry cimport in_format_of
from cygrad._kernels.tape.tape cimport note_begin_of_change, note_constant, note_end_of_change, tape_open

cnp.import_array()

cdef unsigned int WATCHED = REQUIRES_GRAD | IS_VOLATILE


cdef inline unsigned int watched(Tensor t) noexcept:
    """Return REQUIRES_GRAD and IS_VOLATILE of an input; nonzero sends its op down the recording path."""
    return (t.flags | (t.view.base.flags if t.view is not None else 0)) & WATCHED


# -- recording ---------------------------------------------------------------------------------------------

cdef inline object edge_target(Tensor t):
    """Return the target for the edge of an input that requires grad: its node, or the leaf itself."""
    cdef object node
    if t.view is not None:
        node = grad_fn_of(t)
    else:
        node = t.grad_fn_       # read once, as in `held_array`
    if node is None:            # a view of a leaf made in no_grad mode accumulates nothing
        return t if t.flags & REQUIRES_GRAD else None
    return node


cdef int link(OpNode node, Tensor t, bint dual) except -1:
    """Add the edge for an input. In nodes that carry tangents, an input with a tangent gets a detached alias as target."""
    cdef object target = edge_target(t) if watched(t) & REQUIRES_GRAD else None
    if target is None:
        return node.add_edge(alias(t) if dual and is_dual(t) else None, 0)
    return node.add_edge(target, t.output_nr_)


cdef inline OpNode new_node(OpDef op, tuple args, ThreadState* state):
    cdef OpNode node = OpNode.__new__(OpNode)
    begin_node(node, state)
    node.op = op
    node.arguments = args
    return node


cdef int finish(OpNode node, Tensor out, unsigned int mask, ThreadState* state) except -1:
    """Attach a result to its node."""
    set_meta(node, out.array)
    out.grad_fn_ = node
    out.flags |= REQUIRES_GRAD
    if mask:
        if mask & OUT0:
            save_output(node, RESULT, out)
        if state.on_save != NULL:
            (<object>state.on_save)(node)
    return 0


cdef inline bint records(OpDef op, unsigned int flags, unsigned int modes) noexcept:
    return flags & WATCHED == REQUIRES_GRAD and modes == 0 and op.rule != NULL


cdef int leave_unrecorded(OpDef op, Tensor out, Tensor source, unsigned int flags, unsigned int modes) except -1:
    """Mark a new result that gets no history."""
    if modes & INFERENCE:
        out.flags |= IS_INFERENCE
    return note_cut(op, out, source, flags, modes)


cdef int note_cut(OpDef op, Tensor out, Tensor source, unsigned int flags, unsigned int modes) except -1:
    """Propagate the record of why a history is missing, for `cuts.why_no_grad`."""
    if flags & IS_VOLATILE:
        out.flags |= IS_VOLATILE
    elif not modes & IN_RULE and source is not None and (flags or source.origin_kind != CUT_NONE):
        cut(out, source, CUT_INFERENCE if modes & INFERENCE else CUT_NO_GRAD if modes & NO_GRAD
            else CUT_NON_DIFFERENTIABLE, op.name)
    return 0


# -- numbers of 8 bits: for storage, with the few ops whose rows do not refuse them --

cdef int USER_TYPES = 256    # the first number of the types that other packages register

cdef inline bint is_float8(object array) noexcept:
    return type(array) is ndarray and PyArray_ITEMSIZE(<ndarray>array) == 1 and PyArray_TYPE(<ndarray>array) >= USER_TYPES


cdef inline int check_float8(OpDef op, object operand) except -1:
    """Raise NotImplementedError if an operand has 8 bits, and PyTorch's kernel does not take such numbers."""
    if not is_tensor(operand) or not is_float8((<Tensor>operand).array):
        return 0
    from cygrad._core.registry.float8 import refuse  # needed only for numbers of 8 bits
    refuse(op, (<Tensor>operand).array)
    return 0


cdef Tensor record1(OpDef op, object array, Tensor a, tuple args):
    cdef ThreadState* state = thread_state()
    check_float8(op, a)
    if not is_observed(state):
        return record1_unobserved(op, array, a, args, state)
    if state.modes & FORWARD or state.dispatching:
        return record_observed(op, (array,), (a,), args, 1)[0]
    done = begin_op(op, (a,), args, 1, state)
    return end_op(done, (record1_unobserved(op, array, a, args, state),), state)[0]


cdef inline Tensor record1_unobserved(OpDef op, object array, Tensor a, tuple args, ThreadState* state):
    if op.flags & IMAGE:
        array = in_format_of(array, a.array)
    cdef Tensor out = wrap(array) if not a.flags & KEEPS_CLASS else result_of_class(op, array, (a,), args)
    cdef unsigned int mask, flags = watched(a), modes = state.modes
    cdef OpNode node
    if state.watch and is_bad_result(op, array, state):
        refuse_result(op, array, (a,), state)
    if records(op, flags, modes):
        node = new_node(op, args, state)
        node.edge0 = edge_target(a)
        node.nr0 = a.output_nr_
        node.n_edges = 1
        mask = op.saves[0]
        if mask & IN0:
            save_value(node, 0, a)
        finish(node, out, mask, state)
    elif flags or modes or a.origin_kind != CUT_NONE:
        leave_unrecorded(op, out, a, flags, modes)
    return out


cdef Tensor record2(OpDef op, object array, object a, object b, tuple args):
    cdef ThreadState* state = thread_state()
    check_float8(op, a)
    if not is_observed(state):
        return record2_unobserved(op, array, a, b, args, state)
    if state.modes & FORWARD or state.dispatching:
        return record_observed(op, (array,), (a, b), args, 1)[0]
    done = begin_op(op, (a, b), args, 1, state)
    return end_op(done, (record2_unobserved(op, array, a, b, args, state),), state)[0]


cdef inline Tensor record2_unobserved(OpDef op, object array, object a, object b, tuple args, ThreadState* state):
    cdef Tensor out
    cdef Tensor ta = None
    cdef Tensor tb = None
    cdef unsigned int kept = 0, fa = 0, fb = 0, mask = 0
    cdef unsigned int modes = state.modes
    cdef OpNode node
    if is_tensor(a):
        ta = <Tensor>a
        fa = watched(ta)
        kept = ta.flags
    if is_tensor(b):
        tb = <Tensor>b
        fb = watched(tb)
        kept |= tb.flags
    out = wrap(array) if not kept & KEEPS_CLASS else result_of_class(op, array, (a, b), args)
    if state.watch and is_bad_result(op, array, state):
        refuse_result(op, array, (a, b), state)
    if records(op, fa | fb, modes):
        node = new_node(op, args, state)
        node.n_edges = 2
        if fa:
            node.edge0 = edge_target(ta)
            node.nr0 = ta.output_nr_
            mask = op.saves[0]
        if fb:
            node.edge1 = edge_target(tb)
            node.nr1 = tb.output_nr_
            mask |= op.saves[1]
        if mask & IN0:
            save_value(node, 0, a)
        if mask & IN1:
            save_value(node, 1, b)
        finish(node, out, mask, state)
    elif fa or fb or modes:
        leave_unrecorded(op, out, ta if fa or (ta is not None and not fb) else tb, fa | fb, modes)
    elif ta is not None and ta.origin_kind != CUT_NONE:
        leave_unrecorded(op, out, ta, 0, 0)
    elif tb is not None and tb.origin_kind != CUT_NONE:
        leave_unrecorded(op, out, tb, 0, 0)
    return out


cdef tuple flags_and_source(tuple inputs):
    """Return (flags of all inputs, the tensor that requires grad or else records where its gradient was cut)."""
    cdef Tensor t, source = None, remembers = None
    cdef unsigned int flags = 0, own
    for value in inputs:
        if isinstance(value, Tensor):
            t = <Tensor>value
            own = watched(t)
            if own and source is None:
                source = t
            elif t.origin_kind != CUT_NONE and remembers is None:
                remembers = t
            flags |= own | t.flags & DISPATCHES
    return flags, remembers if source is None else source


cdef Tensor model_of(tuple inputs):
    """Return the input whose class results get: the first of a subclass, unless a later one's class derives from it."""
    cdef Tensor model = None
    cdef unsigned int keeping = DISPATCHES if keeps_no_class() else KEEPS_CLASS
    for value in inputs:
        if isinstance(value, Tensor) and (<Tensor>value).flags & keeping:
            if model is None or (type(value) is not type(model) and issubclass(type(value), type(model))):
                model = <Tensor>value
    return model


cdef inline Tensor wrap_result(Tensor model, object array):
    if isinstance(array, Tensor):       # what a mode or a class of `__torch_dispatch__` has made of the op
        return <Tensor>array
    return wrap(array) if model is None else wrap_as(model, array)


cdef bint any_dispatches(object inputs) except -1:
    """Whether one of these values is of a class with `__torch_dispatch__`."""
    for value in inputs:
        if isinstance(value, Tensor):
            if (<Tensor>value).flags & DISPATCHES:
                return True
        elif isinstance(value, (tuple, list)) and any_dispatches(value):
            return True
    return False


cdef tuple answered(OpDef op, tuple arrays, tuple inputs, tuple args, object hint=None):
    """Return the results of an op by the class of one of its operands, if that dispatches."""
    cdef Recorded done
    if not any_dispatches(inputs) and (hint is None or not any_dispatches((hint,))):
        return arrays
    done = described(op, OP, inputs, args, None)
    done.hint = hint
    return dispatched(done, arrays)


cdef Tensor result_of_class(OpDef op, object array, tuple inputs, tuple args, object hint=None):
    """Return the result of an op on instances of subclasses of Tensor."""
    return wrap_result(
        model_of(inputs), array if isinstance(array, Tensor) else answered(op, (array,), inputs, args, hint)[0])


cdef OpNode node_of(OpDef op, tuple inputs, tuple args, unsigned int* mask, bint dual=False):
    """Return a node for any number of inputs, with edges and saved inputs, not yet attached to a result."""
    cdef OpNode node = new_node(op, args, thread_state())
    cdef Py_ssize_t i
    mask[0] = 0
    for i in range(len(inputs)):
        value = inputs[i]
        if isinstance(value, Tensor):
            link(node, <Tensor>value, dual)
            if watched(<Tensor>value) & REQUIRES_GRAD or dual and is_dual(<Tensor>value):
                mask[0] |= op.saves[i if i < 2 else 2]
        else:
            node.add_edge(None, 0)
    for i in range(min(len(inputs), 3)):
        if mask[0] & (1 << i) and inputs[i] is not None:
            save_value(node, i, inputs[i])
    return node


cpdef Tensor record_n(OpDef op, object array, tuple inputs, tuple args=None, object hint=None):
    cdef Tensor out
    cdef ThreadState* state = thread_state()
    cdef unsigned int mask
    cdef OpNode node
    if inputs:
        check_float8(op, inputs[0])
    if is_observed(state):
        return record_observed(op, (array,), inputs, args, 1, hint)[0]
    if op.flags & IMAGE:
        array = in_format_of(array, (<Tensor>inputs[0]).array)
    model = model_of(inputs)
    out = wrap(array) if model is None and not (dispatches and hint is not None) else (
        result_of_class(op, array, inputs, args, hint))
    flags, source = flags_and_source(inputs)
    if state.watch and is_bad_result(op, array, state):
        refuse_result(op, array, inputs, state)
    if records(op, flags, state.modes):
        node = node_of(op, inputs, args, &mask)
        finish(node, out, mask, state)
    else:
        leave_unrecorded(op, out, source, flags, state.modes)
    return out


cpdef tuple record_outputs(OpDef op, tuple arrays, tuple inputs, tuple args, int n_differentiable, object hint=None):
    """Record several results, of which the first `n_differentiable` have gradients."""
    if inputs:
        check_float8(op, inputs[0])
    if is_observed(thread_state()):
        return record_observed(op, arrays, inputs, args, n_differentiable, hint)
    return record_unobserved(op, arrays, inputs, args, n_differentiable, hint)


cdef tuple record_observed(
        OpDef op, tuple arrays, tuple inputs, tuple args, int n_differentiable, object hint=None):
    """Same as `record_outputs`, and hand the op to the observers of this thread (Note [Observers] in observers.pyx)."""
    cdef ThreadState* state = thread_state()
    cdef unsigned int modes = state.modes
    cdef Recorded done = begin_op(op, inputs, args, n_differentiable, state)
    cdef tuple outs
    if state.dispatching:
        if op.flags & IMAGE:
            arrays = tuple([in_format_of(array, (<Tensor>inputs[0]).array) for array in arrays])
        done.hint = hint
        arrays = dispatched(done, arrays)
    state.modes = modes & ~FORWARD
    try:
        outs = record_unobserved(op, arrays, inputs, args, n_differentiable)
    finally:
        state.modes = modes
    return end_op(done, outs, state)


cdef Recorded begin_op(OpDef op, tuple inputs, tuple args, int n_differentiable, ThreadState* state):
    """Describe an op that is about to be recorded, and tell the observers."""
    cdef Recorded done = described(op, OP, inputs, args, None)
    done.n_differentiable = n_differentiable
    before(done, state)
    return done


cdef tuple end_op(Recorded done, tuple outs, ThreadState* state):
    """Hand the op over, and return its results."""
    done.outs = outs
    after(done, (<Tensor>outs[0]).grad_fn_ if outs else None, state)
    return outs


cdef tuple record_unobserved(
        OpDef op, tuple arrays, tuple inputs, tuple args, int n_differentiable, object hint=None):
    cdef Tensor out
    cdef Tensor model
    cdef list outs
    cdef ThreadState* state = thread_state()
    cdef unsigned int mask
    cdef int i
    model = model_of(inputs)
    is_answered = len(arrays) and isinstance(arrays[0], Tensor)
    if op.flags & IMAGE and not is_answered:
        arrays = tuple([in_format_of(array, (<Tensor>inputs[0]).array) for array in arrays])
    if model is not None and not is_answered:
        arrays = answered(op, arrays, inputs, args, hint)
    outs = [wrap_result(model, array) for array in arrays]
    if model is not None or is_answered:
        arrays = tuple([(<Tensor>out).array for out in outs])
    flags, source = flags_and_source(inputs)
    if state.watch:
        for array in arrays:
            if is_bad_result(op, array, state):
                refuse_result(op, array, inputs, state)
    if not records(op, flags, state.modes):
        for out in outs:
            leave_unrecorded(op, out, source, flags, state.modes)
        return tuple(outs)
    node = node_of(op, inputs, args, &mask)
    set_metas(node, arrays[:n_differentiable])
    for i in range(len(outs)):
        out = outs[i]
        if i < n_differentiable:
            out.grad_fn_ = node
            out.output_nr_ = i
            out.flags |= REQUIRES_GRAD
        else:
            cut(out, source, CUT_NON_DIFFERENTIABLE, op.name)
    node.save_outputs(outs, mask)
    if mask and state.on_save != NULL:
        (<object>state.on_save)(node)
    return tuple(outs)


# -- views -------------------------------------------------------------------------------------------------

cdef int make_view(Tensor out, Tensor a, unsigned int modes, int creation_meta) except -1:
    """Make `out` a view of `a`, with the same counter and base."""
    cdef ViewMeta view
    if a.flags & IS_INFERENCE:
        out.flags = (out.flags | IS_INFERENCE) & ~REQUIRES_GRAD     # outside of inference mode, too
        out.grad_fn_ = None
        return 0
    if modes & FORWARD:
        leave_to_base(out)
    out.flags &= ~IS_INFERENCE
    out.counter = counter_of(a)
    out.flags |= a.flags & WAS_WRAPPED
    view = ViewMeta.__new__(ViewMeta)
    view.base = a if a.view is None else a.view.base
    if creation_meta == VIEW_DEFAULT:
        if modes & INFERENCE:
            creation_meta = VIEW_INFERENCE
        elif modes & NO_GRAD:
            creation_meta = VIEW_NO_GRAD
        elif a.view is not None:
            creation_meta = a.view.creation_meta
    view.creation_meta = creation_meta
    view.attr_version = version_of(a)
    view.code = current_site(&view.lasti)
    out.view = view
    return 0


cpdef Tensor record_view(OpDef op, object array, Tensor a, tuple args):
    cdef Tensor out = record1(op, array, a, args)
    make_view(out, a, thread_state().modes, VIEW_DEFAULT)
    return out


cpdef tuple record_views(OpDef op, tuple arrays, Tensor a, tuple args):
    cdef tuple outs = record_outputs(op, arrays, (a,), args, <int>len(arrays))
    cdef unsigned int modes = thread_state().modes
    for out in outs:
        make_view(<Tensor>out, a, modes, VIEW_DEFAULT if modes else VIEW_MULTI_OUTPUT)
    return outs


# -- kernels -----------------------------------------------------------------------------------------------

cpdef object promoted(object a, object b, unsigned int flags):
    """Convert two operands, tensors or numbers, to arrays of the result dtype."""
    cdef dtype result = result_type((a, b))
    if flags & FLOAT_RESULT and result.category < FLOATING:
        result = default_dtype()
    return as_type(a, result), as_type(b, result)


cpdef dtype result_type(tuple operands):
    """Return the result dtype of an op on tensors and numbers (Note [Promotion] in dtypes.pyx); None is ignored."""
    cdef dtype with_dims = None, zero_dim = None, number = None
    mark_start()
    for value in operands:
        if value is None:
            continue
        if not isinstance(value, Tensor):
            number = combine_same(number, dtype_of_scalar(value))
        elif (<Tensor>value).array.ndim:
            with_dims = combine_same(with_dims, dtype_of(<Tensor>value))
        else:
            zero_dim = combine_same(zero_dim, dtype_of(<Tensor>value))
    return combine(with_dims, combine(zero_dim, number))


cdef inline dtype combine_same(dtype a, dtype b):
    return b if a is None else promote_types(a, b)


cpdef object as_type(object value, dtype wanted):
    cdef ndarray number
    if not isinstance(value, Tensor):
        number = np.asarray(value)
        if tape_open:
            note_constant(cnp.PyArray_DATA(number), cnp.PyArray_DATA(number), cnp.PyArray_ITEMSIZE(number), 1)
        return cast(number, wanted.num)
    return cast((<Tensor>value).array, wanted.num)


cdef inline object run1(OpDef op, object array, object out, Tensor target=None):
    if not is_on_cpu(array):
        if not is_unresolved(array):
            if op.flags & FLOAT_RESULT and category_of_num(array.dtype.num) < FLOATING:
                array = cast(array, default_dtype().num)
            return run_kernel(op, (array,), (), target) if op.ufunc is None else (
                gpu_forms.run(op.ufunc.numpy, (array,), ()))
        array = resolved(array)
        if not is_on_cpu(array):
            return run_kernel(op, (array,), (), target) if op.ufunc is None else (
                gpu_forms.run(op.ufunc.numpy, (array,), ()))
    if op.flags & FLOAT_RESULT and category_of_num(PyArray_TYPE(<ndarray>array)) < FLOATING:
        array = cast(<ndarray>array, default_dtype().num)
        out = None
    if op.ufunc is None:
        return run_kernel(op, (array,), (), target)
    return op.ufunc.call1(<ndarray>array, <ndarray>out)


cdef inline bint is_in_memory(object operand) noexcept:
    """Whether this is anything but a tensor on a GPU."""
    return not is_tensor(operand) or is_on_cpu((<Tensor>operand).array)


cdef object run2(OpDef op, object a, object b, object out, Tensor target=None):
    """Return the result array of a binary op on tensors and numbers. `out` is used only if nothing is converted."""
    cdef object xa, xb
    cdef int needed
    if op.ufunc is not None and is_in_memory(a) and is_in_memory(b):
        if is_tensor(a):
            xa = (<Tensor>a).array
            needed = category_of_num(PyArray_TYPE(<ndarray>xa))
            if not op.flags & FLOAT_RESULT or needed >= FLOATING:
                if is_tensor(b):
                    xb = (<Tensor>b).array
                    if PyArray_TYPE(<ndarray>xa) == PyArray_TYPE(<ndarray>xb):
                        return op.ufunc.call2(<ndarray>xa, <ndarray>xb, <ndarray>out)
                elif category_of_number(b) <= needed:
                    return op.ufunc.call2_scalar(<ndarray>xa, b, False, <ndarray>out)
        elif is_tensor(b):
            xb = (<Tensor>b).array
            needed = category_of_num(PyArray_TYPE(<ndarray>xb))
            if (not op.flags & FLOAT_RESULT or needed >= FLOATING) and category_of_number(a) <= needed:
                return op.ufunc.call2_scalar(<ndarray>xb, a, True, <ndarray>out)
    xa, xb = promoted(a, b, op.flags)
    if op.ufunc is None:
        return run_kernel(op, (xa, xb), (), target)
    if not is_on_cpu(xa) or not is_on_cpu(xb):
        return gpu_forms.run(op.ufunc.numpy, (xa, xb), ())
    return op.ufunc.call2(<ndarray>xa, <ndarray>xb, None)


# -- kernel, then record -----------------------------------------------------------------------------------

cpdef Tensor tensor_argument(OpDef op, object value, str name, int position):
    mark_start()
    if not isinstance(value, Tensor):
        raise messages.wrong_type(op.name, name, position, "Tensor", value)
    return <Tensor>value


cdef object prepare = None      # `autocast.on_gpu` while autocast is enabled in any thread


def call_prepare(function):
    """Set the function (or None) that casts the operands of ops on GPUs."""
    global prepare
    prepare = function


cdef Tensor prepared(str name, Tensor t):
    """Return an operand of an out-of-place op, cast if autocast requires that on GPUs."""
    return t if prepare is None or is_on_cpu(t.array) else prepare(name, t)


cpdef Tensor apply1(OpDef op, object a, object out):
    cdef Tensor t = tensor_argument(op, a, "input", 1)
    if out is None:
        t = prepared(op.name, t)
        return record1(op, run1(op, t.array, None), t, None)
    out = out_argument(op, out)
    if op.ufunc is not None and may_write_directly(op, out, t.array, None):
        return write_direct(op, out, t, None)
    return write_into(op, out, run1(op, t.array, None, out), (t,), None)


cpdef Tensor apply1_args(OpDef op, object a, tuple args, object out):
    cdef Tensor t = tensor_argument(op, a, "input", 1)
    array = run_kernel(op, (held_array(t),), args, out_argument(op, out))
    if out is None:
        return record1(op, array, t, args)
    return write_into(op, out, array, (t,), args)


cdef Tensor operate2(OpDef op, object a, object b):
    mark_start()
    return record2(op, run2(op, a, b, None), a, b, None)


cpdef Tensor apply2(OpDef op, object a, object b, object out):
    mark_start()
    a, b = operand(op, a, "input", 1), operand(op, b, "other", 2)
    if out is None:
        return operate2(op, a, b)
    out = out_argument(op, out)
    if op.ufunc is not None and isinstance(a, Tensor) and may_write_directly(op, out, (<Tensor>a).array, b):
        return write_direct(op, out, <Tensor>a, b)
    return write_into(op, out, run2(op, a, b, None, out), (a, b), None)


cdef inline object operand(OpDef op, object value, str name, int position):
    """Return a tensor or a Python number; NumPy scalars are converted."""
    if is_tensor(value) or isinstance(value, (int, float, complex)):
        return value
    return value.item() if isinstance(value, np.generic) else tensor_argument(op, value, name, position)


cpdef Tensor apply_n(OpDef op, tuple inputs, tuple args=None, object out=None, object hint=None):
    """Run the kernel and record. `inputs` are tensors, None or numbers; the kernel gets arrays in place of tensors."""
    mark_start()
    arrays = tuple([held_array(<Tensor>value) if isinstance(value, Tensor) else value for value in inputs])
    array = run_kernel(op, arrays, args or (), out_argument(op, out))
    if out is None:
        return record_n(op, array, inputs, args, hint)
    return write_into(op, out, array, inputs, args)


# -- writing into a tensor ---------------------------------------------------------------------------------

cdef bint may_write_directly(OpDef op, Tensor out, object a, object b) noexcept:
    """Whether the loop can write into `out` directly: same dtypes and compatible shapes, so nothing is converted."""
    cdef object xb
    cdef object target = out.array
    if op.flags & NONDIFF or type(a) is not ndarray or type(target) is not ndarray:
        return False
    if PyArray_TYPE(<ndarray>a) != PyArray_TYPE(<ndarray>target) or not PyArray_SAMESHAPE(<ndarray>a, <ndarray>target):
        return False
    if op.flags & FLOAT_RESULT and category_of_num(PyArray_TYPE(<ndarray>a)) < FLOATING:
        return False
    if b is None:
        return True
    if not isinstance(b, Tensor):
        return type(b) in (int, float, bool) and (
            category_of_number(b) <= category_of_num(PyArray_TYPE(<ndarray>a)))
    xb = (<Tensor>b).array
    return is_on_cpu(xb) and PyArray_TYPE(<ndarray>xb) == PyArray_TYPE(<ndarray>a) and (
        broadcasts_to(<ndarray>xb, <ndarray>target))


cdef Tensor write_direct(OpDef op, Tensor out, Tensor a, object b):
    cdef tuple inputs = (a,) if b is None else (a, b)
    cdef unsigned int mask = 0
    cdef OpNode node = begin_write(op, out, inputs, None, &mask)
    if b is None:
        run1(op, a.array, out.array)
    else:
        run2(op, a, b, out.array)
    return end_write(op, out, inputs, node, mask)


cpdef Tensor write_into(OpDef op, object target, object array, tuple inputs, tuple args):
    """Write a computed result into `target`; this is an in-place op if that is the first input."""
    cdef Tensor out = out_argument(op, target)
    cdef OpNode node
    cdef unsigned int mask = 0
    cdef bint other_shape = not are_of_one_shape(array, out.array) and not keeps_shape(op, out, inputs)
    if not (is_on_cpu(array) and is_on_cpu(out.array)):
        gpu_forms.check_out(array, behind(out.array))
    if other_shape or out is not inputs[0]:
        check_out(op, out, flags_and_source(inputs)[0] & WATCHED)
    check_result(None if out is inputs[0] else op, 0, array, out, not other_shape)
    node = begin_write(op, out, inputs, args, &mask)
    if other_shape:
        take_shape(out, array, True)
    try:
        if type(array) is ndarray and PyArray_TYPE(<ndarray>array) == typenum_of(out.array) and is_on_cpu(out.array):
            copy_array(<ndarray>out.array, <ndarray>array)
        else:
            chunks.write(array, out.array)
    except BaseException:       # KeyboardInterrupt or out of memory between two chunks
        bump(out, op.in_place)
        raise
    return end_write(op, out, inputs, node, mask)


cpdef Tensor recorded(OpDef op, object array, tuple inputs, tuple args, object out):
    """Return a computed result as a new tensor, or written into `out`."""
    return record_n(op, array, inputs, args) if out is None else write_into(op, out, array, inputs, args)


cdef OpNode begin_write(OpDef op, Tensor out, tuple inputs, tuple args, unsigned int* mask, str label=None):
    """Run all checks and return the node, with the history from before the write; None if nothing is recorded."""
    cdef ThreadState* state = thread_state()
    cdef unsigned int modes = state.modes & ~FORWARD
    cdef bint in_place = out is inputs[0]
    cdef bint dual = False
    cdef Tensor original
    if tape_open:
        note_begin_of_change(out.array)
    flags, source = flags_and_source(inputs)
    if is_observed(state) or (flags | out.flags) & DISPATCHES:
        begin_change(op, IN_PLACE if in_place else WITH_OUT, out, inputs, args, label, state)
        dual = state.modes & FORWARD and concerns_tangents(op, inputs, out)
    elif state.changing != NULL and (<Recorded>state.changing).outs[0] is out:
        forget_changes()                # of a write that failed
    cdef bint recording = flags & WATCHED == REQUIRES_GRAD and not modes
    if in_place:
        check_inplace(out, label or op.in_place, flags & REQUIRES_GRAD and not modes)
    else:
        check_out(op, out, flags & WATCHED)
    check_memory(out, op.flags & MAY_OVERLAP)
    for value in inputs:
        check_operand_memory(out, value)
    if state.on_write != NULL:
        inputs = (<object>state.on_write)(out, inputs)     # copies inputs that share this memory, too
    if op.rule == NULL and in_place and (recording and requires_grad(out) or dual and is_dual(out)):
        op = flat(op)
    dual = dual and op.rule != NULL
    if state.changing != NULL and (state.dispatching or (flags | out.flags) & DISPATCHES):
        dispatch_later(<Recorded>state.changing)
    if (not recording or op.rule == NULL) and not dual:
        if flags & IS_VOLATILE and not modes:
            become_volatile(out)
        elif in_place and not requires_grad(out):
            note_cut(op, out, source, flags, modes)
        return None
    if dual or in_place and needs_old_value(op, inputs):
        original = old_value(out)
        keep_samples(out, original)
        if dual:
            begin_carrying(op, out, original, inputs, args)
        inputs = (original,) + inputs[1:]
    return node_of(op, inputs, args, mask) if recording else None


cdef bint needs_old_value(OpDef op, tuple inputs):
    cdef Py_ssize_t i
    for i in range(len(inputs)):
        if isinstance(inputs[i], Tensor) and watched(<Tensor>inputs[i]):
            if op.saves[i if i < 2 else 2] & IN0:
                return True
    return False


cdef Tensor end_write(OpDef op, Tensor out, tuple inputs, OpNode node, unsigned int mask, str label=None):
    cdef ThreadState* state = thread_state()
    cdef Recorded done = None if state.changing == NULL else take_change(out, state)
    if done is not None:
        dispatch_change(done)
    bump(out, label or (op.in_place if out is inputs[0] else op.name + "(out=)"))
    if tape_open:
        note_end_of_change(out.array, op.name)
    if state.watch and is_bad_result(op, out.array, state):
        refuse_result(op, out.array, inputs, state)
    if node is not None:
        set_meta(node, out.array)
        if mask & OUT0:
            save_output(node, RESULT, out)
        rebase_history(out, node)
        if mask and state.on_save != NULL:
            (<object>state.on_save)(node)
    if done is not None:
        after(done, node, state)
    return out


cpdef Tensor written_in_place(OpDef op, Tensor t, tuple inputs, tuple args, object kept, object write, tuple given=()):
    """Let `write(*given)` change `t`, the first input, after all checks; `kept` is saved in the third slot."""
    cdef unsigned int mask = 0
    cdef OpNode node = begin_write(op, t, inputs, args, &mask)
    keep_written(node, kept)
    if thread_state().changing != NULL:
        (<Recorded>thread_state().changing).hint = kept
    shown = held_array(t)
    if is_unresolved(shown):
        write_resolved(t, write, given)
    else:
        write(*given)
    return end_write(op, t, inputs, node, mask)


cpdef int write_resolved(Tensor t, object write, tuple given) except -1:
    """Let `write(*given)` change the elements of `t`, whose array is unresolved, as a copy that is then written back."""
    shown, elements = held_array(t), resolved(t.array)
    set_array(t, elements)
    try:
        write(*given)
    finally:
        set_array(t, shown)
        chunks.write(elements, shown)
    return 0
