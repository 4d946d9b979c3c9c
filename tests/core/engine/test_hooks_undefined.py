"""Hooks for undefined gradients: what they receive, and what they may return."""

import cygrad as torch
from helpers import fails, leaf


class Stop(torch.autograd.Function):
    """A function without a gradient for its first input."""

    @staticmethod
    def forward(ctx, x, y):
        return x * 1, y * 1

    @staticmethod
    def backward(ctx, grad_x, grad_y):
        return None, grad_y


def test_all_hooks_are_called_with_none():
    seen = []
    x, w = leaf(1.0), leaf(2.0)
    y = x * 2
    y.register_hook(lambda g: seen.append(("tensor", g)))
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", gs)))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post", gi, go)))
    x.register_hook(lambda g: seen.append(("leaf", g)))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", p.grad)))
    a, b = Stop.apply(y, w)
    (a + b).sum().backward()
    assert seen == [
        ("tensor", None),
        ("pre", (None,)),
        ("post", (None, None), (None,)),
        ("leaf", None),
        ("accumulated", None),
    ]
    assert x.grad is None and w.grad.tolist() == [1.0]


def test_a_hook_can_not_make_a_gradient_out_of_none():
    x = torch.arange(4.0, requires_grad=True)
    a, b = x.unbind()[:2]
    handle = b.register_hook(lambda g: torch.tensor(7.0))
    with fails(RuntimeError, "can't replace a None gradient with a non-None value"):
        a.backward(retain_graph=True)
    handle.remove()
    a.grad_fn.register_prehook(lambda gs: (gs[0], torch.tensor(5.0), None, None))
    with fails(RuntimeError, "can't replace a None gradient with a non-None value"):
        a.backward(retain_graph=True)
    y = leaf(1.0) * 3
    y.grad_fn.register_hook(lambda gi, go: (gi[0], torch.ones(1)))
    with fails(RuntimeError, "can't replace a None gradient with a non-None value"):
        y.backward()


def test_a_hook_may_take_away_every_gradient_of_a_node_of_several_outputs():
    x = torch.arange(4.0, requires_grad=True)
    a, b = x.split(2)
    a.grad_fn.register_prehook(lambda gs: (None, None))
    (a.sum() + b.sum()).backward()
    assert x.grad is None


def test_post_hooks_see_gradients_in_the_shape_and_dtype_of_the_inputs():
    seen = []
    x, b, d = leaf(1.0, 2.0), torch.tensor(3.0, requires_grad=True), leaf(1.0, 1.0, dtype=torch.float64)
    y = x * b
    y.grad_fn.register_hook(lambda gi, go: seen.append([g.tolist() for g in gi]))
    z = y * d
    z.grad_fn.register_hook(lambda gi, go: seen.append([g.dtype for g in gi]))
    z.sum().backward()
    assert seen == [[torch.float32, torch.float64], [[3.0, 3.0], 3.0]]


def test_post_hooks_see_none_where_no_gradient_is_wanted():
    seen = []
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: seen.append([None if g is None else g.tolist() for g in gi]))
    s = y.sum()
    torch.autograd.grad(s, x, retain_graph=True)
    torch.autograd.grad(s, w, retain_graph=True)
    s.backward(inputs=[y])
    assert seen == [[[3.0, 4.0], None], [None, [1.0, 2.0]], [None, None]]


def test_a_gradient_that_is_not_wanted_is_not_computed():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w  # x is saved for w's gradient alone
    with torch.no_grad():
        x.add_(1)
    assert torch.autograd.grad(y, x, retain_graph=True)[0].tolist() == [3.0]
    with fails(RuntimeError, "one of the variables needed for gradient computation has been modified..."):
        torch.autograd.grad(y, w)


def test_what_a_hook_does_to_the_grad_mode_ends_with_its_node():
    seen = []
    x = leaf(1.0)
    y = x * x
    z = y * 2
    z.register_hook(lambda g: torch.set_grad_enabled(True) and None)
    y.register_hook(lambda g: seen.append(torch.is_grad_enabled()))
    z.sum().backward()
    assert seen == [False] and torch.is_grad_enabled()
    assert not x.grad.requires_grad


def test_final_callbacks_run_in_the_mode_of_the_pass():
    engine = torch.autograd.Variable._execution_engine
    seen = []
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: engine.queue_callback(lambda: seen.append(torch.is_grad_enabled())))
    torch.autograd.grad(y, x, torch.ones(1), create_graph=True)
    with torch.no_grad():
        torch.autograd.grad(y, x, torch.ones(1), create_graph=True)
    torch.autograd.grad(y, x, torch.ones(1))
    assert seen == [True, True, False]


def test_retain_grad_keeps_a_gradient_of_its_own():
    x = leaf(1.0, 2.0)
    y = x.clone()
    y.retain_grad()
    given = torch.ones(2)
    y.backward(given)
    y.grad.mul_(5)
    assert given.tolist() == [1.0, 1.0] and x.grad.tolist() == [1.0, 1.0]


def test_a_view_does_not_retain_grad_because_its_base_does():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    view = y[0:1]
    assert not view.retains_grad
    view.retain_grad()
    (y.sum() + view.sum()).backward()
    assert view.grad.tolist() == [1.0] and y.grad.tolist() == [2.0, 1.0]


def test_what_post_accumulate_hooks_may_return():
    x = leaf(1.0)
    handle = x.register_post_accumulate_grad_hook(lambda p: p)
    (x * 2).sum().backward()
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda p: 5)
    with fails(TypeError, "expected Variable, but hook returned 'int'"):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [4.0]


def test_a_hook_without_a_name_is_unknown():
    class Hook:
        def __call__(self, grad):
            return torch.ones(5)

    x = leaf(1.0)
    x.register_hook(Hook())
    with fails(RuntimeError, "hook '<unknown>' has changed the size of value"):
        x.backward()
