"""The gradient of a slice is added in place to the gradient accumulated for the whole tensor if nothing else can see
it.
"""

import tracemalloc

import numpy as np
import pytest

import cygrad as torch

PARTS = {
    "rows": lambda x: [x[i] for i in range(x.shape[0])],
    "columns": lambda x: [x[:, i] for i in range(x.shape[1])],
    "steps": lambda x: [x[::3], x[1::2, 5:], x[-4:, 2:70:9]],
    "overlapping": lambda x: [x[:60], x[20:], x[30:40], x[:, :1]],
    "of parts": lambda x: [x[2:][:, 3:][1], x[2:][0], x.narrow(1, 4, 7)],
}


def operand(dtype=torch.float32):
    return torch.linspace(-1, 1, 80 * 90, dtype=dtype).reshape(80, 90).requires_grad_()


def result(parts):
    return sum((part.sin() * (i + 1)).sum() for i, part in enumerate(parts))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("name", PARTS)
def test_gradients_are_those_of_a_recorded_pass(name, dtype):
    """A recorded pass modifies no gradient in place."""
    x = operand(dtype)
    (recorded,) = torch.autograd.grad(result(PARTS[name](x)).real, x, create_graph=True)
    (grad,) = torch.autograd.grad(result(PARTS[name](x)).real, x)
    assert np.array_equal(grad.numpy(), recorded.detach().numpy())


def test_what_somebody_sees_stays_as_it_was():
    """Gradients passed by the caller, kept by a hook, or requested for slices are not modified."""
    x = operand()
    y = x * 1
    part, given, kept = y[3:], torch.ones(80, 90), []
    y.register_hook(lambda grad: kept.append(grad))
    whole = y + 0.0
    found = torch.autograd.grad(
        [whole, y[1:], part.sum()], [x, y, part], [given, torch.ones(79, 90), torch.tensor(2.0)]
    )
    expected = np.ones((80, 90), np.float32)
    expected[1:] += 1
    expected[3:] += 2
    assert np.array_equal(found[0].numpy(), expected) and np.array_equal(found[1].numpy(), expected)
    assert np.array_equal(kept[0].numpy(), expected)
    assert (given == 1).all() and (found[2] == 2).all()


def test_gradients_of_a_leaf_add_up():
    x = operand()
    for count in (1, 2):
        (x[:50].sum() + x[40:].sum()).backward()
        expected = np.full((80, 90), count, np.float32)
        expected[40:50] *= 2
        assert np.array_equal(x.grad.numpy(), expected)


def test_parts_need_no_zeros_each():
    x = torch.ones(64, 1 << 12, requires_grad=True)
    loss = sum(x[i].sum() for i in range(64))
    tracemalloc.start()
    loss.backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * x.grad.nbytes
