"""Nothing survives `del` and `gc.collect()`: each case runs repeatedly while nodes, tensors and memory are counted."""

import gc
import sys
import sysconfig
import tracemalloc
import weakref

import pytest

import cygrad as torch
from cygrad._core.graph.internals import live_tensors
from cygrad.autograd import Function, graph, nan_check
from cygrad.autograd.graph import live_nodes

CASES = {}
N = 1000  # elements: 4 kB


def case(function):
    CASES[function.__name__] = function
    return function


def vector():
    return torch.ones(N, requires_grad=True)


@case
def chain_that_is_never_differentiated():
    y = vector()
    for _ in range(20):
        y = y.sin() * y
    return y


@case
def running_total():
    w = vector()
    total = torch.zeros(())
    for _ in range(10):
        total = total + (w * w).sum()
    return total


@case
def circle_through_create_graph():
    x = vector()
    (x**3).sum().backward(create_graph=True)
    assert x.grad.grad_fn is not None
    (x.grad**2).sum().backward(create_graph=True)
    return x


@case
def circle_through_a_tensor_hook():
    x = vector()
    y = x * 2
    y.register_hook(lambda grad: grad * y.detach())
    x.register_hook(lambda grad: grad + x.detach())
    y.sum().backward()
    return y


@case
def circle_through_node_hooks():
    y = vector().exp()
    node = y.grad_fn
    node.register_hook(lambda grads, outs: None if node is None else grads)
    node.register_prehook(lambda outs: (outs[0] * y.detach(),))
    y.sum().backward(retain_graph=True)
    return node


@case
def circle_through_a_post_accumulate_hook():
    w = vector()
    w.register_post_accumulate_grad_hook(lambda t: None if t is w else print(t))
    (w * w).sum().backward()
    return w


@case
def circle_through_retained_gradients():
    x = vector()
    y = x * x
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)
    return y


class Keeps(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.own = ctx
        ctx.x = x
        ctx.result = x * 2
        ctx.save_for_backward(x)
        return ctx.result

    @staticmethod
    def backward(ctx, grad):
        ctx.grad = grad
        return grad * ctx.x


@case
def circle_through_ctx():
    y = Keeps.apply(vector())
    y.sum().backward()
    y.grad_fn.result_again = y
    return y


@case
def circle_through_attributes_and_metadata():
    y = vector() * 2
    y.node = y.grad_fn
    y.grad_fn.metadata["tensor"] = y
    return y


@case
def exception_in_a_hook():
    x = vector()
    y = (x * x).sin()

    def fail(grad):
        raise ZeroDivisionError(y)

    y.register_hook(fail)
    with pytest.raises(ZeroDivisionError) as caught:
        y.sum().backward()
    return caught


class Fails(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        raise ZeroDivisionError(x, ctx)


@case
def exception_in_a_custom_backward():
    with pytest.raises(ZeroDivisionError) as caught:
        Fails.apply(vector()).sum().backward()
    return caught


@case
def errors_of_the_graph():
    caught = []
    x = vector()
    y = x.exp()
    y.sum().backward()
    z = x * 1
    w = z.sin()
    z.add_(1)
    for action in (y.sum().backward, w.sum().backward, x.detach().sum().backward, lambda: x.add_(1)):
        with pytest.raises(RuntimeError) as error:
            action()
        caught.append(error)
    return caught


@case
def hooks_on_saved_tensors():
    packed = []

    def pack(t):
        packed.append(t)
        return t

    with graph.saved_tensors_hooks(pack, lambda t: t):
        y = vector().sin().exp()
    y.grad_fn.next_functions[0][0].metadata["packed"] = packed
    y.sum().backward(create_graph=True)
    return y


@case
def raw_saved_tensors():
    y = vector().sin()
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: (t, raw, y), lambda packed: packed[0])
    y.sum().backward(retain_graph=True)
    return raw


@case
def mutation_of_saved_tensors():
    with graph.allow_mutation_on_saved_tensors() as context:
        y = vector() * 1
        z = (y * y).sum()
        y.zero_()
        z.backward(retain_graph=True)
    return context, z


@case
def edges_and_hooks_on_several_gradients():
    a, b = vector(), vector()
    edge = graph.get_gradient_edge(a)
    seen = []
    graph.register_multi_grad_hook((a, b), lambda grads: seen.append((grads, a, b)))
    (a * b).sum().backward()
    return edge, seen


@case
def views_changed_in_place():
    x = vector() * 1
    views = [x[i:] for i in range(4)]
    for view in views:
        view.mul_(2)
    views[0].sum().backward()
    return views


@case
def nan_found():
    x = torch.zeros(N, requires_grad=True)
    with nan_check(), pytest.raises(RuntimeError) as caught:
        (x / x).sum()
    return caught


@case
def number_read():
    loss = (vector() * 2).sum()
    return torch.tensor(loss.item())


def counts():
    gc.collect()
    return live_nodes(), live_tensors()


@pytest.mark.parametrize("name", CASES)
def test_nothing_survives(name):
    run = CASES[name]
    run()  # fills caches
    before = counts()
    tracemalloc.start()
    try:
        run()
        gc.collect()
        memory = tracemalloc.get_traced_memory()[0]
        for _ in range(8):
            run()
        gc.collect()
        growth = tracemalloc.get_traced_memory()[0] - memory
    finally:
        tracemalloc.stop()
    assert counts() == before
    assert growth < 16 * N, f"{growth} bytes more after 8 runs"  # leaking one array per run would be 32 N


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and sys.version_info < (3, 14),
    reason="CPython 3.13 without the GIL keeps every class for ever once a thread has been started",
)
def test_a_custom_function_is_a_class_like_others():
    """An unused class is freed although it has been applied, together with the objects its functions close over."""

    def apply():
        scale = vector()

        class Scaled(Function):
            @staticmethod
            def forward(ctx, x):
                return x * scale.detach()

            @staticmethod
            def backward(ctx, grad):
                return grad * scale.detach()

        Scaled.apply(vector()).sum().backward()
        return weakref.ref(Scaled)

    before = counts()
    gone = apply()
    assert counts() == before
    assert gone() is None


def test_a_kept_error_keeps_no_graph():
    """Errors hold only text: `error.sites` contains no frames, nodes or tensors."""

    def fail():
        y = vector() * 1
        z = y.sin()
        y += 1
        z.sum().backward()

    before = counts()
    with pytest.raises(torch.errors.ChangedInPlaceError) as caught:
        fail()
    error = caught.value
    del caught
    error.__traceback__ = None
    assert counts() == before
    assert set(error.sites) == {"saved", "changed"}


def test_a_running_total_grows_until_it_is_detached():
    w = vector()
    total = kept = torch.zeros(())
    sizes = []
    for _ in range(4):
        loss = (w * w).sum()
        total = total + loss
        kept = kept + loss.detach()
        sizes.append(live_nodes())
    steps = [b - a for a, b in zip(sizes, sizes[1:], strict=False)]
    assert min(steps) > 0
    del total
    gc.collect()
    assert live_nodes() <= 3  # from the last loss
    assert kept.item() == 4 * N


def test_backward_frees_saved_values_as_it_goes():
    """When a hook near the inputs runs, the nodes before it in the pass have been freed."""
    x = vector()
    first = x.sin()
    y = first
    for _ in range(10):
        y = y.sin()
    alive = []
    first.register_hook(lambda grad: alive.append(live_tensors()))
    loss = y.sum()
    del y
    before = live_tensors()
    loss.backward()
    assert alive[0] <= before - 8
