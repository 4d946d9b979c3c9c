"""Use a wheel for Windows under Wine: `python tools/platforms/try_in_wine.py WHEEL [PROGRAM [ARGUMENT ...]]`.

PROGRAM is a Python program, by default the smoke test. Needs Wine and MinGW (Debian: `apt install wine64
gcc-mingw-w64-x86-64-win32`), and pip. The version of Python is that which runs this.

Python for Windows is put together once, in `cygrad/wine` in `$XDG_CACHE_HOME` or `~/.cache`. Its library and compiled
modules, as python.org has built them, come from the wheel of Panda3D, which ships them for the programs that its users
make. The modules in Python are those of this interpreter. NumPy comes from its own wheel for Windows; as Wine 8 lacks
the complex functions of Windows' C library, which NumPy calls, it gets them from a library that is made here.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import numpy

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "cygrad" / "wine"
VERSION = f"{sys.version_info.major}{sys.version_info.minor}"
MATH = b"api-ms-win-crt-math-l1-1-0.dll"
OUR_MATH = b"cygrad-math-for-wine-l1-1-.dll"  # as long as the other name, in whose place it is written
MAIN = """#include <wchar.h>
__declspec(dllimport) int Py_Main(int, wchar_t **);
int wmain(int n, wchar_t **words) { return Py_Main(n, words); }
"""
NAMES = "pow exp log sqrt cos sin tan cosh sinh tanh acos asin atan acosh asinh atanh".split()  # of complex functions
REAL = "real imag arg abs".split()  # functions of complex numbers whose results are real


def tool(*names):
    """Return the path of the first of some programs that is there."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        sys.exit(f"try_in_wine: there is no {names[0]}: apt install wine64 gcc-mingw-w64-x86-64-win32")
    return found


def compile_for_windows(source, *flags):
    name = "x86_64-w64-mingw32-gcc"
    subprocess.run([tool(name, f"{name}-win32"), "-O2", "-static-libgcc", source, *flags], check=True)


def unpack(requirement, scratch):
    """Unpack the wheel of a package for Windows."""
    wanted = ["--no-deps", "--only-binary=:all:", "--platform", "win_amd64", "--python-version", VERSION]
    command = [sys.executable, "-m", "pip", "download", "-q", *wanted, "-d", scratch, requirement]
    subprocess.run([*map(str, command)], check=True)
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch)
    wheel.unlink()


def add_interpreter(place):
    """Add python.exe, its library, and the standard library."""
    scratch = place / "scratch"
    unpack("panda3d", scratch)
    for folder in ("DLLs", "Lib/site-packages"):
        place.joinpath(folder).mkdir(parents=True)
    for file in scratch.joinpath("deploy_libs").iterdir():
        if not file.name.startswith("api-ms-win-"):  # parts of Windows, of which Wine has its own
            is_main = file.name.lower() in (f"python{VERSION}.dll", "vcruntime140.dll")
            file.rename(place / ("" if is_main else "DLLs") / file.name)
    shutil.rmtree(scratch)
    left_out = shutil.ignore_patterns("site-packages", "lib-dynload", "test", "tests", "__pycache__", "config-*")
    shutil.copytree(sysconfig.get_path("stdlib"), place / "Lib", ignore=left_out, dirs_exist_ok=True)
    source = place / "main.c"
    source.write_text(MAIN, encoding="utf-8")
    compile_for_windows(source, "-municode", place / f"python{VERSION}.dll", "-o", place / "python.exe")


def functions_in(file):
    """The functions of the C library's mathematical part that a library for Windows imports."""
    dump = tool("x86_64-w64-mingw32-objdump", "objdump")
    text = subprocess.run([dump, "-p", file], capture_output=True, text=True, check=True).stdout
    table = re.search(rf"DLL Name: {re.escape(MATH.decode())}\n.*\n((?:\t.*\n)+)", text)
    return set() if table is None else {line.split()[-1] for line in table[1].splitlines() if line.strip()}


def definition(name):
    """The C code of a function that Wine lacks, or None."""
    found = re.fullmatch(rf"c({'|'.join((*NAMES, *REAL))})([fl]?)", name)
    if found is None:
        return None
    part, suffix = found[1], found[2].replace("l", "")  # in MSVC, long double is double
    number = "float" if suffix else "double"
    result = number if part in REAL else f"{number} _Complex"
    names = ("z", "w") if part == "pow" else ("z",)
    parameters = ", ".join(f"{number} _Complex {each}" for each in names)
    return f"{result} our_{name}({parameters}) {{ return c{part}{suffix}({', '.join(names)}); }}"


def add_numpy(place):
    """Add NumPy, with what Wine lacks."""
    packages = place / "Lib" / "site-packages"
    unpack(f"numpy=={numpy.__version__}", packages)
    used = {file: functions_in(file) for kind in ("pyd", "dll") for file in packages.rglob(f"*.{kind}")}
    code, exported = ["#include <complex.h>"], [f"LIBRARY {OUR_MATH.decode()}", "EXPORTS"]
    for name in sorted(name for name in set().union(*used.values()) if name.isidentifier()):
        own = definition(name)
        code += [own] if own else []
        exported.append(f"  {name} = {f'our_{name}' if own else f'ucrtbase.{name}'}")
    source, listed = place / "math.c", place / "math.def"
    source.write_text("\n".join([*code, ""]), encoding="utf-8")
    listed.write_text("\n".join([*exported, ""]), encoding="utf-8")
    compile_for_windows(source, listed, "-shared", "-o", place / OUR_MATH.decode())
    for file, functions in used.items():
        if functions:
            file.write_bytes(file.read_bytes().replace(MATH, OUR_MATH))


def python_for_windows():
    """Return the folder of Python and NumPy for Windows."""
    place = CACHE / f"python{VERSION}-numpy{numpy.__version__}"
    if not place.exists():
        partial = place.with_name("partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        add_interpreter(partial)
        add_numpy(partial)
        partial.rename(place)
    return place


def main(wheel, program=CHECKOUT / "tests" / "package" / "smoke.py", *arguments):
    place = python_for_windows()
    packages = place / "Lib" / "site-packages"
    shutil.rmtree(packages / "cygrad", ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    environment = {"WINEPREFIX": str(CACHE / "prefix"), "WINEDEBUG": "-all", "OPENBLAS_NUM_THREADS": "1"}
    wine = tool("wine64", "wine", "/usr/lib/wine/wine64")
    command = [wine, place / "python.exe", Path(program).resolve(), *arguments]
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    run = subprocess.run(
        command,
        env=kept | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,  # no file: Wine 8
        stderr=subprocess.STDOUT,
    )
    sys.stdout.buffer.write(run.stdout)
    return run.returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
