"""Makes `import torch` mean cygrad, for libraries and programs that say so.

    import cygrad; cygrad.as_torch()     # at the top of a script or notebook
    python -m cygrad script.py           # a script, unchanged
    python -m pytest -p cygrad.as_torch  # tests

PyTorch need not be installed. Subprocesses, such as the workers of a `DataLoader` and of joblib, inherit the switch.
"""

import os
import sys
from importlib.machinery import PathFinder
from types import ModuleType

from cygrad._core.graph.tensor import name_by_torch
from cygrad.as_torch import aliases
from cygrad.utils.warning import warn

__all__ = [
    "as_torch",
    "pytest_addoption",
]

_PATH = os.path.join(os.path.dirname(__file__), "path")  # holds a `torch` that subprocesses find, and its metadata


def as_torch():
    """Make `import torch` and `import torch.x.y` give cygrad's modules from now on; returns what `torch` then is.

    `torch.nn` is `cygrad.nn` itself, not a copy. Only `torch` is a module of its own: it has all of cygrad's names,
    and `torch.__version__` is the version of PyTorch whose semantics cygrad has. Calling it again changes nothing.

    Raises RuntimeError if PyTorch is already imported. Warns if PyTorch is installed, since cygrad takes its place.

    In a program of its own:

    >>> import cygrad
    >>> import subprocess, sys
    >>> program = "import cygrad; cygrad.as_torch(); import torch; print(torch.nn is cygrad.nn)"
    >>> print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip())
    True
    """
    present = sys.modules.get("torch")
    if present is aliases.torch:
        return present
    if present is not None and not _is_ours(present):
        raise RuntimeError(
            f"PyTorch is already imported, from {getattr(present, '__file__', 'an unknown place')}\n"
            "  two libraries cannot share its name; call `cygrad.as_torch()` before the first `import torch`, or run "
            "the program by `python -m cygrad`"
        )
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _PATH not in inherited:
        _warn_of_installed()
        os.environ["PYTHONPATH"] = os.pathsep.join([_PATH, *filter(None, inherited)])
    if _PATH not in sys.path:  # `multiprocessing` hands this list to new processes; the first entry is the script's
        sys.path.insert(1, _PATH)
    aliases.install(os.path.join(_PATH, "torch"))
    name_by_torch()
    return aliases.torch


def _is_ours(module):
    """Whether a module is the one in `path`, which turns the switch on while it is imported."""
    return (getattr(module, "__file__", None) or "").startswith(_PATH)


def _warn_of_installed():
    spec = PathFinder.find_spec("torch", [place for place in sys.path if place != _PATH])
    if spec is not None and spec.origin is not None:
        warn(f"PyTorch is installed ({os.path.dirname(spec.origin)}); `import torch` means cygrad in this program")


def pytest_addoption(parser):
    """Turn the switch on as soon as pytest loads `-p cygrad.as_torch`, before it imports other plugins and tests.

    pytest calls it, for `python -m pytest -p cygrad.as_torch`.

    >>> import cygrad
    >>> callable(cygrad.as_torch.pytest_addoption)
    True
    """
    as_torch()


class _Callable(ModuleType):
    """The class of this module: `-p cygrad.as_torch` names a module, and `cygrad.as_torch()` calls it."""

    def __call__(self):
        return as_torch()


_Callable.__call__.__doc__ = as_torch.__doc__
sys.modules[__name__].__class__ = _Callable
