"""Read the C code as Visual Studio's compiler would: `python tools/platforms/visual_studio.py`.

It makes no wheel. Clang reads each file of the last build with the macros of Visual Studio's compiler in place of its
own (visual_studio.h), and so takes the branches that are meant for that compiler. What that compiler lacks is an error:
GCC's attributes, builtins and statements in expressions, arrays of variable length, C's complex numbers. What it alone
would refuse does not show. Needs what cross_compile.py needs, and a build before it.
"""

import contextlib
import os
import re
import runpy
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cross_compile
import zig

PRELUDE = Path(__file__).with_suffix(".h")
TARGET = cross_compile.TARGETS["windows-amd64"]
INTO = cross_compile.INTO / "visual-studio"
REFUSED = ["-Werror=gnu", "-Werror=c2y-extensions", "-Werror=vla", "-Werror=implicit-function-declaration"]
BUILTIN = re.compile(r"\b__(?:builtin|sync|atomic)_\w+")
ASKED_FOR = re.compile(r"builtin\((\w+)\)")  # what Cython uses only if the compiler says that it has it


def settings_of_setup():
    """The names that setup.py defines."""
    return runpy.run_path(str(zig.CHECKOUT / "setup.py"))


def units(setup):
    """Yield (source, C file, flags) of each file; modules with loops come twice, without and with AVX2, as built."""
    yield setup["LIBRARY"], setup["LIBRARY"], ['-DCYGRAD_MODULES=""']
    macros = [f"-D{name}={value}" for name, value in setup["MACROS"]]
    for source in (*sorted(Path("cygrad").rglob("*.pyx")), setup["SHARED"]):
        unit = setup["GENERATED"] / source.with_suffix(".c")
        if not unit.exists():
            sys.exit(f"visual_studio: there is no {unit}; compile first, by cross_compile.py or `setup.py build_ext`")
        yield source, unit, macros
        if source.suffix == ".pyx" and setup["has_loops"](source):
            yield source, unit, [*macros, "-DCYGRAD_PROCESSORS=avx2", "-mavx2", "-mfma"]


def refuse_builtins(files, into):
    """Write a header after which the builtins of GCC that the files name, in whatever branch, are errors."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    names = sorted({*BUILTIN.findall(text)} - {*ASKED_FOR.findall(text)})
    into.mkdir(parents=True, exist_ok=True)
    header = into / "refused.h"
    header.write_text(f"#pragma GCC poison {' '.join(names)}\n", encoding="utf-8")
    return header


def command(folders):
    """The words that read a file; Zig's own driver would want an object file."""
    library = zig.zig().parent / "lib"
    system = [library / "include", library / "libc" / "include" / "any-windows-any"]
    words = [zig.zig(), "clang", "--target=x86_64-windows-gnu", "-fsyntax-only", "-nostdinc", "-fms-extensions"]
    words += ["-D_WIN32_WINNT=0x0a00", "-D_UCRT", "-DNDEBUG", *REFUSED]
    words += ["-Wno-builtin-macro-redefined"]  # visual_studio.h does it
    words += ["-Wno-variadic-macro-arguments-omitted"]  # which that compiler, too, accepts
    words += [word for folder in system for word in ("-isystem", folder)]
    return [*words, *(f"-I{folder}" for folder in folders)]


def main():
    folders = [cross_compile.python_headers(TARGET), cross_compile.numpy_headers(TARGET)]
    start = time.monotonic()
    with contextlib.chdir(zig.CHECKOUT):
        setup = settings_of_setup()
        found = [*units(setup)]
        headers = [path for root in setup["INCLUDE_ROOTS"] for path in root.rglob("*.h")]
        refused = refuse_builtins({*headers, *(unit for _, unit, _ in found)}, INTO)
        words = command([*setup["INCLUDE_ROOTS"], *folders])
        words += [word for header in (PRELUDE, refused, setup["PREFIX"]) for word in ("-include", header)]

        def read(source, unit, flags):
            run = subprocess.run(
                [*map(str, [*words, f"-I{source.parent}", *flags, unit])], capture_output=True, text=True
            )
            return run.stderr if run.returncode else ""

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            refusals = [text for text in pool.map(read, *zip(*found)) if text]
    print(*refusals, sep="\n", end="")
    print(f"visual-studio: {len(found)} files, {len(refusals)} refused, in {time.monotonic() - start:.0f} s")
    return 1 if refusals else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cross_compile.build_free_threaded.Unavailable as reason:
        sys.exit(f"visual_studio: no headers: {reason}")
