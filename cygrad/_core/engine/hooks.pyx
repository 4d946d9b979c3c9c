"""Calls hooks during a backward pass.

Note [Order of hooks]
---------------------
For each node, as in PyTorch: first the hooks of its output tensors, in the order of registration; then `retain_grad`,
regardless of when it was called; then the node's pre-hooks; the node itself; its post-hooks. On a leaf, the
post-accumulate hooks come last.
"""

from cygrad._core.graph.inplace cimport set_grad
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.opdef cimport lookup
from cygrad._core.runtime.thread_state cimport NO_GRAD, thread_state
from cygrad._core.graph.tensor cimport CUT_BACKWARD, Tensor, cut

from cygrad._core.types.hook_handles import check_hook_result, check_hook_results


cdef object run_tensor_pre_hooks(Node node, object grad):
    """Run the tensors' hooks, then retain_grad. `grad` is a gradient, or a tuple of them for several outputs."""
    cdef list grads
    if node.hooks.tensor_pre is None and node.hooks.retains is None:
        return grad
    if node.n_outputs == 1:
        return hooked(node, 0, grad)
    grads = list(grad) if grad is not None else [None] * node.n_outputs
    for nr in range(node.n_outputs):
        if grads[nr] is not None or not node.stands_for_several():
            grads[nr] = hooked(node, nr, grads[nr])
    return none_if_empty(tuple(grads))


cdef object none_if_empty(tuple grads):
    """Return the gradients of a node with several outputs, or None if all of them are None."""
    for grad in grads:
        if grad is not None:
            return grads
    return None


cdef object hooked(Node node, int nr, object grad):
    cdef Tensor t, present, total
    hooks = node.hooks.tensor_pre.get(nr) if node.hooks.tensor_pre is not None else None
    if hooks:
        for hook in tuple(hooks.values()):
            result = hook(grad)
            if result is not None:
                check_hook_result(hook, result, grad)
                grad = result
    if node.hooks.retains is not None and grad is not None:
        reference = node.hooks.retains.get(nr)
        t = reference() if reference is not None else None
        if t is not None:
            present = t.grad_
            total = <Tensor?>(lookup("clone").entry(grad) if present is None else present + grad)
            if thread_state().modes & NO_GRAD:
                cut(total, t, CUT_BACKWARD, "backward")
            set_grad(t, total)
    return grad


cdef object run_pre_hooks(Node node, object grad):
    if not node.hooks.pre:
        return grad
    single = node.n_outputs == 1
    grads = (grad,) if single else (None,) * node.n_outputs if grad is None else grad
    for hook in tuple(node.hooks.pre.values()):
        result = hook(grads)
        if result is not None:
            grads = check_hook_results(hook, result, grads)
    return grads[0] if single else none_if_empty(grads)


cdef tuple run_post_hooks(Node node, tuple grads, object grad):
    """Run the node's post-hooks; `grads` contains one gradient or None for each input."""
    grad_outputs = (grad,) if node.n_outputs == 1 else (None,) * node.n_outputs if grad is None else grad
    for hook in tuple(node.hooks.post.values()):
        result = hook(grads, grad_outputs)
        if result is not None:
            grads = check_hook_results(hook, result, grads)
    return grads
