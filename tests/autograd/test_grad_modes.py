"""no_grad, enable_grad, set_grad_enabled, inference_mode: as contexts, decorators, in threads."""

import inspect
import warnings

import pytest

import cygrad as torch
from helpers import fails, in_thread, leaf

SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
    "inference mode in computation tracked by autograd. To work around this, you can make a clone "
    "to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
    "`torch.inference_mode()`."
)
WRITTEN = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone "
    "to get a normal tensor before doing inplace update.See "
    "https://github.com/pytorch/rfcs/pull/17 for more details."
)
REQUIRED = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."


def modes():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


def inference_tensor():
    with torch.inference_mode():
        return torch.ones(2)


# ------------------------------------------------------------------ as contexts


def test_grad_mode_is_on_by_default():
    assert modes() == (True, False)


def test_no_grad_records_nothing():
    x = leaf(1.0)
    with torch.no_grad():
        y = x * 2
    assert not y.requires_grad and y.is_leaf and y.grad_fn is None
    assert (x * 2).requires_grad


def test_tensors_made_under_no_grad_can_require_grad():
    with torch.no_grad():
        x = torch.ones(1, requires_grad=True)
    assert x.requires_grad
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_view_of_a_leaf_under_no_grad_keeps_requires_grad_without_history():
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        view = x.view(1, 2)
    assert view.requires_grad and view.is_leaf and view.grad_fn is None


def test_enable_grad_inside_no_grad():
    x = leaf(1.0)
    with torch.no_grad():
        with torch.enable_grad():
            y = x * 2
        assert not torch.is_grad_enabled()
    assert y.requires_grad


@pytest.mark.parametrize("mode", [True, False])
def test_set_grad_enabled_as_a_context(mode):
    with torch.set_grad_enabled(mode):
        assert torch.is_grad_enabled() is mode
        assert (leaf(1.0) * 2).requires_grad is mode
    assert torch.is_grad_enabled()


def test_set_grad_enabled_as_a_function():
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
        assert not (leaf(1.0) * 2).requires_grad
    finally:
        torch.set_grad_enabled(True)
    assert torch.is_grad_enabled()


def test_set_grad_enabled_restores_what_was_before_its_construction():
    with torch.no_grad():
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_mode_ends_with_an_exception(mode):
    with pytest.raises(KeyError):
        with mode():
            raise KeyError
    assert modes() == (True, False)


def test_modes_are_found_in_autograd_too():
    assert torch.autograd.no_grad is torch.no_grad
    assert torch.autograd.enable_grad is torch.enable_grad
    assert torch.autograd.set_grad_enabled is torch.set_grad_enabled
    assert torch.autograd.inference_mode is torch.inference_mode


def test_set_grad_enabled_takes_a_bool():
    with fails(TypeError, "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not str"):
        torch.set_grad_enabled("no")
    assert torch.is_grad_enabled()


# ------------------------------------------------------------------ as decorators


@pytest.mark.parametrize("decorator", [torch.no_grad, torch.no_grad(), torch.set_grad_enabled(True)])
def test_decorator_keeps_name_documentation_arguments_and_result(decorator):
    @decorator
    def scaled(tensor, factor=2, *, offset=0):
        """Scale it."""
        return tensor * factor + offset

    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "Scale it."
    assert scaled(torch.ones(1), 3, offset=1).tolist() == [4.0]


def test_no_grad_decorates_with_and_without_a_call():
    @torch.no_grad()
    def called(x):
        return x * 2

    @torch.no_grad
    def bare(x):
        return x * 2

    for function in (called, bare, called):
        assert not function(leaf(1.0)).requires_grad
        assert torch.is_grad_enabled()


def test_enable_grad_decorates_with_and_without_a_call():
    @torch.enable_grad()
    def called(x):
        return x * 2

    @torch.enable_grad
    def bare(x):
        return x * 2

    with torch.no_grad():
        assert called(leaf(1.0)).requires_grad
        assert bare(leaf(1.0)).requires_grad


def test_set_grad_enabled_as_a_decorator_leaves_the_mode_alone_outside():
    @torch.set_grad_enabled(False)
    def function(x):
        return x * 2

    assert torch.is_grad_enabled()
    assert not function(leaf(1.0)).requires_grad
    assert torch.is_grad_enabled()


def test_inference_mode_decorates_with_without_and_with_a_false_call():
    @torch.inference_mode()
    def called(x):
        return x * 2

    @torch.inference_mode
    def bare(x):
        return x * 2

    @torch.inference_mode(False)
    def off(x):
        return x * 2

    assert called(leaf(1.0)).is_inference()
    assert bare(leaf(1.0)).is_inference()
    assert not off(leaf(1.0)).is_inference()


