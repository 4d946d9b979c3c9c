"""Programs in the manner of PyTorch's tutorials and notes print the same with both libraries.

Each program in `programs/` runs unchanged on PyTorch, and by `python -m cygrad`. What it prints, texts of errors among
it, is compared word for word, and numbers as numbers.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytestmark = [pytest.mark.oracle, pytest.mark.slow]

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(FOLDER.glob("*/*.py"))
PLACES = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])  # of `shared.py`, too
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "CYGRAD_NUM_THREADS": "1", "PYTHONPATH": PLACES}
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
SAME = [
    (re.compile(r"0x[0-9a-f]+"), "0x"),
    (re.compile("cygrad"), "torch"),
    (re.compile(r"torch\.nn\.modules\.\w+\."), "torch.nn."),  # modules are in other files here
]


def printed(path, *options):
    command = [sys.executable, "-W", "ignore", *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=300)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for pattern, plain in SAME:
        text = pattern.sub(plain, text)
    return text


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_the_same(path):
    ours, theirs = printed(path, "-m", "cygrad"), printed(path)
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    for a, b in zip(ours.splitlines(), theirs.splitlines(), strict=True):
        numbers = [list(map(float, NUMBER.findall(line))) for line in (a, b)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-5, abs=2e-6), f"{a}\nPyTorch: {b}"
