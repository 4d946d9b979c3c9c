"""Run Python with the sanitizers preloaded, as required by a build made with CYGRAD_SANITIZE=1.

    python tools/sanitized.py -m pytest --capture=sys tests/kernels

The first out-of-bounds access or undefined behavior aborts the process with a report of where it happened and where the
memory was allocated. (Without `--capture=sys`, pytest would swallow the report.)
"""

import os
import shlex
import subprocess
import sys
import sysconfig

# AddressSanitizer can only intercept C++ exceptions of other libraries if libstdc++ is loaded before them.
LIBRARIES = ("libasan.so", "libubsan.so", "libstdc++.so")
SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sanitized.supp")
SETTINGS = {
    # At exit, the interpreter leaves memory to the system. Some tests request more memory than there is.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096",
    "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:suppressions={SUPPRESSIONS}",
    "PYTHONMALLOC": "malloc",  # pymalloc's blocks are adjacent, which hides overruns
}


def library(name):
    """Return the path of one of the compiler's runtime libraries."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    path = subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    if not os.path.isabs(path):
        sys.exit(f"sanitized: {compiler[0]} has no {name}; GCC's development package includes it")
    return path.strip()


if __name__ == "__main__":
    preloaded = " ".join(map(library, LIBRARIES))
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], os.environ | SETTINGS | {"LD_PRELOAD": preloaded})
