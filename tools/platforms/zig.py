"""Build wheels for other platforms with `zig cc`, one compiler for all of them (`pip install ziglang`).

    target = Target("aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64", "cpython-311-aarch64-linux-gnu")
    build_wheel(target, folders_with_headers, into)

The interpreter that runs this translates Cython and packs the wheel, so it must have the version of Python that the
wheel is for, and setuptools, Cython and NumPy. Nothing else of it gets into the wheel: a module that `settings` fills
answers what setuptools asks Python about its compiler.
"""

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
COMPILER_VARIABLES = ("AR", "ARFLAGS", "CC", "CFLAGS", "CPP", "CPPFLAGS", "CXX", "CXXFLAGS", "LDFLAGS", "LDSHARED")


@dataclass
class Target:
    """A platform: what zig calls it, the wheel's tag, Python's name for its binary interface, and how to link there."""

    name: str
    tag: str
    soabi: str
    suffix: str = ".so"
    compiler_flags: list[str] = field(default_factory=lambda: ["-fPIC"])
    linker_flags: list[str] = field(default_factory=lambda: ["-shared", "-s"])  # no symbols, nor paths


def zig():
    """Return the path of the compiler."""
    import ziglang

    return Path(ziglang.__file__).with_name("zig.exe" if os.name == "nt" else "zig")


def settings(target, headers):
    """What setuptools asks Python about the platform; folders of `headers` are searched before all others."""
    compiler = [zig(), "cc", "-target", target.name, *target.compiler_flags, *(f"-I{folder}" for folder in headers)]
    linker = [zig(), "cc", "-target", target.name, *target.linker_flags]
    archiver = shlex.join([str(zig()), "ar"])
    cc, link = (shlex.join(map(str, words)) for words in (compiler, linker))
    return {
        "AR": archiver,
        "ARFLAGS": "rcs",
        "CC": cc,
        "CXX": cc,
        "CFLAGS": "-DNDEBUG -fwrapv -O2 -Wall",
        "CCSHARED": "",
        "LDSHARED": link,
        "LDCXXSHARED": link,
        "EXT_SUFFIX": f".{target.soabi}{target.suffix}",
        "SHLIB_SUFFIX": target.suffix,
        "SOABI": target.soabi,
        "Py_ENABLE_SHARED": 0,
        "VERSION": f"{sys.version_info.major}.{sys.version_info.minor}",
    }


def build_wheel(target, headers, into):
    """Build the checkout's wheel for a target and return its path; `into` keeps what a next build can use again.

    `headers`: folders with Python's headers and NumPy's for this platform.
    """
    into.mkdir(parents=True, exist_ok=True)
    module = f"_settings_of_{target.tag}"
    into.joinpath(f"{module}.py").write_text(f"build_time_vars = {settings(target, headers)!r}\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in COMPILER_VARIABLES}
    environment |= {
        "PYTHONPATH": str(into),
        "_PYTHON_SYSCONFIGDATA_NAME": module,
        "_PYTHON_HOST_PLATFORM": target.tag,
    }
    for wheel in into.glob("*.whl"):
        wheel.unlink()
    for packed in into.glob("build/lib*"):  # may hold modules that have been removed since
        shutil.rmtree(packed)
    command = [sys.executable, "setup.py", "build", "--build-base", into / "build"]
    command += ["bdist_wheel", "--bdist-dir", into / "tree", "--plat-name", target.tag, "--dist-dir", into]
    subprocess.run([*map(str, command)], cwd=CHECKOUT, env=environment, check=True)
    (wheel,) = into.glob("*.whl")
    return wheel
