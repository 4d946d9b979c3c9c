"""Support for old code: Variable, volatile, and Function with instance methods."""

import warnings

import pytest

import cygrad as torch
from cygrad.autograd import Function, Variable
from helpers import fails, leaf


class OldSquare(Function):
    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        self.save_for_backward(x)
        return x * x * self.factor

    def backward(self, grad):
        (x,) = self.saved_tensors
        return grad * 2 * x * self.factor


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


# ------------------------------------------------------------------ functions with instance methods


def test_old_style_function_warns():
    with pytest.warns(DeprecationWarning, match="static"):
        OldSquare()(leaf(1.0))


def test_old_style_function_differentiates(quiet):
    x = leaf(3.0)
    y = OldSquare(factor=10.0)(x)
    assert y.tolist() == [90.0]
    assert y.requires_grad and "OldSquare" in y.grad_fn.name()
    y.backward()
    assert x.grad.tolist() == [60.0]


def test_old_style_function_with_several_inputs_and_outputs(quiet):
    class SumAndProduct(Function):
        def forward(self, a, b):
            self.save_for_backward(a, b)
            return a + b, a * b

        def backward(self, grad_sum, grad_product):
            a, b = self.saved_tensors
            assert self.needs_input_grad == (True, True)
            return grad_sum + grad_product * b, grad_sum + grad_product * a

    a, b = leaf(2.0), leaf(3.0)
    total, product = SumAndProduct()(a, b)
    (total + product * 10).backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([31.0], [21.0])


def test_old_style_function_in_place(quiet):
    class Double(Function):
        def forward(self, x):
            self.mark_dirty(x)
            return x.mul_(2)

        def backward(self, grad):
            return grad * 2

    x = leaf(3.0)
    y = x * 1
    assert Double()(y) is y
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_old_style_function_called_twice_records_two_nodes(quiet):
    square = OldSquare()
    x, y = leaf(2.0), leaf(5.0)
    (square(x) + square(y)).backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([4.0], [10.0])


def test_old_style_call_of_a_function_with_static_methods():
    class New(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="Legacy autograd function"):
        warnings.simplefilter("ignore")
        New()(leaf(1.0))


# ------------------------------------------------------------------ Variable and volatile


def test_variable_wraps_without_copying():
    data = torch.ones(2)
    v = Variable(data, requires_grad=True)
    assert v.data_ptr() == data.data_ptr()
    assert v.requires_grad and v.is_leaf and not data.requires_grad
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3.0, 3.0]


def test_variable_is_tensor():
    v = Variable(torch.ones(1))
    assert type(v) is torch.Tensor
    assert isinstance(v, Variable) and isinstance(torch.ones(1), Variable)
    assert not isinstance(1.0, Variable)


def test_variable_of_a_recorded_tensor_is_cut():
    y = leaf(1.0) * 2
    v = Variable(y)
    assert v.is_leaf and not v.requires_grad


def test_volatile_warns_and_names_no_grad():
    with pytest.warns(DeprecationWarning, match="no_grad"):
        Variable(torch.ones(1), volatile=True)


def test_volatile_spreads_and_records_nothing(quiet):
    v = Variable(torch.ones(1), volatile=True)
    w = leaf(2.0)
    y = v * w
    z = (y + w) * 3
    for result in (y, z):
        assert not result.requires_grad
        assert result.grad_fn is None
        assert result.volatile
    assert not (w * 2).volatile


def test_backward_on_a_volatile_result_is_an_error_that_says_so(quiet):
    v = Variable(torch.ones(1), volatile=True)
    y = (v * leaf(2.0)).sum()
    with (
        pytest.raises(RuntimeError, match="volatile") as caught,
    ):
        y.backward()
    assert str(caught.value).startswith("element 0 of tensors does not require grad")


def test_volatile_and_requires_grad_exclude_each_other(quiet):
    with fails(RuntimeError, "Variable can't be volatile and require_grad at the same time!"):
        Variable(torch.ones(1), requires_grad=True, volatile=True)


def test_variable_needs_a_tensor():
    with fails(TypeError, "Variable data has to be a tensor, but got list"):
        Variable([1.0])


def volatile(*values):
    return Variable(torch.tensor(values), volatile=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda y, v: y.mul_(v),
        lambda y, v: y.add_(v),
        lambda y, v: y.copy_(v),
        lambda y, v: y.__setitem__(slice(0, 2), v),
        lambda y, v: y.__setitem__(0, v[0]),
        lambda y, v: y.__setitem__([0, 1], v),
        lambda y, v: y[0].add_(v[0]),
    ],
)
def test_what_a_volatile_tensor_is_written_into_becomes_volatile(quiet, change):
    """Otherwise the gradient would be silently wrong."""
    w = leaf(1.0, 2.0)
    y = w * 2
    change(y, volatile(3.0, 4.0))
    assert y.volatile
    assert not y.requires_grad
    assert y.grad_fn is None
    with fails(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"):
        y.sum().backward()
    assert w.grad is None


def test_writing_a_volatile_tensor_into_a_leaf_is_refused(quiet):
    w = leaf(1.0, 2.0)
    for changed in (w, w[0]):
        with pytest.raises(
            RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"
        ):
            changed.add_(volatile(3.0)[0])
    assert w.tolist() == [1, 2]
    with torch.no_grad():
        w.add_(volatile(3.0)[0])
    assert w.requires_grad
    assert not w.volatile


def test_volatile_is_kept_by_detach_and_out(quiet):
    v = volatile(1.0, 2.0)
    assert v.detach().volatile
    assert not v.data.volatile
    out = torch.empty(2)
    torch.add(v, 1, out=out)
    assert out.volatile


def test_volatile_and_requires_grad_exclude_each_other_later_on(quiet):
    v = volatile(1.0)
    for change in (lambda: v.requires_grad_(), lambda: setattr(v, "requires_grad", True)):
        with fails(RuntimeError, "Variable can't be volatile and require_grad at the same time!"):
            change()
    assert not v.requires_grad


def test_volatile_may_be_set_on_leaves():
    w = leaf(1.0)
    with pytest.warns(DeprecationWarning, match="no_grad"):
        w.volatile = True
    assert not (w * 2).requires_grad
    w.volatile = False
    w.requires_grad_()
    y = w * 2
    assert y.requires_grad
    with fails(RuntimeError, "volatile can only be set on leaf variables"):
        y.volatile = True
    with fails(RuntimeError, "volatile must be a bool"):
        w.volatile = 1
