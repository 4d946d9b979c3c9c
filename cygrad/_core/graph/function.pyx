"""Custom functions: the node in the graph, which is also the context `ctx`.

As in PyTorch, the `ctx` passed to `forward` and `backward` *is* the node: an instance of a class derived from `PyNode`
for new-style functions (static methods), the function object itself for old-style ones (instance methods).
"""

cimport cython
import numpy as np

from cygrad._core.graph.node cimport begin_node
from cygrad._core.graph.observers cimport FUNCTION, enter_all, leave_all
from cygrad._core.graph.saved_slots cimport (
    as_output, check_not_freed, forget, place_in, read_slot, save_output, save_value, unpacked)
from cygrad._core.graph.inplace cimport check_inplace, rebase_history, set_history
from cygrad._core.runtime.thread_state cimport FORWARD, NO_GRAD, ThreadState, is_recording, thread_state
from cygrad._core.graph.tensor cimport (
    CUT_NON_DIFFERENTIABLE, IS_VOLATILE, REQUIRES_GRAD, VIEW_CUSTOM_FUNCTION, VIEW_DEFAULT, VIEW_MULTI_OUTPUT,
    VIEW_NO_GRAD, Tensor, alias, bump, grad_fn_of, requires_grad, version_of, wrap)
from cygrad._core.types.dtypes cimport dtype_of_num, is_float_num
from cygrad._core.errors import messages

cdef object wording():
    """Return the module with the error messages, imported on first use."""
    from cygrad._core.diagnostics import custom_functions as function_messages  # needed only for errors and warnings
    return function_messages


