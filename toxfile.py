"""What tox loads first: for `tox -e py313t` it sees to a free-threaded CPython, built once for all checkouts, and it
skips builds by a compiler that is not there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tox.plugin import impl
from tox.tox_env.errors import Skip

# For some interpreters only older releases of NumPy and SciPy have wheels: those, rather than hours of compiling.
os.environ.setdefault("PIP_PREFER_BINARY", "1")

if any("py313t" in argument for argument in (*sys.argv, os.environ.get("TOXENV", ""))):
    if shutil.which("python3.13t") is None:
        tool = Path(__file__).parent / "tools" / "platforms" / "build_free_threaded.py"
        built = subprocess.run([sys.executable, tool], stdout=subprocess.PIPE, text=True)
        if built.returncode:
            sys.exit(built.returncode)  # the tool has said why
        os.environ["PATH"] = f"{Path(built.stdout.strip()).parent}{os.pathsep}{os.environ['PATH']}"


@impl
def tox_on_install(tox_env, arguments, section, of_type):
    """The first that tox does to an environment: nothing is built for those that cannot run."""
    if tox_env.name in ("clang", "clang-full") and shutil.which("clang") is None:
        raise Skip("there is no clang here; `apt install clang` brings it")
