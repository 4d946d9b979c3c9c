"""Build an sdist, build a wheel from it, and use the wheel in an empty environment.

    python tools/platforms/check_wheel.py EMPTY_DIRECTORY

Checks the contents of both, that NumPy is the only dependency of the wheel, that the smoke test passes without a
checkout, and that a compiler which fails leads to a message. Warns about a large wheel. On Linux, the wheel is one that
old distributions can use (tools/platforms/manylinux_wheel.py). Needs the `build` package, and what that tool needs.
"""

import os
import platform
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import archives

CHECKOUT = Path(__file__).resolve().parents[2]
LARGE_WHEEL_MB = 10  # above which we warn
LIBRARY = Path("cygrad/_compiled.c")  # the one file written in C; after it the library of all modules is named
SHIPPED = (".py", ".pyi", ".so", ".pyd")  # and the files that follow
DATA = ("py.typed", "schemas.txt")


def run(*command, cwd):
    """Run a command in `cwd`, and fail if it fails."""
    # PYTHONPATH could lead back to the checkout.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*map(str, command)], cwd=cwd, env=environment, check=True)


def check(condition, complaint):
    if not condition:
        sys.exit(f"check_wheel: {complaint}")


def sources(suffix):
    """Return the package's files that end in `suffix`, relative to the checkout."""
    return {path.relative_to(CHECKOUT) for path in CHECKOUT.glob(f"cygrad/**/*{suffix}")}


def build(directory):
    """Build as a user's installer would: the wheel from the sdist, both in isolation."""
    make = [sys.executable, "-m", "build", "--outdir", directory]
    if platform.libc_ver()[0] != "glibc":
        run(*make, CHECKOUT, cwd=directory)
    else:
        run(*make, "--sdist", CHECKOUT, cwd=directory)
        run(
            sys.executable,
            CHECKOUT / "tools" / "platforms" / "manylinux_wheel.py",
            *directory.glob("*.tar.gz"),
            directory,
            cwd=directory,
        )
    (sdist,) = directory.glob("*.tar.gz")
    (wheel,) = directory.glob("*.whl")
    return sdist, wheel


def check_sdist(sdist):
    with tarfile.open(sdist) as archive:
        names = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    missing = {
        path for suffix in (".py", ".pyx", ".pxd", ".pyi", ".h", *DATA) for path in sources(suffix) if path not in names
    }
    check(not missing, f"the sdist lacks {sorted(map(str, missing))}")
    for name in (
        "setup.py",
        "cygrad/_compiled.c",
        "tox.ini",
        "LICENSE",
        "README.md",
        "SECURITY.md",
        "tests/package/smoke.py",
        ".ci/run",
    ):
        check(Path(name) in names, f"the sdist lacks {name}")
    made = {".so", ".pyc"}
    derived = sorted(
        str(name)
        for name in names - {LIBRARY}
        if name.suffix in made or name.suffix == ".c" and name.parts[0] == "cygrad"
    )
    check(not derived, f"the sdist holds what a build makes: {derived}")


def check_wheel(wheel):
    size = wheel.stat().st_size / 1e6
    if size > LARGE_WHEEL_MB:
        print(f"check_wheel: warning: the wheel has {size:.2f} MB, more than {LARGE_WHEEL_MB}", file=sys.stderr)
    with zipfile.ZipFile(wheel) as archive:
        infos = [each for each in archive.infolist() if not (each.is_dir() or ".dist-info/" in each.filename)]
    installed = sum(info.file_size for info in infos) / 1e6
    names = [Path(info.filename) for info in infos]
    strays = [
        str(name)
        for name in names
        if name.parts[0] != "cygrad" or (name.suffix not in SHIPPED and name.name not in DATA)
    ]
    check(not strays, f"the wheel holds {strays}")
    shipped = {path for suffix in (".py", ".pyi", *DATA) for path in sources(suffix)}
    missing = sorted(map(str, shipped - set(names)))
    check(not missing, f"the wheel lacks {missing}")
    compiled = [name.with_name(name.name.split(".")[0] + ".c") for name in names if name.suffix in (".so", ".pyd")]
    check(compiled == [LIBRARY], f"compiled {sorted(map(str, compiled))}")
    with zipfile.ZipFile(wheel) as archive:
        # At the top: the package itself holds such a file, too, which speaks for `torch`.
        (metadata,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        relative = re.findall(r'(?:\]\(|src=")(?!\w+:|#)[^)"]*', archive.read(metadata).decode())
        places = [os.fsencode(CHECKOUT), os.fsencode(Path(sys.base_prefix, "lib"))]
        tied = [info.filename for info in archive.infolist() if any(place in archive.read(info) for place in places)]
        stub = b"compiler_rt.fmv.x86"  # Zig's answer that the processor has no vectors; see manylinux_wheel.py
        slow = [info.filename for info in archive.infolist() if stub in archive.read(info)]
    check(not relative, f"the description, which PyPI shows by itself, links to {relative}")
    check(not tied, f"paths of this machine stand in {tied}")
    check(not slow, f"{slow} would use no vectors but those that every processor has")
    print(f"{wheel.name}: {size:.2f} MB, installed {installed:.2f} MB")


def check_use(wheel, directory):
    """Install into an empty environment, and run from an empty directory."""
    home, elsewhere = directory / "venv", directory / "elsewhere"
    elsewhere.mkdir()
    venv.create(home, with_pip=True)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=elsewhere)
    listing = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    installed = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    names = {line.partition("==")[0] for line in installed.split()}
    extra = names - {"cygrad", "numpy", "pip", "setuptools", "wheel"}
    check(not extra, f"installing the wheel brought along {sorted(extra)}")
    # -I: neither the script's directory nor the environment adds a path.
    run(python, "-I", CHECKOUT / "tests" / "package" / "smoke.py", cwd=elsewhere)


def check_message(sdist, directory):
    """Build with a compiler that fails, as where there is none: the last that users read must be what to do."""
    with tarfile.open(sdist) as archive:
        archives.extract(archive, directory / "unpacked")
    (source,) = (directory / "unpacked").iterdir()
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(directory / "nothing"), str(source)]
    run = subprocess.run(command, env=os.environ | {"CC": "false"}, capture_output=True, text=True)
    said = run.stdout + run.stderr
    check(run.returncode != 0, "a build with a compiler that fails did not")
    expected = "`false` cannot compile a file that includes them.\nInstall them: "
    check(expected in said, f"no word of the compiler in\n{said}")
    check("Traceback" not in said, f"a traceback hides the message about the compiler:\n{said}")


def main(directory):
    sdist, wheel = build(directory)
    check_sdist(sdist)
    check_wheel(wheel)
    check_use(wheel, directory)
    check_message(sdist, directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
