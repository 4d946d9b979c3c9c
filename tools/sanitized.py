"""Run Python with the sanitizers loaded before all else, as a build made with CYGRAD_SANITIZE=1 needs it.

    python tools/sanitized.py -m pytest --capture=sys tests/kernels

The first access outside of an array, and the first step whose behaviour C leaves undefined, end the process with a
report: where it happened, and where the memory came from. (Without `--capture=sys`, pytest would swallow it.)
"""

import os
import shlex
import subprocess
import sys
import sysconfig

# The last is for other libraries: where it is not loaded yet, AddressSanitizer cannot tell how they throw exceptions.
LIBRARIES = ("libasan.so", "libubsan.so", "libstdc++.so")
SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sanitized.supp")
SETTINGS = {
    # An interpreter that ends leaves what the system frees. Tests ask for more memory than there is.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096",
    "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:suppressions={SUPPRESSIONS}",
    "PYTHONMALLOC": "malloc",  # Python's own blocks lie side by side
}


def library(name):
    """The path of a run-time library of the compiler."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    path = subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    if not os.path.isabs(path):
        sys.exit(f"sanitized: {compiler[0]} has no {name}; GCC has, with its package of development files")
    return path.strip()


if __name__ == "__main__":
    preloaded = " ".join(map(library, LIBRARIES))
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], os.environ | SETTINGS | {"LD_PRELOAD": preloaded})
