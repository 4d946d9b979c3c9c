"""Dispatch modes, and helpers of classes that hold other tensors."""

import pytest

import cygrad as torch
from cygrad.utils import _python_dispatch as dispatch


class Notes(dispatch.TorchDispatchMode):
    def __init__(self):
        self.notes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.notes.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_ops():
    x = torch.ones(2, 3)
    with Notes() as mode:
        result = torch.relu(x @ x.t() + 1).sum()
        assert dispatch._get_current_dispatch_mode() is mode and dispatch.is_in_torch_dispatch_mode()
        with dispatch._disable_current_modes() as modes:
            torch.neg(x)
        assert modes == [mode]
    assert result.item() == 16
    assert mode.notes == [
        "aten.t.default",
        "aten.mm.default",
        "aten.add.Tensor",
        "aten.relu.default",
        "aten.sum.default",
    ]
    assert dispatch._get_current_dispatch_mode_stack() == []
    with pytest.raises(NotImplementedError), dispatch.TorchDispatchMode():
        torch.neg(x)
    with dispatch.BaseTorchDispatchMode():
        assert torch.neg(x)[0, 0] == -1


def test_a_mode_sees_the_backward_pass_below_autograd():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    class Plain(Notes):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = super().__torch_dispatch__(func, types, args, kwargs)
            assert not torch.is_grad_enabled() and not found.requires_grad
            return found

    with Plain() as mode:
        (torch.sigmoid(x) * 2).mean().backward()
    assert mode.notes == [
        "aten.sigmoid.default",
        "aten.mul.Tensor",
        "aten.mean.default",
        "aten.ones_like.default",
        "aten.expand.default",
        "aten.div.Scalar",
        "aten.mul.Tensor",
        "aten.sigmoid_backward.default",
        "aten.detach.default",
    ]
    y = x.detach().requires_grad_()
    (torch.sigmoid(y) * 2).mean().backward()
    assert torch.equal(x.grad, y.grad)


