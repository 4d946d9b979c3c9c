"""`TorchFunctionMode`: which calls modes see, in which order, and that nothing is left behind."""

import threading

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import _C, overrides
from cygrad.overrides import BaseTorchFunctionMode, TorchFunctionMode, resolve_name


class Notes(TorchFunctionMode):
    """Notes the names of the functions it sees, then calls them."""

    def __init__(self, title="", notes=None):
        self.title, self.notes = title, [] if notes is None else notes

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.notes.append(self.title + func.__name__)
        return func(*args, **(kwargs or {}))


def seen(call):
    with Notes() as mode:
        result = call()
    return result, mode.notes


ONES = torch.ones(2, 2)
CALLS = {
    "add": lambda: ONES + 1,
    "__rsub__": lambda: 1 - ONES,
    "__getitem__": lambda: ONES[0],
    "neg": lambda: -ONES,
    "gt": lambda: ONES > 0,
    "__eq__": lambda: ONES == 1,
    "matmul": lambda: ONES @ ONES,
    "add_": lambda: torch.zeros(1).__class__.__iadd__(torch.Tensor.clone(ONES), 1),
    "zeros": lambda: torch.zeros(2),
    "arange": lambda: torch.arange(3),
    "rand": lambda: torch.rand(2),
    "tensor": lambda: torch.tensor([1.0]),
    "view": lambda: ONES.view(4),
    "size": lambda: ONES.size(0),
    "dim": lambda: ONES.dim(),
    "item": lambda: torch.Tensor.item(ONES.sum()),
    "tolist": lambda: ONES.tolist(),
    "to": lambda: ONES.to(torch.float64),
    "relu": lambda: F.relu(ONES),
    "dropout": lambda: F.dropout(ONES, 0.5, False),
    "cat": lambda: torch.cat((ONES, ONES)),
    "is_floating_point": lambda: torch.is_floating_point(ONES),
    "__len__": lambda: len(ONES),
    "det": lambda: torch.linalg.det(ONES),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_a_call_of_plain_tensors(name):
    assert seen(CALLS[name])[1][-1] == name


def test_a_mode_changes_arguments_and_results():
    class Doubles(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if func is torch.zeros:
                kwargs["dtype"] = torch.float64
            result = func(*args, **kwargs)
            return result + 1 if func is torch.Tensor.add else result

    with Doubles():
        assert torch.zeros(2).dtype == torch.float64
        assert (ONES + 1).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert torch.zeros(2).dtype == torch.float32
    assert (ONES + 1).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_the_innermost_mode_sees_a_call_first_and_each_sees_it_once():
    notes: list = []
    with Notes("outer ", notes), Notes("inner ", notes):
        F.relu(ONES)
    assert notes == ["inner relu", "outer relu"]


def test_a_mode_may_be_entered_twice():
    mode = Notes()
    with mode, mode:
        torch.neg(ONES)
    assert mode.notes == ["neg", "neg"]


def test_modes_come_before_classes_and_hear_of_them():
    notes = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            notes.append("class")
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            notes.append(types)
            return func(*args, **(kwargs or {}))

    own = ONES.as_subclass(Own)
    with Mode():
        result = torch.neg(own)
    assert type(result) is Own and notes == [(Own,), "class"]
    notes.clear()
    with Mode(), _C.DisableTorchFunctionSubclass():
        torch.neg(own)
    assert notes == [()]
    notes.clear()
    with Mode(), _C.DisableTorchFunction():
        torch.neg(own) + own
    assert notes == []


def test_a_call_that_nobody_handles_names_the_mode():
    class Mute(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Mute(), pytest.raises(TypeError) as error:
        torch.add(ONES, 1)
    assert str(error.value).startswith(
        "Multiple dispatch failed for 'torch.add'; all __torch_function__ handlers returned NotImplemented:\n\n"
        "  - mode object <"
    )
    assert torch.add(ONES, 1)[0, 0] == 2


def test_an_error_in_a_mode_leaves_its_block_in_order():
    class Bad(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError("no")

    with pytest.raises(KeyError), Bad():
        ONES + 1
    assert overrides._len_torch_function_stack() == 0
    assert (ONES + 1)[0, 0] == 2


def test_a_mode_sees_the_calls_of_its_thread_alone():
    notes = []

    def work():
        with Notes("", notes):
            started.set()
            assert go_on.wait(10)
            torch.neg(ONES)

    started, go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(10)
    ONES + 1
    torch.abs(ONES)
    go_on.set()
    thread.join()
    assert notes == ["neg"]


def test_a_backward_pass_is_seen_as_one_call():
    x = torch.ones(2, requires_grad=True)
    with Notes() as mode:
        loss = F.gelu(x).sum()
        loss.backward()
        torch.autograd.backward(F.gelu(x).sum())
    assert mode.notes == ["gelu", "sum", "backward", "gelu", "sum"]
    assert x.grad is not None


def test_questions_about_modes():
    assert not _C._is_torch_function_mode_enabled()
    with BaseTorchFunctionMode() as mode:
        assert _C._is_torch_function_mode_enabled()
        assert overrides._get_current_function_mode() is mode
        assert overrides._get_current_function_mode_stack() == [mode]
        assert overrides.has_torch_function((ONES,)) and overrides.has_torch_function_unary(1)
        assert (ONES + 1)[0, 0] == 2
        with overrides._pop_mode_temporarily() as popped:
            assert popped is mode and not overrides.has_torch_function((ONES,))
    assert overrides._get_current_function_mode() is None
    with pytest.raises(NotImplementedError):
        TorchFunctionMode().__torch_function__(torch.add, ())


def test_a_class_that_disables_overriding_gives_plain_tensors():
    class Plain(torch.Tensor):
        __torch_function__ = _C._disabled_torch_function_impl

    x = ONES.as_subclass(Plain)
    assert type(x + 1) is type(torch.neg(x)) is type(x.view(4)) is torch.Tensor
    assert not overrides.has_torch_function((x,))
    assert _C._disabled_torch_function_impl(torch.neg, (), (x,))[0, 0] == -1


@pytest.mark.parametrize(
    "function, name",
    [
        (torch.stack, "torch.stack"),
        (F.relu, "torch.nn.functional.relu"),
        (torch.Tensor.view, "torch.Tensor.view"),
        (torch.Tensor.__getitem__, "torch.Tensor.__getitem__"),
        (torch.linalg.eigh, "torch.linalg.eigh"),
        (len, None),
        ([], None),
    ],
)
def test_names(function, name):
    assert resolve_name(function) == name


def test_lists_of_functions():
    overridable = overrides.get_overridable_functions()
    assert (
        torch.add in overridable[torch] and F.relu in overridable[F] and torch.Tensor.view in overridable[torch.Tensor]
    )
    ignored = overrides.get_ignored_functions()
    assert torch.is_tensor in ignored and torch.add not in ignored
    testing = overrides.get_testing_overrides()
    assert testing[torch.stack]([ONES], dim=0) == -1
    with pytest.raises(TypeError):
        testing[torch.stack]()
    assert set(testing).isdisjoint(ignored)
    assert overrides.is_tensor_method_or_property(torch.Tensor.grad.__get__)
    assert overrides.get_default_nowrap_functions() == {torch.Tensor._base.__get__, torch.Tensor.grad.__get__}


@pytest.mark.parametrize("function", [torch.rand, torch.arange, F.dropout, torch.Tensor.tolist, torch.numel])
def test_each_overridable_function_tells_its_signature(function):
    import inspect

    assert list(inspect.signature(function).parameters)


def test_attributes_are_seen_and_the_type_is_as_before():
    import cygrad
    from cygrad.overrides import TorchFunctionMode, resolve_name

    names = []

    class Notes(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(resolve_name(func))
            return func(*args, **(kwargs or {}))

    x, one = cygrad.ones(2, 3, requires_grad=True), cygrad.ones(2, 3)
    before = dict(vars(cygrad.Tensor))
    with Notes():
        assert x.shape == (2, 3) and x.T.shape == (3, 2)
        x.grad = one
    assert x.grad is one
    assert names == [f"torch.Tensor.{name}" for name in ("shape.__get__", "T.__get__", "shape.__get__", "grad.__set__")]
    assert vars(cygrad.Tensor)["shape"] is before["shape"]

    class Asks(cygrad.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            names.append(resolve_name(func))
            return super().__torch_function__(func, types, args, kwargs)

    y = one.as_subclass(Asks)
    names.clear()
    assert type(y.T) is Asks and y.dtype is cygrad.float32
    assert names == ["torch.Tensor.T.__get__", "torch.Tensor.dtype.__get__"]
