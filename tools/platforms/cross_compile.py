"""Build wheels for macOS and Windows on a machine that has neither.

    python tools/platforms/cross_compile.py [TARGET ...]

The targets are `windows-amd64`, `macos-arm64` and `macos-x86_64`, by default all of them. Needs `pip install ziglang
setuptools cython numpy`; the wheels are for the version of Python that runs this. Prints for each wheel how long it
took and the compiler's warnings; what else the compiler says is in a log beside the wheel, in `build/cross`.

Headers are kept in `cygrad/headers` in `$XDG_CACHE_HOME` or `~/.cache`. Python's are those of this interpreter:
platforms differ in `pyconfig.h` alone, which for Windows comes from Debian's source package of Python, and for macOS is
this interpreter's own, as both are POSIX systems whose integers have the same sizes. NumPy's come from its wheel for
the platform, by pip.
"""

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import build_free_threaded
import mach_o
import numpy
import zig

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "cygrad" / "headers"
INTO = zig.CHECKOUT / "build" / "cross"
VERSION = f"{sys.version_info.major}{sys.version_info.minor}"
DECLARATION = r"\bPyAPI_(FUNC|DATA)\s*\((?:[^()]|\([^()]*\))*\)[\s*]*(?:_Py_NO_RETURN\s+)?(\w+)"
MACHINE = {"windows-amd64": "i386:x86-64"}  # what dlltool calls it


def windows(name, tag):
    """A target on Windows. Extension modules are linked to Python's library there, or rather to a list of its names."""
    library = CACHE / tag / f"libpython{VERSION}.a"
    return zig.Target(name, tag, f"cp{VERSION}-{tag}", ".pyd", [], ["-shared", "-O2", str(library)])


def macos(name, tag):
    """A target on macOS. Modules find Python's names in the process that loads them; Zig knows the system's."""
    return zig.Target(name, tag, f"cpython-{VERSION}-darwin", ".so", [], ["-shared", "-undefined", "dynamic_lookup"])


TARGETS = {
    "windows-amd64": windows("x86_64-windows-gnu", "win_amd64"),
    "macos-arm64": macos("aarch64-macos.11.0", "macosx_11_0_arm64"),
    "macos-x86_64": macos("x86_64-macos.11.0", "macosx_11_0_x86_64"),
}


# -- Headers --


def configuration_on_debian():
    """Where Debian keeps `pyconfig.h`; among its other headers is one that includes this one on Linux only."""
    include = Path(sysconfig.get_path("include"))
    return include.parent / str(sysconfig.get_config_var("MULTIARCH")) / include.name / "pyconfig.h"


def python_headers(target):
    """Return the folder of Python's headers for a target."""
    folder = CACHE / target.tag / f"python{VERSION}"
    if not folder.exists():
        partial = folder.with_name("partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(sysconfig.get_path("include"), partial)
        if target.tag.startswith("win"):
            with tarfile.open(fileobj=io.BytesIO(build_free_threaded.newest_source())) as source:
                (member,) = (each for each in source if re.search(r"/PC/pyconfig\.h(\.in)?$", each.name))
                found = source.extractfile(member)
                assert found is not None, "a regular file"
                partial.joinpath("pyconfig.h").write_bytes(found.read())
        elif configuration_on_debian().exists():
            shutil.copy(configuration_on_debian(), partial)
        partial.rename(folder)  # atomic
    return folder


def numpy_headers(target):
    """Return the folder of NumPy's headers for a target, of the version that is installed here."""
    folder = CACHE / target.tag / f"numpy-{numpy.__version__}-{VERSION}"
    if not folder.exists():
        scratch = folder.with_name("download")
        wanted = ["--no-deps", "--only-binary=:all:", "--platform", target.tag, "--python-version", VERSION]
        command = [sys.executable, "-m", "pip", "download", "-q", *wanted, "-d", scratch]
        subprocess.run([*map(str, command), f"numpy=={numpy.__version__}"], check=True)
        (wheel,) = scratch.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith("numpy/_core/include/")]
            archive.extractall(scratch, names)
        scratch.joinpath("numpy", "_core", "include").rename(folder)
        shutil.rmtree(scratch)
    return folder