@cython.trashcan(True)
cdef class PyNode(Node):
    """The `ctx` passed to a custom function's `forward` and `backward`; also the node in the graph.

    >>> import cygrad
    >>> class Double(cygrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.factor = 2
    ...         return ctx.factor * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return ctx.factor * g
    >>> y = Double.apply(cygrad.tensor(3.0, requires_grad=True))
    >>> isinstance(y.grad_fn, cygrad.autograd.function.FunctionCtx)
    True
    """

    def __cinit__(self):
        begin_node(self, thread_state())
        self.materialize_grads = True

    def __init__(self, *args, **kwargs):        # unlike other nodes, these may be instantiated
        pass

    def __repr__(self):
        return f"<torch.autograd.function.{self.name()} object at {hex(id(self))}>"

    # -- for forward ---------------------------------------------------------------------------------------

    def save_for_backward(self, *tensors):
        """Save these tensors (or None) for `backward`, which finds them in `saved_tensors`.

        `apply` raises TypeError for anything that is not a tensor: store such values in attributes of ctx.

        >>> import cygrad
        >>> class Square(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * g
        >>> x = cygrad.tensor(3.0, requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad
        tensor(6.)
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Save these tensors for `jvp`.

        >>> import cygrad
        >>> from cygrad.autograd import forward_ad
        >>> class Square(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_forward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def jvp(ctx, tangent):
        ...         return 2 * ctx.saved_tensors[0] * tangent
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(cygrad.tensor(3.0), cygrad.tensor(1.0))
        ...     forward_ad.unpack_dual(Square.apply(x)).tangent
        tensor(6.)
        """
        wording().check_for_forward(tensors)
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        """Declare that forward changed these inputs in place; it must also return them.

        >>> import cygrad
        >>> class AddOne(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.mark_dirty(x)
        ...         return x.add_(1)
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g
        >>> x = cygrad.tensor(3.0, requires_grad=True) * 1
        >>> AddOne.apply(x) is x
        True
        """
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        """Declare that these outputs have no gradient.

        >>> import cygrad
        >>> class Largest(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         value, index = x.max(0)
        ...         ctx.mark_non_differentiable(index)
        ...         return value, index
        >>> value, index = Largest.apply(cygrad.tensor([1.0, 3.0], requires_grad=True))
        >>> value.requires_grad, index.requires_grad
        (True, False)
        """
        self.non_differentiable = tensors

    def set_materialize_grads(self, value):
        """Set whether backward receives a missing gradient as zeros (the default) or as None.

        >>> import cygrad
        >>> class Both(cygrad.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.set_materialize_grads(False)
        ...         return x * 1, x * 2
        ...     @staticmethod
        ...     def backward(ctx, g, h):
        ...         print(h)
        ...         return g
        >>> one, two = Both.apply(cygrad.tensor(3.0, requires_grad=True))
        >>> one.backward()
        None
        """
        if not isinstance(value, bool):
            raise TypeError("set_materialize_grads received an invalid combination of arguments - got "
                            f"({type(value).__name__}), but expected (bool)")
        self.materialize_grads = value

    # -- for backward --------------------------------------------------------------------------------------

    @property
    def needs_input_grad(self):
        """For each argument of forward, whether it needs a gradient."""
        return self.needs  # avoids Cython's own getter: see `args` in opdef.pyx

    @needs_input_grad.setter
    def needs_input_grad(self, tuple value):
        self.needs = value

    @property
    def saved_tensors(self):
        """The tensors saved by forward. Raises RuntimeError if one has been changed in place or freed since."""
        cdef Py_ssize_t i
        cdef long long version
        cdef list stored = [], values = []
        if self.in_jvp:
            return getattr(self, "saved_for_forward", ())
        check_not_freed(self)
        with cython.critical_section(self.lock()):      # all at once, since another thread may free them
            for i in range(self.n_saved):
                value = read_slot(self, i, &version)
                stored.append((value, version))
        for i, (value, saved_at) in enumerate(stored):
            nr = self.saved_outputs[i]
            found = unpacked(self, value, saved_at, nr >= 0)
            if found is value and nr >= 0 and self.recorded:        # if a hook had packed it, it has its history
                found = as_output(self, <Tensor>found, nr)
            values.append(found)
        return tuple(values)

    def _let_go(self):
        """Free what was saved for backward. Return False, and keep it, inside `jvp`."""
        if not self.in_jvp:
            self.drop_saved()
        return not self.in_jvp

    cdef object lock(self):     # the engine holds the node's own lock while backward runs (see `args` in opdef.pyx)
        return self.is_tensor_input

    cdef int drop_saved(self) except -1:
        with cython.critical_section(self.lock()):
            self.n_saved = 0
            forget(self)
        return 0

    def _place(self, Py_ssize_t i):
        """Return (the value in slot `i` as stored, which output it is or -1, whether the saved values were freed)."""
        return place_in(self, i)

    cdef Py_ssize_t n_places(self):
        return self.n_saved

    cdef int output_in(self, Py_ssize_t i) except -2:
        return self.saved_outputs[i]

    @property
    def _raw_saved_tensors(self):
        """Handles of the saved tensors, each with `register_hooks(pack, unpack)`."""
        from cygrad._core.saved.saved_tensor_hooks import raw_saved  # few programs need it
        check_not_freed(self)
        return tuple([raw_saved(self, i) for i in range(self.n_saved)])

    @property
    def saved_variables(self):
        """Deprecated name of `saved_tensors`."""
        messages.deprecated("'saved_variables'", "'saved_tensors'")
        return self.saved_tensors

    cdef bint takes_undefined(self) noexcept:
        return True

    cdef int release_variables(self, object freed_by) except -1:
        self.drop_saved()
        self.to_save = None
        self.freed_by = freed_by
        return 0

    cdef object call(self, object grad):
        if self.is_tensor_input is None:
            raise RuntimeError(f"{self.name()} has not been applied to anything")
        cdef tuple grads = (grad,) if self.n_outputs == 1 else (
            grad if grad is not None else (None,) * self.n_outputs)
        if self.materialize_grads:
            grads = self.materialized(grads)
        return self.checked(self._call_backward(grads))

    cdef object label(self):
        return type(self)

    def _call_backward(self, grads):
        return type(self)._forward_cls._backward_of()(self, *grads)

    cdef tuple materialized(self, tuple grads):
        cdef Py_ssize_t i
        if not contains(grads, None):
            return grads
        return tuple([
            wrap(np.zeros(self.metas[i][0], dtype_of_num(self.metas[i][1]).numpy))
            if grads[i] is None and self.metas[i] is not None
            else grads[i] for i in range(len(grads))])

    cdef tuple checked(self, object results):
        """Check what backward returned, and return the gradients of the tensor inputs."""
        cdef Py_ssize_t i, n = len(self.is_tensor_input)
        cdef list grads = []
        if not isinstance(results, tuple):
            results = (results,)
        if len(results) > n and all([value is None for value in results[n:]]):
            results = results[:n]
        if len(results) != n:
            raise wording().wrong_number_of_gradients(self, n, len(results))
        for i in range(n):
            value = results[i]
            if self.is_tensor_input[i]:
                if value is not None and not isinstance(value, Tensor):
                    raise wording().not_a_gradient(self, i, value)
                grads.append(value)
            elif value is not None:
                raise wording().gradient_of_no_tensor(self, i)
        return tuple(grads)


# -- applying ----------------------------------------------------------------------------------------------

