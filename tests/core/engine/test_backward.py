"""Running backward: retained and created graphs, selected inputs, validation, callbacks, failures."""

import warnings

import pytest

import cygrad as torch
from helpers import fails, leaf, scalar

backward = torch.autograd.backward
grad = torch.autograd.grad

TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)
NO_GRAD = "element {} of tensors does not require grad and does not have a grad_fn"
SCALARS_ONLY = "grad can be implicitly created only for scalar outputs"
UNUSED = (
    "The differentiated Tensor at index {} appears to not have been used in the graph. Set "
    "allow_unused=True if this is the desired behavior."
)


# ------------------------------------------------------------------ gradients of various graphs


def test_diamond_sums_both_ways():
    x = leaf(3.0)
    y = x * 2
    (y * y + y * 5).backward()
    assert x.grad.tolist() == [2 * 6 * 2 + 10]


def test_each_node_runs_once_however_many_ways_lead_there():
    runs = []
    x = leaf(1.0)
    y = x * 1
    y.grad_fn.register_hook(lambda gi, go: runs.append(1))
    z = y
    for _ in range(20):
        z = z + z
    z.backward()
    assert len(runs) == 1
    assert x.grad.tolist() == [2.0**20]


def test_wide_fan_in():
    parts = [leaf(float(i)) for i in range(200)]
    sum((part * i for i, part in enumerate(parts)), torch.zeros(1)).backward()
    assert [part.grad.item() for part in parts] == [float(i) for i in range(200)]


def test_latest_recorded_node_runs_first():
    order = []
    x = leaf(1.0)
    early = x * 1
    late = x * 2
    early.grad_fn.register_hook(lambda gi, go: order.append("early"))
    late.grad_fn.register_hook(lambda gi, go: order.append("late"))
    (early + late).backward()
    assert order == ["late", "early"]


def test_several_roots_are_one_run():
    x = leaf(1.0, 2.0)
    y = x * x
    backward([y.sum(), (y * 2).sum(), y], [None, torch.tensor(2.0), torch.ones(2)])
    assert x.grad.tolist() == [2 * 6.0, 4 * 6.0]


def test_the_same_root_twice_counts_twice():
    x = leaf(1.0)
    y = x * 3
    backward([y, y])
    assert x.grad.tolist() == [6.0]


def test_no_roots_is_no_error_for_backward():
    backward([])


def test_backward_on_a_leaf_gives_the_gradient_itself():
    x = leaf(1.0, 2.0)
    x.backward(torch.tensor([5.0, 6.0]))
    assert x.grad.tolist() == [5.0, 6.0]


def test_gradient_of_a_one_element_tensor_of_any_dim_is_implicit():
    for shape in [(), (1,), (1, 1, 1)]:
        x = torch.ones(shape, requires_grad=True)
        (x * 4).backward()
        assert x.grad.shape == shape
        assert x.grad.item() == 4.0


def test_gradient_argument_weighs_the_outputs():
    x = leaf(1.0, 2.0)
    (x * x).backward(torch.tensor([10.0, 100.0]))
    assert x.grad.tolist() == [20.0, 400.0]


def test_gradient_of_another_dtype_is_converted():
    x = leaf(1.0, 2.0)
    (x * 2).backward(torch.ones(2, dtype=torch.float64))
    assert x.grad.dtype == torch.float32
    y = leaf(1.0, 2.0)
    (y * 2).backward(torch.tensor([1, 2]))
    assert y.grad.tolist() == [2.0, 4.0]
    assert y.grad.dtype == torch.float32


def test_backward_returns_none():
    assert leaf(1.0).sum().backward() is None
    assert backward(leaf(1.0).sum()) is None


# ------------------------------------------------------------------ freeing and retaining


def test_second_backward_is_refused():
    x = leaf(1.0)
    y = (x * x).sum()
    y.backward()
    with fails(RuntimeError, TWICE):
        y.backward()
    assert x.grad.tolist() == [2.0]


def test_second_grad_is_refused():
    x = leaf(1.0)
    y = x.exp().sum()
    grad(y, x)
    with fails(RuntimeError, TWICE):
        grad(y, x)


