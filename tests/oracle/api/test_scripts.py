"""Complete training scripts in PyTorch style print the same after `import cygrad as torch`.

Scripts in `scripts/` are run unchanged on PyTorch, and on cygrad with modified import lines. Their output is compared
word for word, but numbers as numbers, because training accumulates rounding differences. Modules shared by several
scripts are in `scripts/imported/`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1", "CYGRAD_NUM_THREADS": "1"}  # the arrays are small
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")


def for_cygrad(text):
    """A script with its import lines changed to cygrad."""
    text = re.sub(r"^(\s*)import torch$", r"\1import cygrad as torch", text, flags=re.M)
    text = re.sub(r"^(\s*)import torch\.([\w.]+) as (\w+)$", r"\1import cygrad.\2 as \3", text, flags=re.M)
    return re.sub(r"^(\s*)from torch\b", r"\1from cygrad", text, flags=re.M)


def printed(path, directory, translated=str):
    """The output of a script, original or translated, run in its own directory."""
    directory.mkdir()
    shared = path.parent / "imported" / "shared.py"
    for source, name in ((path, "script.py"), (shared, shared.name)):
        (directory / name).write_text(translated(source.read_text(encoding="utf-8")), encoding="utf-8")
    command = [sys.executable, "-W", "ignore", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, env=ONE_THREAD, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_the_same(path, tmp_path):
    ours, theirs = printed(path, tmp_path / "ours", for_cygrad), printed(path, tmp_path / "theirs")
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    for a, b in zip(ours.splitlines(), theirs.splitlines(), strict=True):
        numbers = [list(map(float, NUMBER.findall(line))) for line in (a, b)]
        assert numbers[0] == pytest.approx(numbers[1], rel=5e-3, abs=2e-3), f"{a}\nPyTorch: {b}"
