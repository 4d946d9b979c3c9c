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
        "aten.matmul.default",
        "aten.add.default",
        "aten.relu.default",
        "aten.sum.default",
    ]
    assert dispatch._get_current_dispatch_mode_stack() == []
    with pytest.raises(NotImplementedError), dispatch.TorchDispatchMode():
        torch.neg(x)
    with dispatch.BaseTorchDispatchMode():
        assert torch.neg(x)[0, 0] == -1


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
    assert mode.notes == ["aten.zeros.default", "aten.mul.default"][:1]
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