def test_a_mode_sees_what_random_integers_are_drawn_from():
    class Calls(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append((func, args[1:], kwargs))
            return func(*args, **kwargs)

    calls: list = []
    x, ops = torch.ones(2), torch.ops.aten.randint_like
    with Calls():
        found = torch.randint_like(x, 5), torch.randint_like(x, 2, 3), torch.randint_like(x, high=9, dtype=torch.int64)
    assert calls == [
        (ops.default, (5,), {"pin_memory": False}),
        (ops.low_dtype, (2, 3), {"pin_memory": False}),
        (ops.default, (9,), {"dtype": torch.int64, "pin_memory": False}),
    ]
    assert found[1].tolist() == [2, 2] and found[2].dtype is torch.int64


def test_modes_of_the_package_are_told_from_those_of_programs():
    class Infra(dispatch.TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True

    assert not dispatch.is_in_torch_dispatch_mode()
    with Infra():
        assert dispatch.is_in_torch_dispatch_mode() and not dispatch.is_in_torch_dispatch_mode(False)
        with dispatch.TorchDispatchMode():
            assert dispatch.is_in_torch_dispatch_mode(include_infra_modes=False)


def test_what_a_mode_returns_takes_the_place_of_the_result():
    class Halves(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            return found / 2 if func is torch.ops.aten.exp.default else found

    x = torch.tensor([0.0], requires_grad=True)
    with Halves():
        y = torch.exp(x)
    assert y.item() == 0.5 and y.grad_fn.name() == "ExpBackward0"
    y.backward()
    assert x.grad.item() == 0.5  # by the rule of exp, from what was saved


def test_changed_arguments_and_results_of_wrong_kind():
    class Doubles(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.add.Tensor:
                return func(args[0], args[1] * 2)
            if func is torch.ops.aten.mul_.Tensor:
                return args[0]  # does not write
            return "text" if func is torch.ops.aten.neg.default else func(*args, **(kwargs or {}))

    x, y = torch.ones(2), torch.ones(2)
    with Doubles():
        assert (x + y).tolist() == [3, 3]
        assert x.mul_(5) is x and x.tolist() == [1, 1]
        with pytest.raises(TypeError, match="returned str in place of a Tensor"):
            torch.neg(x)


def test_ops_in_place_are_seen_before_they_write():
    seen = []

    class Sees(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            before = args[0].tolist() if func._opname.endswith("_") else None
            found = func(*args, **(kwargs or {}))
            if before is not None:
                seen.append((str(func), before, args[0].tolist(), found is args[0]))
            return found

    x = torch.ones(2)
    version = x._version
    with Sees():
        x.add_(1)
        x[0] = 5.0
        torch.mul(x, 2, out=x)
    assert seen == [
        ("aten.add_.Tensor", [1, 1], [2, 2], True),
        ("aten.copy_.default", 2, 5, True),
        ("aten.mul_.Tensor", [5, 2], [10, 4], True),
    ]
    assert x.tolist() == [10, 4] and x._version == version + 3


def test_modes_are_asked_from_the_inside_out_and_random_numbers_are_drawn_once():
    class Outer(Notes):
        pass

    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with Outer() as outer, Notes() as inner:
        found = torch.rand(3)
    assert torch.equal(found, expected)
    assert outer.notes == inner.notes == ["aten.rand.default"]


def test_an_error_in_a_handler_leaves_nothing_behind():
    class Fails(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("no")

    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2)
    with Fails():
        with pytest.raises(KeyError):
            x + 1
        with pytest.raises(KeyError):
            y.add_(1)
    assert dispatch._get_current_dispatch_mode() is None and torch.is_grad_enabled()
    assert (x + y).requires_grad


def test_threads_have_their_own_modes():
    import threading

    found = []
    with Notes() as mode:
        thread = threading.Thread(target=lambda: found.append(torch.neg(torch.ones(1)).item()))
        thread.start()
        thread.join()
    assert found == [-1] and mode.notes == []


def test_transforms_are_above_modes():
    x = torch.ones(2, 3)
    with Notes() as mode:
        torch.func.vmap(torch.sin)(x)
    assert mode.notes.count("aten.sin.default") == 1
    with Notes() as mode:
        assert torch.func.grad(lambda a: a.sin().sum())(x).shape == (2, 3)
    assert "aten.cos.default" in mode.notes


def test_a_mode_may_be_nested_in_itself():
    mode = Notes()
    with mode, mode:
        torch.neg(torch.Tensor.detach(torch.tensor(1.0)))
    assert mode.notes.count("aten.neg.default") == 2


def test_rules_of_custom_ops():
    @torch.library.custom_op("test::dispatched", mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @torch.library.register_torch_dispatch(op, Notes)
    def rule(mode, func, types, args, kwargs):
        return func(*args, **kwargs) * 10

    with Notes() as mode:
        assert op(torch.zeros(1)).item() == 10
    assert mode.notes == ["aten.zeros.default", "aten._local_scalar_dense.default"]
    assert op(torch.zeros(1)).item() == 1


class Pair(torch.Tensor):
    """Holds two tensors."""

    def __tensor_flatten__(self):
        return ["left", "right"], {"note": 1}

    @staticmethod
    def __tensor_unflatten__(held, context, size, stride):
        made = torch.empty(size).as_subclass(Pair)
        made.left, made.right = held["left"], held["right"]
        return made


def test_classes_that_hold_tensors():
    pair = Pair.__tensor_unflatten__({"left": torch.ones(2), "right": torch.zeros(2)}, {}, (2,), (1,))
    assert dispatch.is_traceable_wrapper_subclass(pair) and dispatch.is_traceable_wrapper_subclass(Pair)
    assert not dispatch.is_traceable_wrapper_subclass(torch.ones(1)) and not dispatch.is_traceable_wrapper_subclass(3)
    other = dispatch.transform_subclass(pair, lambda name, tensor: tensor + 1)
    assert type(other) is Pair and other.left.tolist() == [2, 2] and other.right.tolist() == [1, 1]


def test_results_of_ops_in_place():
    x, made = torch.ones(1), torch.zeros(1)
    aten = torch.ops.aten
    assert dispatch.return_and_correct_aliasing(aten.add_.default, (x, 1), {}, made) is x
    assert dispatch.return_and_correct_aliasing(aten.add.default, (x, 1), {}, made) is made
    assert dispatch.return_and_correct_aliasing(aten.add.default, (x, 1), {"out": x}, made) is x
