"""In-place changes and the history of views.

Note [Views and in-place]
-------------------------
A view shares memory with its base, so changing one changes both, and both histories must reflect that.

    base  = ...                    base.grad_fn = B
    view  = base[1:3]              view.grad_fn = Slice(B)
    view.mul_(w)                   base.grad_fn = CopySlices(fn=Mul)  -> B, w
                                   view.grad_fn = AsStrided           -> CopySlices

The op is recorded as if applied to the view alone (`fn`). CopySlices, the base's new history, takes the base's
gradient, passes the view's part of it to `fn`, and puts the result of `fn` back. The `grad_fn` of the view itself, and of
every other view of that base, is now stale: a view stores the version at which its `grad_fn` was up to date
(`attr_version`), and on the next access makes a new one that picks its elements from the base by strides
(`regenerate`). Chains of views need nothing more, because every view's geometry is relative to the base.
"""

cimport cython
from cpython.object cimport PyObject
from numpy cimport (
    NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_F_CONTIGUOUS, NPY_ARRAY_WRITEABLE, PyArray_CHKFLAGS, PyArray_NBYTES, PyArray_TYPE,
    ndarray)

from cygrad._core.types.dtypes cimport COMPLEX, FLOATING, category_of_num
from cygrad._core.graph.node cimport begin_node, forbid_making, set_meta
from cygrad._core.graph.opdef cimport ELEMENTWISE, OpDef, OpNode, lookup
from cygrad._core.runtime.thread_state cimport INFERENCE, NO_GRAD, is_recording, thread_state
from cygrad._core.graph.tensor cimport (
    DISPATCHES, IS_INFERENCE, REQUIRES_GRAD, RETAINS_GRAD, VIEW_DEFAULT, WAS_WRAPPED, Tensor, dispatched_call, grad_fn_of,
    held_array, requires_grad, version_of, wrap, wrap_in_mode)
import gc

from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._kernels.array_ops cimport are_of_one_shape, may_overlap, typenum_of
from cygrad._kernels.cpu.base.arrays cimport is_on_cpu, same_shape, zeros
from cygrad._kernels.cpu.base.view_geometry cimport distance, lies_within, overlaps_itself, restride
from cygrad._kernels.device.unresolved cimport behind, is_unresolved, opposite, resolved, shown_through
from cygrad._kernels.device.waiting cimport settle
from cygrad._kernels.tape.tape cimport note_grad, tape_open
from cygrad._kernels.cpu.base.copying import contiguous, copy_into, empty_like, on_memory_of
from cygrad._library import later

complex_parts = later("cygrad._kernels.cpu.base.complex_parts")             # both are needed only for gradients of views
strided_gradients = later("cygrad._kernels.cpu.shape.strided_gradients")


cdef extern from "atomic_owner.h":
    object cygrad_published(object)

cdef extern from "deferred_decref.h":
    void cygrad_let_go(PyObject* value, size_t bytes) noexcept
    void cygrad_let_all_go() noexcept
    bint CYGRAD_LETS_WAIT

cdef enum:
    MANY_BYTES = 1 << 21            # estimate for memory of unknown size
    LARGE = 1 << 19                 # bytes of an array that takes longer to compute than stopping all threads


# -- replacing values that other threads may be reading: Note [Former values] in deferred_decref.h ----------------------

cdef int let_go(object former, size_t bytes) except -1:
    """Release `former`, which the caller has replaced and which holds `bytes` of memory."""
    cygrad_let_go(<PyObject*>former, bytes)
    return 0


cdef int let_memory_go(object former, object array) except -1:
    """Release a holder of an array. A large one is freed at once, since memory may not suffice for another."""
    cdef bint is_known = type(array) is ndarray
    cdef size_t size = PyArray_NBYTES(<ndarray>array) if is_known else MANY_BYTES
    cygrad_let_go(<PyObject*>former, size)
    if is_known and size >= LARGE:
        cygrad_let_all_go()
    return 0


cdef int set_array(Tensor t, object array) except -1:
    cdef object former
    with cython.critical_section(t):
        former = t.array
        t.array = cygrad_published(array)
    return let_memory_go(former, former)


