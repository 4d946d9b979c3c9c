# cython: binding=True
"""Methods of Tensor that register hooks and request, retain or cut gradients; importing this module binds them."""

from weakref import ref

from cygrad._core.graph.accumulate_grad cimport AccumulateGrad, keep_leaf
from cygrad._core.types.dtypes cimport dtype_of_num, is_float_num
from cygrad._core.graph.inplace cimport set_grad, set_history, set_tangents
from cygrad._core.graph.node cimport POST_ACCUMULATE, RETAINS, TENSOR_PRE, Node, hooks_of
from cygrad._core.runtime.thread_state cimport FORWARD, thread_state
from cygrad._core.graph.tensor cimport (
    CUT_DETACH, GRAD_DTYPE_ANY, GRAD_DTYPE_SHIFT, IS_VOLATILE, REQUIRES_GRAD, RETAINS_GRAD, Tensor, accumulator_of,
    bind_methods, cut, dtype_of, grad_fn_of, num_of_grad, requires_grad, set_leaf_requires_grad)
from cygrad._core.errors import messages
from cygrad._core.graph.opdef import shown
from cygrad._core.types.hook_handles import HookDict, RemovableHandle


@shown
def register_hook(Tensor self not None, hook):
    """Call `hook(grad)` when the gradient of this tensor is computed; it may return a replacement.

    Returns a handle with `remove()`. Raises RuntimeError if the tensor does not require grad.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """
    cdef Node node
    if not requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = grad_fn_of(self)
    if node is None:
        node = accumulator_of(self)
    return RemovableHandle.add(hooks_of(node, TENSOR_PRE).setdefault(self.output_nr_, HookDict()), hook)


@shown
def register_post_accumulate_grad_hook(Tensor self not None, hook):
    """Call `hook(self)` each time a gradient has been accumulated into this leaf's `grad`.

    Returns a handle with `remove()`. Raises RuntimeError for a tensor that is not a leaf or does not require grad.

    >>> import cygrad
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
    >>> (2 * x).backward()
    tensor(2.)
    """
    if not requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if grad_fn_of(self) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return RemovableHandle.add(hooks_of(accumulator_of(self), POST_ACCUMULATE), hook)


def _backward_hooks(Tensor self not None):
    node = grad_fn_of(self) or self.accumulator
    if node is None or node.hooks is None or node.hooks.tensor_pre is None:
        return None
    return node.hooks.tensor_pre.get(self.output_nr_)


def _set_backward_hooks(Tensor self not None, hooks):
    """Have this dictionary of hooks, or none of them, in place of those that were registered."""
    if hooks is not None and not isinstance(hooks, dict):
        raise TypeError(f"_backward_hooks must be a dict or None, not {messages.type_name(hooks)}")
    if not requires_grad(self):
        if hooks:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return
    by_output = hooks_of(grad_fn_of(self) or accumulator_of(self), TENSOR_PRE)
    if hooks is None:
        by_output.pop(self.output_nr_, None)
    else:
        by_output[self.output_nr_] = HookDict(hooks) if type(hooks) is dict else hooks


def _delete_backward_hooks(Tensor self not None):
    raise RuntimeError("Deletion of _backwards_hooks not allowed!")


def _grad_fn(Tensor self not None):
    return self.grad_fn


def _delete_grad_fn(Tensor self not None):
    raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")


def _post_accumulate_grad_hooks(Tensor self not None):
    if self.accumulator is None or self.accumulator.hooks is None:
        return None
    return self.accumulator.hooks.post_accumulate


def retains_grad(Tensor self not None):
    """Whether this non-leaf retains its `grad`."""
    return bool(self.flags & RETAINS_GRAD)


@shown
def retain_grad(Tensor self not None):
    """Store the gradient of this non-leaf in its `grad` during `backward`; a leaf does that anyway.

    Raises RuntimeError if the tensor does not require grad.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> h = x * 3
    >>> h.retain_grad()
    >>> (h * h).sum().backward()
    >>> h.grad
    tensor([ 6., 12.])
    """
    if not requires_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if grad_fn_of(self) is None or self.flags & RETAINS_GRAD:
        return
    self.flags |= RETAINS_GRAD
    note_retains_grad(self, self.grad_fn_)


cdef int note_retains_grad(Tensor t, Node node) except -1:
    hooks_of(node, RETAINS)[t.output_nr_] = ref(t)
    return 0


