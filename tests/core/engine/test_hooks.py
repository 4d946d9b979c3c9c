"""Tensor hooks, node hooks, post-accumulate hooks: order, effect, and bad return values."""

import collections
import gc
import weakref

import pytest

import cygrad as torch
from helpers import fails, leaf

# ------------------------------------------------------------------ tensor hooks


def test_hook_sees_the_gradient_of_a_non_leaf():
    seen = []
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(seen.append)
    (y * y).sum().backward()
    assert [g.tolist() for g in seen] == [[4.0, 8.0]]
    assert x.grad.tolist() == [8.0, 16.0]


def test_hook_sees_the_sum_over_all_uses():
    seen = []
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 3 + y * 4).backward()
    assert seen == [[7.0]]


def test_hook_returning_a_tensor_replaces_the_gradient():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert x.grad.tolist() == [20.0]


def test_hook_returning_none_changes_nothing():
    x = leaf(1.0)
    x.register_hook(lambda g: None)
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_hooks_of_one_tensor_run_in_order_of_registration_and_feed_each_other():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert x.grad.tolist() == [40.0]


def test_leaf_hook_runs_before_accumulation():
    x = leaf(1.0)
    before = []
    x.register_hook(lambda g: before.append(x.grad))
    (x * 2).backward()
    assert before == [None]
    assert x.grad.tolist() == [2.0]


def test_one_function_registered_twice_runs_twice():
    x = leaf(1.0)

    def double(grad):
        return grad * 2

    x.register_hook(double)
    x.register_hook(double)
    (x * 1).backward()
    assert x.grad.tolist() == [4.0]


def test_removed_hook_no_longer_runs():
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_removing_a_hook_twice_is_fine():
    x = leaf(1.0)
    kept = []
    handle = x.register_hook(lambda g: g * 100)
    x.register_hook(lambda g: kept.append(g))
    handle.remove()
    handle.remove()
    (x * 2).backward()
    assert len(kept) == 1


def test_handle_as_context_manager_removes_the_hook():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 2):
        (x * 2).backward()
    assert x.grad.tolist() == [4.0]
    (x * 2).backward()
    assert x.grad.tolist() == [6.0]


def test_hook_that_removes_itself_runs_once():
    x = leaf(1.0)
    runs = []

    def once(grad):
        runs.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda g: runs.append("other"))
    (x * 2).backward()
    (x * 2).backward()
    assert runs == ["once", "other", "other"]


def test_hook_registered_by_a_hook_runs_from_the_next_backward_on():
    x = leaf(1.0)
    runs = []

    def outer(grad):
        runs.append("outer")
        if len(runs) == 1:
            x.register_hook(lambda g: runs.append("inner"))

    x.register_hook(outer)
    (x * 2).backward()
    assert runs == ["outer"]
    (x * 2).backward()
    assert runs == ["outer", "outer", "inner"]


def test_hook_keeps_living_when_handle_is_dropped():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    gc.collect()
    (x * 2).backward()
    assert seen == [2.0]


def test_handle_does_not_keep_the_tensor_alive():
    x = leaf(1.0)
    gone = weakref.ref(x)
    handle = x.register_hook(lambda g: None)
    del x
    gc.collect()
    assert gone() is None
    handle.remove()


def test_hook_needs_a_tensor_that_requires_grad():
    text = "cannot register a hook on a tensor that doesn't require gradient"
    with fails(RuntimeError, text):
        torch.ones(1).register_hook(print)
    with fails(RuntimeError, text):
        (leaf(1.0) * 2).detach().register_hook(print)
    with fails(RuntimeError, text):
        torch.ones(1).register_post_accumulate_grad_hook(print)


def test_hook_returning_something_else_is_a_type_error():
    x = leaf(1.0)
    x.register_hook(lambda g: 5)
    with fails(TypeError, "expected Variable, but hook returned 'int'"):
        (x * 2).backward()
    assert x.grad is None


def hook_of_wrong_shape(grad):
    return torch.ones(7)


def hook_of_wrong_dtype(grad):
    return grad.double()


@pytest.mark.parametrize(
    ("hook", "line"),
    [
        (hook_of_wrong_shape, "hook 'hook_of_wrong_shape' has changed the size of value"),
        (
            hook_of_wrong_dtype,
            "hook 'hook_of_wrong_dtype' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)",
        ),
    ],
)
@pytest.mark.parametrize("on_leaf", [True, False])
def test_hook_may_not_change_shape_or_dtype(hook, line, on_leaf):
    x = leaf(1.0, 2.0)
    y = x * 2
    (x if on_leaf else y).register_hook(hook)
    with fails(RuntimeError, line):
        y.sum().backward()
    assert x.grad is None