cdef unsigned int take_inputs(PyNode node, tuple args) except? 0xFFFF:
    """Record which arguments are tensors and need gradients, and add the edges. Return the combined flags of all inputs."""
    cdef Tensor t
    cdef list needs = [], tensors = []
    cdef unsigned int flags = 0
    for value in args:
        if isinstance(value, Tensor):
            t = <Tensor>value
            needed = requires_grad(t)
            flags |= t.flags & IS_VOLATILE
            if needed:
                flags |= REQUIRES_GRAD
                target = grad_fn_of(t)
                if target is None and t.flags & REQUIRES_GRAD:
                    target = t
                node.add_edge(target, t.output_nr_)
            else:
                node.add_edge(None, 0)
            needs.append(needed)
            tensors.append(True)
        else:
            needs.append(False)
            tensors.append(False)
    node.needs = tuple(needs)
    node.is_tensor_input = tuple(tensors)
    return flags


def apply_function(PyNode node not None, forward, args, setup_context=None):
    """Run `forward` unrecorded and record it as one node.

    `forward` is called with `args`; afterwards `setup_context(ctx, args, output)` is called, if given.
    """
    cdef ThreadState* state = thread_state()
    if state.observers == NULL:
        return apply_quietly(node, forward, args, setup_context)
    entered = enter_all(node, FUNCTION, args, state)
    try:
        return apply_quietly(node, forward, args, setup_context)
    finally:
        leave_all(entered, node, FUNCTION, node.recorded)


cdef object apply_quietly(PyNode node, object forward, tuple args, object setup_context):
    """Same as `apply_function`, without telling observers."""
    cdef ThreadState* state = thread_state()
    cdef unsigned int modes = state.modes
    cdef unsigned int flags
    if node.is_tensor_input is not None:
        raise RuntimeError(f"{node.name()} has been applied before\n  each call needs a node of its own")
    flags = take_inputs(node, args)
    node.recorded = flags == REQUIRES_GRAD and is_recording()
    state.modes = (modes | NO_GRAD) & ~FORWARD
    try:
        results = forward(*args)
        if setup_context is not None:
            setup_context(node, args, results)
    finally:
        state.modes = modes
    single = not isinstance(results, tuple)
    outputs = join_outputs(node, (results,) if single else results, args, flags,
                           None if setup_context is None else node.to_save)
    if node.recorded:
        save(node, outputs)
    else:
        node.to_save = None
    if modes & FORWARD:
        from cygrad._core.transforms.jvp_custom_function import carry_through_function  # needed only for forward mode
        carry_through_function(node, args, outputs)
    return outputs[0] if single else tuple(outputs)


def call_jvp(PyNode node not None, tangents):
    """Compute the tangents of the outputs from those of the arguments with the function's own `jvp`."""
    node.in_jvp = True
    try:
        return type(node)._forward_cls.jvp(node, *tangents)
    finally:
        node.in_jvp = False


cdef bint stays_undefined(PyNode node, Tensor t) except -1:
    """Whether backward is given None, not zeros, for an output that was marked as not differentiable."""
    return (node.non_differentiable is not None and contains(node.non_differentiable, t)
            and not node._materialize_non_diff_grads)


cdef list join_outputs(PyNode node, tuple results, tuple args, unsigned int flags, tuple not_as_is):
    """Return the outputs with their new histories. `not_as_is`: inputs that may not be returned unchanged."""
    cdef Py_ssize_t i, joined = 0
    cdef list outputs = list(results), metas = []
    cdef Tensor t
    check_marks(node, args, results)
    node.n_outputs = <int>len(results)
    for value in results:
        metas.append(None if not isinstance(value, Tensor) or stays_undefined(node, <Tensor>value)
                     else ((<Tensor>value).array.shape, (<Tensor>value).array.dtype.num))
    node.metas = tuple(metas)
    for i in range(len(results)):
        if not isinstance(results[i], Tensor):
            continue
        t = <Tensor>results[i]
        if not gets_history(node, t):
            outputs[i] = without_history(node, t, contains(args, t))
        elif contains(node.dirty_tensors, t):
            joined += 1
            rebase_history(t, node)
            t.output_nr_ = 0 if t.view is not None else <int>i
        else:
            joined += 1
            if contains(not_as_is, t) and contains(args, t):
                raise RuntimeError(wording().INPUT_AS_IS)
            outputs[i] = with_history(node, t, <int>i, contains(args, t))
        if flags & IS_VOLATILE:
            (<Tensor>outputs[i]).flags |= IS_VOLATILE
    if joined > 1:
        for value in outputs:
            if isinstance(value, Tensor) and (<Tensor>value).grad_fn_ is node and (<Tensor>value).view is not None:
                (<Tensor>value).view.creation_meta = VIEW_MULTI_OUTPUT
    return outputs


