"""The methods of Tensor that register hooks and keep gradients; bound when this module is imported."""

from weakref import ref

from cygrad._core.node cimport Node
from cygrad._core.tensor cimport RETAINS_GRAD, Tensor, accumulator_of, bind_methods, grad_fn_of, requires_grad
from cygrad._core.hooks import HookDict, RemovableHandle


def register_hook(Tensor self not None, hook):
    """Call `hook(grad)` when the gradient of this tensor is known; it may return another one.

    Returns a handle with `remove()`. Raises RuntimeError if the tensor does not require grad.
    """
    cdef Node node
    if not requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = grad_fn_of(self)
    if node is None:
        node = accumulator_of(self)
    hooks = node.ensure_hooks()
    if hooks.tensor_pre is None:
        hooks.tensor_pre = {}
    table = hooks.tensor_pre.get(self.output_nr_)
    if table is None:
        table = hooks.tensor_pre[self.output_nr_] = HookDict()
    return RemovableHandle.add(table, hook)


def register_post_accumulate_grad_hook(Tensor self not None, hook):
    """Call `hook(self)` each time after a gradient has been added to this leaf's `grad`."""
    if not requires_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if grad_fn_of(self) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks = accumulator_of(self).ensure_hooks()
    if hooks.post_accumulate is None:
        hooks.post_accumulate = HookDict()
    return RemovableHandle.add(hooks.post_accumulate, hook)


def _backward_hooks(Tensor self not None):
    node = grad_fn_of(self) or self.accumulator
    if node is None or node.hooks is None or node.hooks.tensor_pre is None:
        return None
    return node.hooks.tensor_pre.get(self.output_nr_)


def _post_accumulate_grad_hooks(Tensor self not None):
    if self.accumulator is None or self.accumulator.hooks is None:
        return None
    return self.accumulator.hooks.post_accumulate


def retains_grad(Tensor self not None):
    """Whether this non-leaf keeps its `grad`."""
    return bool(self.flags & RETAINS_GRAD)


def retain_grad(Tensor self not None):
    """Keep the gradient of this non-leaf in its `grad`. Raises RuntimeError without requires_grad."""
    if not requires_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if grad_fn_of(self) is None or self.flags & RETAINS_GRAD:
        return
    self.flags |= RETAINS_GRAD
    note_retains_grad(self, self.grad_fn_)


cdef int note_retains_grad(Tensor t, Node node) except -1:
    hooks = node.ensure_hooks()
    if hooks.retains is None:
        hooks.retains = {}
    hooks.retains[t.output_nr_] = ref(t)
    return 0


bind_methods({
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "retain_grad": retain_grad,
    "_backward_hooks": property(_backward_hooks),
    "_post_accumulate_grad_hooks": property(_post_accumulate_grad_hooks),
    "retains_grad": property(retains_grad),
})