def test_exception_in_a_hook_comes_out_as_it_is_and_leaves_all_usable():
    x = leaf(1.0)
    y = x * 2

    def broken(grad):
        raise ZeroDivisionError("mine")

    handle = y.register_hook(broken)
    with pytest.raises(ZeroDivisionError, match="mine"):
        y.backward(retain_graph=True)
    assert x.grad is None
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_hooks_run_without_grad_mode_unless_the_graph_is_created():
    modes = []
    x = leaf(3.0)
    x.register_hook(lambda g: modes.append((torch.is_grad_enabled(), g.requires_grad)))
    torch.autograd.grad((x * x).sum(), x)
    torch.autograd.grad((x * x).sum(), x, create_graph=True)
    assert modes == [(False, False), (True, True)]


def test_hook_on_an_output_that_was_not_used_is_given_none():
    seen = []
    first, second = (leaf(1.0, 2.0, 3.0) * 1).split([1, 2])
    first.register_hook(lambda g: seen.append(("first", g.tolist())))
    second.register_hook(lambda g: seen.append(("second", g)))
    first.sum().backward()
    assert seen == [("first", [1.0]), ("second", None)]


def test_hooks_of_several_outputs_of_one_node_stay_apart():
    x = leaf(1.0, 2.0, 3.0)
    first, second = (x * 1).split([1, 2])
    first.register_hook(lambda g: g * 10)
    second.register_hook(lambda g: g * 100)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [10.0, 100.0, 100.0]


def test_hook_can_run_on_a_tensor_dropped_by_the_user():
    x = leaf(1.0)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.item()))
    z = y * 3
    del y
    gc.collect()
    z.backward()
    assert seen == [3.0]


# ------------------------------------------------------------------ hooks and in-place


def test_hook_stays_with_the_value_it_was_registered_on():
    seen = []
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    y.sum().backward()
    assert seen == [("after", 1.0), ("before", 3.0)]


def test_retain_grad_moves_on_with_the_tensor():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0]
    assert x.grad.tolist() == [6.0]


def test_hook_on_a_leaf_stays_after_in_place_under_no_grad():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    with torch.no_grad():
        x.add_(1)
    (x * 1).backward()
    assert x.grad.tolist() == [10.0]


# ------------------------------------------------------------------ retain_grad order


def test_retain_grad_sees_what_all_tensor_hooks_made():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.register_hook(lambda g: g * 100)
    y.backward()
    assert y.grad.tolist() == [1000.0]
    assert x.grad.tolist() == [2000.0]


def test_retained_grad_is_not_changed_by_node_prehooks():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.backward()
    assert x.grad.tolist() == [20.0]
    assert y.grad.tolist() == [1.0]


# ------------------------------------------------------------------ node hooks


def test_all_kinds_of_hooks_fire_in_pytorch_order():
    order = []
    x = leaf(1.0)
    y = x * 2
    accumulate = y.grad_fn.next_functions[0][0]
    y.grad_fn.register_hook(lambda gi, go: order.append("node post"))
    y.grad_fn.register_prehook(lambda go: order.append("node pre"))
    y.register_hook(lambda g: order.append("tensor"))
    accumulate.register_hook(lambda gi, go: order.append("accumulate post"))
    accumulate.register_prehook(lambda go: order.append("accumulate pre"))
    x.register_post_accumulate_grad_hook(lambda t: order.append("post accumulate"))
    x.register_hook(lambda g: order.append("leaf"))
    y.backward()
    assert order == [
        "tensor",
        "node pre",
        "node post",
        "leaf",
        "accumulate pre",
        "post accumulate",
        "accumulate post",
    ]


def test_post_hook_is_given_inputs_and_outputs_gradients():
    seen = []
    x, w = leaf(2.0), leaf(5.0)
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: seen.append((gi, go)))
    y.backward()
    ((grad_inputs, grad_outputs),) = seen
    assert [g.tolist() for g in grad_inputs] == [[5.0], [2.0]]
    assert [g.tolist() for g in grad_outputs] == [[1.0]]


def test_post_hook_is_given_none_for_an_input_without_gradient():
    seen = []
    y = leaf(2.0) * torch.ones(1)
    y.grad_fn.register_hook(lambda gi, go: seen.append(gi[1]))
    y.backward()
    assert seen == [None]


def test_post_hook_replaces_the_gradients_of_the_inputs():
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.backward()
    assert x.grad.tolist() == [20.0]


def test_prehook_replaces_the_gradients_of_the_outputs():
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    y.backward()
    assert x.grad.tolist() == [20.0]


def test_node_hook_removed_by_its_handle():
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None)).remove()
    y.grad_fn.register_prehook(lambda go: (go[0] * 10,)).remove()
    y.backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("value", [5, "text"])
def test_node_hooks_must_return_a_tuple(value):
    y = leaf(1.0) * 2
    y.grad_fn.register_hook(lambda gi, go: value)
    with fails(TypeError, f"expected tuple, but hook returned '{type(value).__name__}'"):
        y.backward()
    y = leaf(1.0) * 2
    y.grad_fn.register_prehook(lambda go: value)
    with fails(TypeError, f"expected tuple, but hook returned '{type(value).__name__}'"):
        y.backward()


def one_too_many(*args):
    return (torch.ones(1), torch.ones(1), torch.ones(1))


