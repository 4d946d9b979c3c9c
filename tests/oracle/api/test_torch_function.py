"""A subclass's `__torch_function__` receives the same functions as in PyTorch, and results have its class."""

import operator

import pytest
from oracle.answers import lines
from oracle.programs import compare

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = pytest.mark.oracle

CALLS = """
torch.add(x, y)
torch.add(y, x)
x + y
y + x
x - 1
1 - x
2 ** x
x // 2
x * s
s * x
-x
abs(x)
x @ y
x == y
x < y
x[0]
torch.stack([y, x])
torch.cat((x, y))
x.sum()
x.max(0)
x.exp_()
x.clone().add_(1)
x.clone().__iadd__(1)
x.clone().__setitem__(0, 1)
y.clone().__iadd__(x)
y.clone().__ifloordiv__(x)
y.long().__iand__(x.long())
y.long().__ilshift__(x.long())
y[x.long()]
y[0, x.long()]
y.clone().__setitem__(x.long(), 1)
y.clone().__setitem__(0, x[0])
y.__add__(x)
torch.asarray(x)
x.split(1)
x.view(2, 2, 1)
x.reshape(-1).detach()
x.mean().item()
x.tolist()
repr(x)
torch.where(x > 0, x, y)
torch.zeros_like(x)
torch.allclose(x, y)
torch.broadcast_tensors(x, y)
torch.vstack([x, y])
torch.einsum("ij->i", x)
torch.linalg.norm(x)
torch.add(y, 1, out=x)
torch.nn.functional.relu(x)
torch.nn.functional.linear(x, y)
torch.nn.functional.mse_loss(x, y)
torch.nn.Linear(2, 2)(x)
len(x)
bool(x.sum())
x.size()
x.dim()
x.absolute()
x.multiply(y)
x.zero_()
x.requires_grad_()
"""

# The names of what is received: methods are told from functions
NAMED = """
x.add(y)
torch.add(x, y)
y + x
y - x
1 - x
x.mul_(2)
torch.relu(x)
x.relu()
x.sum(0)
torch.sum(x, 0)
x.absolute()
torch.absolute(x)
x.clip(0, 1)
x.true_divide(y)
x.zero_()
x.is_complex()
torch.is_complex(x)
x.matmul(y)
torch.matmul(x, y)
x.shape
x.exp()
x.register_hook(print)
y.add(duck)
y.add_(duck)
y - duck
duck - y
y @ duck
duck @ y
torch.add(y, duck)
duck ** y
y // duck
y << duck
duck >> y
y & duck
duck & y
y == duck
duck != y
y ** x
"""


def answer(library, call):
    """The classes of a call's results, and the functions received by the class."""
    notes = []

    class Noted(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            # PyTorch's functions written in Python also pass Tensor itself
            notes.append((func.__name__, [kind.__name__ for kind in types if kind is not library.Tensor]))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Derived(Noted):
        pass

    x, s = (library.ones(2, 2).as_subclass(kind) for kind in (Noted, Derived))
    result = eval(call, {"torch": library, "x": x, "s": s, "y": library.ones(2, 2)})
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [type(part).__name__ for part in parts], notes


@pytest.mark.parametrize("call", lines(CALLS))
@pytest.mark.leaks_ok("classes that take over calls are kept")
def test_same_functions_and_classes(call):
    assert answer(cygrad, call) == answer(torch, call)


def names(library, call):
    """The full names of the functions that a class, or an object that is no tensor, receives."""
    notes = []

    def note(func):
        notes.append((library.overrides.resolve_name(func), library.overrides.is_tensor_method_or_property(func)))

    class Noted(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            note(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            note(func)
            return len(args)

    x, y = library.ones(2, 2).requires_grad_().as_subclass(Noted), library.ones(2, 2)
    if "_(" in call:
        x = x.detach()
    notes.clear()
    eval(call, {"torch": library, "x": x, "y": y, "duck": Duck()})
    return notes


@pytest.mark.parametrize("call", lines(NAMED))
@pytest.mark.leaks_ok("classes that take over calls are kept")
def test_methods_are_told_from_functions(call):
    assert names(cygrad, call) == names(torch, call)


class Refusing:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


BINARY = "add sub mul truediv floordiv mod pow matmul eq ne and_ xor lshift rshift".split()


def refusals(library, names, which):
    """What operators on a tensor and an object say whose class refuses all calls."""

    class RefusingTensor(Refusing, library.Tensor):
        pass

    class Adding(Refusing):
        def __radd__(self, other):
            return "added"

        def __gt__(self, other):
            return "compared"

    x = library.ones(2)
    other = {"object": Refusing(), "tensor": x.clone().as_subclass(RefusingTensor), "adding": Adding()}[which]
    notes = []
    for name in names:
        for operands in ((x, other), (other, x)):
            try:
                notes.append((name, getattr(operator, name)(*operands)))
            except TypeError as error:
                notes.append((name, str(error)))
    return notes, x.tolist()


@pytest.mark.parametrize("which", ["object", "tensor", "adding"])
@pytest.mark.leaks_ok("classes that take over calls are kept")
def test_operators_that_are_refused(which):
    assert refusals(cygrad, BINARY, which) == refusals(torch, BINARY, which)


@pytest.mark.parametrize("which", ["object", "tensor"])
@pytest.mark.leaks_ok("classes that take over calls are kept")
def test_a_refused_operator_writes_nothing(which):
    names = [f"i{name}" for name in "add sub mul truediv floordiv pow lshift".split()]
    ours, theirs = (refusals(library, names, which) for library in (cygrad, torch))
    assert [name for name, text in ours[0] if "unsupported operand" in text] == [name for name, _ in theirs[0]]
    assert ours[1] == theirs[1] == [1, 1]


UNARY = ["-x", "abs(x)", "~x", "x.shape", "x.sum()", "x.grad", "bool(x)", "x[0]", "x.backward()"]


@pytest.mark.parametrize("call", UNARY)
@pytest.mark.leaks_ok("classes that take over calls are kept")
def test_a_refused_call_is_an_error(call):
    for library in (cygrad, torch):

        class RefusingTensor(Refusing, library.Tensor):
            pass

        x = library.ones(2).as_subclass(RefusingTensor)
        with pytest.raises(TypeError, match="NotImplemented|no implementation found"):
            eval(call, {"x": x})


def others(library, x):
    """What operators of a tensor make of objects that are no numbers, as functions."""
    for other in (None, "a", [1, 2]):
        yield from (lambda other=other: x == other, lambda other=other: x != other)
        yield from (lambda other=other: other == x, lambda other=other: other != x)
    yield lambda: operator.iadd([1], x)


def test_operators_of_objects_that_are_no_numbers():
    def program(library, say):
        class Plain(library.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs or {})

        class Through(library.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        for call in others(library, library.ones(2).as_subclass(Plain)):
            say(lambda call=call: str(call()))
        with Through():
            for call in others(library, library.ones(2)):
                say(lambda call=call: str(call()))

    compare(program)


def test_reflected_operators_of_a_class_that_refuses():
    def program(library, say):
        class Refusing:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

            def __radd__(self, other):
                return "added"

            def __lt__(self, other):
                return "less"

        for x in (library.ones(2), library.nn.Parameter(library.ones(2))):
            for how in (operator.add, operator.gt, operator.sub):
                say(lambda x=x, how=how: how(x, Refusing()))

    compare(program)
