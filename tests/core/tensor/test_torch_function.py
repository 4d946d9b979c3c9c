"""Classes with `__torch_function__`: objects that are not tensors, and subclasses of Tensor."""

import copy
import pickle
import threading
import typing

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad.overrides import handle_torch_function, has_torch_function, is_tensor_like, wrap_torch_function


class Noted(torch.Tensor):
    """Records the functions passed to `__torch_function__`, and the types."""

    notes: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Noted.notes.append((func.__name__, [kind.__name__ for kind in types]))
        return super().__torch_function__(func, types, args, kwargs or {})


class Derived(Noted):
    pass


def noted(function):
    """The result of a call, and the names of the functions that were dispatched."""
    Noted.notes.clear()
    result = function()
    return result, [name for name, _ in Noted.notes]


@pytest.fixture
def x():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Noted)


CALLS = {
    "add": lambda x: torch.add(torch.ones(2, 2), x),
    "sub": lambda x: x - 1,
    "__rsub__": lambda x: 1 - x,
    "mul": lambda x: torch.ones(2, 2) * x,
    "matmul": lambda x: x @ x,
    "__getitem__": lambda x: x[0],
    "neg": lambda x: -x,
    "gt": lambda x: x > 2,
    "exp_": lambda x: torch.ones(2, 2).as_subclass(Noted).exp_(),
    "stack": lambda x: torch.stack([torch.ones(2, 2), x]),
    "relu": F.relu,
    "linear": lambda x: F.linear(x, torch.ones(3, 2)),
    "sum": lambda x: x.sum(),
    "view": lambda x: x.view(4, 1),
    "detach": lambda x: x.detach(),
    "acos": torch.acos,
    "where": lambda x: torch.where(torch.ones(2, 2) > 0, x, 0.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_public_call_is_handed_over_once(name, x):
    result, names = noted(lambda: CALLS[name](x))
    assert names == [name] and type(result) is Noted
    plain = CALLS[name](x.as_subclass(torch.Tensor))
    assert torch.equal(result.as_subclass(torch.Tensor).nan_to_num(), plain.as_subclass(torch.Tensor).nan_to_num())


def test_several_results_are_of_the_class(x):
    found, names = noted(lambda: torch.max(x, 0))
    assert names == ["max"] and type(found.values) is type(found.indices) is Noted
    assert type(x.split(1)[0]) is Noted


def test_the_most_derived_class_is_asked_first(x):
    derived = torch.ones(2, 2).as_subclass(Derived)
    for call in (lambda: x * derived, lambda: derived * x, lambda: torch.mul(x, derived)):
        result, _ = noted(call)
        assert type(result) is Derived
    assert noted(lambda: torch.mul(x, derived)) and Noted.notes == [("mul", ["Derived", "Noted"])]


def test_gradients_follow_and_backward_asks_nobody(x):
    w = torch.tensor([1.0, 2.0]).as_subclass(Noted).requires_grad_()
    loss = (torch.exp(w) * w).sum()
    _, names = noted(lambda: torch.autograd.backward(loss))
    assert names == []
    plain = torch.tensor([1.0, 2.0], requires_grad=True)
    (torch.exp(plain) * plain).sum().backward()
    assert w.grad.tolist() == plain.grad.tolist()


def test_texts_and_copies(x):
    assert "Noted" in repr(x) and "4." in str(x)
    assert type(copy.deepcopy(x)) is type(pickle.loads(pickle.dumps(x))) is Noted


def test_another_thread_is_asked_all_the_same(x):
    seen = []
    with torch._C.DisableTorchFunctionSubclass():
        thread = threading.Thread(target=lambda: seen.append(noted(lambda: torch.exp(x))[1]))
        thread.start()
        thread.join()
    assert seen == [["exp"]]


def test_a_context_without_asking(x):
    with torch._C.DisableTorchFunctionSubclass():
        result, names = noted(lambda: torch.exp(x) + 1)
    assert names == [] and type(result) is torch.Tensor
    assert noted(lambda: torch.exp(x))[1] == ["exp"]


def test_a_failure_is_that_of_the_function(x):
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.add(x, torch.ones(3))
    assert noted(lambda: torch.exp(x))[1] == ["exp"]


def test_own_operators_go_first(x):
    class Own(Noted):
        def __add__(self, other):
            return "own"

    result, names = noted(lambda: torch.ones(1).as_subclass(Own) + 1)
    assert result == "own" and names == []


# -- objects that are not tensors -----------------------------------------------------------------------------


class Scaled:
    """A multiple of the identity matrix that handles some functions."""

    handled: dict = {}

    def __init__(self, n, value):
        self.n, self.value = n, value

    def tensor(self):
        return self.value * torch.eye(self.n)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in cls.handled or not all(issubclass(kind, (torch.Tensor, Scaled)) for kind in types):
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


def implements(*functions):
    def note(function):
        Scaled.handled.update(dict.fromkeys(functions, function))
        return function

    return note


@implements(torch.mean)
def mean(input):
    return input.value / input.n


@implements(torch.add, torch.Tensor.add)
def add(input, other):
    return torch.add(*(value.tensor() if isinstance(value, Scaled) else value for value in (input, other)))


@implements(torch.stack)
def stack(tensors, dim=0):
    return "stacked", len(tensors), dim


def test_functions_and_operators_of_objects():
    d, t = Scaled(2, 3.0), torch.ones(2, 2)
    expected = [[4.0, 1.0], [1.0, 4.0]]
    assert torch.mean(d) == 1.5
    for found in (torch.add(d, t), torch.add(t, d), t.add(d), t + d, d + t):
        assert found.tolist() == expected
    assert torch.stack([t, d], dim=1) == ("stacked", 2, 1)


@pytest.mark.parametrize("call", [torch.exp, F.relu, lambda d: torch.mul(torch.ones(2), d)])
def test_what_no_class_knows(call):
    with pytest.raises(TypeError, match=r"^Multiple dispatch failed for 'torch\.\w+'; all __torch_function__ handlers"):
        call(Scaled(2, 3.0))


def test_operators_that_no_class_knows():
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*"):
        _ = torch.ones(2) * Scaled(2, 3.0)
    with pytest.raises(TypeError, match="not supported between instances"):
        _ = torch.ones(2) < Scaled(2, 3.0)


def test_functions_of_programs():
    class Named:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, kwargs

    def double(x, times=2):
        if has_torch_function((x,)):
            return handle_torch_function(double, (x,), x, times=times)
        return times * x

    @wrap_torch_function(lambda x: (x,))
    def half(x):
        return x / 2

    assert double(Named(), times=3) == ("double", {"times": 3}) and half(Named()) == ("half", {})
    assert double(torch.ones(1)).tolist() == [2] and half(torch.ones(1)).tolist() == [0.5]
    assert [is_tensor_like(value) for value in (torch.ones(1), Named(), Scaled, 3)] == [True, True, True, False]

    Named.__torch_function__ = classmethod(lambda *args: NotImplemented)
    with pytest.raises(TypeError, match=r"no implementation found for '[\w.]+\.double' on types that implement"):
        double(Named())


class Marked(torch.Tensor):
    """Gives results the class and a mark by itself, where PyTorch's functions return plain tensors."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if func.__name__ not in ("unsqueeze", "__getitem__", "unbind"):
            return result
        marks = [value.mark for value in args if isinstance(value, Marked)]
        assert not isinstance(result, Marked)
        parts = [part.as_subclass(cls) for part in (result if isinstance(result, tuple) else (result,))]
        for part in parts:
            part.mark = marks[0]
        return tuple(parts) if isinstance(result, tuple) else parts[0]


def test_what_a_class_calls_returns_plain_tensors():
    x = torch.ones(2, 3).as_subclass(Marked)
    x.mark = "here"
    for result in (x.unsqueeze(0), x[0], next(iter(x))):
        assert type(result) is Marked and result.mark == "here"
    for result in (x + 1, x.sum(), torch.cat([x, x]), x.to(torch.float64), F.relu(x), x.clone(), torch.zeros_like(x)):
        assert type(result) is torch.Tensor
    assert x.add_(1) is x and x.to(torch.float32) is x


@pytest.mark.parametrize("kind", [torch.nn.Parameter, torch.nn.Buffer])
def test_parameters_call_functions_plainly(kind):
    class Wrapped(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return kind.__torch_function__(func, types, args, kwargs).as_subclass(cls)

    class Own(kind):
        pass

    x = torch.ones(2, 3).as_subclass(Wrapped)
    assert type(F.linear(x, torch.nn.Parameter(torch.ones(4, 3)))) is Wrapped
    assert type(Own(torch.ones(2)) + 1) is torch.Tensor
    assert kind.__torch_function__ is torch._C._disabled_torch_function_impl


def test_gradients_of_a_class_that_asks(x):
    x.requires_grad_()
    loss = (x * 2).sum()
    (gradient,), names = noted(lambda: torch.autograd.grad(loss, x, retain_graph=True))
    assert type(gradient) is Noted and names == ["grad"]
    with torch._C.DisableTorchFunctionSubclass():
        assert type(torch.autograd.grad(loss, x)[0]) is torch.Tensor
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(x.sum())


class Answering:
    """No tensor; answers each call with the name of the function."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__


FUNCTIONS_OF_OBJECTS = {
    "in-place form": (torch.sin_, "sin_"),
    "in-place form with another argument": (lambda x: torch.add_(x, 2), "add_"),
    "predicate": (torch.is_complex, "is_complex"),
    "function in Python": (F.relu6, "relu6"),
    "dropout": (lambda x: F.dropout(x, p=0.5), "dropout"),
}


@pytest.mark.parametrize(("call", "name"), FUNCTIONS_OF_OBJECTS.values(), ids=FUNCTIONS_OF_OBJECTS)
def test_functions_ask_objects_that_are_no_tensors(call, name):
    assert call(Answering()) == name
    with pytest.raises(TypeError, match="must be Tensor, not object"):
        call(object())


class Pair(typing.NamedTuple):
    value: torch.Tensor
    scale: float


class Quantized(Pair):
    """A tuple that stands for a tensor, as libraries for quantized networks have them."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        assert types == (cls,)
        plain = [one.value * one.scale if isinstance(one, cls) else one for one in args]
        return func(*plain, **(kwargs or {}))


@pytest.mark.parametrize(
    "call",
    [
        lambda q: F.linear(q, torch.ones(4, 3)),
        lambda q: torch.ones(2, 3) + q,
        lambda q: F.conv1d(q, torch.ones(1, 2, 1)),
        lambda q: torch.einsum("ij->i", q),
        torch.relu,
        F.dropout,
    ],
)
def test_tuples_that_stand_for_tensors(call):
    value = torch.arange(6.0).reshape(2, 3)
    torch.manual_seed(0)
    found = call(Quantized(value, 2.0))
    torch.manual_seed(0)
    assert torch.equal(found, call(value * 2))


def test_elements_with_comparisons_of_their_own():
    class Equal(int):
        def __eq__(self, other):
            return True

        __hash__ = None

    with pytest.raises(AttributeError, match="'bool' object has no attribute 'any'"):
        Equal(1) in torch.ones(2)  # noqa: B015
    assert torch.ones(2).as_subclass(Derived)[0] in torch.ones(2)


def test_a_class_without_a_method_of_its_own_is_not_kept_where_asking_is_disabled():
    class Plain(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Plain)
    for context in (torch._C.DisableTorchFunctionSubclass, torch._C.DisableTorchFunction):
        with context():
            assert type(x + 1) is type(x.sum()) is type(x[0]) is torch.Tensor
            with torch.overrides._enable_torch_function():
                assert type(x + 1) is Plain
            enabled = torch._C._EnableTorchFunction()
            assert type(x + 1) is Plain
            del enabled
            assert type(x + 1) is torch.Tensor and not torch._C._is_torch_function_enabled()
            assert torch._C._is_torch_function_all_disabled() is (context is torch._C.DisableTorchFunction)
    assert type(x + 1) is Plain and torch._C._is_torch_function_enabled()


def test_plain_methods_are_deprecated():
    class Old(torch.Tensor):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__

    x = torch.ones(2).as_subclass(Old)
    for function, kind in ((torch.exp, UserWarning), (F.dropout, DeprecationWarning)):
        with pytest.warns(kind, match="^Defining your `__torch_function__` as a plain method is deprecated"):
            assert function(x) == function.__name__


def test_modes_need_plain_methods():
    class Mode(torch.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="as a classmethod is not supported, please make it a plain method"), Mode():
        torch.ones(2) + 1


def test_functions_that_no_class_receives():
    ignored, asked = torch.overrides.get_ignored_functions(), torch.overrides.get_testing_overrides()
    for function in (torch.zeros, torch.fft.rfftfreq, torch.randn_like):
        assert function in ignored and function not in asked
        assert function not in torch.overrides.get_overridable_functions()[torch]
    assert (
        torch.add in asked and torch.add not in ignored and torch.overrides.resolve_name(torch.zeros) == "torch.zeros"
    )
    with pytest.raises(TypeError, match="^expected a sequence"):
        has_torch_function(object())
