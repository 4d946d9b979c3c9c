"""Run a program of each library in tests/ecosystem with cygrad in PyTorch's place, and list what ran.

    python tools/try_libraries.py                    run all; fails if one that ran before does not
    python tools/try_libraries.py einops timm        run these
    python tools/try_libraries.py --write            write the table to docs/as_torch.md
    python tools/try_libraries.py --torch PYTHON     also run them on PyTorch by that interpreter, and compare numbers

Programs print the losses and other numbers that they compute. The table says how many there are and how far they are
from PyTorch's; `--write` without `--torch` keeps what it said.

The libraries are those of this interpreter's environment: `tox -e ecosystem` makes one without PyTorch, `tox -e
ecosystem-torch` one with it.
"""

import argparse
import ast
import math
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "ecosystem" / "programs"
ON_PYTORCH = ROOT / "tests" / "ecosystem" / "on_pytorch.py"
PAGE = ROOT / "docs" / "as_torch.md"
BEGIN, END = "<!-- libraries: written by tools/try_libraries.py -->", "<!-- end of libraries -->"
PACKAGES = {  # the others are called as their programs
    "backpack": "backpack-for-pytorch",
    "blitz": "blitz-bayesian-pytorch",
    "curvlinops": "curvlinops-for-pytorch",
    "ignite": "pytorch-ignite",
    "laplace": "laplace-torch",
    "neuralop": "neuraloperator",
    "pina": "pina-mathlab",
    "pyro": "pyro-ppl",
    "torch-frame": "pytorch-frame",
    "torchcrf": "pytorch-crf",
    "whisper": "openai-whisper",
}
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:e[-+]?\d+)?")
SECONDS = 600
MOST = 0.02  # how far numbers may be apart: training amplifies rounding
SMALL = 0.05  # numbers below are compared with this, since they may be rounding alone
HEAD = ("library", "version", "what ran", "numbers, and how far from PyTorch's", "what does not")


class Outcome(NamedTuple):
    """How a program ended: the last line of its error, or nothing, and the numbers it printed."""

    error: str
    numbers: list[float]


def package_of(program: Path) -> str:
    """The name of a program's library as pip knows it."""
    name = program.stem.removesuffix("_").replace("_", "-")
    return PACKAGES.get(name, name)


def version_of(program: Path) -> str:
    """The version of a program's library that is installed."""
    try:
        return version(package_of(program))
    except PackageNotFoundError:
        return "not installed"


def run(program: Path, *command: str) -> Outcome:
    """Run a program."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [*command, str(program)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=SECONDS,
            cwd=program.parent,
        )
    except subprocess.TimeoutExpired:
        return Outcome(f"did not end within {SECONDS} s", [])
    numbers = [float(each) for each in NUMBER.findall(done.stdout)]
    return Outcome("" if done.returncode == 0 else error_in(done.stderr), numbers)


def error_in(text: str) -> str:
    """The first line of the last error in a traceback."""
    found = re.findall(r"^(\w[\w.]*(?:Error|Exception|Interrupt|Warning)\b.*)$", text, re.MULTILINE)
    return found[-1] if found else (text.strip().splitlines() or ["no message"])[-1]


def apart(ours: list[float], theirs: list[float]) -> float:
    """Return the largest difference of the numbers that a program prints, relative to them; inf if some are missing."""
    if len(ours) != len(theirs):
        return math.inf
    return max((abs(a - b) / max(abs(a), abs(b), SMALL) for a, b in zip(ours, theirs)), default=0.0)


def comparison(ours: Outcome, theirs: Outcome) -> str:
    """Say in the table's words how the numbers compare."""
    if theirs.error:
        return f"PyTorch: {theirs.error}".replace("|", "\\|")
    count, distance = len(ours.numbers), apart(ours.numbers, theirs.numbers)
    if not count:
        return "none; asserts"
    if distance == math.inf:
        return f"{count}, of PyTorch {len(theirs.numbers)}"
    return f"{count}, {f'within {distance:.0e}' if distance else 'equal'}"


def title_of(program: Path) -> str:
    """What a program does: its docstring."""
    return " ".join((ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or "").split())


def row(program: Path, outcome: Outcome, compared: str) -> list[str]:
    """A row of the table."""
    ran, title = not outcome.error, title_of(program)
    error = outcome.error.replace("|", "\\|")
    cells = [title, compared, ""] if ran else ["", "", f"{title} `{error}`"]
    return [package_of(program), version_of(program), *cells]


def write(rows: list[list[str]]) -> None:
    """Put the table into the page."""
    lines = [f"| {' | '.join(cells)} |" for cells in (HEAD, *rows)]
    table = [lines[0], "|---" * len(HEAD) + "|", *lines[1:]]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + BEGIN, *table, END + after]), encoding="utf-8")


def written() -> dict[str, list[str]]:
    """The rows of the table as it stands, by library."""
    listed = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in listed.splitlines()[3:]]
    return {cells[0]: cells for cells in rows if len(cells) == len(HEAD)}


def main() -> None:
    """Run the programs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("libraries", nargs="*", help="names of programs; all by default")
    parser.add_argument("--write", action="store_true", help="write the table to docs/as_torch.md")
    parser.add_argument(
        "--torch", metavar="PYTHON", help="an interpreter with PyTorch and the libraries, to compare with"
    )
    options = parser.parse_args()
    programs = [
        each
        for each in sorted(PROGRAMS.glob("*/*.py"), key=package_of)
        if not options.libraries or each.stem.removesuffix("_") in options.libraries
    ]
    rows, failed, before = [], [], written()
    for program in programs:
        name, outcome = package_of(program), run(program, sys.executable, "-m", "cygrad")
        former = before.get(name, [""] * len(HEAD))
        compared, is_wrong = former[3], False
        if options.torch and not outcome.error:
            theirs = run(program, options.torch, str(ON_PYTORCH))
            compared = comparison(outcome, theirs)
            is_wrong = bool(theirs.error) or apart(outcome.numbers, theirs.numbers) > MOST
        rows.append(row(program, outcome, compared))
        verdict = outcome.error or (f"ran; numbers: {compared}" if options.torch else "ran")
        print(f"{name} {version_of(program)}: {verdict}", flush=True)
        if is_wrong or (outcome.error and former[2]):
            failed.append(name)
    if options.write:  # rows of libraries that have not run now stay as they are
        table = before | {cells[0]: cells for cells in rows}
        names = sorted(package_of(program) for program in PROGRAMS.glob("*/*.py"))
        write([table[name] for name in names if name in table])
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
