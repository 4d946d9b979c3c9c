"""Views: bases, regenerated histories, and views that must not be modified in place."""

import pytest

import cygrad as torch
from helpers import fails, kind, kinds, leaf

NO_GRAD_VIEW = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
    "your code by moving both the view and the inplace either both inside the no_grad block (if "
    "you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked)."
)
NO_GRAD_BASE = NO_GRAD_VIEW.replace("is being modified", "its base or another view of its base has been modified")
MULTI = (
    " This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by "
    "an out-of-place one."
)

VIEWS = {
    "slice": lambda t: t[1:3],
    "select": lambda t: t[0],
    "last column": lambda t: t[..., -1],
    "view": lambda t: t.view(-1),
    "reshape": lambda t: t.reshape(3, 4),
    "transpose": lambda t: t.transpose(0, 1),
    "t": lambda t: t.t(),
    "T": lambda t: t.T,
    "mT": lambda t: t.mT,
    "permute": lambda t: t.permute(1, 0),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "squeeze": lambda t: t.squeeze(),
    "expand": lambda t: t.expand(2, 4, 3),
    "flatten": lambda t: t.flatten(),
    "detach": lambda t: t.detach(),
    "select method": lambda t: t.select(1, 2),
    "step": lambda t: t[::2, 1:],
    "new axis": lambda t: t[None],
}


@pytest.mark.parametrize("way", VIEWS)
def test_view_shares_memory_and_names_its_base(way):
    base = torch.arange(12.0).reshape(4, 3).clone()
    view = VIEWS[way](base)
    base.add_(100)
    assert float(view.min()) >= 100
    assert view._version == base._version == 1
    if way != "detach":
        assert view._is_view()
        assert view._base is base


@pytest.mark.parametrize("way", [way for way in VIEWS if way not in ("expand", "detach")])
def test_in_place_on_each_kind_of_view_rewrites_the_base(way):
    x = torch.ones(4, 3, requires_grad=True)
    base = x * 1
    view = VIEWS[way](base)
    view.mul_(5)
    assert kind(base.grad_fn) == "CopySlices"
    base.sum().backward()
    touched = view.numel()
    assert float(x.grad.sum()) == 5.0 * touched + (12 - touched)
    assert x.grad.tolist() == base.tolist()


@pytest.mark.parametrize("way", [way for way in VIEWS if way != "detach"])
def test_gradient_through_a_view_taken_before_the_base_changed(way):
    x = torch.ones(4, 3, requires_grad=True)
    base = x * 1
    view = VIEWS[way](base)
    base.mul_(5)
    view.sum().backward()
    used = torch.ones(4, 3, requires_grad=True)
    VIEWS[way](used * 5).sum().backward()
    assert x.grad.tolist() == used.grad.tolist()


def test_view_of_a_view_has_the_first_tensor_as_base():
    base = torch.ones(4, 3)
    inner = base[1:].t()[0]
    assert inner._base is base


def test_op_results_and_leaves_are_no_views():
    x = torch.ones(2)
    assert not x._is_view() and x._base is None
    assert not (x + 1)._is_view()
    assert not x.clone()._is_view()


def test_advanced_indexing_copies():
    x = torch.ones(3)
    picked = x[[0, 1]]
    assert not picked._is_view()
    picked.add_(5)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_reshape_copies_only_when_it_must():
    x = torch.ones(2, 3)
    assert x.reshape(6)._is_view()
    assert not x.t().reshape(6)._is_view()
    assert x.reshape(2, 3)._is_view()


def test_view_refuses_what_needs_a_copy():
    with fails(
        RuntimeError,
        "view size is not compatible with input tensor's size and stride (at least one dimension "
        "spans across two contiguous subspaces). Use .reshape(...) instead.",
    ):
        torch.ones(2, 3).t().view(6)


# ------------------------------------------------------------------ histories


def test_copy_slices_leads_to_the_old_history_and_to_the_new_values():
    x, w = leaf(1.0, 2.0, 3.0), leaf(10.0)
    base = x * 1
    old = base.grad_fn
    base[0:1].mul_(w)
    assert kind(base.grad_fn) == "CopySlices"
    assert base.grad_fn.next_functions[0][0] is old
    base.sum().backward()
    assert x.grad.tolist() == [10.0, 1.0, 1.0]
    assert w.grad.tolist() == [1.0]


def test_grad_fn_of_a_view_is_renewed_when_read():
    x = leaf(1.0, 2.0)
    base = x * 1
    view = base[:1]
    old = view.grad_fn
    assert view.grad_fn is old
    base.mul_(2)
    new = view.grad_fn
    assert new is not old
    assert new.next_functions[0][0] is base.grad_fn
    assert view.grad_fn is new


