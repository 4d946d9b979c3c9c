"""Version counters and in-place ops on leaves, on overlapping memory and on saved tensors."""

import numpy as np
import pytest

import cygrad as torch
from helpers import fails, leaf

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation."
OVERLAP_SELF = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
OVERLAP_INPUT = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer "
    "to a single memory location. Please clone() the tensor before performing the operation."
)


def stale(shape, name, version, expected, kind="torch.FloatTensor"):
    """PyTorch's error line about a modified saved tensor."""
    of = f", which is output 0 of {name}," if name else ""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind} {shape}]{of} is at version {version}; expected version "
        f"{expected} instead. Hint: enable anomaly detection to find the operation that failed to "
        "compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


IN_PLACE = {
    "add_": lambda t: t.add_(1),
    "sub_": lambda t: t.sub_(1),
    "mul_": lambda t: t.mul_(2),
    "div_": lambda t: t.div_(2),
    "pow_": lambda t: t.pow_(2),
    "exp_": lambda t: t.exp_(),
    "sqrt_": lambda t: t.sqrt_(),
    "neg_": lambda t: t.neg_(),
    "zero_": lambda t: t.zero_(),
    "fill_": lambda t: t.fill_(3),
    "copy_": lambda t: t.copy_(torch.ones(2)),
    "relu_": lambda t: t.relu_(),
    "clamp_": lambda t: t.clamp_(0, 1),
    "setitem": lambda t: t.__setitem__(0, 5.0),
    "+=": lambda t: t.__iadd__(1),
    "*=": lambda t: t.__imul__(2),
}


# ------------------------------------------------------------------ version counters


@pytest.mark.parametrize("op", IN_PLACE)
def test_every_in_place_op_bumps_the_version_by_one(op):
    x = torch.ones(2)
    assert x._version == 0
    IN_PLACE[op](x)
    assert x._version == 1


@pytest.mark.parametrize("op", IN_PLACE)
def test_in_place_under_no_grad_bumps_too(op):
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        IN_PLACE[op](x)
    assert x._version == 1
    assert x.is_leaf and x.requires_grad and x.grad_fn is None


def test_in_place_method_returns_the_tensor_itself():
    x = torch.ones(2)
    assert x.add_(1) is x
    y = x
    y += 1
    assert y is x
    assert x.tolist() == [3.0, 3.0]


def test_out_of_place_ops_do_not_bump():
    x = torch.ones(2)
    x + 1
    x.clone()
    x[0]
    assert x._version == 0


def test_views_share_the_counter():
    x = torch.ones(2, 2)
    row, flat = x[0], x.view(4)
    row.add_(1)
    assert (x._version, row._version, flat._version) == (1, 1, 1)
    x.add_(1)
    assert (x._version, row._version, flat._version) == (2, 2, 2)


def test_detach_shares_the_counter_and_data_does_not():
    x = leaf(1.0)
    x.detach().add_(1)
    assert x._version == 1
    x.data.add_(1)
    assert x._version == 1
    assert x.tolist() == [3.0]


def test_setting_data_keeps_the_version():
    x = leaf(1.0)
    with torch.no_grad():
        x.add_(1)
    x.data = torch.zeros(5)
    assert x._version == 1
    assert x.shape == (5,)


def test_version_cannot_be_set():
    x = torch.ones(1)
    with pytest.raises(AttributeError):
        x._version = 7
    assert x._version == 0


def test_a_failing_in_place_op_does_not_bump():
    x = torch.ones(2)
    with pytest.raises(RuntimeError):
        x.add_(torch.ones(3))
    assert x._version == 0
    assert x.tolist() == [1.0, 1.0]


def test_in_place_with_a_bigger_operand_cannot_grow_the_tensor():
    x = torch.ones(2)
    with fails(
        RuntimeError,
        "output with shape [2] doesn't match the broadcast shape [3, 2]",
    ):
        x.add_(torch.ones(3, 2))
    assert x.tolist() == [1.0, 1.0]


def test_in_place_cannot_change_the_kind_of_dtype():
    x = torch.tensor([1, 2])
    with fails(RuntimeError, "result type Float can't be cast to the desired output type Long"):
        x += 0.5
    assert x.tolist() == [1, 2]
    assert x._version == 0


# ------------------------------------------------------------------ leaves


