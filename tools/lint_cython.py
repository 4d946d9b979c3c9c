"""Run cython-lint over the package, ignoring one finding.

A parameter may have the name of an import: `dtype` is both PyTorch's argument and our class, and renaming either would
be worse. cython-lint has no code for disabling this finding.
"""

import re
import subprocess
import sys

EXCEPTED = re.compile(r"shadows global import")


def main():
    """Print the remaining findings, and fail if there are any."""
    run = subprocess.run(["cython-lint", "cygrad"], capture_output=True, text=True)
    if run.returncode and not run.stdout:
        sys.exit(run.stderr)
    findings = [line for line in run.stdout.splitlines() if not EXCEPTED.search(line)]
    print(*findings, sep="\n", end="\n" if findings else "")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