cdef int set_grad(Tensor t, Tensor grad) except -1:
    cdef Tensor former
    if tape_open:
        note_grad(t)
    with cython.critical_section(t):
        former = t.grad_
        t.grad_ = <Tensor>cygrad_published(grad)
    return 0 if former is None else let_memory_go(former, former.array)


cdef int set_history(Tensor t, Node node, int output_nr) except -1:
    with cython.critical_section(t):
        return replace_history(t, node, output_nr)


cdef int replace_history(Tensor t, Node node, int output_nr) except -1:
    """Same as `set_history`; the caller holds the lock of `t`."""
    cdef Node former = t.grad_fn_
    t.grad_fn_ = <Node>cygrad_published(node)
    t.output_nr_ = output_nr
    if node is None or former is not node.edge0:       # otherwise the edge still holds it
        let_go(former, MANY_BYTES)
    return 0


cdef int set_tangents(Tensor t, dict tangents) except -1:
    cdef dict former
    with cython.critical_section(t):
        former = t.tangents
        t.tangents = <dict>cygrad_published(tangents)
    let_go(former, MANY_BYTES)
    return 0


def _before_collection(phase, info):
    if phase == "start":
        cygrad_let_all_go()

if CYGRAD_LETS_WAIT:
    gc.callbacks.append(_before_collection)


# -- checks, and the history of views ----------------------------------------------------------------------

cdef int check_inplace(Tensor t, str op_name, bint recording) except -1:
    """Raise as PyTorch does if changing `t` in place would make its history incorrect."""
    if recording and t.view is not None:
        if t.view.creation_meta != VIEW_DEFAULT:
            raise view_error(t, op_name)
        if requires_grad(t) and t.view.base.grad_fn_ is None:
            raise graph_errors.leaf_view_error(t, op_name, t.view.base, t.view.code, t.view.lasti)
    elif recording and t.flags & REQUIRES_GRAD and t.grad_fn_ is None:
        raise graph_errors.leaf_error(t, op_name)
    if t.flags & IS_INFERENCE and not thread_state().modes & INFERENCE:
        raise RuntimeError(messages.INFERENCE_INPLACE)
    return 0


cdef object view_error(Tensor t, object op_name):
    return graph_errors.view_error(t.grad_fn_, t.output_nr_, op_name, t.view.creation_meta, t.view.code, t.view.lasti)


cdef Tensor out_argument(OpDef op, object out):
    if out is None or isinstance(out, Tensor):
        return out
    raise messages.wrong_keyword(op.name.partition(".")[0], "out", "Tensor", out)


cdef int check_out(OpDef op, Tensor out, unsigned int flags) except -1:
    """Raise if writing into `out` would have to be recorded. `flags`: whether an input requires grad or is volatile."""
    cdef bint recorded = flags == REQUIRES_GRAD and op.rule != NULL
    if (recorded or requires_grad(out)) and is_recording():
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad.")
    if out.flags & IS_INFERENCE and not thread_state().modes & INFERENCE:
        raise RuntimeError(messages.INFERENCE_INPLACE)
    return 0


cdef Tensor old_value(Tensor t):
    """Return a copy with the same history."""
    settle()
    cdef Tensor original
    if t.flags & DISPATCHES:
        original = dispatched_call("clone", t, None)
    else:
        original = wrap(contiguous(t.array) if tape_open else t.array.copy())
    original.grad_fn_ = grad_fn_of(t)
    original.output_nr_ = t.output_nr_
    original.flags = t.flags & REQUIRES_GRAD
    return original


cdef int check_memory(Tensor t, bint may_overlap=False) except -1:
    """Raise if `t` is read-only, or if two of its elements share memory."""
    cdef ndarray a
    if type(t.array) is ndarray:
        a = <ndarray>t.array
        if PyArray_CHKFLAGS(a, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_WRITEABLE):
            return 0
    if not may_overlap and overlaps_itself(t.array):
        raise graph_errors.overlap_error(t)
    if is_on_cpu(behind(t.array)) and not t.array.flags.writeable:
        raise graph_errors.read_only_error(t)
    return 0


def check_changes(tensors, str op_name):
    """Raise if any of these tensors may not be changed in place by an op; for functions that change several."""
    cdef Tensor t
    cdef bint recording = is_recording()
    for t in tensors:
        check_inplace(t, op_name, recording)
        check_memory(t)