@pytest.mark.parametrize("op", [op for op in IN_PLACE if op != "setitem"])
def test_in_place_on_a_leaf_that_requires_grad_is_refused(op):
    x = leaf(1.0, 2.0)
    with fails(RuntimeError, LEAF):
        IN_PLACE[op](x)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[0:1],
        lambda x: x.view(2, 1),
        lambda x: x[0],
        lambda x: x.view(1, 2)[0],
        lambda x: x.unsqueeze(0),
    ],
)
def test_in_place_on_a_view_of_a_leaf_is_refused(view):
    x = leaf(1.0, 2.0)
    with fails(RuntimeError, VIEW_OF_LEAF):
        view(x).mul_(2)
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("index", [0, slice(None), slice(0, 1), ...])
def test_setitem_on_a_leaf_is_refused(index):
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used"):
        x[index] = 5.0
    assert x.tolist() == [1.0, 2.0]


def test_leaf_may_be_changed_under_no_grad_through_data_and_through_detach():
    x = leaf(1.0)
    with torch.no_grad():
        x += 1
    x.data += 1
    x.detach().add_(1)
    assert x.tolist() == [4.0]
    assert x.is_leaf and x.requires_grad


def test_leaf_without_grad_becomes_part_of_the_graph():
    x = torch.ones(2)
    w = leaf(3.0, 4.0)
    x.mul_(w)
    assert x.requires_grad and not x.is_leaf
    assert x.grad_fn.name() == "MulBackward0"
    x.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


def test_view_of_a_leaf_that_requires_grad_afterwards_is_a_leaf_view():
    base = torch.ones(2)
    view = base[:1]
    view.requires_grad_()
    with fails(RuntimeError, VIEW_OF_LEAF):
        view.mul_(2)
    assert base.tolist() == [1.0, 1.0]


# ------------------------------------------------------------------ in-place ops that use their own history


def test_in_place_moves_the_tensor_to_a_new_node():
    x = leaf(1.0, 2.0)
    y = x.clone()
    old = y.grad_fn
    y.exp_()
    assert y.grad_fn is not old
    assert y.grad_fn.name() == "ExpBackward0"
    assert y.grad_fn.next_functions[0][0] is old


def test_chain_of_in_place_ops_differentiates():
    x = leaf(1.0, 2.0)
    y = x.clone()
    y.mul_(3).add_(1).pow_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2 * 4.0 * 3, 2 * 7.0 * 3]


def test_in_place_result_equals_out_of_place_result():
    x, z = leaf(0.5, 2.0), leaf(0.5, 2.0)
    y = x * 1
    y.tanh_()
    y.sum().backward()
    (z * 1).tanh().sum().backward()
    assert x.grad.tolist() == z.grad.tolist()


def test_in_place_with_itself_as_operand():
    x = leaf(3.0)
    y = x * 1
    y.add_(y)
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_overwriting_cuts_the_old_history():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_copy_takes_the_history_of_its_source():
    x, source = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * 2
    y.copy_(source * 5)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert source.grad.tolist() == [5.0, 5.0]


def test_copy_converts_dtype_and_broadcasts_its_gradient():
    y = torch.zeros(3, 2)
    source = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y.copy_(source)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert source.grad.tolist() == [3.0, 3.0]
    assert source.grad.dtype == torch.float64


# ------------------------------------------------------------------ stale saved tensors


def test_changing_a_saved_input_is_found_in_backward():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with fails(RuntimeError, stale("[2]", "Add", 1, 0)):
        z.sum().backward()
    assert x.grad is None


def test_changing_a_saved_result_is_found_in_backward():
    x = leaf(1.0)
    y = x.exp()
    y.add_(1)
    with fails(RuntimeError, stale("[1]", "Exp", 1, 0)):
        y.backward()


def test_changing_a_saved_leaf_under_no_grad_is_found():
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    with torch.no_grad():
        w.add_(1)
    with fails(RuntimeError, stale("[1]", None, 1, 0)):
        y.backward()


def test_changing_through_detach_is_found():
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    w.detach().zero_()
    with fails(RuntimeError, stale("[1]", None, 1, 0)):
        y.backward()


def test_changing_through_a_view_is_found():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y[0] = 5.0
    with fails(RuntimeError, stale("[2]", "torch::autograd::CopySlices", 1, 0)):
        z.sum().backward()


def test_changing_through_data_is_not_found():
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    w.data.zero_()
    y.backward()
    assert x.grad.tolist() == [0.0]


def test_changing_what_was_not_saved_is_fine():
    x = leaf(1.0)
    y = x * 2
    z = y + 1
    y.mul_(10)
    (z + y).backward()
    assert x.grad.tolist() == [22.0]


def test_sum_and_add_save_nothing():
    x = leaf(1.0, 2.0)
    y = x * 2
    total = y.sum() + y
    y.add_(1)
    total.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_mul_saves_an_operand_only_if_the_other_needs_a_gradient():
    x, constant = leaf(1.0), torch.ones(1)
    y = x * 3
    z = y * constant
    y.add_(1)
    z.backward()
    assert x.grad.tolist() == [3.0]


