"""What tox loads first: for `tox -e py313t` it sees to a free-threaded CPython, built once and kept in `.tox`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

if any("py313t" in argument for argument in (*sys.argv, os.environ.get("TOXENV", ""))):
    here = Path(__file__).parent
    if shutil.which("python3.13t") is None:
        place = here / ".tox" / "cpython-313t"
        subprocess.run([sys.executable, here / "tools" / "build_free_threaded.py", place])  # tells what is missing
        os.environ["PATH"] = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
