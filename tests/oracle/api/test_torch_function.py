"""A subclass's `__torch_function__` receives the same functions as in PyTorch, and results have its class."""

import pytest
from oracle.answers import lines

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
