"""Run a program of each library in tests/ecosystem with cygrad in PyTorch's place, and list what ran.

    python tools/try_libraries.py                    run all; fails if one that ran before does not
    python tools/try_libraries.py einops timm        run these
    python tools/try_libraries.py --write            write the table to docs/as_torch.md
    python tools/try_libraries.py --torch PYTHON     also run them on PyTorch by that interpreter, and compare numbers

The libraries are those of this interpreter's environment: `tox -e ecosystem` makes one without PyTorch, `tox -e
ecosystem-torch` one with it.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "ecosystem" / "programs"
PAGE = ROOT / "docs" / "as_torch.md"
BEGIN, END = "<!-- libraries: written by tools/try_libraries.py -->", "<!-- end of libraries -->"
PACKAGES = {"pyro": "pyro-ppl", "ignite": "pytorch-ignite"}  # the others are called as their programs
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:e[-+]?\d+)?")
SECONDS = 600


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


def differs(ours: list[float], theirs: list[float]) -> bool:
    """Whether the numbers that a program prints differ by more than training amplifies rounding."""
    return len(ours) != len(theirs) or any(abs(a - b) > 0.02 * max(abs(a), abs(b), 0.05) for a, b in zip(ours, theirs))


def title_of(program: Path) -> str:
    """What a program does: its docstring."""
    return " ".join((ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or "").split())


def row(program: Path, outcome: Outcome) -> str:
    """A row of the table: library, version, what ran, what does not work."""
    cells = [package_of(program), version_of(program)]
    error = outcome.error.replace("|", "\\|")
    cells += ["", f"{title_of(program)} `{error}`"] if error else [title_of(program), ""]
    return f"| {' | '.join(cells)} |"


def write(rows: list[str]) -> None:
    """Put the table into the page."""
    table = ["| library | version | what ran | what does not |", "|---|---|---|---|", *rows]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + BEGIN, *table, END + after]), encoding="utf-8")


def ran_before() -> set[str]:
    """The libraries that ran when the table was written."""
    listed = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [line.split(" | ") for line in listed.splitlines()]
    return {cells[0].removeprefix("| ") for cells in rows if len(cells) == 4 and cells[2].strip()}


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
        for each in sorted(PROGRAMS.glob("*.py"))
        if not options.libraries or each.stem.removesuffix("_") in options.libraries
    ]
    rows, failed, expected = [], [], ran_before()
    for program in programs:
        outcome = run(program, sys.executable, "-m", "cygrad")
        rows.append(row(program, outcome))
        verdict = outcome.error or "ran"
        if options.torch and not outcome.error:
            theirs = run(program, options.torch)
            verdict = theirs.error or (
                "differs from PyTorch" if differs(outcome.numbers, theirs.numbers) else "as PyTorch"
            )
        print(f"{package_of(program)} {version_of(program)}: {verdict}", flush=True)
        if (outcome.error and package_of(program) in expected) or verdict == "differs from PyTorch":
            failed.append(package_of(program))
    if options.write:
        write(rows)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