def test_decorated_method():
    class Model:
        weight = 3.0

        @torch.no_grad()
        def predict(self, x):
            return x * self.weight

    assert Model().predict(leaf(1.0)).tolist() == [3.0]
    assert not Model().predict(leaf(1.0)).requires_grad


def test_decorated_function_that_raises_restores_the_mode():
    @torch.no_grad()
    def broken():
        raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert torch.is_grad_enabled()


def test_decorated_recursive_function():
    @torch.no_grad()
    def depth(n):
        assert not torch.is_grad_enabled()
        return 0 if n == 0 else 1 + depth(n - 1)

    assert depth(5) == 5
    assert torch.is_grad_enabled()


def test_decorated_generator_holds_the_mode_only_while_it_runs():
    @torch.no_grad()
    def numbers():
        got = yield torch.is_grad_enabled()
        try:
            yield got, torch.is_grad_enabled()
        except ValueError:
            yield "caught", torch.is_grad_enabled()
        return "end"

    generator = numbers()
    assert inspect.isgeneratorfunction(numbers)
    assert next(generator) is False
    assert torch.is_grad_enabled()
    assert generator.send("sent") == ("sent", False)
    assert torch.is_grad_enabled()
    assert generator.throw(ValueError) == ("caught", False)
    assert torch.is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == "end"
    assert torch.is_grad_enabled()


def test_decorated_generator_closed_early_cleans_up_in_its_own_mode():
    seen = []

    @torch.no_grad()
    def numbers():
        try:
            yield 1
        finally:
            seen.append(torch.is_grad_enabled())

    generator = numbers()
    next(generator)
    generator.close()
    assert seen == [False]
    assert torch.is_grad_enabled()


def test_two_generators_of_different_modes_interleave():
    @torch.no_grad()
    def off():
        for _ in range(3):
            yield torch.is_grad_enabled()

    @torch.enable_grad()
    def on():
        for _ in range(3):
            yield torch.is_grad_enabled()

    assert list(zip(off(), on())) == [(False, True)] * 3
    with torch.no_grad():
        assert list(zip(off(), on())) == [(False, True)] * 3


def test_decorated_class_has_its_constructor_decorated():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)

        @torch.no_grad()
        class Thing:
            def __init__(self):
                self.at_start = torch.is_grad_enabled()

            def later(self):
                return torch.is_grad_enabled()

    thing = Thing()
    assert thing.at_start is False
    assert thing.later() is True


def test_decorating_a_class_warns():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Thing:
            pass

    assert Thing is not None


# ------------------------------------------------------------------ threads


def test_a_new_thread_starts_with_grad_mode_on():
    with torch.no_grad():
        assert in_thread(modes) == (True, False)
    with torch.inference_mode():
        assert in_thread(modes) == (True, False)


def test_mode_set_in_a_thread_stays_there():
    in_thread(torch.set_grad_enabled, False)
    assert torch.is_grad_enabled()


# ------------------------------------------------------------------ inference mode


def test_inference_mode_switches_recording_off():
    x = leaf(1.0)
    with torch.inference_mode():
        assert modes() == (False, True)
        y = x * 2
        assert y.is_inference() and not y.requires_grad
        assert not x.is_inference()
    assert modes() == (True, False)


def test_inference_mode_false_is_an_island_of_normal_mode():
    x = leaf(1.0)
    with torch.inference_mode():
        with torch.inference_mode(False):
            assert modes() == (True, False)
            y = x * 2
            assert y.requires_grad and not y.is_inference()
        assert modes() == (False, True)


def test_enable_grad_does_not_leave_inference_mode():
    x = leaf(1.0)
    with torch.inference_mode(), torch.enable_grad():
        assert modes() == (True, True)
        y = x * 2
    assert y.is_inference() and not y.requires_grad


def test_inference_tensor_has_no_version():
    with fails(RuntimeError, "Inference tensors do not track version counter."):
        inference_tensor()._version  # noqa: B018


def test_inference_tensor_cannot_be_saved_for_backward():
    with fails(RuntimeError, SAVED):
        leaf(1.0, 2.0) * inference_tensor()


def test_inference_tensor_may_take_part_where_nothing_is_saved():
    x = leaf(1.0, 2.0)
    (x + inference_tensor()).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_inference_tensor_in_unrecorded_ops_gives_normal_tensors():
    y = inference_tensor() * 2
    assert not y.is_inference()
    y.mul_(2)
    assert y._version == 1


def test_inference_tensor_cannot_be_changed_outside():
    t = inference_tensor()
    with fails(RuntimeError, WRITTEN):
        t.mul_(2)
    with torch.no_grad(), fails(RuntimeError, WRITTEN):
        t.mul_(2)
    with fails(RuntimeError, WRITTEN):
        t[0] = 5.0


def test_inference_tensor_can_be_changed_inside():
    t = inference_tensor()
    with torch.inference_mode():
        t.mul_(2)
    assert t.tolist() == [2.0, 2.0]