def test_freed_part_shared_with_another_graph_is_refused():
    x = leaf(1.0)
    shared = x.exp()
    one, two = shared.sum(), (shared * shared).sum()
    one.backward()
    with fails(RuntimeError, TWICE):
        two.backward()


def test_saved_tensor_cannot_be_read_after_it_was_freed():
    y = leaf(1.0).exp()
    y.backward()
    with fails(RuntimeError, TWICE):
        y.grad_fn._saved_result  # noqa: B018


def test_graph_that_saved_nothing_may_run_twice():
    x = leaf(1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_retain_graph_allows_many_runs_and_the_last_frees():
    x = leaf(3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [18.0]
    with fails(RuntimeError, TWICE):
        y.backward()


def test_create_graph_retains_by_default():
    x = leaf(3.0)
    y = x * x
    grad(y, x, create_graph=True)
    grad(y, x)


def test_create_graph_without_retain_frees():
    x = leaf(3.0)
    y = x * x
    grad(y, x, create_graph=True, retain_graph=False)
    with fails(RuntimeError, TWICE):
        grad(y, x)


def test_a_failed_run_does_not_free_what_it_did_not_reach():
    x = leaf(2.0)
    y = x * x
    z = y * 1

    def broken(gradient):
        raise KeyError

    handle = z.register_hook(broken)
    with pytest.raises(KeyError):
        z.backward()
    handle.remove()
    grad(y, x)


def test_branches_not_needed_are_not_freed():
    x, w = leaf(2.0), leaf(3.0)
    side = w * w
    y = x * side
    grad(y, x)
    side.backward()
    assert w.grad.tolist() == [6.0]


# ------------------------------------------------------------------ grad(): inputs and outputs


def test_grad_does_not_touch_any_grad_field():
    x, w = leaf(1.0), leaf(2.0)
    assert [g.tolist() for g in grad(x * w, [x, w])] == [[2.0], [1.0]]
    assert x.grad is None and w.grad is None


def test_grad_returns_a_tuple_in_order_of_inputs():
    x, w = leaf(1.0), leaf(2.0)
    result = grad(x * w, (w, x))
    assert type(result) is tuple
    assert [g.item() for g in result] == [1.0, 2.0]


def test_grad_of_a_single_tensor_still_returns_a_tuple():
    x = leaf(1.0)
    assert len(grad(x * 2, x)) == 1


def test_grad_for_an_intermediate_tensor():
    x = leaf(2.0)
    y = x * 3
    assert grad(y * y, y)[0].tolist() == [12.0]


def test_grad_for_a_tensor_and_its_own_ancestor():
    x = leaf(2.0)
    y = x * 3
    over_y, over_x = grad(y * y, [y, x])
    assert over_y.tolist() == [12.0]
    assert over_x.tolist() == [36.0]


def test_grad_of_an_output_for_itself():
    x = leaf(2.0)
    y = x.sum()
    assert [g.tolist() for g in grad(y, [y, x])] == [1.0, [1.0]]


def test_same_input_twice_gives_its_gradient_twice():
    x = leaf(2.0)
    assert [g.tolist() for g in grad(x * 3, [x, x])] == [[3.0], [3.0]]


def test_grad_for_one_output_of_several():
    first, second = (leaf(1.0, 2.0, 3.0) * 1).split([1, 2])
    got = grad((second * 2).sum(), [first, second], allow_unused=True)
    assert got[0] is None
    assert got[1].tolist() == [2.0, 2.0]


def test_unused_input_is_an_error():
    x, w = leaf(1.0), leaf(2.0)
    with fails(RuntimeError, UNUSED.format(1)):
        grad(x * 2, [x, w])


def test_unused_input_allowed_gives_none():
    x, w = leaf(1.0), leaf(2.0)
    used, unused = grad(x * 2, [x, w], allow_unused=True)
    assert used.tolist() == [2.0]
    assert unused is None


def test_unused_input_materialized_gives_zeros():
    x, w = leaf(1.0), torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    _, unused = grad(x * 2, [x, w], materialize_grads=True)
    assert unused.tolist() == [[0.0] * 3] * 2
    assert unused.dtype == torch.float64


def test_materialize_grads_contradicts_allow_unused_false():
    x = leaf(1.0)
    with fails(
        ValueError,
        "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.",
    ):
        grad(x * 2, x, allow_unused=False, materialize_grads=True)


def test_input_that_does_not_require_grad_is_an_error():
    with fails(RuntimeError, "One of the differentiated Tensors does not require grad"):
        grad(leaf(1.0) * 2, torch.ones(1))


def test_detached_input_is_an_error():
    x = leaf(1.0)
    y = x * 2
    with fails(RuntimeError, "One of the differentiated Tensors does not require grad"):
        grad(y, y.detach())


def test_tensor_made_after_the_output_is_unused():
    x = leaf(1.0)
    y = x * 2
    with fails(RuntimeError, UNUSED.format(0)):
        grad(y, x * 2)


def test_empty_inputs_are_an_error():
    with fails(RuntimeError, "`inputs` argument to `grad()` cannot be empty."):
        grad(leaf(1.0) * 2, [])
    with fails(RuntimeError, "`inputs` argument to `backward()` cannot be empty."):
        (leaf(1.0) * 2).backward(inputs=[])


def test_inputs_must_be_tensors():
    with fails(RuntimeError, "all inputs have to be Tensors or GradientEdges, but got int"):
        grad(leaf(1.0) * 2, [5])
    with fails(RuntimeError, "all inputs have to be Tensors or GradientEdges, but got int"):
        (leaf(1.0) * 2).backward(inputs=[5])


def test_only_inputs_is_an_old_argument():
    x = leaf(1.0)
    assert grad(x * 2, x, only_inputs=True)[0].tolist() == [2.0]
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        grad(x * 2, x, only_inputs=False)


# ------------------------------------------------------------------ backward(inputs=...)


def test_backward_inputs_fills_only_those():
    x, w = leaf(1.0), leaf(2.0)
    (x * w).backward(inputs=[x])
    assert x.grad.tolist() == [2.0]
    assert w.grad is None


def test_backward_inputs_may_be_one_tensor():
    x = leaf(1.0)
    (x * 2).backward(inputs=x)
    assert x.grad.tolist() == [2.0]


def test_backward_inputs_accumulates():
    x = leaf(1.0)
    for _ in range(2):
        (x * 2).backward(inputs=[x])
    assert x.grad.tolist() == [4.0]


def test_backward_inputs_may_be_a_non_leaf():
    x = leaf(2.0)
    y = x * 3
    (y * y).backward(inputs=[y])
    assert y.grad.tolist() == [12.0]
    assert x.grad is None


def test_backward_inputs_unreached_stays_none():
    x, w = leaf(1.0), leaf(2.0)
    (x * 2).backward(inputs=[w])
    assert x.grad is None and w.grad is None


def test_backward_inputs_leaves_other_branches_unrun():
    x, w = leaf(1.0), leaf(2.0)
    ran = []
    side = w * 2
    side.grad_fn.register_hook(lambda gi, go: ran.append(1))
    (x * side).backward(inputs=[x])
    assert ran == []


# ------------------------------------------------------------------ validation


def test_gradient_of_a_vector_must_be_given():
    x = leaf(1.0, 2.0)
    for call in (x.backward, (x * 2).backward, lambda: grad(x * 2, x)):
        with fails(RuntimeError, SCALARS_ONLY):
            call()
    with fails(RuntimeError, SCALARS_ONLY):
        backward([x.sum(), x * 2], [None, None])
    assert x.grad is None


@pytest.mark.parametrize("shape", [(3,), (1,), (), (2, 1), (1, 2)])
def test_gradient_must_have_the_shape_of_the_output(shape):
    x = leaf(1.0, 2.0)
    printed = f"torch.Size({list(shape)})"
    with fails(
        RuntimeError,
        f"Mismatch in shape: grad_output[0] has a shape of {printed} and output[0] has a shape of torch.Size([2]).",
    ):
        (x * 2).backward(torch.ones(shape))
    assert x.grad is None


def test_as_many_gradients_as_tensors():
    x = leaf(1.0, 2.0)
    with fails(RuntimeError, "got 2 tensors and 1 gradients"):
        backward([x * 2, x * 3], [torch.ones(2)])
    with fails(RuntimeError, "got 2 tensors and 1 gradients"):
        grad([x * 2, x * 3], x, torch.ones(2))


def test_gradients_must_be_tensors_or_none():
    x = leaf(1.0, 2.0)
    with fails(TypeError, "gradients can be either Tensors or None, but got int"):
        backward([x * 2], [5])
    assert x.grad is None


@pytest.mark.parametrize("index", [0, 1])
def test_root_without_history_is_named_by_its_number(index):
    roots = [leaf(1.0).sum(), leaf(2.0).sum()]
    roots[index] = torch.ones(())
    with fails(RuntimeError, NO_GRAD.format(index)):
        backward(roots)


def test_root_without_history():
    x = leaf(1.0, 2.0)
    for root in (
        torch.ones(()),
        x.detach().sum(),
        x.argmax(),
        (x > 0).sum(),
        x.data.sum(),
        torch.tensor([1, 2]).sum(),
    ):
        with fails(RuntimeError, NO_GRAD.format(0)):
            root.backward()


def test_a_bad_root_after_a_good_one_fills_nothing():
    x = leaf(1.0)
    with fails(RuntimeError, NO_GRAD.format(1)):
        backward([x * 2, torch.ones(1)])
    assert x.grad is None


def test_old_name_of_grad_tensors():
    x = leaf(1.0, 2.0)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        backward(x * 2, grad_variables=torch.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]
    with (
        warnings.catch_warnings(),
        fails(
            RuntimeError,
            "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
            "`backward()`. Please only use `grad_tensors`.",
        ),
    ):
        warnings.simplefilter("ignore")
        backward(x * 2, torch.ones(2), grad_variables=torch.ones(2))


def test_positional_order_of_the_arguments():
    x = leaf(2.0)
    y = x * x
    y.backward(torch.ones(1), True, False)
    y.backward(None, False)
    assert x.grad.tolist() == [8.0]
    z = x * x
    backward(z, torch.ones(1), True, False)
    (first,) = grad(z, x, torch.ones(1), None, True, True, False)
    assert first.requires_grad


# ------------------------------------------------------------------ final callbacks


def queue(callback):
    torch.autograd.Variable._execution_engine.queue_callback(callback)


def test_final_callback_runs_after_all_gradients_are_there():
    seen = []
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    y.register_hook(lambda g: queue(lambda: seen.append((x.grad.item(), w.grad.item()))))
    y.backward()
    assert seen == [(2.0, 1.0)]


def test_final_callbacks_run_in_order_once():
    order = []
    x = leaf(1.0)
    handle = x.register_hook(lambda g: [queue(lambda n=n: order.append(n)) for n in (1, 2)] and None)
    (x * 2).backward()
    handle.remove()
    (x * 2).backward()
    assert order == [1, 2]


def test_final_callback_outside_backward_is_refused():
    with fails(RuntimeError, "Final callbacks can only be installed during backward pass."):
        queue(lambda: None)


def test_exception_in_a_final_callback_comes_out():
    x = leaf(1.0)

    def broken():
        raise KeyError("callback")

    handle = x.register_hook(lambda g: queue(broken))
    with pytest.raises(KeyError, match="callback"):
        (x * 2).backward()
    handle.remove()
    x.grad = None
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


# ------------------------------------------------------------------ failures during a pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_engine_and_graph_stay_usable_after_an_exception_in_a_hook(error):
    x = scalar(3.0)
    y = x * x
    z = y + 1

    def broken(gradient):
        raise error

    handle = y.register_hook(broken)
    with pytest.raises(error):
        z.backward(retain_graph=True)
    assert x.grad is None
    assert torch.is_grad_enabled()
    handle.remove()
    z.backward()
    assert x.grad.item() == 6.0


def test_grad_mode_is_restored_after_an_exception_in_a_run_that_created_a_graph():
    x = leaf(1.0)

    def broken(gradient):
        raise KeyError

    y = x * x
    y.register_hook(broken)
    with torch.no_grad():
        with pytest.raises(KeyError):
            y.backward(create_graph=True)
        assert not torch.is_grad_enabled()


def test_backward_under_no_grad_works():
    x = leaf(1.0)
    y = x * x
    with torch.no_grad():
        y.backward()
    assert x.grad.tolist() == [2.0]
