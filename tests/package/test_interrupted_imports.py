"""A family whose first import is interrupted by Ctrl-C is imported by the next call."""

import subprocess
import sys

import pytest

# Interrupts the import of each family at lines of its module, of its helpers and of what publishes its rows, each time
# one further, and then imports it whole.
PROGRAM = """
import importlib, os, sys
import cygrad as torch

root = os.path.dirname(torch.__file__)

def interrupted_at(name, k):
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if not frame.f_code.co_filename.startswith(root):
            return None
        if event == "line":
            count += 1
            if count == k:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        importlib.import_module(name)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False

step = int(sys.argv[1])
for name in sys.argv[2:]:
    k, times = 1, 0
    while name not in sys.modules:
        times += interrupted_at(name, k)
        k += step
    assert times > 3, (name, times)
values = torch.tensor([3.0, 1.0, 2.0])
assert torch.sort(values)[0].tolist() == values.sort()[0].tolist() == [1.0, 2.0, 3.0]
assert torch.special.i0(torch.tensor(0.0)).item() == 1.0
assert abs(torch.special.legendre_polynomial_p(torch.tensor(1.0), 3).item() - 1) < 1e-6
x = torch.tensor([0.5], requires_grad=True)
torch.special.i0(x).sum().backward()
assert abs(x.grad.item() - torch.special.i1(x).item()) < 1e-6
"""


@pytest.mark.parametrize(
    "step, families",
    [
        (7, ["reduction.sorting"]),
        (29, ["elementwise.bessel", "elementwise.polynomials", "elementwise.special_functions"]),
    ],
    ids=["sorting", "helpers"],
)
def test_the_next_import_succeeds(step, families):
    names = [f"cygrad._ops.{family}" for family in families]
    found = subprocess.run([sys.executable, "-c", PROGRAM, str(step), *names], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]


def test_a_row_declared_twice_in_one_module_is_an_error():
    program = (
        "from cygrad._core.graph.opdef import declare\n"
        "declare('made_up')\n"
        "try:\n    declare('made_up')\nexcept ValueError as error:\n    print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "op 'made_up' is declared twice\n", found.stderr
