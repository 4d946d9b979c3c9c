"""Import hook for the compiled modules, which are all in one shared library.

Separate files would each have to be opened, which makes `import cygrad` 10 ms slower. PEP 489 provides for
several modules in one library (section "Multiple modules in one library"). The library is named after one of its
modules, `cygrad._compiled`, which is found as usual and lists the names of the others.
"""

import gc
import os
import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from types import FunctionType

try:
    import cygrad._compiled as _compiled
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error}\n  the cygrad in {__file__.rpartition('_library')[0]} is not compiled for this Python; if another is "
        "installed, start Python in another directory; otherwise compile this one: python setup.py build_ext --inplace",
        name=error.name,
    ) from None

names = frozenset(_compiled.names.split())
_packages = set()
for _name in names:
    while (_name := _name.rpartition(".")[0]) != "cygrad":
        _packages.add(_name)
_ROOT = os.path.dirname(os.path.dirname(__file__))


class EmptyLoader(SourceFileLoader):
    """Loads a package whose file is empty, without a search for its bytecode."""

    def exec_module(self, module):
        pass


class LibraryFinder:
    """Finds compiled modules, and the packages and Python modules beside them, before Python lists all these folders
    and searches them, which takes a fifth of the time of `import cygrad`."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in names:
            spec = ModuleSpec(name, ExtensionFileLoader(name, _compiled.__file__), origin=_compiled.__file__)
        elif name in _packages:
            folder = os.path.join(_ROOT, *name.split("."))
            file = os.path.join(folder, "__init__.py")
            loader = SourceFileLoader if os.stat(file).st_size else EmptyLoader
            spec = ModuleSpec(name, loader(name, file), origin=file)
            spec.submodule_search_locations = [folder]
        elif name.rpartition(".")[0] in _packages:
            file = os.path.join(_ROOT, *name.split(".")) + ".py"
            if not os.path.exists(file):
                return None
            spec = ModuleSpec(name, SourceFileLoader(name, file), origin=file)
        else:
            return None
        spec.has_location = True
        return spec


sys.meta_path.insert(0, LibraryFinder)


class later:
    """A module that is imported on first attribute access, e.g. one needed only for errors or GPUs.

    Its functions become attributes of this object, so that later calls find them at once.
    """

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, attribute):
        value = getattr(import_module(self.__name__), attribute)
        if isinstance(value, FunctionType):  # other values may be set anew
            setattr(self, attribute, value)
        return value


@contextmanager
def uncollected():
    """Disable the garbage collector during imports: their objects stay alive, and it would take a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() < 1000:  # not by the program, which freezes more; Python 3.12 itself begins with 375
            gc.freeze()  # these two promote all objects to the oldest generation, without a collection that visits them
            gc.unfreeze()
        if was_on:
            gc.enable()
