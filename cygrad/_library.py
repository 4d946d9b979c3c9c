"""Where `import` finds the compiled modules: all of them lie in one shared library.

Apart, they would take a quarter more of the wheel, and each would have to be opened on its own: several modules in one
library is what PEP 489 foresees (section "Multiple modules in one library"). The library bears the name of one of its
modules, `cygrad._compiled`, which is found as usual and tells the names of the others.
"""

import gc
import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import spec_from_file_location

try:
    import cygrad._compiled as _compiled
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error}\n  the cygrad in {__file__.rpartition('_library')[0]} is not compiled for this Python; if another is "
        "installed, start Python in another directory, or else compile this one: python setup.py build_ext --inplace",
        name=error.name,
    ) from None

names = frozenset(_compiled.names.split())


class LibraryFinder:
    """Finds a compiled module in the library, before Python looks for a file of its name, which takes longer."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in names:
            return None
        return spec_from_file_location(name, loader=ExtensionFileLoader(name, _compiled.__file__))


sys.meta_path.insert(0, LibraryFinder)


class later:
    """A module that is imported when something of it is first asked for: what only errors need, or GPUs."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, attribute):
        return getattr(import_module(self.__name__), attribute)


@contextmanager
def uncollected():
    """Around imports: what they make stays, so that the collector, a tenth of their time, looks in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