def test_inference_tensor_cannot_require_grad_outside():
    t = inference_tensor()
    with fails(RuntimeError, REQUIRED):
        t.requires_grad_()
    with fails(RuntimeError, REQUIRED):
        t.requires_grad = True
    assert not t.requires_grad


def test_view_of_an_inference_tensor_is_one_too():
    view = inference_tensor()[0]
    assert view.is_inference()
    with fails(RuntimeError, WRITTEN):
        view.mul_(2)


def test_view_of_a_normal_tensor_made_in_inference_mode_is_normal():
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        view = x.view(1, 2)
    assert not view.is_inference()
    with fails(
        RuntimeError,
        "A view was created in inference mode and is being modified inplace in normal mode...",
    ):
        view.mul_(2)
    assert x.tolist() == [1.0, 2.0]


def test_clone_of_an_inference_tensor_is_normal():
    copy = inference_tensor().clone()
    assert not copy.is_inference()
    copy.requires_grad_()
    (copy * 3).sum().backward()
    assert copy.grad.tolist() == [3.0, 3.0]


def test_normal_tensor_changed_in_inference_mode_counts_a_version():
    y = leaf(1.0) * 1
    z = y.sin()
    with torch.inference_mode():
        y.mul_(3)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_leaf_may_be_changed_in_inference_mode():
    x = leaf(1.0)
    with torch.inference_mode():
        x.mul_(2)
    assert x.tolist() == [2.0]
    assert x._version == 1


def test_leaf_made_in_inference_mode_records_nothing_even_outside():
    with torch.inference_mode():
        x = torch.ones(1, requires_grad=True)
        assert x.requires_grad
        assert not (x * 2).requires_grad
    with fails(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"):
        with torch.inference_mode():
            y = x * 2
        y.backward()


def test_multithreading_may_be_switched_and_changes_nothing():
    x = leaf(3.0)

    @torch.autograd.set_multithreading_enabled(False)
    def run():
        assert torch.is_grad_enabled()
        (x * x).backward()

    run()
    with torch.autograd.grad_mode.set_multithreading_enabled(True), torch.no_grad():
        assert not (x * x).requires_grad
    assert x.grad.tolist() == [6.0] and torch.is_grad_enabled()
    with fails(TypeError, "set_multithreading_enabled(): argument 'enabled' (position 1) must be bool, not int"):
        torch.autograd.set_multithreading_enabled(1)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_lie_in_memory_as_their_leaves_whatever_is_asked_for(create_graph):
    def strides():
        x = torch.empty(2, 3, 4).permute(2, 0, 1).requires_grad_()
        twice = (x * x).permute(2, 1, 0).contiguous().sum()
        twice.backward(create_graph=create_graph, retain_graph=True)
        first = x.grad.stride()
        twice.backward()
        return first, x.grad.stride()

    expected = ((1, 12, 4), (1, 12, 4))
    assert strides() == torch.autograd.enforce_grad_layout_policy(False)(strides)() == expected
    with torch.autograd.enforce_grad_layout_policy(False):
        assert strides() == expected
    with fails(
        TypeError, "set_grad_layout_enforcement_enabled(): argument 'enabled' (position 1) must be bool, not str"
    ):
        torch.autograd.enforce_grad_layout_policy("no")


@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad(),
        torch.enable_grad(),
        torch.inference_mode(),
        torch.inference_mode(False),
        torch.autograd.set_multithreading_enabled(False),
        torch.autograd.enforce_grad_layout_policy(False),
    ],
)
def test_clone(mode):
    copy = mode.clone()
    assert type(copy) is type(mode)
    assert vars(copy) == vars(mode)
    with torch.set_grad_enabled(True).clone() as nothing:
        assert nothing is None
        assert torch.is_grad_enabled()


def test_view_of_an_inference_tensor_that_requires_grad_does_not():
    with torch.inference_mode():
        x = torch.ones(1, 2, requires_grad=True)
    for view in (x.view(-1), *x.unbind(1)):
        assert view.is_inference() and not view.requires_grad and view.is_leaf


def test_no_result_is_written_into_an_inference_tensor_outside():
    with torch.inference_mode():
        x = torch.ones(2)
        torch.mul(x, x, out=x)
    with fails(RuntimeError, WRITTEN):
        torch.mul(torch.ones(2), 2, out=x)
    assert x.tolist() == [1.0, 1.0]


def test_tensors_that_require_grad_are_resized_in_inference_mode():
    with torch.inference_mode():
        x = torch.ones(1, 2, 3, requires_grad=True)
        assert x.resize_(1, 2).shape == (1, 2) and x.requires_grad
        assert x.resize_as_(torch.ones(2, 1)).shape == (2, 1)
    with fails(RuntimeError, "cannot resize variables that require grad"):
        torch.ones(2, requires_grad=True).resize_(1)
