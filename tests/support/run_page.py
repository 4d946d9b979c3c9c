"""Run the code cells of a page of the site, in order and in one namespace: `python run_page.py page.md`.

A cell tagged `raises-exception` has to raise an exception, any other must not. Exits with a message otherwise.
"""

import linecache
import re
import sys
from pathlib import Path

CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TAG = ":tags: [raises-exception]\n"


def run(page: Path) -> None:
    names = {"__name__": "__main__"}
    for number, match in enumerate(CELL.finditer(page.read_text(encoding="utf-8")), 1):
        code = match[1].removeprefix(TAG)
        file = f"<cell {number} of {page.name}>"
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        try:
            exec(compile(code, file, "exec"), names)
        except Exception:
            if code == match[1]:
                raise
        else:
            if code != match[1]:
                sys.exit(f"{file} announces an exception, and raised none:\n{code}")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
