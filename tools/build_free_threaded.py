"""Builds CPython without the GIL from Debian's source package, once: `python tools/build_free_threaded.py DIRECTORY`.

Prints the path of the interpreter. What was built before is used again. Where the source or the build can not be had,
it prints why, in a line, and its exit status is 1.
"""

import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path

DEBIAN = "http://deb.debian.org/debian"
SUITES = "forky", "trixie", "sid"
PACKAGE = "python3.13"


class Unavailable(Exception):
    """The source, or what builds it, is not there."""


def fetched(path):
    """The contents of a file of Debian's archive."""
    try:
        with urllib.request.urlopen(f"{DEBIAN}/{path}", timeout=60) as answer:
            return answer.read()
    except OSError as error:
        raise Unavailable(f"no {DEBIAN}/{path}: {error}") from None


def sources(index):
    """(version, path, SHA-256) of the upstream sources that an index of source packages names for the package."""
    for paragraph in index.split("\n\n"):
        if not paragraph.startswith(f"Package: {PACKAGE}\n"):
            continue
        (directory,) = re.findall(r"^Directory: (.+)$", paragraph, re.MULTILINE)
        for digest, name in re.findall(r"^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.xz)$", paragraph, re.MULTILINE):
            yield tuple(map(int, re.findall(r"\d+", name)[2:])), f"{directory}/{name}", digest


def newest_source():
    """The newest source that the archive has, packed. An index may be ahead of it."""
    found = []
    for suite in SUITES:
        try:
            packed = fetched(f"dists/{suite}/main/source/Sources.xz")
        except Unavailable:
            continue  # suites come and go
        found += sources(lzma.decompress(packed).decode())
    for _, path, digest in sorted(set(found), reverse=True):
        try:
            packed = fetched(path)
        except Unavailable:
            continue
        if hashlib.sha256(packed).hexdigest() != digest:
            raise Unavailable(f"{DEBIAN}/{path} is not what the index says")
        return packed
    raise Unavailable(f"no source package {PACKAGE} at {DEBIAN} in {', '.join(SUITES)}")


def build(place):
    """Build the newest source and install it at `place`."""
    packed = newest_source()
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch, "source.tar.xz")
        archive.write_bytes(packed)
        with tarfile.open(archive) as source:
            source.extractall(scratch, filter="data")
        (source_dir,) = (each for each in Path(scratch).iterdir() if each.is_dir())
        log = Path(scratch, "log.txt")
        with log.open("w") as output:
            for command in (
                ["./configure", "-q", f"--prefix={place}", "--disable-gil", "--disable-test-modules"],
                ["make", f"-j{os.cpu_count()}"],
                ["make", "install", f"DESTDIR={scratch}/installed"],
            ):
                try:
                    subprocess.run(command, cwd=source_dir, stdout=output, stderr=output, check=True)
                except (OSError, subprocess.CalledProcessError) as error:
                    tail = " | ".join(log.read_text(errors="replace").splitlines()[-3:])
                    raise Unavailable(f"{source_dir.name} can not be built: {error}: {tail}") from None
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(f"{scratch}/installed{place}", place)  # all of it or nothing


def interpreter(place):
    """The interpreter at `place`, built now if it is not there."""
    python = place / "bin" / "python3.13t"
    if not python.exists():
        build(place)
    code = "import ssl, ctypes, zlib, sys; assert not sys._is_gil_enabled()"
    if subprocess.run([python, "-I", "-c", code]).returncode:
        raise Unavailable(f"{python} lacks ssl, ctypes or zlib, whose headers were missing when it was built")
    return python


if __name__ == "__main__":
    try:
        print(interpreter(Path(sys.argv[1]).resolve()))
    except Unavailable as reason:
        sys.exit(f"free-threaded CPython is skipped: {reason}")
