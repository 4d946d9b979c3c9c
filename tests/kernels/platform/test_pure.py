"""CYGRAD_PURE=1, which routes all work through NumPy functions, gives the same results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad

KERNELS = Path(__file__).resolve().parents[1]
NOT_THESE = {"test_pure.py", "test_sanitized.py"}  # the latter needs a special build


@pytest.mark.slow
def test_the_kernels_tests_pass_without_the_fast_paths():
    # One process for all files, because importing takes longer than the tests.
    files = sorted(str(path) for path in KERNELS.rglob("test_*.py") if path.name not in NOT_THESE)
    package = Path(cygrad.__file__).resolve().parent.parent  # the same package as here, wherever it is
    environment = {**os.environ, "CYGRAD_PURE": "1", "PYTHONPATH": str(package)}
    run = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        env=environment,
        capture_output=True,
        text=True,
        cwd=KERNELS.parent.parent,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-1000:]
