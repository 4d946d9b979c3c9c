"""The headers of threads, locks, clock and libraries in a program of C, here and for Windows."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("threads_and_clock.c")
CHECKOUT = Path(__file__).parents[3]
FOLDERS = [CHECKOUT / "cygrad" / layer / "include" for layer in ("_core", "_kernels")]


def compiled(compiler, into):
    """Compile the program with warnings as errors."""
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", *(f"-I{folder}" for folder in FOLDERS)]
    run = subprocess.run(
        [compiler, *flags, PROGRAM, "-o", into, *([] if into.suffix else ["-lpthread"])], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return into


def test_here(tmp_path):
    compiler = shutil.which(os.environ.get("CC", "cc").split()[0])
    if compiler is None or os.name == "nt":
        pytest.skip("needs a compiler with GCC's command line")
    run = subprocess.run([compiled(compiler, tmp_path / "program")], capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stdout) == (0, "0 failed\n")


@pytest.mark.slow  # Wine makes its directories
def test_for_windows(tmp_path):
    compiler = shutil.which("x86_64-w64-mingw32-gcc") or shutil.which("x86_64-w64-mingw32-gcc-win32")
    if compiler is None:
        pytest.skip("needs MinGW: apt install gcc-mingw-w64-x86-64-win32")
    program = compiled(compiler, tmp_path / "program.exe")
    wine = next(filter(None, map(shutil.which, ("wine64", "wine", "/usr/lib/wine/wine64"))), None)
    if wine is None:
        pytest.skip("compiled, but not run: needs Wine, apt install wine64")
    environment = os.environ | {"WINEPREFIX": str(tmp_path / "prefix"), "WINEDEBUG": "-all"}
    command = [wine, program]
    run = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, env=environment
    )
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, ["0 failed"])
