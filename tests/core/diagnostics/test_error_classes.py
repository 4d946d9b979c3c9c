"""`cygrad.errors`: exception classes with machine-readable sites."""

import pickle
import warnings

import pytest

import cygrad as torch
from cygrad import errors
from helpers import leaf, line_marked


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name.endswith("Error")])
def test_is_a_runtime_error_of_the_public_module(name):
    kind = getattr(errors, name)
    assert issubclass(kind, RuntimeError)
    assert issubclass(kind, errors.AutogradError)
    assert (kind.__module__, kind.__qualname__) == ("cygrad.errors", name)


def line_number(mark):
    return int(line_marked(mark, depth=2).rpartition(":")[2].removesuffix(r"\b"))


def test_sites_are_file_line_and_function():
    y = leaf(1.0) * 1
    z = y.sin()  # saved
    y += 1  # changed
    with pytest.raises(errors.ChangedInPlaceError) as caught:
        z.backward()
    saved, changed = caught.value.sites["saved"], caught.value.sites["changed"]
    assert (saved.file, saved.line) == (__file__, line_number("saved"))
    assert (changed.file, changed.line) == (__file__, line_number("changed"))
    assert saved.function == "test_sites_are_file_line_and_function"
    assert str(saved) == f"{__file__}:{saved.line}"
    assert f"saved by SinBackward0 at {saved}" in str(caught.value)


def test_errors_can_be_pickled():
    w = leaf(1.0)
    with pytest.raises(errors.LeafChangedError) as caught:
        w += 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is errors.LeafChangedError
    assert str(again) == str(caught.value)
    assert again.sites == caught.value.sites


def test_no_site_where_nothing_was_cut():
    with pytest.raises(errors.NoGradientError) as caught:
        torch.ones(1).backward()
    assert caught.value.sites == {}


def test_why_no_grad_of_a_leaf_that_was_made_one_too_late():
    loss = (leaf(1.0) * 2).detach()  # cut
    loss.requires_grad = True
    text = torch.why_no_grad(loss)
    assert text.startswith("it is a leaf: requires_grad was set on it after its history was cut by detach at ")
    assert f":{line_number('cut')}" in text


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (lambda x: torch.where(x > 1, torch.ones(2), torch.zeros(2)), "non-differentiable op gt"),
        (lambda x: torch.zeros(2).copy_(x.detach()), "detach"),
        (lambda x: torch.tensor(x), "torch.tensor"),
        (Rounded.apply, "non-differentiable op RoundedBackward"),
    ],
    ids=["where", "copy_", "tensor", "marked"],
)
def test_why_no_grad_names_what_cut(cut, words):
    text = torch.why_no_grad(cut(torch.ones(2, requires_grad=True)) * 3)
    assert text.startswith(f"cut by {words} at ") and "test_error_classes.py" in text


def test_why_no_grad_refuses_what_is_no_tensor():
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        torch.why_no_grad(3)


def test_a_leaf_made_after_its_history_was_cut_warns_in_backward():
    loss = (torch.ones(2, requires_grad=True).detach() * 2).sum()
    loss.requires_grad = True
    with pytest.warns(UserWarning, match="backward\\(\\) has nothing to do: .* cut by detach"):
        loss.backward()


def test_backward_of_what_is_no_late_leaf_does_not_warn():
    w = torch.ones(2, requires_grad=True)
    changed = torch.zeros(2, requires_grad=True).detach()
    changed.add_(w)  # has a history again
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        changed.sum().backward()
        changed.backward(torch.ones(2))
        torch.ones((), requires_grad=True).backward()