# -- requesting or cutting gradients -------------------------------------------------------------------------------------

cdef object transform_check = None  # raises inside function transforms; None until one has been used


def check_before_requires_grad(check):
    """Set a function to call before each `requires_grad_`; it raises inside a transformed function."""
    global transform_check
    transform_check = check


@shown
def requires_grad_(Tensor self not None, requires_grad=True):
    """Set `requires_grad` of this leaf, and return the leaf.

    Raises RuntimeError for a non-leaf and for dtypes without gradients.

    >>> import cygrad
    >>> cygrad.ones(2).requires_grad_()
    tensor([1., 1.], requires_grad=True)
    """
    if type(requires_grad) is not bool:
        raise messages.wrong_type("requires_grad_", "requires_grad", 1, "bool", requires_grad)
    if transform_check is not None:
        transform_check()
    if requires_grad and not is_float_num(self.array.dtype.num):
        raise RuntimeError(messages.only_float_requires_grad(dtype_of(self)).replace(" and complex", "", 1))
    set_leaf_requires_grad(self, requires_grad)
    return self


@shown
def detach_(Tensor self not None):
    """Cut this tensor from its history, in place. Raises RuntimeError for views.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True) * 2
    >>> x.detach_().requires_grad
    False
    """
    if self.view is not None:
        raise RuntimeError(messages.DETACH_VIEW_INPLACE)
    cut(self, self, CUT_DETACH, "detach_")
    if thread_state().modes & FORWARD:
        from cygrad._core.transforms.forward_mode import flush  # needed only for forward mode or vmap
        flush()
    hooks = self._backward_hooks
    set_history(self, None, 0)
    set_tangents(self, None)
    self.flags &= ~REQUIRES_GRAD
    if hooks is not None:           # the hooks stay with the tensor
        accumulator_of(self).ensure_hooks().tensor_pre = {0: hooks}
    return self


def _accumulate_grad(Tensor self not None):
    """The node that an edge to this leaf represents (Note [Leaf edges] in node.pyx)."""
    node = accumulator_of(self)
    keep_leaf(<AccumulateGrad>node)
    return node


def _get_grad(Tensor self not None):
    """`grad`, without the warning for non-leaves."""
    grad = self.grad_           # read once
    return grad


def _set_grad(Tensor self not None, value):
    self.grad = value


def _delete_grad(Tensor self not None):
    set_grad(self, None)


def grad_dtype(Tensor self not None):
    """The dtype to which the gradients of this leaf are cast: its own unless set to another, None to keep theirs."""
    if grad_fn_of(self) is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    cdef int num = num_of_grad(self)
    return None if num < 0 else dtype_of_num(num)


def set_grad_dtype(Tensor self not None, value):
    messages.check_grad_dtype(self, value)
    cdef unsigned int chosen = 0
    if value is None:
        chosen = GRAD_DTYPE_ANY
    elif value is not dtype_of(self):
        chosen = value.numpy.num + 1
    self.flags = (self.flags & ((1 << GRAD_DTYPE_SHIFT) - 1)) | (chosen << GRAD_DTYPE_SHIFT)


def volatile(Tensor self not None):
    """Deprecated: whether this came from `Variable(..., volatile=True)`. Settable on leaves."""
    return bool(self.flags & IS_VOLATILE)


def set_volatile(Tensor self not None, value):
    if type(value) is not bool:
        raise RuntimeError("volatile must be a bool")
    if grad_fn_of(self) is not None:
        raise RuntimeError("volatile can only be set on leaf variables")
    if value:
        messages.warn_volatile()
        self.flags = (self.flags & ~REQUIRES_GRAD) | IS_VOLATILE
    else:
        self.flags &= ~IS_VOLATILE


bind_methods({
    "requires_grad_": requires_grad_,
    "detach_": detach_,
    "_accumulate_grad": property(_accumulate_grad),
    "_grad": property(_get_grad, _set_grad, _delete_grad),
    "grad_dtype": property(grad_dtype, set_grad_dtype),
    "volatile": property(volatile, set_volatile),
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "retain_grad": retain_grad,
    "_backward_hooks": property(_backward_hooks, _set_backward_hooks, _delete_backward_hooks),
    "_grad_fn": property(_grad_fn, None, _delete_grad_fn),
    "_post_accumulate_grad_hooks": property(_post_accumulate_grad_hooks),
    "retains_grad": property(retains_grad),
})
