"""Python's own pickles of PyTorch's objects are read where `import torch` gives cygrad."""

import pickle
import subprocess
import sys

import pytest

import cygrad

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

READ = """
import sys, pickle, cygrad
cygrad.as_torch()
with open(sys.argv[1], "rb") as file:
    {name} = pickle.load(file)
assert {check}, {name}
"""

OBJECTS = {
    "x": (lambda: torch.arange(6.0).view(2, 3).t(), "x.stride() == (1, 3) and x.tolist() == [[0, 3], [1, 4], [2, 5]]"),
    "b": (lambda: torch.ones(2, dtype=torch.bfloat16), "b.dtype is cygrad.bfloat16 and b.tolist() == [1, 1]"),
    "p": (lambda: torch.nn.Parameter(torch.ones(2)), "type(p) is cygrad.nn.Parameter and p.requires_grad"),
    "m": (lambda: torch.nn.Linear(2, 3), "m(cygrad.ones(1, 2)).shape == (1, 3)"),
    "s": (lambda: torch.eye(2).to_sparse(), "s.layout is cygrad.sparse_coo and s.to_dense().equal(cygrad.eye(2))"),
    "f": (
        lambda: [torch.tanh, torch.nn.functional.gelu, torch.special.expit, torch.linalg.norm],
        "f == [cygrad.tanh, cygrad.nn.functional.gelu, cygrad.special.expit, cygrad.linalg.norm]",
    ),
    "d": (
        lambda: torch.distributions.OneHotCategoricalStraightThrough(torch.ones(3)),
        "type(d) is cygrad.distributions.OneHotCategoricalStraightThrough",
    ),
    "o": (lambda: torch.optim.Adam([torch.nn.Parameter(torch.ones(2))]), "type(o) is cygrad.optim.Adam"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_pickles(tmp_path, name):
    make, check = OBJECTS[name]
    file = tmp_path / "object.pkl"
    file.write_bytes(pickle.dumps(make()))
    program = READ.format(name=name, check=check)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_whole_modules_with_functions(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    module.activations = [torch.tanh, torch.relu, torch.special.expit]
    torch.save(module, tmp_path / "module.pt")
    read = cygrad.load(tmp_path / "module.pt", weights_only=False)
    assert read.activations == [cygrad.tanh, cygrad.relu, cygrad.special.expit]
