"""Saved tensors whose original is detached, given other data, switched off or deleted."""

import gc
import weakref

import pytest

import cygrad as torch
from helpers import fails, leaf


def test_saved_tensor_detached_in_place_is_refused():
    y = leaf(1.0) * 1
    z = y.sin()
    y.detach_()
    with fails(
        RuntimeError,
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This "
        "is not supported, please use out-of-place `.detach()` instead",
    ):
        z.backward()


def test_result_detached_in_place_after_its_use():
    x = leaf(0.0)
    y = x.exp()
    z = y * 2
    y.detach_()
    assert y.is_leaf
    z.backward()
    assert x.grad.tolist() == [2.0]


def test_leaf_switched_off_after_its_use_gets_nothing():
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None
    assert w.grad.tolist() == [1.0]


def test_tensor_switched_on_after_its_use_gets_nothing():
    x, constant = leaf(1.0), torch.ones(1)
    y = x * constant
    constant.requires_grad_()
    y.backward()
    assert x.grad.tolist() == [1.0]
    assert constant.grad is None


def test_other_data_of_the_same_shape_is_used_by_backward():
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    w.data = torch.tensor([7.0])
    y.backward()
    assert x.grad.tolist() == [7.0]


def test_constant_that_was_saved_and_changed_is_found():
    x, constant = leaf(1.0), torch.ones(1)
    y = x * constant
    constant.add_(1)
    with pytest.raises(RuntimeError, match=r"\[torch.FloatTensor \[1\]\] is at version 1; expect"):
        y.backward()


def test_saved_tensors_live_as_long_as_the_graph():
    x = leaf(1.0)
    y = x * 3
    gone = weakref.ref(y)
    z = y.sin()
    del y
    gc.collect()
    z.backward()
    assert x.grad.item() == pytest.approx(3 * -0.9899925)
    del z
    gc.collect()
    assert gone() is None


def test_backward_frees_what_was_saved():
    x = leaf(1.0)
    y = x * 3
    gone = weakref.ref(y)
    z = y.sin()
    del y
    z.backward(retain_graph=True)
    assert z.grad_fn._saved_self.tolist() == [3.0]
    z.backward()
    assert gone() is None


def test_in_place_multiplication_keeps_the_old_value_for_the_other_operand():
    x, w = leaf(3.0), leaf(5.0)
    y = x * 1
    y.mul_(w)
    y.backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([5.0], [3.0])


def test_in_place_division_and_power_keep_what_they_need():
    x, w = leaf(6.0), leaf(2.0)
    y = x * 1
    y.div_(w)
    y.pow_(2)
    y.backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([3.0], [-9.0])


def test_in_place_multiplication_with_itself_is_stale():
    y = leaf(3.0) * 1
    y.mul_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_reading_its_own_buffer_while_writing_it_is_stale():
    x = leaf(2.0)
    y = torch.zeros(3)
    y[0] = x[0]
    y[1] = y[0] * 2
    y[2] = y[1] * y[0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y[2].backward()


def test_gradients_written_by_hand_between_two_graphs():
    x = leaf(1.0)
    y = x * 2
    bridge = y.detach().requires_grad_()
    (bridge * bridge).backward()
    y.backward(bridge.grad)
    assert x.grad.tolist() == [8.0]


def test_grad_with_history_given_by_hand_is_added_to_in_place():
    x = leaf(1.0)
    x.grad = torch.zeros(1)
    given = x.grad
    (x * 2).backward()
    assert x.grad is given


def test_expanded_grad_given_by_hand_cannot_be_added_to():
    x = leaf(1.0, 2.0)
    x.grad = torch.zeros(1).expand(2)
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        (x * 2).sum().backward()


def test_expanded_gradient_given_by_the_user_is_copied():
    x = leaf(1.0, 2.0)
    (x + 0).backward(torch.ones(1).expand(2))
    assert x.grad.stride() == (1,)
    x.grad.add_(1)
    assert x.grad.tolist() == [2.0, 2.0]


def test_two_views_of_one_tensor_as_operands():
    x = leaf(1.0, 2.0, 3.0)
    (x[:2] * x[1:]).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 2.0]


def test_several_views_written_in_turn():
    x = leaf(1.0, 1.0, 1.0)
    y = x * 1
    left, right = y[:2], y[1:]
    left.mul_(2)
    right.mul_(3)
    left.mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 30.0, 3.0]


def test_in_place_broadcast_operand():
    x = leaf(1.0, 2.0, 3.0)
    z = torch.zeros(2, 3)
    z += x
    z *= x
    z.sum().backward()
    assert x.grad.tolist() == [4.0, 8.0, 12.0]
    filled = torch.zeros(2, 3)
    filled[:] = x
    (first,) = torch.autograd.grad(filled.sum(), x)
    assert first.tolist() == [2.0, 2.0, 2.0]


def test_expanded_tensor_made_writable_by_an_op():
    x = leaf(1.0, 2.0, 3.0)
    y = x.expand(2, 3) * 1
    y[0] = 0
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