def test_several_changes_are_counted():
    x = leaf(1.0)
    y = x * 1
    z = y.sin()
    y.add_(1).add_(1).add_(1)
    with fails(RuntimeError, stale("[1]", "Add", 3, 0)):
        z.backward()


def test_saved_at_a_later_version():
    x = leaf(1.0)
    y = x * 1
    y.add_(1)
    z = y.sin()
    y.add_(1)
    with fails(RuntimeError, stale("[1]", "Add", 2, 1)):
        z.backward()


def test_double_tensor_is_named_as_such():
    x = leaf(1.0, dtype=torch.float64)
    y = x * 1
    z = y.sin()
    y.add_(1)
    with fails(RuntimeError, stale("[1]", "Add", 1, 0, kind="torch.DoubleTensor")):
        z.backward()


def test_stale_zero_dim_tensor_has_an_empty_shape():
    y = leaf(1.0).sum()
    z = y.sin()
    y.add_(1)
    with fails(RuntimeError, stale("[]", "Add", 1, 0)):
        z.backward()


def test_stale_tensor_is_found_in_grad_too():
    x = leaf(1.0)
    y = x * 1
    z = y.sin()
    y.add_(1)
    with fails(RuntimeError, stale("[1]", "Add", 1, 0)):
        torch.autograd.grad(z, x)


def test_stale_tensor_not_on_the_needed_path_is_no_error():
    x, w = leaf(1.0), leaf(2.0)
    side = w * 1
    z = side.sin() + x * 2
    side.add_(1)
    (grad,) = torch.autograd.grad(z, x)
    assert grad.tolist() == [2.0]


def test_stepping_a_weight_between_forward_and_a_second_backward_is_found():
    w = leaf(1.0)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    with torch.no_grad():
        w -= 0.1 * w.grad
    with fails(RuntimeError, stale("[1]", None, 1, 0)):
        loss.backward()


# ------------------------------------------------------------------ overlapping memory


@pytest.mark.parametrize(
    "op",
    [
        lambda e: e.mul_(2),
        lambda e: e.add_(torch.ones(2, 3)),
        lambda e: e.exp_(),
        lambda e: e.copy_(torch.ones(2, 3)),
    ],
)
def test_in_place_on_an_expanded_tensor_is_refused(op):
    base = torch.ones(2, 1)
    with fails(RuntimeError, OVERLAP_SELF):
        op(base.expand(2, 3))
    assert base.tolist() == [[1.0], [1.0]]
    assert base._version == 0


def test_writing_one_element_of_each_expanded_row_is_fine():
    base = torch.ones(2, 1)
    base.expand(2, 3)[:, :1].mul_(2)
    assert base.tolist() == [[2.0], [2.0]]


@pytest.mark.parametrize(
    "op",
    [
        lambda b: b[1:].add_(b[:-1]),
        lambda b: b[1:].copy_(b[:-1]),
        lambda b: b.__setitem__(slice(1, None), b[:-1]),
        lambda b: b.view(2, 2).mul_(b.view(2, 2).t()),
    ],
)
def test_operand_that_overlaps_the_target_partly_is_refused(op):
    base = torch.tensor([0.0, 1.0, 2.0, 3.0])
    with fails(RuntimeError, OVERLAP_INPUT):
        op(base)
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_operand_that_is_exactly_the_target_is_fine():
    base = torch.tensor([0.0, 1.0, 2.0, 3.0])
    base[1:] += base[1:]
    assert base.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_neighbouring_slices_do_not_overlap():
    base = torch.tensor([0.0, 1.0, 2.0, 3.0])
    base[:2].add_(base[2:])
    assert base.tolist() == [2.0, 4.0, 2.0, 3.0]


# ------------------------------------------------------------------ shared NumPy memory


def test_in_place_writes_through_to_numpy_and_back():
    array = np.zeros(3, dtype=np.float32)
    x = torch.from_numpy(array)
    x.add_(1)
    array[0] = 9.0
    assert array.tolist() == [9.0, 1.0, 1.0]
    assert x.tolist() == [9.0, 1.0, 1.0]
    assert x.numpy().__array_interface__["data"][0] == x.data_ptr()


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "ge_", "logical_and_"])
def test_what_an_op_without_derivative_overwrites_has_no_gradient(name):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    getattr(y, name)(torch.ones(3))
    assert y.grad_fn.name() == "".join(word.title() for word in name.strip("_").split("_")) + "Backward0"
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_part_of_a_tensor_overwritten_by_a_comparison_has_no_gradient():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y[:2].eq_(2)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 2]