def test_view_changed_in_place_hangs_on_the_copy_slices_of_its_base():
    x = leaf(1.0, 2.0)
    base = x * 1
    view = base[:1]
    view.mul_(2)
    assert kinds(view.grad_fn) == ["CopySlices"]
    view.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0]


def test_sister_view_sees_the_change():
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    left, right = base[:2], base[1:]
    left.mul_(10)
    assert right.tolist() == [20.0, 3.0]
    right.sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 1.0]


def test_base_without_grad_gets_a_history_through_its_view():
    x = leaf(5.0, 6.0)
    base = torch.ones(4)
    view = base[1:3]
    view.mul_(x)
    assert base.requires_grad and not base.is_leaf
    assert view.requires_grad
    (base * base).sum().backward()
    assert x.grad.tolist() == [10.0, 12.0]


def test_view_made_before_its_base_required_grad_follows_the_base():
    x = leaf(5.0, 6.0)
    base = torch.ones(2)
    view = base[:1]
    assert not view.requires_grad
    base.mul_(x)
    assert view.requires_grad
    view.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]


def test_chain_of_views_written_at_the_end():
    x = torch.arange(12.0).requires_grad_()
    base = x * 1
    base.view(3, 4)[1].view(2, 2).t()[0].mul_(7)
    base.sum().backward()
    expected = [1.0] * 12
    expected[4] = expected[6] = 7.0
    assert x.grad.tolist() == expected


def test_many_writes_into_one_buffer():
    x = leaf(1.0, 2.0, 3.0)
    buffer = torch.zeros(3)
    for i in range(3):
        buffer[i] = x[i] * (i + 1)
    (buffer * buffer).sum().backward()
    assert x.grad.tolist() == [2.0, 16.0, 54.0]


def test_overwriting_a_slice_stops_the_gradient_there():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y[1:] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_setitem_with_a_tensor_routes_its_gradient():
    x, value = leaf(1.0, 2.0, 3.0), leaf(7.0)
    y = x * 2
    y[1:] = value
    (y * y).sum().backward()
    assert x.grad.tolist() == [8.0, 0.0, 0.0]
    assert value.grad.tolist() == [28.0]


def test_setitem_makes_an_unrecorded_tensor_recorded():
    y = torch.zeros(2)
    x = leaf(4.0)
    y[0] = x[0]
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_recursion_over_its_own_slices():
    x = leaf(2.0)
    y = torch.ones(4)
    for i in range(1, 4):
        y[i] = y[i - 1].clone() * x[0]
    y[3].backward()
    assert x.grad.tolist() == [12.0]


def test_recursion_over_its_own_slices_without_clone_is_stale():
    x = leaf(2.0)
    y = torch.ones(4)
    for i in range(1, 4):
        y[i] = y[i - 1] * x[0]
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y[3].backward()


def test_second_derivative_through_a_written_slice():
    x = leaf(2.0, 3.0)
    y = x * x
    y[0].mul_(x[1])
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert first.tolist() == [12.0, 10.0]
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [2 * 3 + 2 * 2, 2 * 2 + 2]


def test_hook_on_a_view_and_on_its_base():
    seen = []
    x = leaf(1.0, 2.0)
    base = x * 1
    view = base[:1]
    base.register_hook(lambda g: seen.append(("base", g.tolist())))
    view.register_hook(lambda g: seen.append(("view", g.tolist())))
    (view * 3).sum().backward()
    assert seen == [("view", [3.0]), ("base", [3.0, 0.0])]


# ------------------------------------------------------------------ multi-output views


@pytest.mark.parametrize(
    ("split", "name"),
    [
        (lambda t: t.split(2), "Split"),
        (lambda t: t.split([1, 3]), "SplitWithSizes"),
        (lambda t: t.chunk(2), "Split"),
        (lambda t: list(t), "Unbind"),
    ],
)
def test_in_place_on_one_of_several_views_is_refused(split, name):
    base = torch.ones(4, 2, requires_grad=True) * 1
    view = split(base)[0]
    with fails(RuntimeError, f"Output 0 of {name} is a view and is being modified inplace." + MULTI):
        view.mul_(2)
    assert base.tolist() == [[1.0, 1.0]] * 4
    assert base._version == 0


def test_number_of_the_output_is_named():
    parts = (torch.ones(4, requires_grad=True) * 1).split(2)
    with fails(RuntimeError, "Output 1 of Split is a view and is being modified inplace." + MULTI):
        parts[1].add_(1)


def test_reading_one_of_several_views_after_the_base_changed_is_refused():
    base = torch.ones(4, requires_grad=True) * 1
    part = base.split(2)[0]
    base.mul_(2)
    with fails(
        RuntimeError,
        "Output 0 of Split is a view and its base or another view of its base has been modified inplace." + MULTI,
    ):
        part * 2


