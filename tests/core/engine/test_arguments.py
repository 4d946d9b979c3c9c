"""Arguments of `backward` and `grad`: dictionaries, batches, roots without history; and nodes called directly."""

import types

import pytest

import cygrad as torch
from cygrad.autograd import backward, grad
from helpers import fails, leaf


def test_inputs_may_be_a_dictionary():
    x, other = leaf(1.0, 2.0), leaf(1.0)
    y = (x * x).sum()
    found = grad(y, {"a": x, "b": other}, allow_unused=True, retain_graph=True)
    assert found["a"].tolist() == [2.0, 4.0] and found["b"] is None
    found = grad(y, {"a": x, "b": other}, materialize_grads=True, retain_graph=True)
    assert found["b"].tolist() == [0.0]
    y.backward(inputs={"a": x})
    assert x.grad.tolist() == [2.0, 4.0]
    with fails(RuntimeError, "`inputs` argument to `grad()` cannot be empty."):
        grad(y, {})
    with fails(TypeError, "`inputs` argument to `grad()` must be a dict, not mappingproxy..."):
        grad(y, types.MappingProxyType({"a": x}))
    with fails(RuntimeError, "all inputs have to be Tensors or GradientEdges, but got int"):
        grad(y, {"a": 5})


def test_inputs_that_need_no_gradient_are_refused_before_anything_happens():
    x = leaf(1.0, 2.0)
    y = x * 2
    with fails(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"):
        y.sum().backward(inputs=[y, torch.ones(2)])
    assert not y.retains_grad


def test_gradients_that_are_no_sequence_and_outputs_that_are_no_tensors():
    y = leaf(1.0, 2.0) * 2
    with fails(TypeError, "'float' object is not iterable"):
        y.backward(1.0)
    with fails(TypeError, "gradients can be either Tensors or None, but got float"):
        y.backward([1.0, 2.0])
    with fails(AssertionError, "Expected output to be a torch.Tensor"):
        backward([5])


def test_materialized_zeros_can_be_differentiated_where_the_pass_is_recorded():
    x, w = leaf(1.0), torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    zeros = grad(x, w, materialize_grads=True, create_graph=True)[0]
    assert zeros.requires_grad and zeros.is_leaf and zeros.dtype is torch.float64 and zeros.shape == (2, 3)
    assert not grad(x, w, materialize_grads=True)[0].requires_grad


def test_a_view_of_a_leaf_without_history_is_no_root():
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        view = x[0:1]
    assert view.requires_grad
    with fails(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"):
        view.backward(torch.ones(1))
    (view * 2).backward()
    assert x.grad is None and view.grad is None


@pytest.mark.parametrize(
    ("gradients", "exception", "line"),
    [
        (torch.ones(2), RuntimeError, "If `is_grads_batched=True`, we interpret the first dimension of each ..."),
        (torch.ones(2, 3), RuntimeError, "If `is_grads_batched=True`, we interpret the first dimension of each ..."),
        (None, RuntimeError, "grad can be implicitly created only for scalar outputs"),
    ],
)
def test_batches_of_gradients_that_do_not_fit(gradients, exception, line):
    x = leaf(1.0, 2.0)
    with fails(exception, line):
        grad(x * x, x, gradients, is_grads_batched=True)


def test_batches_of_several_outputs():
    x = leaf(1.0, 2.0)
    y = x * x
    both = grad((y, y.sum()), x, (torch.eye(2), torch.ones(2)), is_grads_batched=True, retain_graph=True)
    assert both[0].tolist() == [[4.0, 4.0], [2.0, 8.0]]
    with fails(ValueError, "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes ..."):
        grad((y, y), x, (torch.eye(2), torch.ones(3, 2)), is_grads_batched=True)
    with fails(ValueError, "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that ..."):
        grad(y.sum(), x, is_grads_batched=True)
    unused = grad(y, [x, leaf(1.0)], torch.eye(2), is_grads_batched=True, materialize_grads=True)[1]
    assert unused.tolist() == [0.0]


# ------------------------------------------------------------------ nodes called directly


def test_a_node_can_be_called():
    x, scale = leaf(1.0, 2.0), leaf(1.0)
    node = (x * scale).grad_fn
    assert [g.tolist() for g in node(torch.ones(2))] == [[1.0, 1.0], [3.0]]
    assert node(None) == (None, None)
    accumulate = (x * 2).grad_fn.next_functions[0][0]
    assert accumulate(torch.ones(2)) == ()
    assert x.grad.tolist() == [1.0, 1.0]
    assert x.split(1)[0].grad_fn(torch.ones(1), None).tolist() == [1.0, 0.0]


def test_bad_gradients_for_a_node_that_is_called():
    node = (leaf(1.0, 2.0) * 3).grad_fn
    with fails(TypeError, "expected 1 arguments, got 2 instead"):
        node(torch.ones(2), torch.ones(2))
    with fails(TypeError, "argument 0 is not a Variable"):
        node(5)
    with fails(RuntimeError, "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] ..."):
        node(torch.ones(3))


def test_a_node_tells_what_it_saved():
    node = (leaf(1.0) * 2).grad_fn
    assert {"_saved_self", "_saved_other"} <= set(dir(node))
    assert not node.needs(7) and not node.needs(-1)


def test_a_gradient_made_in_inference_mode_stays_there():
    x = leaf(1.0, 2.0)
    y = x * x
    with torch.inference_mode():
        y.backward(torch.ones(2))
        assert x.grad.is_inference()
    with fails(RuntimeError, "Inplace update to inference tensor outside InferenceMode is not allowed..."):
        (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_ten_thousand_inputs_of_one_node():
    x = leaf(1.0)
    torch.cat([x * 2 for _ in range(10_000)]).sum().backward()
    assert x.grad.tolist() == [20_000.0]


@pytest.mark.parametrize("value", ["yes", [], 2.5, {}])
@pytest.mark.parametrize("name", ["retain_graph", "create_graph"])
def test_flags_are_integers(name, value):
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    complaint = f"'{type(value).__name__}' object cannot be interpreted as an integer"
    for call in (y.backward, lambda **flag: backward(y, **flag), lambda **flag: grad(y, x, **flag)):
        with fails(TypeError, complaint):
            call(**{name: value})
    with fails(TypeError, complaint):
        grad(y, x, allow_unused=value)
    with fails(TypeError, complaint):
        grad(y, x, torch.ones(2), is_grads_batched=True, **{name: value})
    assert x.grad is None
    y.backward(**{name: 1})
    y.backward(**{name: 0})
    assert x.grad.tolist() == [4.0, 8.0]


def test_none_for_create_graph_is_false():
    x = leaf(2.0)
    (x * x).sum().backward(create_graph=None)
    assert x.grad.tolist() == [4.0] and not x.grad.requires_grad
    backward((x * x).sum(), create_graph=None)
    assert x.grad.tolist() == [8.0] and not x.grad.requires_grad
    y = (x * x).sum()
    (found,) = grad(y, x, create_graph=None)
    assert found.tolist() == [4.0] and not found.requires_grad
    with fails(RuntimeError, "Trying to backward through the graph a second time..."):
        y.backward()
    (found,) = grad((x * x).sum(), x, torch.ones(2), is_grads_batched=True, create_graph=None)
    assert found.tolist() == [[4.0], [4.0]] and not found.requires_grad