def declared_names(headers):
    """Yield (name, whether it is a variable) of what Python's headers declare."""
    for header in sorted(headers.rglob("*.h")):
        text = header.read_text(encoding="utf-8", errors="replace")
        for kind, name in re.findall(DECLARATION, text):
            yield name, kind == "DATA"


def make_import_library(target, headers, machine):
    """Make the list of names in Python's library for Windows, from which a module is linked."""
    library = CACHE / target.tag / f"libpython{VERSION}.a"
    if not library.exists():
        lines = [f"{name} DATA" if is_variable else name for name, is_variable in sorted(set(declared_names(headers)))]
        listed = library.with_suffix(".def")
        listed.write_text("\n".join([f"LIBRARY python{VERSION}.dll", "EXPORTS", *lines, ""]), encoding="utf-8")
        subprocess.run([zig.zig(), "dlltool", "-m", machine, "-d", listed, "-l", library], check=True)


# -- Checking --


def library_in(wheel, suffix):
    """Return the bytes of the one compiled library in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(suffix))
        return archive.read(name)


def check_macos(wheel, target):
    """Fail unless macOS's loader takes the wheel's library wherever pip takes the wheel, by its tag."""
    _, major, minor, processor = target.tag.split("_", 3)
    found = mach_o.header(library_in(wheel, target.suffix))
    if found.processor != processor or found.oldest != (int(major), int(minor)):
        sys.exit(f"{wheel.name} holds a library for {found.processor} and macOS {found.oldest}")
    if found.needed != ["/usr/lib/libSystem.B.dylib"]:
        sys.exit(f"{wheel.name} needs {found.needed}")
    if processor == "arm64" and not found.signed:
        sys.exit(f"{wheel.name} holds a library without a signature, which macOS would not load")


# -- Building --


@contextmanager
def written_to(log):
    """Write to a file what this process and those that it starts print meanwhile."""
    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        try:
            yield
        finally:
            sys.stdout.flush()
            for stream, former in zip((1, 2), kept):
                os.dup2(former, stream)
                os.close(former)


def warnings_in(text):
    """Count the warnings in what a compiler printed, by kind."""
    return Counter(re.findall(r"warning: .*\[(-W[\w+=-]+)\]$", text, re.MULTILINE))


def build(name):
    """Build the wheel for a target, and print how it went."""
    target = TARGETS[name]
    headers = python_headers(target)
    if name in MACHINE:
        make_import_library(target, headers, MACHINE[name])
    folders = [headers, numpy_headers(target)]
    into = INTO / name
    into.mkdir(parents=True, exist_ok=True)
    log = into / "log.txt"
    start = time.monotonic()
    try:
        with written_to(log):
            wheel = zig.build_wheel(target, folders, into)
    except subprocess.CalledProcessError:
        sys.exit(f"{name}: the build failed; the end of {log}:\n{log.read_text(errors='replace')[-3000:]}")
    if target.tag.startswith("macosx"):
        check_macos(wheel, target)
    seconds, megabytes = time.monotonic() - start, wheel.stat().st_size / 1e6
    print(f"{name}: {wheel.relative_to(zig.CHECKOUT)}, {megabytes:.1f} MB, in {seconds:.0f} s", flush=True)
    for kind, count in warnings_in(log.read_text(errors="replace")).most_common():
        print(f"    {count:4} {kind}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    chosen = parser.parse_args().targets
    if unknown := [name for name in chosen if name not in TARGETS]:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    for name in chosen or TARGETS:
        try:
            build(name)
        except build_free_threaded.Unavailable as reason:
            sys.exit(f"{name}: no headers: {reason}")
