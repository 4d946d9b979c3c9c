"""Custom Functions that return their inputs or views of them, or modify them in place."""

import pytest

import cygrad as torch
from cygrad.autograd import Function
from helpers import fails, kind, leaf

INSIDE = (
    " This view was created inside a custom Function (or because an input was returned as-is) and "
    "the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function."
)


class AsIs(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


class Flat(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.view(2, 1) * 5


class DoubleInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Fill(Function):
    @staticmethod
    def forward(ctx, target, source):
        target.copy_(source)
        ctx.mark_dirty(target)
        return target

    @staticmethod
    def backward(ctx, grad):
        return None, grad * 3


# ------------------------------------------------------------------ inputs and views returned


def test_input_returned_as_it_is_becomes_a_new_tensor_over_the_same_memory():
    x = leaf(1.0, 2.0)
    y = AsIs.apply(x)
    assert y is not x
    assert x.is_leaf
    assert y.data_ptr() == x.data_ptr()
    assert y.grad_fn.name() == "AsIsBackward"
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_input_returned_without_recording():
    x = torch.ones(2)
    y = AsIs.apply(x)
    assert y.tolist() == [1.0, 1.0]
    assert not y.requires_grad


def test_view_returned_differentiates():
    x = torch.ones(2, 1, requires_grad=True)
    y = Flat.apply(x * 1)
    assert y._is_view()
    y.sum().backward()
    assert x.grad.tolist() == [[5.0], [5.0]]


@pytest.mark.parametrize("made", [AsIs, Flat])
def test_returned_view_may_not_be_changed_in_place(made):
    base = torch.ones(2, 1, requires_grad=True) * 1
    view = made.apply(base)
    with fails(
        RuntimeError,
        f"Output 0 of {made.__name__} is a view and is being modified inplace." + INSIDE,
    ):
        view.mul_(2)
    assert base.tolist() == [[1.0], [1.0]]


def test_returned_view_may_not_be_read_after_its_base_was_changed():
    base = torch.ones(2, 1, requires_grad=True) * 1
    view = Flat.apply(base)
    base.mul_(2)
    with fails(
        RuntimeError,
        "Output 0 of Flat is a view and its base or another view of its base has been modified inplace." + INSIDE,
    ):
        view + 1


def test_clone_of_a_returned_view_may_be_changed():
    x = torch.ones(2, 1, requires_grad=True)
    y = Flat.apply(x * 1).clone()
    y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [[10.0], [10.0]]


def test_one_of_several_returned_views_may_not_be_changed():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            return x, x * 2

        @staticmethod
        def backward(ctx, first, second):
            return first + second * 2

    view, _ = Both.apply(leaf(1.0) * 1)
    with pytest.raises(RuntimeError, match="Output 0 of Both is a view and is being modified"):
        view.mul_(2)


# ------------------------------------------------------------------ mark_dirty


def test_dirty_input_is_the_output_itself():
    x = leaf(1.0)
    y = x * 1
    before = y._version
    result = DoubleInPlace.apply(y)
    assert result is y
    assert y.grad_fn.name() == "DoubleInPlaceBackward"
    assert y._version > before
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_dirty_input_makes_earlier_saved_values_stale():
    y = leaf(1.0) * 1
    z = y.sin()
    DoubleInPlace.apply(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_dirty_leaf_is_refused():
    with fails(
        RuntimeError,
        "a leaf Variable that requires grad has been used in an in-place operation.",
    ):
        DoubleInPlace.apply(leaf(1.0))


def test_dirty_plain_tensor_takes_the_history():
    target, source = torch.zeros(2), leaf(1.0, 2.0)
    result = Fill.apply(target, source)
    assert result is target
    assert target.requires_grad and not target.is_leaf
    target.sum().backward()
    assert source.grad.tolist() == [3.0, 3.0]


def test_dirty_without_anything_recorded():
    x = torch.ones(1)
    assert DoubleInPlace.apply(x) is x
    assert x.tolist() == [2.0]
    assert not x.requires_grad


def test_dirty_view_rewrites_the_history_of_its_base():
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    view = base[:2]
    assert DoubleInPlace.apply(view) is view
    assert kind(base.grad_fn) == "CopySlices"
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 1.0]
    assert base.tolist() == [2.0, 4.0, 3.0]


def test_dirty_view_of_a_plain_base():
    base, source = torch.zeros(3), leaf(1.0, 2.0)
    Fill.apply(base[:2], source)
    assert base.requires_grad
    (base * base).sum().backward()
    assert source.grad.tolist() == [6.0, 12.0]


def test_dirty_tensor_must_be_returned():
    class Forgotten(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    with fails(
        RuntimeError,
        "Some elements marked as dirty during the forward method were not returned as output. The "
        "inputs that are modified inplace must all be outputs of the Function.",
    ):
        Forgotten.apply(leaf(1.0) * 1)


def test_dirty_must_be_an_input():
    class Foreign(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        Foreign.apply(x * 1).backward()
    assert x.grad.tolist() == [2.0]


def test_dirty_view_beside_another_output_is_refused():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 6

    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view of another Tensor, your Func"):
        Two.apply((leaf(1.0, 2.0) * 1)[:1])


def test_dirty_beside_another_output_on_a_tensor_that_is_no_view():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 6

    x = leaf(1.0)
    y = x * 1
    same, other = Two.apply(y)
    assert same is y
    (same + other).backward()
    assert x.grad.tolist() == [8.0]


def test_input_returned_and_marked_as_not_differentiable():
    class Stop(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = Stop.apply(x)
    assert not y.requires_grad
    assert x.requires_grad


def test_views_without_history_say_that_a_function_made_them():
    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return grad

    view, other = View.apply(torch.ones(2)), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        view.add_(other)
    view.add_(1)
