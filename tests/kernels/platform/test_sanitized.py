"""A build with CYGRAD_SANITIZE=1 aborts on the first out-of-bounds access, wherever the memory comes from.

Each program creates an array and makes a kernel read a view that exceeds it or outlives it.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from sanitizing import SANITIZED

import cygrad

if not SANITIZED:
    pytest.skip("needs a build with CYGRAD_SANITIZE=1 (tox -e asan)", allow_module_level=True)

ARRAYS = {
    "from NumPy, small": "numpy.ones(5, 'f')",
    "from NumPy, freed before": "[numpy.ones(5, 'f') for _ in range(9)].pop()",
    "from NumPy, of a few pages": "numpy.zeros(4001, 'f')",
    "of a small result": "(torch.ones(7) + torch.ones(7)).numpy().base",
    "of a result like one that has died": "[torch.ones(7) + i for i in range(9)].pop().numpy().base",
    "of a result from the pool": "(torch.ones(10_001) + 1).numpy().base",
    "of a large result from the pool": "(torch.ones(1_000_001) + 1).numpy().base",
    "of NumPy's in the pool": "torch.logcumsumexp(torch.ones(103, 101), 0).numpy().base",
}
PROGRAM = """
import numpy
import cygrad as torch
from cygrad._kernels.cpu.base import matmul, reduce
from cygrad._kernels.cpu.optim import optim
from cygrad._kernels.cpu.base.ufunc import Ufunc
from cygrad._kernels.cpu.base.view_geometry import restride

a = {array}
while a.base is not None:
    a = a.base
n = a.size
a, e = a.reshape(n), numpy.zeros(0, 'f')
print("made", flush=True)
{access}
print("survived")
"""
ACCESSES = {
    "none": "reduce.sum(restride(a, (n,), (4,), 0))",
    "behind": "reduce.sum(restride(a, (n + 1,), (4,), 0))",
    "before": "reduce.sum(restride(a, (n + 1,), (4,), -4))",
    "written behind": "optim.sgd_step([restride(a, (n + 1,), (4,), 0)], [numpy.ones(n + 1, 'f')], None, 0.1)",
    "by NumPy's loop": "Ufunc(numpy.exp)(restride(a, (n + 1,), (4,), 0))",
    "by NumPy's loop, written": "Ufunc(numpy.exp)(numpy.ones(n + 1, 'f'), out=restride(a, (n + 1,), (4,), 0))",
    "by NumPy's loop, strided": "Ufunc(numpy.exp)(restride(a, (2, n + 1), (0, 4), 0))",
    "by BLAS": "matmul.matmul(restride(a, (3, n), (4, 4), 0), numpy.ones((n, 2), 'f'))",
    "by NumPy's copy": "restride(a, (n + 1,), (4,), 0).tobytes()",
    "of what has died": "b = restride(e, (n,), (4,), a.ctypes.data - e.ctypes.data); del a; reduce.sum(b)",
}


def run(program):
    package = Path(cygrad.__file__).resolve().parent.parent
    search = f"import sys; sys.path.insert(0, {str(package)!r})\n"
    return subprocess.run([sys.executable, "-c", search + program], capture_output=True, text=True, timeout=120)


# All arrays are tested at both ends, and all kinds of access with two of them.
PAIRS = [(array, access) for array in ARRAYS for access in ("none", "behind", "before")]
PAIRS += [
    (array, access)
    for array in ("from NumPy, small", "of a result from the pool")
    for access in ACCESSES
    if (array, access) not in PAIRS
]


@pytest.mark.parametrize(("array", "access"), PAIRS)
def test_accesses_outside_of_an_array(array, access):
    done = run(PROGRAM.format(array=ARRAYS[array], access=ACCESSES[access]))
    assert done.stdout.startswith("made"), done.stderr
    if access == "none":
        assert done.stdout.endswith("survived\n") and done.returncode == 0, done.stderr
    else:
        assert "survived" not in done.stdout
        assert "ERROR: AddressSanitizer: " in done.stderr