def are_alike(tuple values):
    """Whether these arguments are floating-point tensors of one dtype and shape and real numbers: no op refuses them."""
    cdef ndarray first, a
    cdef object value
    if type((<Tensor?>values[0]).array) is not ndarray:
        return False
    first = (<Tensor>values[0]).array
    if category_of_num(PyArray_TYPE(first)) != FLOATING:
        return False
    for value in values[1:]:
        if not isinstance(value, Tensor):
            if type(value) is not float and type(value) is not int:
                return False
        elif type((<Tensor>value).array) is not ndarray:
            return False
        else:
            a = (<Tensor>value).array
            if PyArray_TYPE(a) != PyArray_TYPE(first) or not same_shape(a, first):
                return False
    return True


cpdef int check_operand_memory(Tensor out, object operand) except -1:
    """Raise if an operand overlaps `out` without being exactly the same elements."""
    if operand is out or not isinstance(operand, Tensor):
        return 0
    a, b = out.array, (<Tensor>operand).array
    if is_unresolved(a) or is_unresolved(b):        # a copy is read, or written
        return 0
    if not may_overlap(a, b) or not (is_dense(a) and is_dense(b)):
        return 0
    if distance(a, b) or a.shape != b.shape or a.strides != b.strides:
        raise graph_errors.overlapping_operand_error()
    return 0


cpdef int check_apart(Tensor out, object operand) except -1:
    """Raise if an operand that is read in a different order while `out` is written shares memory with it."""
    if isinstance(operand, Tensor):
        a, b = out.array, (<Tensor>operand).array
        if is_unresolved(a) or is_unresolved(b):
            return 0
        if may_overlap(a, b) and is_dense(a) and is_dense(b):
            raise graph_errors.overlapping_operand_error()
    return 0


cdef bint keeps_shape(OpDef op, Tensor out, tuple inputs):
    """Whether `out` is changed in place and therefore cannot take the shape of the result."""
    if out is inputs[0]:
        return hasattr(Tensor, f"{op.name}_")
    return op.flags & ELEMENTWISE and any([out is value for value in inputs])


cdef int check_result(OpDef op, int place, object array, Tensor out, bint keeps) except -1:
    """Raise if `out` cannot hold the dtype of a result or, with `keeps`, if the result does not broadcast to it.

    `place` is the index of the result among those of `op`; `op` is None if `out` is changed in place.
    """
    cdef int typenum = typenum_of(array), wanted = typenum_of(out.array)
    if typenum != wanted:
        messages.check_result_type(typenum, wanted, op, place)
    if keeps and not are_of_one_shape(array, out.array):
        messages.check_inplace_shape(array.shape, out.array.shape)
    return 0


def check_outputs(OpDef op, tuple outs, tuple arrays, tuple inputs):
    """Raise if any of several results cannot be written, before the first write."""
    cdef Tensor out
    cdef int place
    for place in range(len(outs)):
        array = arrays[place]
        out = out_argument(op, outs[place])
        check_out(op, out, 0)
        check_result(op, place, array, out, False)
        check_memory(out)
        for operand in inputs:
            check_operand_memory(out, operand)
        if out.flags & WAS_WRAPPED and array.shape != out.array.shape:
            if on_memory_of(behind(out.array), empty_like(array, out.array.dtype)) is None:
                check_resizable(out)


cpdef int check_resizable(Tensor t) except -1:
    """Raise if the memory of a tensor that must grow belongs to somebody else."""
    if t.flags & WAS_WRAPPED:
        raise RuntimeError(messages.NOT_RESIZABLE)
    return 0


cdef int take_shape(Tensor out, object array, bint warns) except -1:
    """Resize `out` to the shape of a result that will be written into it, reusing its memory if large enough."""
    blank = empty_like(array, out.array.dtype)
    found = on_memory_of(behind(out.array), blank)
    if warns and out.array.size:
        messages.output_resized(out.array.shape, array.shape)
    if found is None:
        check_resizable(out)
    return set_array(out, shown_through(out.array, blank if found is None else found))


cdef inline bint is_dense(object a) except -1:
    if not is_on_cpu(a):
        return a.flags.c_contiguous or a.flags.f_contiguous
    return PyArray_CHKFLAGS(<ndarray>a, NPY_ARRAY_C_CONTIGUOUS) or PyArray_CHKFLAGS(<ndarray>a, NPY_ARRAY_F_CONTIGUOUS)


