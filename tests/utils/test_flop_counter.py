"""Counts of operations, by op and by module."""

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import nn
from cygrad.utils.flop_counter import FlopCounterMode, convert_num_with_suffix, register_flop_formula


def leaf(*shape):
    return torch.randn(shape, requires_grad=True)


# {call: (op, operations, op in the backward pass, operations)}, by hand: 2 for each product of two numbers
CALLS = {
    "mm": (lambda: leaf(3, 4) @ leaf(4, 5), "mm", 120, "mm", 240),
    "addmm": (lambda: torch.addmm(leaf(3, 5), leaf(3, 4), leaf(4, 5)), "addmm", 120, "mm", 240),
    "bmm": (lambda: torch.bmm(leaf(2, 3, 4), leaf(2, 4, 5)), "bmm", 240, "bmm", 480),
    "batch and matrix": (lambda: leaf(2, 3, 4) @ leaf(4, 5), "mm", 240, "mm", 480),
    "batches": (lambda: leaf(2, 6, 3, 4) @ leaf(2, 6, 4, 5), "bmm", 1440, "bmm", 2880),
    "baddbmm": (lambda: torch.baddbmm(leaf(2, 3, 5), leaf(2, 3, 4), leaf(2, 4, 5)), "baddbmm", 240, "bmm", 480),
    "linear": (lambda: F.linear(leaf(3, 4), leaf(5, 4), leaf(5)), "addmm", 120, "mm", 240),
    "linear without bias": (lambda: F.linear(leaf(2, 3, 4), leaf(5, 4)), "mm", 240, "mm", 480),
    "conv1d": (lambda: F.conv1d(leaf(2, 3, 10), leaf(4, 3, 3)), "convolution", 1152, "convolution_backward", 2304),
    "conv2d": (
        lambda: F.conv2d(leaf(2, 3, 10, 11), leaf(4, 3, 3, 2), stride=2, padding=1),
        *("convolution", 8640, "convolution_backward", 17280),
    ),
    "conv3d": (
        lambda: F.conv3d(leaf(1, 2, 5, 5, 5), leaf(3, 2, 2, 2, 2)),
        *("convolution", 6144, "convolution_backward", 12288),
    ),
    "transposed": (
        lambda: F.conv_transpose2d(leaf(2, 3, 5, 5), leaf(3, 4, 3, 3)),
        *("convolution", 10800, "convolution_backward", 21600),
    ),
    "attention": (
        lambda: F.scaled_dot_product_attention(leaf(2, 4, 6, 8), leaf(2, 4, 7, 8), leaf(2, 4, 7, 8)),
        *("bmm", 10752, "bmm", 21504),
    ),
}


def counts(call):
    with FlopCounterMode(display=False) as counter:
        result = call()
    return (
        result,
        counter.get_total_flops(),
        {str(op): n for op, n in counter.get_flop_counts().get("Global", {}).items()},
    )


@pytest.mark.parametrize("name", CALLS)
def test_counts(name):
    call, op, forward, backward_op, backward = CALLS[name]
    result, total, found = counts(call)
    assert (total, found) == (forward, {f"aten.{op}": forward})
    _, total, found = counts(lambda: result.sum().backward())
    assert (total, found) == (backward, {f"aten.{backward_op}": backward})


def test_what_is_not_counted():
    for call in (lambda: leaf(3) + 1, lambda: leaf(3, 4) @ leaf(4), lambda: torch.dot(leaf(4), leaf(4))):
        assert counts(call)[1] == 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 5)
        self.b = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2))

    def forward(self, x):
        return self.b(self.a(x)) @ torch.ones(2, 2)


def test_modules(capsys):
    net = Net()
    with FlopCounterMode() as counter:
        net(torch.randn(3, 4)).sum().backward()
    found = {name: {str(op): n for op, n in ops.items()} for name, ops in counter.get_flop_counts().items()}
    assert found == {
        "Global": {"aten.addmm": 330, "aten.mm": 588},
        "Net": {"aten.addmm": 330, "aten.mm": 588},
        "Net.a": {"aten.addmm": 120, "aten.mm": 120},
        "Net.b": {"aten.addmm": 210, "aten.mm": 420},
        "Net.b.0": {"aten.addmm": 150, "aten.mm": 300},
        "Net.b.2": {"aten.addmm": 60, "aten.mm": 120},
    }
    assert capsys.readouterr().out == counter.get_table() + "\n"
    assert counter.get_table(depth=1).split("\n") == [
        "Module          FLOP    % Total",
        "------------  ------  ---------",
        "Net              918    100.00%",
        "- aten.addmm     330     35.95%",
        "- aten.mm        588     64.05%",
    ]
    with (
        pytest.warns(UserWarning, match="mods argument is not needed anymore"),
        FlopCounterMode(net, display=False) as again,
    ):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    assert again.get_total_flops() == 16 and again.get_table().split("\n")[2] == "Global         16    100.00%"


def test_formulas():
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.mm: lambda a, b, out_shape=None: 7}) as counter:
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    assert counter.get_total_flops() == 7
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.mm"):
        register_flop_formula(torch.ops.aten.mm)(lambda: 0)
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(torch.mm)(lambda: 0)
    assert convert_num_with_suffix(1234567, "M") == "1.235M"


def test_formulas_of_ops_that_are_not_counted():
    aten = torch.ops.aten
    formulas = {
        aten.add: lambda a, b, out_shape: 5,
        aten.relu: lambda a, out_shape: a.numel(),
        aten.mul_: lambda *a, **b: 1,
    }
    x = torch.ones(4, 5)
    with FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        x + x, F.relu(x), x.add_(x), x * 2, x.mul_(2)
    assert counter.get_flop_counts() == {"Global": {aten.add: 5, aten.relu: 20, aten.mul_: 1}}
