"""Leaves, and how backward accumulates into their `.grad`."""

import itertools
import warnings

import pytest

import cygrad as torch
from helpers import fails, leaf, scalar


def test_fresh_tensor_is_a_leaf_without_grad():
    x = torch.ones(2)
    assert x.is_leaf
    assert not x.requires_grad
    assert x.grad is None
    assert x.grad_fn is None


def test_result_of_recorded_op_is_no_leaf():
    y = leaf(1.0) * 2
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad_fn is not None


def test_result_of_unrecorded_op_is_a_leaf():
    y = torch.ones(2) * 2
    assert y.is_leaf
    assert not y.requires_grad


def test_backward_fills_grad_of_leaf():
    x = leaf(1.0, 2.0, 3.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert x.grad.dtype == torch.float32
    assert not x.grad.requires_grad
    assert x.grad.is_leaf


def test_backward_accumulates_over_calls():
    x = leaf(1.0, 2.0)
    for expected in ([3.0, 3.0], [6.0, 6.0], [9.0, 9.0]):
        (x * 3).sum().backward()
        assert x.grad.tolist() == expected


def test_second_backward_adds_into_the_same_grad_tensor():
    x = leaf(1.0)
    (x * 2).backward()
    first = x.grad
    (x * 2).backward()
    assert x.grad is first
    assert first.tolist() == [4.0]


def test_grad_tensor_changes_when_graph_is_created():
    x = leaf(1.0)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert first.tolist() == [2.0]
    assert x.grad.tolist() == [4.0]
    x.grad = None


def test_setting_grad_to_none_starts_anew():
    x = leaf(1.0)
    (x * 2).backward()
    x.grad = None
    (x * 5).backward()
    assert x.grad.tolist() == [5.0]


def test_zeroing_grad_in_place_keeps_the_tensor():
    x = leaf(1.0, 1.0)
    (x * 2).sum().backward()
    grad = x.grad
    x.grad.zero_()
    (x * 5).sum().backward()
    assert x.grad is grad
    assert grad.tolist() == [5.0, 5.0]


def test_leaf_used_many_times_sums_all_uses():
    x = leaf(2.0)
    y = x + x * x + x * x * x
    y.backward()
    assert x.grad.tolist() == [1 + 4 + 12]


def test_non_leaf_gets_no_grad_and_reading_it_warns():
    y = leaf(1.0) * 2
    (y * 3).backward()
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf"):
        assert y.grad is None


def test_reading_grad_of_leaf_does_not_warn():
    x = leaf(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is None


def test_only_leaves_that_require_grad_are_filled():
    x, frozen = leaf(1.0), torch.ones(1)
    (x * frozen).sum().backward()
    assert frozen.grad is None
    assert x.grad.tolist() == [1.0]


def test_incoming_gradient_is_not_aliased_by_grad():
    x = leaf(1.0, 2.0)
    incoming = torch.ones(2)
    x.backward(incoming)
    assert x.grad is not incoming
    incoming.mul_(100)
    assert x.grad.tolist() == [1.0, 1.0]


def test_gradient_passed_through_add_is_not_aliased():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    incoming = torch.ones(2)
    (x + y).backward(incoming)
    x.grad.mul_(7)
    assert y.grad.tolist() == [1.0, 1.0]
    assert incoming.tolist() == [1.0, 1.0]


def test_two_leaves_never_share_one_grad():
    x, y = leaf(1.0), leaf(1.0)
    (x + y).sum().backward()
    x.grad.add_(10)
    assert y.grad.tolist() == [1.0]


def test_gradient_kept_by_a_hook_is_not_changed_by_later_accumulation():
    x = leaf(1.0)
    kept = []
    x.register_hook(kept.append)
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert [g.tolist() for g in kept] == [[2.0], [2.0]]
    assert x.grad.tolist() == [4.0]


def test_expanded_gradient_becomes_writable_memory_of_its_own():
    x = leaf(1.0, 2.0, 3.0)
    x.sum().backward()
    x.grad[0] = 5.0
    assert x.grad.tolist() == [5.0, 1.0, 1.0]


def test_grad_of_transposed_leaf_keeps_its_layout():
    x = torch.ones(2, 3).t().requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.shape == (3, 2)
    assert x.grad.stride() == x.stride()


def test_requires_grad_can_be_set_on_a_leaf():
    x = torch.ones(2)
    x.requires_grad = True
    assert x.requires_grad and x.is_leaf
    x.requires_grad = False
    assert not x.requires_grad


def test_requires_grad_in_place_method_returns_self():
    x = torch.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad


def test_requires_grad_cannot_be_switched_off_on_a_non_leaf():
    y = leaf(1.0) * 2
    text = (
        "you can only change requires_grad flags of leaf variables. If you want to use a "
        "computed variable in a subgraph that doesn't require differentiation use "
        "var_no_grad = var.detach()."
    )
    with fails(RuntimeError, text):
        y.requires_grad = False
    with fails(RuntimeError, text):
        y.requires_grad_(False)
    assert y.requires_grad


def test_requires_grad_true_on_a_non_leaf_only_passes_as_a_method():
    y = leaf(1.0) * 2
    assert y.requires_grad_(True) is y
    with fails(RuntimeError, "you can only change requires_grad flags of leaf variables."):
        y.requires_grad = True
    assert not y.is_leaf


@pytest.mark.parametrize("value", [1, "yes", None])
def test_requires_grad_must_be_a_bool(value):
    x = torch.ones(2)
    with fails(RuntimeError, "requires_grad must be a bool"):
        x.requires_grad = value
    with fails(RuntimeError, "requires_grad must be a bool"):
        del x.requires_grad
    assert x.requires_grad is False


def test_only_floating_tensors_can_require_grad():
    whole = torch.tensor([1, 2])
    text = "nly Tensors of floating point and complex dtype can require gradients"
    with fails(RuntimeError, "o" + text):
        whole.requires_grad = True
    with fails(RuntimeError, "only Tensors of floating point dtype can require gradients"):
        whole.requires_grad_()
    with fails(RuntimeError, "O" + text):
        torch.tensor([1, 2], requires_grad=True)
    with fails(RuntimeError, "O" + text):
        torch.ones(2, dtype=torch.bool, requires_grad=True)
    assert not whole.requires_grad


def test_grad_set_by_hand_is_kept_and_added_to():
    x = leaf(1.0, 2.0)
    given = torch.tensor([10.0, 20.0])
    x.grad = given
    assert x.grad is given
    (x * 1).sum().backward()
    assert x.grad is given
    assert given.tolist() == [11.0, 21.0]


def test_grad_can_be_deleted():
    x = leaf(1.0)
    (x * 2).backward()
    del x.grad
    assert x.grad is None


def test_grad_refuses_what_is_no_tensor():
    x = leaf(1.0)
    with fails(TypeError, "assigned grad expected to be a Tensor or None but got grad of type float"):
        x.grad = 1.0
    assert x.grad is None


def test_grad_refuses_a_wrong_shape():
    x = leaf(1.0, 2.0)
    with fails(
        RuntimeError,
        "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. "
        "Please ensure that the gradient and the tensor are the same size",
    ):
        x.grad = torch.ones(3)
    assert x.grad is None


def test_grad_refuses_a_wrong_dtype():
    x = leaf(1.0, 2.0)
    with fails(
        RuntimeError,
        "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype "
        "'Float'. The gradient must match the tensor's grad_dtype...",
    ):
        x.grad = torch.ones(2, dtype=torch.float64)
    assert x.grad is None


def test_grad_refuses_the_tensor_itself():
    x = leaf(1.0)
    with fails(RuntimeError, "can't assign Variable as its own grad"):
        x.grad = x


def test_retain_grad_keeps_the_gradient_of_a_non_leaf():
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * y).backward()
    assert y.grad.tolist() == [12.0]
    assert x.grad.tolist() == [24.0]


def test_retain_grad_on_a_leaf_changes_nothing():
    x = leaf(1.0)
    x.retain_grad()
    assert not x.retains_grad
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_retain_grad_twice_is_once():
    y = leaf(1.0) * 2
    y.retain_grad()
    y.retain_grad()
    (y * 3).backward()
    assert y.grad.tolist() == [3.0]


def test_retain_grad_needs_requires_grad():
    with fails(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(1).retain_grad()


def test_retained_grad_accumulates_over_retained_graphs():
    y = leaf(1.0) * 2
    y.retain_grad()
    z = y * 3
    z.backward(retain_graph=True)
    z.backward()
    assert y.grad.tolist() == [6.0]


def test_zero_dim_leaf():
    x = scalar(3.0)
    (x**2).backward()
    assert x.grad.item() == 6.0
    assert x.grad.shape == ()


def test_empty_leaf_gets_an_empty_grad():
    x = torch.zeros(0, requires_grad=True)
    x.sum().backward()
    assert x.grad.shape == (0,)


def test_broadcast_leaf_gets_a_grad_of_its_own_shape():
    row = torch.ones(3, requires_grad=True)
    column = torch.ones(2, 1, requires_grad=True)
    (row * column * 2).sum().backward()
    assert row.grad.tolist() == [4.0, 4.0, 4.0]
    assert column.grad.tolist() == [[6.0], [6.0]]


def test_mixed_precision_operands_get_grads_of_their_own_dtype():
    half = leaf(1.0)
    full = leaf(2.0, dtype=torch.float64)
    (half * full).sum().backward()
    assert half.grad.dtype == torch.float32
    assert full.grad.dtype == torch.float64


def test_detached_tensor_passes_no_gradient_and_shares_memory():
    x = leaf(1.0, 2.0)
    cut = x.detach()
    assert not cut.requires_grad and cut.is_leaf
    (x * cut).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]
    cut[0] = 7.0
    assert x.tolist() == [7.0, 2.0]


def test_grad_survives_requires_grad_false():
    x = leaf(1.0)
    (x * 2).backward()
    x.requires_grad_(False)
    assert x.grad.tolist() == [2.0]


def test_gradients_of_another_dtype():
    for dtype, create in itertools.product((torch.float64, torch.float16), (False, True)):
        x = torch.ones(2, requires_grad=True)
        assert x.grad_dtype is torch.float32
        x.grad_dtype = dtype
        seen = []
        x.register_hook(lambda g, seen=seen: seen.append(g.dtype))
        for _ in range(2):
            (x * 3).sum().backward(create_graph=create)
        assert x.grad_dtype is x.grad.dtype is dtype and x.grad.tolist() == [6, 6] and seen == [dtype] * 2
        assert torch.autograd.grad(x.sum(), x)[0].dtype is dtype
    weight = torch.ones(2, dtype=torch.float16, requires_grad=True)
    weight.grad_dtype = torch.float32  # sums of many small gradients
    for _ in range(3):
        (weight.float() * 2**-14 * 1.0001).sum().backward()
    assert weight.grad.dtype is torch.float32 and weight.detach().grad_dtype is torch.float16
    weight.grad = None
    weight.grad_dtype = None  # keeps what comes: here a conversion, which gives its own
    weight.float().sum().backward()
    assert weight.grad.dtype is torch.float16 and weight.grad_dtype is None


def test_a_leaf_that_takes_gradients_of_any_dtype():
    x = torch.ones(2, requires_grad=True)
    x.grad_dtype = None
    x.grad = torch.ones(2, dtype=torch.float64)
    (x * 2).sum().backward()
    assert x.grad.dtype is torch.float64 and x.grad.tolist() == [3, 3]
    later = torch.ones(2)
    later.grad_dtype = torch.float64
    later.requires_grad_().sum().backward()
    assert later.grad.dtype is torch.float64 and torch.ones(2).grad_dtype is torch.float32


def test_wrong_dtypes_of_gradients():
    x = torch.ones(2, requires_grad=True)
    with fails(RuntimeError, "grad_dtype must be a torch.dtype or None, but got str"):
        x.grad_dtype = "float64"
    for touch in (lambda y: y.grad_dtype, lambda y: setattr(y, "grad_dtype", None)):
        with fails(RuntimeError, "grad_dtype can only be ... on leaf tensors."):
            touch(x * 2)
    x.grad_dtype = torch.float64
    with fails(
        RuntimeError, "attempting to assign a gradient with dtype 'float' to a tensor with grad_dtype 'Double'..."
    ):
        x.grad = torch.ones(2)
    x.grad = torch.ones(2, dtype=torch.float64)
    with fails(RuntimeError, "Cannot set grad_dtype to 'Float' because there is already a gradient with dtype..."):
        x.grad_dtype = torch.float32
    assert x.grad_dtype is torch.float64 and x.grad.tolist() == [1, 1]
    x.grad_dtype = None
    assert x.grad_dtype is None


def test_compiled_steps_see_the_dtype_of_gradients():
    model = torch.nn.Linear(2, 1, dtype=torch.float16)

    @torch.compile
    def step(x):
        model.zero_grad()
        model(x).float().sum().backward()

    for wanted in (torch.float16, torch.float32, None):
        model.zero_grad()
        model.weight.grad_dtype = wanted
        for _ in range(6):
            step(torch.ones(3, 2, dtype=torch.float16))
            assert model.weight.grad.dtype is (wanted or torch.float16) and model.weight.grad.tolist() == [[3, 3]]
