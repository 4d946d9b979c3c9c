"""What the README shows is what happens: its programs' output, its picture, and its figures."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from checkout import CHECKOUT

import cygrad

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def program(name):
    """The program of the README whose first line is a comment with its name."""
    return re.search(rf"^```python\n(# {re.escape(name)}\n.*?)^```$", README, re.DOTALL | re.MULTILINE)[1]


def run(name, folder):
    (folder / name).write_text(program(name), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(cygrad.__file__).parent.parent)}
    return subprocess.run([sys.executable, name], cwd=folder, env=environment, capture_output=True, text=True)


def test_first_program_prints_its_loss_and_draws_the_picture(tmp_path):
    done = run("xor.py", tmp_path)
    printed = re.search(r"The script prints `(.*?)`", README)[1]
    assert done.stdout.strip() == printed, done.stderr
    shown = re.search(r'<img [^>]*src="([^"]+)"', README)[1]
    drawn = (tmp_path / "network.svg").read_text(encoding="utf-8").replace(f"{tmp_path}{os.sep}", "")
    assert drawn == (CHECKOUT / shown).read_text(encoding="utf-8")


def test_error_is_the_one_that_the_program_ends_with(tmp_path):
    shown = re.search(r"^```text\n(cygrad.errors.ChangedInPlaceError: .*?)^```$", README, re.DOTALL | re.MULTILINE)[1]
    done = run("train.py", tmp_path)
    error = done.stderr[done.stderr.index("cygrad.errors.") :].replace(f"{tmp_path}{os.sep}", "")
    first, _, rest = error.partition("\n")
    assert (first[: first.index(" [")] + " [...]", rest.strip()) == (
        shown.partition("\n")[0],
        shown.partition("\n")[2].strip(),
    )


def test_figures_are_those_of_the_table_that_the_benchmark_printed():
    table = (CHECKOUT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^ *\| ([^|]+) \| ([\d.]+ [nmu]s) \| ([\d.]+ [nmu]s) \| ([\d.]+) \|$", README, re.MULTILINE)
    assert len(rows) == 3
    for row in rows:
        measured = " +".join(map(re.escape, row))
        assert re.search(f"^ +{measured} ", table, re.MULTILINE), row


def test_versions_are_those_that_the_metadata_claims():
    metadata = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = re.findall(r"Python :: 3\.(\d+)", "\n".join(metadata["classifiers"]))
    assert f"CPython 3.{minors[0]} to 3.{minors[-1]} and free-threaded builds" in README
    assert f"CPython 3.{minors[0]} or newer" in README
    (numpy,) = metadata["dependencies"]
    assert f"NumPy {numpy.removeprefix('numpy>=')} or newer" in README
    assert re.findall(r"No wheels have been published yet: cygrad (\S+) is", README) == [cygrad.__version__]


def test_bound_on_digits_is_the_one_that_a_test_checks():
    (promised,) = re.findall(r"at least (\d+) % of handwritten digits", README)
    tests = (CHECKOUT / "tests" / "package" / "test_examples.py").read_text(encoding="utf-8")
    assert f"def test_digits_reaches_{promised}_percent" in tests
