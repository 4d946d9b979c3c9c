"""Calls of compiled code with None or a wrong type in place of a tensor raise errors and never crash."""

import pytest

import cygrad as torch

NODE = type((torch.ones(1, requires_grad=True) * 2).grad_fn)
PARAMETER = pytest.param(torch.nn.Parameter, marks=pytest.mark.exhaustive)  # has the methods of a tensor


def methods(cls):
    skipped = {"__class__", "__init_subclass__", "__subclasshook__", "__new__", "__doc__"}
    return [name for name in dir(cls) if name not in skipped and callable(getattr(cls, name))]


def call(function, *arguments):
    """Call the function; any result or exception except SystemError is fine."""
    try:
        function(*arguments)
    except Exception as error:
        assert not isinstance(error, SystemError), error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrong", [None, 5, "a", object()], ids=["None", "int", "str", "object"])
@pytest.mark.parametrize("cls", [torch.Tensor, PARAMETER, torch.autograd.graph.Node, NODE, torch.dtype])
def test_methods_of_something_else(cls, wrong):
    for name in methods(cls):
        for more in ((), (None,), (1,), (None, None), (1, 1)):
            call(getattr(cls, name), wrong, *more)


@pytest.mark.filterwarnings("ignore")
def test_methods_of_a_tensor_made_without_init():
    for name in methods(torch.Tensor):
        for more in ((), (None,), (0,), (1, 1)):
            call(getattr(torch.Tensor.__new__(torch.Tensor), name), *more)


@pytest.mark.filterwarnings("ignore")
def test_methods_of_a_context_that_was_not_applied():
    for name in methods(torch.autograd.function.FunctionCtx):
        for more in ((), (None,), (1,), (torch.ones(1),), (torch.ones(()),)):
            call(getattr(torch.autograd.function.FunctionCtx(), name), *more)


def test_conversion_to_the_dtype_of_no_tensor():
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments"):
        torch.ones(1).to(other=())


def test_saved_inputs_that_are_not_there():
    x = torch.ones(2, requires_grad=True)
    for node in (torch.stack([x, x, x, x]).grad_fn, x.exp().grad_fn):
        for i in (-1, 3, 7, 2**30):
            with pytest.raises(IndexError, match="^a node saves inputs 0 to 2"):
                node.save_input(i, x)
            with pytest.raises(IndexError, match="^a node saves inputs 0 to 2"):
                node.saved(i)
