"""Build a wheel for Linux with musl and run the tests on it.

    python tools/platforms/check_musl.py [DIRECTORY]

musl is a C library in glibc's place, that of Alpine Linux. No such system is needed: musl is compiled from Debian's
source package, and with it zlib, libffi and CPython, of the version that runs this. `zig cc` compiles the wheel, for
the musl that its tag names; NumPy comes from its own wheel. Then follow the smoke test of every wheel, the tests of
the engine, and a sample of the tests of kernels. What is downloaded and compiled stays in the directory, by default
`cygrad/musl` in `$XDG_CACHE_HOME` or `~/.cache`.

Needs GCC, make, the headers of Linux, and the packages setuptools, Cython, NumPy, ziglang and pyelftools. `--sample N`
runs one in N tests of kernels. The musl is Debian's newest, as NumPy's wheels need 1.2.4: their libraries have
relocations of the kind DT_RELR, which older releases ignore, and then crash.
"""

import argparse
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import archives
import build_free_threaded
import zig
from check_arm64 import NEEDED, VERSION, install, library_of, needs_of, step, test
from check_wheel import check_wheel

MACHINE = platform.machine()
SYSTEM = f"{MACHINE}-linux-musl"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "cygrad" / "musl"
SUITES = (*build_free_threaded.SUITES, "bookworm")  # the last has Python 3.11
PLATFORMS = [f"musllinux_1_{minor}_{MACHINE}" for minor in (2, 1)]
WHEEL = zig.Target(SYSTEM, PLATFORMS[0], f"cpython-{VERSION.replace('.', '')}-{SYSTEM}")
LACKING = ("ml_dtypes",)  # what has no wheel for musl; tests that need it are skipped
# GCC names the system that it was made for, in whose folders Python's build would search for headers.
COMPILER = """#!/bin/sh
case "$*" in -print-multiarch | --print-multiarch) echo {system} ;; *) exec {gcc} "$@" ;; esac
"""


def unpacked(package, scratch, suites=SUITES):
    """Unpack the newest source of a package of Debian's, and return its folder."""
    folder = scratch / package
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(build_free_threaded.newest_source(package, suites))) as archive:
        archives.extract(archive, folder)
    (source,) = (each for each in folder.iterdir() if each.is_dir())
    return source


def make(source, *commands, **environment):
    """Run commands in a folder, and keep what they say in a file."""
    log = source.with_name(f"{source.name}.log")
    with log.open("w") as output:
        for command in commands:
            words = [*map(str, command)]
            try:
                subprocess.run(
                    words, cwd=source, env=os.environ | environment, stdout=output, stderr=output, check=True
                )
            except (OSError, subprocess.CalledProcessError) as error:
                sys.exit(f"{' '.join(words)}: {error}; the end of {log}:\n{log.read_text(errors='replace')[-2000:]}")


def make_musl(into, scratch, processes):
    """Build musl with its wrapper of GCC, add the headers of Linux, and return the compiler."""
    compiler = into / "bin" / "cc"
    if not compiler.exists():
        source = unpacked("musl", scratch)
        configure = ["./configure", f"--prefix={into}", f"--syslibdir={into}/lib", "--enable-wrapper=gcc"]
        make(source, configure, ["make", f"-j{processes}"], ["make", "install"])
        multiarch = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
        for name in ("linux", "asm-generic", "asm"):
            places = [Path("/usr/include", name), Path("/usr/include", multiarch, name)]
            into.joinpath("include", name).symlink_to(next(place for place in places if place.exists()))
        compiler.write_text(COMPILER.format(system=SYSTEM, gcc=into / "bin" / "musl-gcc"), encoding="utf-8")
        compiler.chmod(0o755)
    return compiler


def make_python(into, compiler, scratch, processes):
    """Build CPython with what tests need of other libraries, and return the interpreter."""
    python = into / "bin" / f"python{VERSION}"
    if not python.exists():
        system, jobs = [f"--build={SYSTEM}", f"--host={SYSTEM}", f"CC={compiler}"], f"-j{processes}"
        libraries = ["--prefix", into, "--disable-shared", "--with-pic", "--disable-multi-os-directory"]
        # Packages of newer suites hold no `configure`, but only what it is generated from.
        libffi = unpacked("libffi", scratch, ("bookworm",))
        make(libffi, ["./configure", *system, *libraries], ["make", jobs], ["make", "install"])
        zlib = {"CC": str(compiler), "CFLAGS": "-O2 -fPIC"}
        make(unpacked("zlib", scratch), ["./configure", "--static", f"--prefix={into}"], ["make", "install"], **zlib)
        flags = ["OPT=-DNDEBUG -O1", f"CPPFLAGS=-I{into}/include", f"LDFLAGS=-L{into}/lib"]  # Python need not be fast
        configure = [
            "./configure",
            *system,
            *flags,
            f"--prefix={into}",
            "--without-ensurepip",
            "--disable-test-modules",
        ]
        make(
            unpacked(f"python{VERSION}", scratch),
            configure,
            ["make", jobs],
            ["make", "install"],
            PKG_CONFIG_LIBDIR=f"{into}/lib/pkgconfig",
        )
    return python


def main(place, sample, processes):
    place.mkdir(parents=True, exist_ok=True)
    with step("musl"):
        compiler = make_musl(place / "musl", place / "sources", processes)
    with step("CPython"):
        python = make_python(place / "python", compiler, place / "sources", processes)
    packages = place / "python" / "lib" / f"python{VERSION}" / "site-packages"
    with step("packages of Python"):
        wanted = [each for each in NEEDED if not each.startswith(LACKING)]
        install(packages, "numpy>=2.0", *wanted, platforms=PLATFORMS)
    headers = [place / "python" / "include" / f"python{VERSION}", packages / "numpy" / "_core" / "include"]
    with step("the wheel"):
        wheel = zig.build_wheel(WHEEL, headers, place / "wheel")
        check_wheel(wheel)
    needed, _ = needs_of(library_of(wheel, place / "wheel" / "unpacked"))
    if needed != {"libc.so"}:
        sys.exit(f"{wheel.name} needs {sorted(needed)}")
    shutil.rmtree(packages / "cygrad", ignore_errors=True)
    install(packages, "--no-deps", wheel, platforms=PLATFORMS)

    def run(*arguments, cwd, environment):
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        subprocess.run([*map(str, [python, *arguments])], cwd=cwd, env=kept | environment, check=True)

    test(run, place / "elsewhere", sample, processes)
    print(wheel)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", nargs="?", default=CACHE, type=Path)
    parser.add_argument("--sample", type=int, default=10, metavar="N", help="run one in N tests of kernels")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that run at the same time")
    arguments = parser.parse_args()
    try:
        main(arguments.directory.resolve(), arguments.sample, arguments.processes)
    except build_free_threaded.Unavailable as reason:
        sys.exit(f"no sources: {reason}")
