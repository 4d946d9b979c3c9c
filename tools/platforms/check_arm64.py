"""Build wheels for 64-bit ARM on Linux and run the tests on one of them.

    python tools/platforms/check_arm64.py [DIRECTORY]

Both wheels, for glibc and for musl, are cross-compiled with `zig cc`. The first is installed into a folder of Debian's
arm64 packages and tested there under QEMU: the smoke test of every wheel, the tests of the engine, and a sample of the
tests of kernels. The second is not run: each name that its library takes from others must exist in musl or in Python.
What is downloaded and compiled stays in the directory, by default `cygrad/arm64` in `$XDG_CACHE_HOME` or `~/.cache`.

Needs Debian or one of its relatives, whose `apt-get` and `dpkg-deb` it calls, run by its own version of Python, and the
packages setuptools, Cython, NumPy, ziglang and pyelftools. `--sample N` runs one in N tests of kernels.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import zig
from check_wheel import check_wheel
from debian_root import VERSION, Root
from elftools.elf.elffile import ELFFile

TESTS = zig.CHECKOUT / "tests"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "cygrad" / "arm64"
PYTHON = f"cpython-{VERSION.replace('.', '')}"
OLDEST_GLIBC = 2, 28
GLIBC = zig.Target(
    "aarch64-linux-gnu.{}.{}".format(*OLDEST_GLIBC),
    "manylinux_{}_{}_aarch64".format(*OLDEST_GLIBC),
    f"{PYTHON}-aarch64-linux-gnu",
)
MUSL = zig.Target("aarch64-linux-musl", "musllinux_1_2_aarch64", f"{PYTHON}-aarch64-linux-musl")
NEEDED = ["ml_dtypes>=0.5", "hypothesis>=6", "opt_einsum", "pytest>=8", "pytest-xdist>=3.7", "scipy", "threadpoolctl"]
PLATFORMS = [f"manylinux{version}_aarch64" for version in ("_2_28", "_2_27", "_2_17", "2014")]
LIBRARIES_OF_GLIBC = {"libm.so.6", "libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1"}
MODEL = "cortex-a72"  # without SVE, in whose loops OpenBLAS raises floating-point errors under QEMU
ENGINE = ["autograd", "core/engine", "core/graph"]


@contextlib.contextmanager
def step(name):
    """Say what is done, and then how long it took."""
    print(f"{name} ...", flush=True)
    begin = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)


def install(into, *requirements, platforms=PLATFORMS):
    """Install wheels for a platform into a folder; this interpreter's pip does it, with its own settings."""
    words = [word for platform in platforms for word in ("--platform", platform)]
    words += ["--only-binary=:all:", "--upgrade", "--quiet", "--target", into]
    subprocess.run([*map(str, [sys.executable, "-m", "pip", "install", *words, *requirements])], check=True)


def make_headers(root, packages, into):
    """Collect Python's headers, with the configuration for the platform, and return their folder and NumPy's."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(root.path / "usr" / "include" / f"python{VERSION}", into)
    shutil.copy(root.path / "usr/include/aarch64-linux-gnu" / f"python{VERSION}" / "pyconfig.h", into)
    return [into, packages / "numpy" / "_core" / "include"]


def library_of(wheel, into):
    """Unpack the compiled library of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        return Path(archive.extract(name, into))


def needs_of(library):
    """Return the libraries that a library needs, and the versions of their symbols."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        needed = {tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")}
        section = elf.get_section_by_name(".gnu.version_r")
        versions = {each.name for _, group in section.iter_versions() for each in group} if section else set()
    return needed, versions


def names_of(library):
    """Return the names that a library exports, and those that it must find elsewhere."""
    with library.open("rb") as file:
        symbols = [each for each in ELFFile(file).get_section_by_name(".dynsym").iter_symbols() if each.name]
    exported = {symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"}
    return exported, {symbol.name for symbol in symbols if symbol["st_info"]["bind"] == "STB_GLOBAL"} - exported


def check_glibc(library):
    """Fail if the library needs another library than glibc, or a newer glibc than the wheel's tag says."""
    needed, versions = needs_of(library)
    newest = max(tuple(map(int, each.removeprefix("GLIBC_").split("."))) for each in versions)
    if not needed <= LIBRARIES_OF_GLIBC or newest > OLDEST_GLIBC:
        sys.exit(f"arm64: {library.name} needs {sorted(needed)} with {sorted(versions)}")


def check_musl(library, root):
    """Fail if the library needs another library than musl, or a name that neither musl nor Python has."""
    needed, _ = needs_of(library)
    (python,) = root.path.glob(f"usr/lib/aarch64-linux-gnu/libpython{VERSION}.so.1.0")
    musl = root.path / "lib" / "aarch64-linux-musl" / "libc.so"
    unknown = names_of(library)[1] - names_of(musl)[0] - names_of(python)[0]
    if needed != {"libc.so"} or unknown:
        sys.exit(f"arm64: {library.name} needs {sorted(needed)}; musl and Python lack {sorted(unknown)}")


def test(run, place, sample, processes):
    """Run the tests in an empty directory, by a function that runs the platform's Python."""
    place.mkdir(exist_ok=True)
    environment = {
        "CYGRAD_REPRODUCIBLE": "1",
        "CYGRAD_TEST_INSTALLED": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    pytest = ["-m", "pytest", "-c", zig.CHECKOUT / "pyproject.toml", "--rootdir", zig.CHECKOUT]
    pytest += ["-q", "-p", "no:cacheprovider", "-n", processes, "--dist", "loadfile", "--hangs-after", "0"]
    pytest += ["-m", "not slow and not exhaustive and not gpu"]
    kernels = ["--sample", sample, TESTS / "kernels"]
    for name, arguments in {
        "the smoke test": ["-I", TESTS / "package" / "smoke.py"],
        "the tests of the engine": [*pytest, *(TESTS / name for name in ENGINE)],
        f"one in {sample} tests of kernels" if sample > 1 else "the tests of kernels": [*pytest, *kernels],
    }.items():
        with step(name):
            run(*arguments, cwd=place, environment=environment)


def main(place, sample, processes):
    root = Root(place, "arm64", "aarch64", MODEL)
    with step("packages of Debian"):
        root.fill([f"python{VERSION}", f"libpython{VERSION}-dev", "libstdc++6", "musl"])
    packages = root.path / "usr" / "local" / "lib" / f"python{VERSION}" / "dist-packages"
    with step("packages of Python"):
        install(packages, *NEEDED)
    headers = make_headers(root, packages, place / "headers")
    with step("the wheel for glibc"):
        wheel = zig.build_wheel(GLIBC, headers, place / "glibc")
        check_wheel(wheel)
        check_glibc(library_of(wheel, place / "glibc" / "unpacked"))
    with step("the wheel for musl"):
        other = zig.build_wheel(MUSL, headers, place / "musl")
        check_wheel(other)
        check_musl(library_of(other, place / "musl" / "unpacked"), root)
    shutil.rmtree(packages / "cygrad", ignore_errors=True)
    install(packages, "--no-deps", wheel)
    test(root.run, place / "elsewhere", sample, processes)
    print(f"{wheel}\n{other}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", nargs="?", default=CACHE, type=Path)
    parser.add_argument("--sample", type=int, default=10, metavar="N", help="run one in N tests of kernels")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that run tests at the same time")
    arguments = parser.parse_args()
    main(arguments.directory.resolve(), arguments.sample, arguments.processes)