def test_node_hooks_must_return_as_many_as_they_were_given():
    y = leaf(1.0) * 2
    y.grad_fn.register_hook(one_too_many)
    with fails(
        RuntimeError,
        "hook 'one_too_many' has returned an incorrect number of values (got 3, but expected 2)",
    ):
        y.backward()
    y = leaf(1.0) * 2
    y.grad_fn.register_prehook(one_too_many)
    with fails(
        RuntimeError,
        "hook 'one_too_many' has returned an incorrect number of values (got 3, but expected 1)",
    ):
        y.backward()


def test_node_post_hook_of_wrong_shape():
    y = leaf(1.0) * 2
    y.grad_fn.register_hook(lambda gi, go: (torch.ones(7), None))
    with fails(RuntimeError, "hook '<lambda>' has changed the size of value"):
        y.backward()


# ------------------------------------------------------------------ post-accumulate hooks


def test_post_accumulate_hook_is_given_the_tensor_with_its_grad():
    seen = []
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    (x * 2).backward()
    (x * 2).backward()
    assert seen == [(True, [2.0]), (True, [4.0])]


def test_post_accumulate_hook_may_drop_the_gradient_and_step():
    x = leaf(1.0)

    def step(param):
        with torch.no_grad():
            param.sub_(param.grad * 0.5)
        param.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).backward()
    assert x.grad is None
    assert x.tolist() == [0.0]


def test_post_accumulate_hooks_run_in_order_and_can_be_removed():
    order = []
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: order.append(1))
    handle = x.register_post_accumulate_grad_hook(lambda t: order.append(2))
    (x * 2).backward()
    handle.remove()
    (x * 2).backward()
    assert order == [1, 2, 1]


def test_post_accumulate_hook_is_for_leaves():
    with fails(RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)


def test_post_accumulate_hook_must_return_none():
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: 5)
    with pytest.raises((TypeError, RuntimeError)):
        (x * 2).backward()


# ------------------------------------------------------------------ hooks and grad(inputs=...)


def test_captured_gradient_is_taken_after_tensor_hooks():
    y = leaf(1.0) * 2
    y.register_hook(lambda g: g * 10)
    (captured,) = torch.autograd.grad(y.sum(), y)
    assert captured.tolist() == [10.0]


def test_captured_gradient_is_taken_before_tensor_hooks_where_the_node_runs_as_well():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    over_y, over_x = torch.autograd.grad(y.sum(), [y, x])
    assert over_y.tolist() == [1.0]
    assert over_x.tolist() == [20.0]


def test_captured_gradient_of_a_leaf_is_taken_after_its_hooks():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    (captured,) = torch.autograd.grad((x * 2).sum(), x)
    assert captured.tolist() == [20.0]
    assert x.grad is None


def test_node_hooks_of_a_captured_node_that_does_not_run_stay_silent():
    silent = []
    y = leaf(1.0) * 2
    y.grad_fn.register_prehook(lambda go: silent.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: silent.append("post"))
    torch.autograd.grad(y.sum(), y)
    assert silent == []


def test_post_accumulate_hook_is_silent_for_grad_and_runs_for_backward_inputs():
    runs = []
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: runs.append(t.grad.item()))
    torch.autograd.grad((x * 2).sum(), x)
    assert runs == []
    (x * 2).sum().backward(inputs=[x])
    assert runs == [2.0]


def test_retain_grad_works_on_the_way_to_captured_inputs():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    torch.autograd.grad(y.sum(), x)
    assert y.grad.tolist() == [1.0]


def test_hooks_on_a_branch_that_grad_does_not_need_stay_silent():
    runs = []
    x, w = leaf(1.0), leaf(2.0)
    side = w * 3
    side.register_hook(lambda g: runs.append("side"))
    w.register_hook(lambda g: runs.append("w"))
    torch.autograd.grad((x * side).sum(), x)
    assert runs == []


def test_a_dictionary_takes_the_place_of_a_tensors_hooks():
    x = leaf(1.0)
    x.register_hook(lambda grad: grad * 7)
    hooks = collections.OrderedDict({0: lambda grad: grad * 2})
    x._backward_hooks = hooks
    x.sum().backward()
    assert x.grad.item() == 2 and x._backward_hooks is hooks
    hooks[1] = lambda grad: grad * 5  # the dictionary remains the program's
    x.sum().backward()
    assert x.grad.item() == 12
    y = x * 1
    y._backward_hooks = {0: lambda grad: grad * 3}
    y._backward_hooks = None
    y.backward()
    assert y._backward_hooks is None and x.grad.item() == 22
    torch.ones(1)._backward_hooks = {}
    with fails(RuntimeError, "cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1)._backward_hooks = hooks
    with fails(TypeError, "_backward_hooks must be a dict or None, not int"):
        x._backward_hooks = 1


def test_history_and_hooks_cannot_be_deleted():
    x = leaf(1.0)
    y = x * 2
    assert y._grad_fn is y.grad_fn and x._grad_fn is None
    with fails(RuntimeError, "Deletion of _grad_fn not allowed. Detach tensor instead!"):
        del y._grad_fn
    with fails(RuntimeError, "Deletion of _backwards_hooks not allowed!"):
        del y._backward_hooks