cdef inline bint is_complex(Tensor t):
    return category_of_num(t.array.dtype.num) == COMPLEX


cdef bint splits_base(Tensor t):
    """Whether the view is real and its base complex."""
    return is_complex(t.view.base) and not is_complex(t)


cdef bint splits_view(Tensor t):
    """Whether the view is complex and its base real."""
    return is_complex(t) and not is_complex(t.view.base)


cdef bint flips(Tensor t):
    """Whether the view shows the elements of its base conjugated or negated."""
    return is_unresolved(t.array) != is_unresolved(t.view.base.array)


cdef tuple geometry_of_base(Tensor t):
    array = complex_parts.as_parts(behind(t.view.base.array)) if splits_base(t) else held_array(t.view.base)
    return array.shape, array.strides


cdef tuple geometry_in_base(Tensor t):
    array = complex_parts.as_parts(behind(t.array)) if splits_view(t) else held_array(t)
    return array.shape, array.strides, distance(array, t.view.base.array)


def place_in_base(Tensor t not None):
    """Return (base, its geometry, that of `t`, `splits_base`, `splits_view`, `flips`) for a view, otherwise None."""
    if t.view is None or not lies_in_base(t):
        return None
    return t.view.base, geometry_of_base(t), geometry_in_base(t), splits_base(t), splits_view(t), flips(t)


cdef bint lies_in_base(Tensor t) except -1:
    """Return False after `base.data = ...` has replaced the base's memory: the view then keeps its own history."""
    return lies_within(t.array, t.view.base.array)


cdef int rebase_history(Tensor t, Node node) except -1:
    """Make `node`, the op that just changed `t` in place, the history of `t` and of tensors that share its memory."""
    cdef CopySlices copy
    cdef Tensor base
    if t.view is None or not lies_in_base(t):
        give_history(t, node)
        return 0
    base = t.view.base
    copy = CopySlices.__new__(CopySlices)
    begin_node(copy, thread_state())
    copy.fn = node
    copy.code = node.code
    copy.lasti = node.lasti
    copy.base_geometry = geometry_of_base(t)
    copy.view_geometry = geometry_in_base(t)
    copy.splits_base = splits_base(t)
    copy.splits_view = splits_view(t)
    copy.flips = flips(t)
    take_edges(copy, base, node)
    set_meta(copy, base.array)
    give_history(base, copy)
    with cython.critical_section(t):
        return regenerate(t)


cdef int take_edges(CopySlices copy, Tensor base, Node node) except -1:
    """Copy the edges of `node`, except that the first (to the view's history) goes to the base's."""
    cdef int i
    add_edge_to(copy, base)
    for i in range(1, node.n_edges):
        copy.add_edge(node.target(i), node.target_nr(i))
    return 0


cdef int add_edge_to(Node node, Tensor base) except -1:
    """Add an edge to `base`, which is not a view."""
    if not base.flags & REQUIRES_GRAD:
        return node.add_edge(None, 0)
    if base.grad_fn_ is None:
        return node.add_edge(base, 0)
    return node.add_edge(base.grad_fn_, base.output_nr_)


cdef int give_history(Tensor t, Node node) except -1:
    keep_retained(t, node)
    set_history(t, node, 0)
    t.flags |= REQUIRES_GRAD
    return 0


cdef int keep_retained(Tensor t, Node node) except -1:
    """Transfer what `retain_grad` requested to the new history."""
    cdef Node former = t.grad_fn_
    if t.flags & RETAINS_GRAD and former is not None and former.hooks is not None and former.hooks.retains:
        hooks = node.ensure_hooks()
        hooks.retains = {0: former.hooks.retains.pop(t.output_nr_)}
    return 0


