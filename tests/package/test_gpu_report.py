"""tools/gpu_report.py survives crashes, resumes where it ended, and runs the most informative parts first."""

import json
import sys
import time

import pytest
from checkout import CHECKOUT, imported

PROGRAM = """
import json, os, sys, time
print("a library says something", flush=True)
for name in sys.argv[1:]:
    print(json.dumps({"begin": name}), flush=True)
    if name == "crashes":
        print("what went wrong", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "hangs":
        time.sleep(60)
    print(json.dumps({"row": name, "times": {"cygrad": 1.5, "PyTorch": 3.0}, "share": 0.9}), flush=True)
"""
TESTS = "def test_good(): pass\ndef test_bad(): assert 1 == 2, 'one is not two'\n"


@pytest.fixture
def tool(monkeypatch):
    for folder in (CHECKOUT, CHECKOUT / "tools"):
        monkeypatch.syspath_prepend(str(folder))
    module = imported("tools/gpu_report.py")
    monkeypatch.setattr(module, "versions", lambda _, seconds: {"lines": ["- device: none"]})
    return module


@pytest.fixture
def known(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = {"versions": ("versions", None)}
    found |= {f"benchmark: {name}": ("rows", ((str(program),), name)) for name in ("one", "crashes", "hangs", "last")}
    for name, text in {"good": TESTS, "dead": "import os\ndef test(): os._exit(3)\n"}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
        found[name] = "tests", ([str(tmp_path / f"test_{name}.py"), "-p", "no:cacheprovider"], None)
    return found


@pytest.mark.slow
def test_what_crashes_or_hangs_loses_nothing_else(tool, known, tmp_path, capsys):
    state, page = tmp_path / "state.json", tmp_path / "page.md"
    results = tool.Results(known, state, page)
    tool.run(known, list(known), results, 120, 3, 2)
    found = json.loads(state.read_text())
    assert list(found)[:5] == ["versions", *(f"benchmark: {name}" for name in ("one", "crashes", "hangs", "last"))]
    assert set(found) == set(known)
    assert found["benchmark: one"] == found["benchmark: last"]
    assert found["benchmark: crashes"]["problem"] == "ended with code 7"
    assert "what went wrong" in found["benchmark: crashes"]["output"]
    assert found["benchmark: hangs"]["problem"].startswith("had not ended after")
    text = page.read_text()
    assert "| one | 1.500 | 3.000 | 0.50 | 90 % |" in text and "| last |" in text and "not run" not in text
    assert "- benchmark: crashes: ended with code 7" in text


def test_tests_that_fail_or_die_are_told_of(tool, known, tmp_path, capsys):
    results = tool.Results(known, tmp_path / "state.json", tmp_path / "page.md")
    tool.run(known, ["good", "dead"], results, 120, 60, 2)
    assert results.found["good"]["passed"] == results.found["good"]["failed"] == 1
    assert results.found["dead"]["problem"] == "ended with code 3"
    text = (tmp_path / "page.md").read_text()
    assert "one is not two" in text and "- not run: versions, benchmark: one" in text


@pytest.mark.slow
def test_it_goes_on_where_time_had_ended(tool, known, tmp_path, capsys, monkeypatch):
    rows = {name: part for name, part in known.items() if part[0] == "rows" and "crashes" not in name}
    results = tool.Results(rows, tmp_path / "state.json", tmp_path / "page.md")
    begun = time.monotonic()
    monkeypatch.setattr(tool, "_KEPT", 0)
    tool.run(rows, list(rows), results, 6, 60, 1)
    assert time.monotonic() - begun < 30
    assert list(results.found) == ["benchmark: one"]  # no verdict on the one that hung when time was up
    assert "call this once more" in capsys.readouterr().out
    again = tool.Results(rows, tmp_path / "state.json", tmp_path / "page.md")
    tool.run(rows, [name for name in rows if name not in again.found], again, 120, 1, 1)
    assert "times" in again.found["benchmark: last"] and "problem" in again.found["benchmark: hangs"]


def test_a_program_that_does_not_begin_is_not_asked_for_each_row(tool, tmp_path):
    found = {}
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    tool.rows((str(tmp_path / "broken.py"),), ["a", "b"], time.monotonic() + 60, 30, found.__setitem__)
    assert set(found) == {"a", "b"} and "nothing_of_this_name" in found["b"]["output"]


def test_the_most_telling_come_first(tool):
    kinds = [name.partition(":")[0] for name in tool.parts()]
    assert list(dict.fromkeys(kinds))[:4] == [
        "versions",
        "first look",
        "benchmark",
        "tests/gpu/kernels/base/test_launches",
    ]
    assert sys.modules["gpu_first_look"].CHECKS.keys() >= {"elementwise", "matmul", "captured graph"}


def test_a_checkout_that_is_not_compiled_is_built(tool, monkeypatch, capsys):
    commands, answers = [], []

    def ended(command, seconds):
        commands.append(command[1:])
        return answers.pop(0)

    monkeypatch.setattr(tool, "ended", ended)
    answers[:] = [(None, "")]
    tool.build(5)
    assert len(commands) == 1 and not capsys.readouterr().out
    answers[:] = [("ended with code 1", "No module named ..."), (None, "")]
    tool.build(5)
    assert commands[-1] == ["setup.py", "build_ext", "--inplace"] and capsys.readouterr().out.startswith("built in ")
    answers[:] = [("ended with code 1", ""), ("ended with code 1", "no compiler")]
    with pytest.raises(SystemExit, match="the build ended with code 1\nno compiler"):
        tool.build(5)
