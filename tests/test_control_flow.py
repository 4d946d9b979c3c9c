"""`cond` and `while_loop`."""

import pytest

import cygrad as torch


def test_cond():
    x = torch.tensor([1.0], requires_grad=True)
    for pred, factor in ((True, 3), (torch.tensor([0]), 5), (1.0, 3), (0, 5)):
        found = torch.cond(pred, lambda x: 3 * x, lambda x: 5 * x, (x,))
        assert torch.autograd.grad(found, x)[0].item() == factor
    assert torch.cond(False, lambda: 1, lambda: 2) == 2
    with pytest.raises(RuntimeError, match="Expected pred to be bool or single-element tensor, but got tensor"):
        torch.cond(torch.tensor([True, False]), abs, abs, (x,))
    with pytest.raises(RuntimeError, match=r"Expected pred to be bool or tensor, but got a."):
        torch.cond("a", abs, abs, (x,))


def test_while_loop():
    x = torch.tensor(2.0, requires_grad=True)
    steps, found = torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (torch.tensor(0), x))
    assert steps.item() == 3 and found.item() == 16
    assert torch.autograd.grad(found, x)[0].item() == 4 * 8
    assert torch.while_loop(lambda i: i < 3, lambda i: i + 1, (torch.tensor(0),))[0].item() == 3
    for args, text in [
        ((3, abs, (x,)), "Expect cond_fn and body_fn to be callable."),
        ((bool, abs, x), "Expect carried_inputs to be a tuple"),
        ((lambda a, b: True, lambda a, b: (a,), (x, x)), "body_fn should return as many values as it takes, 2"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            torch.while_loop(*args)