def test_several_views_without_grad_may_be_changed():
    base = torch.ones(4)
    base.split(2)[0].mul_(2)
    assert base.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_several_views_may_be_changed_under_no_grad():
    base = torch.ones(4, requires_grad=True) * 1
    part = base.split(2)[0]
    with torch.no_grad():
        part.mul_(2)
    assert base.tolist() == [2.0, 2.0, 1.0, 1.0]
    assert base._version == 1


# ------------------------------------------------------------------ views made under no_grad


def test_in_place_on_a_view_made_under_no_grad_is_refused():
    base = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        view = base.view(1, 2)
    assert view.requires_grad and view._is_view()
    with fails(RuntimeError, NO_GRAD_VIEW):
        view.mul_(2)
    assert base.tolist() == [1.0, 2.0]


def test_reading_a_view_made_under_no_grad_after_its_base_changed_is_refused():
    base = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        view = base.view(1, 2)
    base.mul_(2)
    with fails(RuntimeError, NO_GRAD_BASE):
        view.grad_fn  # noqa: B018


def test_view_and_in_place_both_under_no_grad_are_fine():
    x = leaf(1.0, 2.0)
    y = x * 1
    with torch.no_grad():
        y.view(1, 2).mul_(2)
    y.sum().backward()
    assert y.tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [1.0, 1.0]


def test_view_made_under_no_grad_of_a_plain_tensor_takes_no_recorded_values():
    base = torch.ones(2)
    with torch.no_grad():
        view = base.view(1, 2)
    view.mul_(2)
    with fails(RuntimeError, NO_GRAD_VIEW):
        view.mul_(leaf(1.0, 2.0))
    assert base.tolist() == [2.0, 2.0]


# ------------------------------------------------------------------ detach and data


def test_detach_in_place_of_a_view_is_refused():
    view = (leaf(1.0, 2.0) * 1)[:1]
    with fails(RuntimeError, "Can't detach views in-place. Use detach() instead...."):
        view.detach_()


def test_detach_in_place_makes_a_leaf():
    y = leaf(1.0) * 2
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None


def test_detach_of_a_view_can_be_written_and_the_base_sees_it():
    base = torch.ones(3)
    base[:2].detach().fill_(9)
    assert base.tolist() == [9.0, 9.0, 1.0]
    assert base._version == 1


def test_data_of_a_view_writes_into_the_base():
    base = leaf(1.0, 2.0)
    base[:1].data.fill_(9)
    assert base.tolist() == [9.0, 2.0]
    assert base._version == 0


def test_data_is_cut_from_the_graph_and_shares_memory():
    x = leaf(1.0)
    data = (x * 2).data
    assert not data.requires_grad and data.is_leaf and data._base is None
    assert x.data.data_ptr() == x.data_ptr()


def test_setting_data_of_a_used_leaf_is_seen_by_nobody_else():
    x = leaf(1.0, 2.0)
    view = x.detach()
    x.data = torch.zeros(2)
    assert view.tolist() == [1.0, 2.0]
    assert x.tolist() == [0.0, 0.0]
    assert x.requires_grad


def test_data_can_only_be_set_to_tensors_that_fit():
    x = leaf(1.0)
    with fails(TypeError, "Variable data has to be a tensor, but got int"):
        x.data = 5
    with fails(
        RuntimeError,
        "data set to a tensor that requires gradients must be floating point or complex dtype",
    ):
        x.data = torch.tensor([1])
    with fails(RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!"):
        del x.data
    assert x.tolist() == [1.0]


@pytest.mark.parametrize(
    "view",
    [
        lambda b: b.t(),
        lambda b: b.view(2, 4),
        lambda b: b.movedim(0, 1),
        lambda b: b.narrow(0, 0, 2),
        lambda b: b.tensor_split(2)[0],
        lambda b: b[1:],
        lambda b: b.unsqueeze(0),
        lambda b: b[:, :1].expand(4, 3),
        lambda b: b.diagonal(),
    ],
)
@pytest.mark.parametrize(
    "part", [lambda v: v[:1], lambda v: v.narrow(0, 0, 1), lambda v: v.select(0, 0), lambda v: v * 1]
)
def test_nothing_flows_through_a_view_made_in_no_grad_mode(view, part):
    x = torch.ones(4, 2, requires_grad=True)
    b = x * 1
    with torch.no_grad():
        v = view(b)
    (part(v).exp().sum() + 0 * part(v).sum()).backward()  # two parts, whose gradients meet in the view
    assert x.grad is None and v.grad is None
    (part(v).exp().sum() + b.sum()).backward()
    assert x.grad.tolist() == [[1.0, 1.0]] * 4
