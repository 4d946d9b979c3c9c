"""What the package does where the system has fewer names than Linux: on macOS and Windows."""

import ast
import os
from pathlib import Path

import pytest

import cygrad
from cygrad import serialization
from cygrad._core.tensor import shared_memory
from cygrad._kernels.platform import machine
from cygrad.serialization import load, save

PACKAGE = Path(cygrad.__file__).parent
# Functions and constants of `os` that Windows lacks, or macOS, or both.
LACKING = """
    O_DIRECTORY O_TMPFILE fork geteuid getuid killpg memfd_create pidfd_open posix_fallocate pread
    register_at_fork sched_getaffinity setsid sysconf uname
""".split()


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Another system: `os` without what it lacks. pytest makes its directory before, with some of these functions."""
    for name in LACKING:
        monkeypatch.delattr(os, name, raising=False)


def test_processors_and_memory_are_counted(elsewhere):
    assert machine.usable_cpus() >= 1
    assert machine.usable_memory() == 0  # it is not reported


def test_memory_is_shared(elsewhere):
    t = cygrad.arange(3.0).share_memory_()
    assert t.is_shared() and t.tolist() == [0, 1, 2]
    assert isinstance(shared_memory._shared(8), shared_memory.shared_class())


def test_files_are_replaced(elsewhere, tmp_path):
    path = tmp_path / "model.pt"
    for number in (1.0, 2.0):
        save({"w": cygrad.full((2,), number)}, path)
    assert load(path)["w"].tolist() == [2, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt"]


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_loaded_tensors_do_not_hold_their_file_where_that_would_keep_it(monkeypatch, tmp_path, name):
    monkeypatch.setattr(serialization, "MAPPED_FILES_CAN_BE_REPLACED", False)
    path = tmp_path / name
    save({"w": cygrad.arange(5000.0)}, path)
    w = load(path)["w"]
    path.write_bytes(bytes(path.stat().st_size))  # in place: a mapping would show it
    assert w.equal(cygrad.arange(5000.0))


def test_processes_share_no_file_where_it_may_lack_room(monkeypatch):
    from cygrad.distributed._c10d.engines import shared_memory as memory_of_groups

    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    assert memory_of_groups._file(4096) == (None, b"")


def calls_of(tree):
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def opens_text(call):
    """Whether a call opens a file as text, or reads or writes one, in the encoding of the system's language."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name in ("read_text", "write_text"):
        positional = 0 if name == "read_text" else 1
        return len(call.args) <= positional and all(each.arg != "encoding" for each in call.keywords)
    if name != "open" or not isinstance(call.func, ast.Name):
        return False
    modes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "mode")]
    if any(not isinstance(mode, ast.Constant) or "b" in mode.value for mode in modes):
        return False
    return all(each.arg != "encoding" for each in call.keywords)


@pytest.mark.parametrize(
    "line, expected",
    [
        ("open(p)", True),
        ("open(p, 'w')", True),
        ("open(p, 'wb')", False),
        ("open(p, encoding='utf-8')", False),
        ("p.write_text(t)", True),
        ("p.write_text(t, 'utf-8')", False),
        ("p.read_text()", True),
        ("os.open(p, 0)", False),
    ],
)
def test_the_sweep_tells_texts_from_bytes(line, expected):
    assert [opens_text(call) for call in calls_of(ast.parse(line))] == [expected]


def test_texts_have_an_encoding():
    """Windows would read and write them in the encoding of its language."""
    found = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path in PACKAGE.rglob("*.py")
        for call in calls_of(ast.parse(path.read_text(encoding="utf-8")))
        if opens_text(call)
    ]
    assert found == []
