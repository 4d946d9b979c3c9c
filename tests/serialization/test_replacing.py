"""When a file is saved again, it is always either the old version or the new one."""

import errno
import os
import pickle
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad as torch
from cygrad.serialization import _files
from helpers import fails

OLD, NEW = torch.zeros(3000).tolist(), torch.ones(3000).tolist()
STEPS = ("open", "write", "flush", "fsync", "replace", "fsync of the directory", "end")

KILLED = """
import os, signal, sys
import cygrad as torch
from cygrad.serialization import _files

path, step, number = sys.argv[1], sys.argv[2], 0

def killed_at(name, function):
    def wrapper(*arguments):
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)
    return wrapper

class File:
    def __init__(self, file):
        self.file = file
        self.write, self.flush = killed_at("write", self.write_part), killed_at("flush", file.flush)
        self.fileno = file.fileno
    def write_part(self, data):
        if step == "in a write":
            self.file.write(bytes(data)[:100])
            self.file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        self.file.write(data)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.file.close()

def sync(descriptor):
    global number
    number += 1
    if step == ("fsync", "fsync of the directory")[number - 1]:
        os.kill(os.getpid(), signal.SIGKILL)

opened = killed_at("open", open)
_files.open = lambda *arguments: File(opened(*arguments))
_files.os.fsync = sync
_files.os.replace = killed_at("replace", os.replace)
torch.save(torch.ones(3000), path)
if step == "end":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize("step", [*STEPS, "in a write"])
def test_killed_at_any_step(step, tmp_path):
    path = tmp_path / "model"
    torch.save(torch.zeros(3000), path)
    ended = subprocess.run([sys.executable, "-c", KILLED, path, step], capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    is_new = step in ("fsync of the directory", "end")
    assert torch.load(path).tolist() == (NEW if is_new else OLD)
    unnamed = _files._open_unnamed(str(tmp_path))
    if unnamed is not None:
        os.close(unnamed)
    if unnamed is not None and step != "replace":
        assert os.listdir(tmp_path) == ["model"]  # no temporary file is left
    torch.save(torch.ones(3000), path)
    assert torch.load(path).tolist() == NEW


def without_unnamed_files(monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)


def without_proc(monkeypatch):
    monkeypatch.setattr(_files, "_DESCRIPTORS", "/missing/")


def on_another_file_system(monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(_files, "_bring_to_disk", lambda directory: None)  # which opens the directory
    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize("how", [without_unnamed_files, without_proc, on_another_file_system])
def test_where_files_have_names_from_the_beginning(how, tmp_path, monkeypatch):
    path = tmp_path / "model"
    torch.save(torch.zeros(3000), path)
    os.chmod(path, 0o640)
    how(monkeypatch)
    torch.save(torch.ones(3000), path)
    assert torch.load(path).tolist() == NEW and os.listdir(tmp_path) == ["model"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(ZeroDivisionError), _files.replacing(str(path)) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert torch.load(path).tolist() == NEW and os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk(call, tmp_path, monkeypatch):
    path = tmp_path / "model"
    torch.save(torch.zeros(3000), path)

    def fail(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(
        OSError, match="No space left on device: nothing was saved, and an existing file is unchanged"
    ) as info:
        torch.save(torch.ones(3000), path)
    assert info.value.errno == errno.ENOSPC and info.value.filename == str(path)
    assert os.listdir(tmp_path) == ["model"] and torch.load(path).tolist() == OLD
    del info


def test_full_disk_while_writing(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "model"
    torch.save(torch.zeros(3000), path)
    code = (
        "import resource, signal, sys, cygrad as torch\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "torch.save(torch.ones(3000), sys.argv[1])"
    )
    assert resource.RLIM_INFINITY
    ended = subprocess.run([sys.executable, "-B", "-c", code, path], capture_output=True, text=True)
    assert f"File too large: nothing was saved, and an existing file is unchanged: '{path}'" in ended.stderr
    assert os.listdir(tmp_path) == ["model"] and torch.load(path).tolist() == OLD


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_devices_are_written_to():
    with pytest.raises(OSError, match="No space left on device"):
        torch.save(torch.ones(3000), "/dev/full")
    torch.save(torch.ones(3000), "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_an_object_that_is_refused_changes_nothing(tmp_path, name):
    path = tmp_path / name
    torch.save(torch.zeros(3000), path)
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        torch.save([torch.ones(3), lambda: 3], path)
    assert os.listdir(tmp_path) == [name] and torch.load(path).tolist() == OLD


@pytest.mark.skipif(os.name == "nt", reason="needs links and modes")
def test_links_and_modes_stay(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    torch.save(torch.zeros(3), target)
    target.chmod(0o600)
    link.symlink_to(target)
    torch.save(torch.ones(3), link)
    assert link.is_symlink() and torch.load(target).tolist() == [1, 1, 1]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    before = os.umask(0o027)
    try:
        torch.save(torch.ones(3), tmp_path / "other")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o640


def test_paths(tmp_path, monkeypatch):
    with fails(RuntimeError, f"Parent directory {tmp_path / 'missing'} does not exist."):
        torch.save({}, tmp_path / "missing" / "model")
    with pytest.raises(IsADirectoryError):
        torch.save({}, tmp_path)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "missing")
    monkeypatch.chdir(tmp_path)
    torch.save(torch.ones(1), "here")
    assert torch.load("here") == 1
