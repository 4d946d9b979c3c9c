"""Control flow as functions."""

import pytest

import cygrad as torch
import cygrad._higher_order_ops as ops


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


def test_associative_scan_makes_all_partial_results():
    for length in range(1, 10):
        x = torch.rand(3, length, dtype=torch.float64, requires_grad=True)
        found = ops.associative_scan(torch.mul, x, -1, combine_mode="generic")
        assert torch.allclose(found, x.cumprod(1))
        later = ops.associative_scan(torch.add, x, 1, reverse=True, combine_mode="generic")
        assert torch.allclose(later, x.flip(1).cumsum(1).flip(1))
    assert torch.autograd.gradcheck(lambda x: ops.associative_scan(torch.mul, x, 1, combine_mode="generic"), x)


def test_associative_scan_solves_a_linear_recurrence():
    decay, gain = torch.rand(2, 5, 7, dtype=torch.float64)

    def combine(a, b):
        assert a["gain"].ndim == 1  # called through vmap
        return {"decay": a["decay"] * b["decay"], "gain": b["decay"] * a["gain"] + b["gain"]}

    found = ops.associative_scan(combine, {"decay": decay, "gain": gain}, 0, combine_mode="generic")["gain"]
    state, states = torch.zeros(7, dtype=torch.float64), []
    for a, b in zip(decay, gain):
        states.append(state := a * state + b)
    assert torch.allclose(found, torch.stack(states))


def test_associative_scan_of_bad_arguments():
    x = torch.ones(2, 3)
    for error, args, text in [
        (ValueError, (3, x, 0), "Combine_fn must be a callable"),
        (ValueError, (torch.add, x, "0"), "Dim must be an int"),
        (IndexError, (torch.add, x, 2), "Dimension out of range"),
        (RuntimeError, (torch.add, x, 0, 1), "Reverse must be a bool"),
        (ValueError, (torch.add, x, 0, False, "other"), "Combine_mode must either"),
        (ValueError, (torch.add, x, 0), "For combine_mode='pointwise', all input tensors need to be on CUDA"),
        (ValueError, (torch.add, [], 0), "Expected at least 1 xs leaf"),
        (ValueError, (torch.add, (x, 3), 0, False, "generic"), "xs leaves must be a Tensor"),
        (ValueError, (torch.add, x[:0], 0, False, "generic"), "at least have 'dim' number of dimensions"),
    ]:
        with pytest.raises(error, match=text):
            ops.associative_scan(*args)


def test_scan_carries_values_along():
    x = torch.rand(4, 3, dtype=torch.float64, requires_grad=True)
    carry, out = ops.scan(lambda c, x: (c + x, {"product": c * x}), torch.zeros(4, dtype=torch.float64), x, dim=1)
    before = x.cumsum(1) - x
    assert torch.allclose(carry, x.sum(1)) and torch.allclose(out["product"], before * x)
    carry, out = ops.scan(lambda c, x: (c + x, c), torch.zeros(3, dtype=torch.float64), x, reverse=True)
    assert torch.allclose(out, x.flip(0).cumsum(0).flip(0) - x)
    assert torch.autograd.gradcheck(lambda x: ops.scan(lambda c, x: (c * x, c + x), torch.ones(3).double(), x), x)
    assert ops.scan(lambda c, x: (c, x), x, []) == (x, [])
    for error, args, options, text in [
        (RuntimeError, (3, x, x), {}, "Combine_fn must be a callable"),
        (RuntimeError, (max, x, x), {"dim": "a"}, "Dim must be an int"),
        (RuntimeError, (max, x, x), {"reverse": 1}, "Reverse must be a bool"),
        (RuntimeError, (max, (), x), {}, "requires init leaves"),
        (RuntimeError, (max, 3, x), {}, "All init leaves must be a Tensor but got 3"),
        (RuntimeError, (max, x, (x, 3)), {}, "All xs leaves must be a Tensor but got 3"),
        (RuntimeError, (max, x, x[:0]), {}, "at least have 'dim' number of dimensions"),
    ]:
        with pytest.raises(error, match=text):
            ops.scan(*args, **options)


def test_map_stacks_results():
    x = torch.rand(4, 3, dtype=torch.float64, requires_grad=True)
    first, second = ops.map(lambda each, c: (each["x"] * c, each["x"].sum()), {"x": x}, torch.tensor(2.0))
    assert torch.equal(first, 2 * x) and torch.allclose(second, x.sum(1))
    assert torch.autograd.gradcheck(lambda x: ops.map(torch.exp, x), x)
    for xs, text in [((x, 3), "can only consist of"), (x[:0], "cannot be 0"), ((x, x[:2]), "must be consistent")]:
        with pytest.raises(RuntimeError, match=text):
            ops.map(abs, xs)