cdef bint contains(tuple values, object wanted) noexcept:
    """Whether `values` contains `wanted`, by identity."""
    if values is not None:
        for value in values:
            if value is wanted:
                return True
    return False


cdef bint gets_history(PyNode node, Tensor t) except -1:
    return node.recorded and is_float_num(t.array.dtype.num) and not contains(node.non_differentiable, t)


cdef int check_marks(PyNode node, tuple args, tuple results) except -1:
    """Check the tensors that forward marked as dirty or non-differentiable, and count the changes of dirty ones."""
    cdef Tensor t
    for value in node.dirty_tensors or ():
        wording().check_dirty(value, contains(results, value), contains(args, value))
        if contains(args, value):
            bump(<Tensor>value, node.name())
    for value in node.non_differentiable or ():
        wording().check_non_differentiable(value)
    for value in node.dirty_tensors or ():
        t = <Tensor>value
        if not gets_history(node, t):
            continue
        if requires_grad(t) and (grad_fn_of(t) is None if is_changeable(t) else t.grad_fn_ is None):
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if t.view is not None and len(results) > 1:
            raise RuntimeError(wording().DIRTY_VIEW_OF_SEVERAL)
        check_inplace(t, node.name(), True)
    return 0


cdef inline bint is_changeable(Tensor t) noexcept:
    """Whether `grad_fn_of` is safe after the change: for other kinds of views it would raise."""
    return t.view is None or t.view.creation_meta == VIEW_DEFAULT


cdef Tensor without_history(PyNode node, Tensor t, bint is_input):
    """Return an output that has no gradient."""
    if requires_grad(t):        # an input, or a tensor from elsewhere, keeps its history; a view keeps that of its base
        return t.detach() if is_input or t.view is None else t
    if not is_input and t.view is not None and t.view.creation_meta == VIEW_NO_GRAD:    # made by forward
        t.view.creation_meta = VIEW_CUSTOM_FUNCTION
    if is_input and not contains(node.dirty_tensors, t):
        t = alias_view(t)
    if node.recorded and (t.origin_kind == 0 or not is_input):      # overrides what forward, which is not recorded, noted
        t.origin_code = node.code
        t.origin_lasti = node.lasti
        t.origin_kind = CUT_NON_DIFFERENTIABLE
        t.origin_name = node.name()
    return t


cdef Tensor with_history(PyNode node, Tensor t, int nr, bint is_input):
    if is_input:
        t = alias_view(t)
    elif t.grad_fn_ is node and t.view is None:     # the same tensor returned twice counts as the later output
        pass
    elif t.grad_fn_ is not None or t.flags & REQUIRES_GRAD:
        t = alias(t)
    set_history(t, node, nr)
    t.flags |= REQUIRES_GRAD
    if t.view is not None:
        t.view.creation_meta = VIEW_CUSTOM_FUNCTION
        t.view.attr_version = version_of(t)
    t.origin_kind = 0
    t.origin_code = t.origin_name = None
    return t


cdef Tensor alias_view(Tensor t):
    """Return a view of an input that is returned unchanged."""
    from cygrad._core.graph.opdef import registry  # needed only for inputs returned unchanged
    cdef ThreadState* state = thread_state()
    cdef unsigned int modes = state.modes
    state.modes |= NO_GRAD
    try:
        if type(t) is not Tensor:       # by a method, which a class may override
            return <Tensor?>t.view_as(t)
        return registry["alias"].entry(t)
    finally:
        state.modes = modes


cdef int save(PyNode node, list outputs) except -1:
    """Save the arguments of save_for_backward."""
    cdef Py_ssize_t i
    if not node.to_save:
        node.to_save = None
        return 0
    numbers = [output_of(node, value, outputs) for value in node.to_save]
    for i, value in enumerate(node.to_save):
        if value is not None and not isinstance(value, Tensor):
            raise wording().not_saved(value, i)
        if numbers[i] >= 0:
            save_output(node, i, <Tensor>value)
        else:
            save_value(node, i, value)
    node.saved_outputs = tuple(numbers)
    node.n_saved = len(numbers)
    node.to_save = None
    if thread_state().on_save != NULL:
        (<object>thread_state().on_save)(node)
    return 0


cdef Py_ssize_t output_of(PyNode node, object value, list outputs) except -2:
    """Return which output of `node` a value is, or -1."""
    cdef Py_ssize_t nr
    for nr in range(len(outputs)):
        if outputs[nr] is value and isinstance(value, Tensor) and (<Tensor>value).grad_fn_ is node:
            return nr
    return -1