cdef int regenerate(Tensor t) except -1:
    """Update the stale `grad_fn` of a view after a change of its memory. The caller holds the view's lock."""
    cdef Tensor base = t.view.base
    cdef OpNode node, parts
    if (t.grad_fn_ is None and not base.flags & REQUIRES_GRAD) or not lies_in_base(t):
        return 0
    if t.view.creation_meta != VIEW_DEFAULT:
        raise view_error(t, None)
    node = view_node("as_strided", t, (geometry_in_base(t), geometry_of_base(t)))
    if splits_base(t):
        parts = view_node("view_as_real", t, None)
        add_edge_to(parts, base)
        set_meta(parts, complex_parts.as_parts(behind(base.array)))
        node.add_edge(parts, 0)
    else:
        add_edge_to(node, base)
    if splits_view(t):
        set_meta(node, complex_parts.as_parts(behind(t.array)))
        parts, node = node, view_node("view_as_complex", t, None)
        node.add_edge(parts, 0)
    if flips(t):
        set_meta(node, t.array)
        parts, node = node, view_node("conj" if is_complex(t) else "neg_view", t, None)
        node.add_edge(parts, 0)
    set_meta(node, t.array)
    keep_retained(t, node)
    replace_history(t, node, 0)
    t.flags |= REQUIRES_GRAD
    t.view.attr_version = version_of(t)
    return 0


cdef OpNode view_node(str name, Tensor t, tuple args):
    """Return a node of the op `name`, without edges, at the site where the view `t` was made."""
    cdef OpNode node = OpNode.__new__(OpNode)
    begin_node(node, thread_state())
    node.op = lookup(name)
    node.arguments = args
    node.code = t.view.code
    node.lasti = t.view.lasti
    return node


@cython.final
@cython.trashcan(True)
cdef class CopySlices(Node):
    """The history of a tensor that was changed in place through a view; see Note [Views and in-place]."""

    cpdef str name(self):
        """Return PyTorch's name for this kind of node."""
        return "torch::autograd::CopySlices"

    cdef int release_variables(self, object freed_by) except -1:
        return self.fn.release_variables(freed_by)

    cdef object call(self, object grad):
        if thread_state().modes & NO_GRAD:
            return self.run_on_arrays(<Tensor>grad)
        return self.run_recorded(<Tensor>grad)

    cdef tuple run_on_arrays(self, Tensor grad):
        shape, strides = self.base_geometry
        memory = strided_gradients.laid_out(
            shape, strides, complex_parts.real_type(grad.array.dtype) if self.splits_base else grad.array.dtype, grad.array)
        result = complex_parts.from_parts(memory) if self.splits_base else memory
        settle()
        assign(result, grad.array)
        shape, strides, offset = self.view_geometry
        part = restride(memory, shape, strides, offset)
        if self.splits_view:
            part = complex_parts.from_parts(part)
        seen = self.seen(part)
        grads = self.grads_of_fn(wrap_in_mode(contiguous(seen) if tape_open else seen.copy()))
        settle()
        if grads[0] is None:
            assign(part, zeros((), part.dtype.num) if tape_open else 0)
        else:
            assign(part, self.seen(resolved((<Tensor>grads[0]).array)))
        return (wrap_in_mode(result),) + grads[1:]

    cdef tuple run_recorded(self, Tensor grad):
        take, put = lookup("strided_gather").entry, lookup("strided_scatter").entry
        if self.splits_base:
            grad = lookup("view_as_real").entry(grad)
        part = take(grad, self.view_geometry, self.base_geometry)
        if self.splits_view:
            part = lookup("view_as_complex").entry(part)
        grads = self.grads_of_fn(self.seen_recorded(part))
        part = grads[0]
        if part is not None:
            part = self.seen_recorded(part)
            if self.splits_view:
                part = lookup("view_as_real").entry(part)
        result = put(grad, part, self.view_geometry, self.base_geometry)
        return (lookup("view_as_complex").entry(result) if self.splits_base else result,) + grads[1:]

    cdef object seen(self, object array):
        """Return elements of the base as the view shows them, or the reverse."""
        return resolved(opposite(array)) if self.flips else array

    cdef Tensor seen_recorded(self, Tensor t):
        if not self.flips:
            return t
        return lookup("conj_physical" if is_complex(t) else "neg").entry(t)

    cdef tuple grads_of_fn(self, Tensor part):
        grads = self.fn.call(part)
        return grads if isinstance(grads, tuple) else (grads,)

cdef int assign(object target, object values) except -1:
    """Write values into an array, by noted loops while a step is captured."""
    if tape_open:
        copy_into(target, values)
    else:
        target[...] = values
    return 0

forbid_making(CopySlices)
