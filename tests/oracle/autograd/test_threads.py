"""Other libraries with their own threads alongside cygrad, imported in every order."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PROGRAM = """
import numpy as np
for name in {names}:
    module = __import__(name)
import cygrad, torch
assert np.allclose(cygrad.ones(300, 400).exp().numpy(), torch.ones(300, 400).exp().numpy())
assert np.allclose((cygrad.ones(300, 400) @ cygrad.ones(400, 300)).tanh().numpy(), 1)
assert torch.ones(300, 400).matmul(torch.ones(400, 300)).sum() == 300 * 400 * 300
assert cygrad.ones(100_000).add(1).sum() == 200_000
if "sklearn" in {names}:
    from sklearn.cluster import KMeans
    assert KMeans(3, n_init=1).fit(np.arange(4000.0).reshape(-1, 2)).cluster_centers_.shape == (3, 2)
assert cygrad.ones(100_000).add(1).sum() == 200_000
"""

try:
    import sklearn  # noqa: F401

    LIBRARIES = ("torch", "sklearn", "cygrad")
except ImportError:
    LIBRARIES = ("torch", "cygrad")


@pytest.mark.parametrize("names", list(itertools.permutations(LIBRARIES)), ids="-".join)
def test_every_order_of_import_works(names):
    package = Path(cygrad.__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore", "CYGRAD_NUM_THREADS": "3"}
    command = [sys.executable, "-P", "-c", PROGRAM.format(names=names)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stderr
