"""What tox loads first: for `tox -e py313t` it sees to a free-threaded CPython, built once for all checkouts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

# For some interpreters only older releases of NumPy and SciPy have wheels: those, rather than hours of compiling.
os.environ.setdefault("PIP_PREFER_BINARY", "1")

if any("py313t" in argument for argument in (*sys.argv, os.environ.get("TOXENV", ""))):
    if shutil.which("python3.13t") is None:
        tool = Path(__file__).parent / "tools" / "build_free_threaded.py"
        built = subprocess.run([sys.executable, tool], stdout=subprocess.PIPE, text=True)
        if built.returncode:
            sys.exit(built.returncode)  # the tool has said why
        os.environ["PATH"] = f"{Path(built.stdout.strip()).parent}{os.pathsep}{os.environ['PATH']}"
