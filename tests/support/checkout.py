"""Files of the checkout that are not installed, as modules: tools, extensions of the documentation, benchmarks."""

import contextlib
import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def imported(path):
    """Import one file, such as "tools/make_gallery.py", anew."""
    spec = importlib.util.spec_from_file_location(f"of_the_checkout_{Path(path).stem}", CHECKOUT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def rows_of_benchmarks():
    """Import `benchmarks.rows` within a block, and forget the package after it."""
    folder = CHECKOUT / "benchmarks"
    spec = importlib.util.spec_from_file_location(
        "benchmarks", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
    try:
        yield importlib.import_module("benchmarks.rows")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
            del sys.modules[name]


@cache
def entries_of_reference():
    """Return {name: (object, kind)} of all that the pages of the reference describe."""
    found = {}

    class Recorded(imported("docs/_ext/reference.py").Reference):
        def entry(self, module, name, value, kind):
            found[f"{module}.{name}"] = value, kind
            return super().entry(module, name, value, kind)

    Recorded().build()
    return found
