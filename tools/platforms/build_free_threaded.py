"""Build free-threaded CPython from Debian's source package.

    python tools/platforms/build_free_threaded.py [DIRECTORY]

Prints the path of the interpreter. It is built once into the directory (by default `cygrad/cpython-3.13t` in
`$XDG_CACHE_HOME` or `~/.cache`) and then reused; remove the directory to rebuild it. If the source cannot be fetched or
the build fails, the program prints the reason in one line and exits with status 1.
"""

import functools
import hashlib
import http.client
import lzma
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

import archives

DEBIAN = "http://deb.debian.org/debian"
SUITES = "forky", "trixie", "sid"
PACKAGE = "python3.13"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "cygrad" / "cpython-3.13t"
ATTEMPTS = 3  # to reach the archive
NEEDED = "ctypes", "sqlite3", "ssl", "zlib"  # modules that CPython omits if their headers are missing


class Unavailable(Exception):
    """The source cannot be fetched, or the build fails."""


def fetched(path):
    """Return the contents of a file in Debian's archive."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(f"{DEBIAN}/{path}", timeout=60) as answer:
                return answer.read()
        except (OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS or getattr(error, "code", None) == 404:
                raise Unavailable(f"{DEBIAN}/{path} cannot be fetched: {error}") from None
        time.sleep(5 * attempt)


@functools.cache
def index(suite):
    """Return the index of a suite's source packages."""
    return lzma.decompress(fetched(f"dists/{suite}/main/source/Sources.xz")).decode()


def sources(index, package):
    """Yield (version, path, SHA-256) of a package's upstream sources in an index of source packages."""
    for paragraph in index.split("\n\n"):
        if not paragraph.startswith(f"Package: {package}\n"):
            continue
        (directory,) = re.findall(r"^Directory: (.+)$", paragraph, re.MULTILINE)
        for digest, name in re.findall(r"^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.\w+)$", paragraph, re.MULTILINE):
            version = name.removeprefix(f"{package}_").partition(".orig")[0]
            yield tuple(map(int, re.findall(r"\d+", version))), f"{directory}/{name}", digest


def newest_source(package=PACKAGE, suites=SUITES):
    """Return a package's newest source tarball in the archive, which may lag behind its index."""
    found = set()
    failed = []
    for suite in suites:  # not all exist at all times
        try:
            found.update(sources(index(suite), package))
        except Unavailable as reason:
            failed.append(str(reason))
    for _, path, digest in sorted(found, reverse=True):
        try:
            packed = fetched(path)
        except Unavailable as reason:
            failed.append(str(reason))
            continue
        if hashlib.sha256(packed).hexdigest() != digest:
            raise Unavailable(f"{DEBIAN}/{path} is not what the index says")
        return packed
    raise Unavailable("; ".join([f"no source package {package} in {', '.join(suites)} of {DEBIAN}", *failed]))


def build(place):
    """Build the newest source and install it at `place`."""
    packed = newest_source()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        archive = Path(scratch, "source.tar.xz")
        archive.write_bytes(packed)
        with tarfile.open(archive) as source:
            archives.extract(source, scratch)
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
                    raise Unavailable(f"{source_dir.name} cannot be built: {error}: {tail}") from None
        try:
            Path(f"{scratch}/installed{place}").rename(place)  # atomic
        except OSError:
            if not place.exists():  # else another process was faster
                raise


def interpreter(place):
    """Return the interpreter at `place`, building it if necessary."""
    python = place / "bin" / "python3.13t"
    if not python.exists():
        build(place)
    code = f"import sys, {', '.join(NEEDED)}; assert not sys._is_gil_enabled()"
    tried = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True)
    if tried.returncode:
        why = tried.stderr.strip().splitlines()[-1:]
        raise Unavailable(f"{python} is unusable: {' '.join(why)} (were headers missing when it was built? Remove it)")
    return python


if __name__ == "__main__":
    try:
        print(interpreter(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else CACHE))
    except Unavailable as reason:
        sys.exit(f"no free-threaded CPython: {reason}")
