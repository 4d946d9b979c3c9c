"""The modules that `import torch` and `import torch.x.y` give."""

import sys
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import cygrad
from cygrad.as_torch.lacking import explain_attributes, what_serves_instead
from cygrad.torch_version import __version__

__all__ = [
    "cygrad_name",
]

# PyTorch has other modules of these names, or none.
_HIDDEN = frozenset(("_compiled", "_core", "_cython", "_kernels", "_library", "_ops", "as_torch", "debug", "viz"))
_ELSEWHERE = {"torch.version": "cygrad.as_torch.version", "torch._ops": "cygrad.as_torch.ops"}


def cygrad_name(name):
    """The full name of the module of cygrad that `torch.x.y` stands for, or None.

    >>> from cygrad.as_torch.aliases import cygrad_name
    >>> cygrad_name("torch.nn.functional")
    'cygrad.nn.functional'
    """
    parts = name.split(".")
    return _ELSEWHERE.get(name) or (None if parts[1] in _HIDDEN else ".".join(["cygrad", *parts[1:]]))


class _Torch(ModuleType):
    """The class of `torch`: cygrad's names, but for PyTorch's version.

    A name is looked up in cygrad once; what a program assigns goes to both, so that both always agree.
    """

    def __getattr__(self, name):
        if name == "__all__":
            return [public for public in dir(cygrad) if not public.startswith("_") and public not in _HIDDEN]
        if f"torch.{name}" in _ELSEWHERE:
            return import_module(f"torch.{name}")
        if name in _HIDDEN or not hasattr(cygrad, name):
            text = f"module 'torch' has no attribute {name!r}{what_serves_instead(f'torch.{name}')}"
            raise AttributeError(text, name=name, obj=self)
        value = self.__dict__[name] = getattr(cygrad, name)
        explain_attributes(f"torch.{name}", value)
        return value

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if not name.startswith("__") and f"torch.{name}" not in _ELSEWHERE:
            setattr(cygrad, name, value)

    def __delattr__(self, name):
        self.__dict__.pop(name, None)
        delattr(cygrad, name)

    def __dir__(self):
        return sorted({*self.__dict__, *dir(cygrad)} - _HIDDEN)


torch = _Torch("torch", cygrad.__doc__)


def _asked_by_find_spec():
    """Whether `importlib.util.find_spec` is the caller: it answers None for what an import statement cannot find."""
    return sys._getframe(2).f_globals.get("__name__") == "importlib.util" or (
        sys._getframe(3).f_globals.get("__name__") == "importlib.util"
    )


class _AliasFinder:
    """Finds `torch` and `torch.x.y`. It comes first, so that cygrad's files are not imported twice by their places."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            return torch.__spec__
        if not name.startswith("torch."):
            return None
        real_name = cygrad_name(name)
        real = find_spec(real_name) if real_name else None
        if real is not None:
            spec = ModuleSpec(name, _AliasLoader(), origin=real.origin)
            spec.submodule_search_locations = real.submodule_search_locations
            return spec
        if _asked_by_find_spec():
            return None
        raise ModuleNotFoundError(f"No module named {name!r}{what_serves_instead(name)}", name=name)


class _AliasLoader(InspectLoader):
    """Puts cygrad's own module in the place of the one that Python has prepared."""

    def exec_module(self, module):
        name = module.__name__
        if name == "torch":
            sys.modules[name] = torch
            return
        real = import_module(cygrad_name(name))
        explain_attributes(name, real)
        parent, _, child = name.rpartition(".")
        _keep_attribute(sys.modules[parent], child, real)
        sys.modules[name] = real

    def get_code(self, fullname):
        """The code of a module, for `python -m cygrad -m torch.x.y`."""
        return self._real_loader(fullname).get_code(cygrad_name(fullname))

    def get_source(self, fullname):
        return self._real_loader(fullname).get_source(cygrad_name(fullname))

    def is_package(self, fullname):
        return self._real_loader(fullname).is_package(cygrad_name(fullname))

    @staticmethod
    def _real_loader(name) -> Any:
        real: Any = find_spec(cygrad_name(name))
        return real.loader


def _keep_attribute(parent, child, module):
    """See to it that `parent.child` stays what it is, if that is not the module of this name.

    After an import Python binds the module in its parent; `import torch.autograd.gradcheck` would replace the function
    `autograd.gradcheck` by the module that defines it.
    """
    kept = vars(parent).get(child, module)
    if kept is module:
        return
    usual: Any = type(parent)

    class Guard(usual):
        def __setattr__(self, name, value):
            if name == child and value is module:
                self.__class__ = usual  # once: what the program assigns later counts
            else:
                super().__setattr__(name, value)

    parent.__class__ = Guard


def install(folder):
    """Let `import torch` give `torch`, as a package whose files are in a folder."""
    file = f"{folder}/__init__.py"
    spec = ModuleSpec("torch", _AliasLoader(), origin=file)
    spec.submodule_search_locations = [folder]
    vars(torch).update(
        __file__=file,
        __loader__=spec.loader,
        __package__="torch",
        __path__=[folder],
        __spec__=spec,
        __version__=__version__,
        torch=torch,
        version=import_module("cygrad.as_torch.version"),
    )
    if _AliasFinder not in sys.meta_path:
        sys.meta_path.insert(0, _AliasFinder)
    sys.modules["torch"] = torch
