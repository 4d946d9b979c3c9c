"""What type checkers say of programs: wanted types, wanted errors, and no more errors than with PyTorch's stubs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
PACKAGE = Path(cygrad.__file__).parent
OPTIONS = """
[mypy]
strict = true
ignore_missing_imports = true
follow_imports = silent
[mypy-matplotlib.*,mypy-sklearn.*,mypy-threadpoolctl.*,mypy-tqdm.*,mypy-gymnasium.*]
follow_imports = skip
"""

# Errors of mypy 2.4.1 in the same files with PyTorch 2.13's stubs, where `backward` and others are untyped. The one in
# digits.py there is that PyTorch has no `viz`; what PyTorch lacks in distributed_digits.py is not counted.
WITH_PYTORCH = {
    "cartpole.py": 4,
    "characters.py": 3,
    "diabetes.py": 6,
    "digits.py": 1,
    "digits_conv.py": 2,
    "distributed_digits.py": 7,
    "oscillator.py": 3,
    "resume.py": 3,
    "sweep.py": 2,
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """{file: {line: [message]}}, from one run over all files."""
    pytest.importorskip("mypy", reason="checks types with mypy")
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "mypy.ini").write_text(OPTIONS)
    files = [*sorted((HERE / "typed").glob("*.py")), *sorted(EXAMPLES.glob("*.py"))]
    command = [sys.executable, "-m", "mypy", "--output=json", "--config-file=mypy.ini", "--cache-dir=cache", *files]
    environment = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    if PACKAGE.parent.name != "site-packages":  # a checkout
        environment["MYPYPATH"] = str(PACKAGE.parent)
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = {file.name: {} for file in files}
    for line in done.stdout.splitlines():
        told = json.loads(line)
        if told["severity"] == "error" or told["message"].startswith("Revealed type"):
            found[Path(told["file"]).name].setdefault(told["line"], []).append(told["message"])
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in (HERE / "typed").glob("*.py")))
def test_types_and_errors(said, name):
    text = (HERE / "typed" / name).read_text(encoding="utf-8")
    wanted = {number: line.split("  # ")[1] for number, line in enumerate(text.splitlines(), 1) if "  # " in line}
    assert {number for number, told in said[name].items()} == set(wanted)
    for number, want in wanted.items():
        told = "\n".join(said[name][number])
        if want.startswith("error: "):
            assert want.removeprefix("error: ") in told
        else:
            assert f'"{want}"' in re.sub(r"\b[\w.]+\.(\w+)", r"\1", told)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_examples_are_typed_as_well_as_with_pytorch(said, name):
    assert sum(map(len, said[name].values())) <= WITH_PYTORCH[name], said[name]
