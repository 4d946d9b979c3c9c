"""Settings as the attributes of a module, with changes that can be undone."""

import functools
import sys
from types import ModuleType

__all__ = ["ConfigModule", "install_config_module"]


class ConfigModule(ModuleType):
    """The class of a module of settings.

    A program may set any name: settings are kept, and read back. A name that is neither declared nor set raises
    AttributeError.
    """

    def __getattr__(self, name):
        raise AttributeError(f"{self.__name__}.{name} does not exist")

    def patch(self, arg1=None, arg2=None, **kwargs):
        """Return a context manager and decorator that changes settings within it.

        Takes names and values as keywords, one name and its value, or a dictionary.
        """
        if isinstance(arg1, str):
            changes = {arg1: arg2}
        else:
            changes = {**(arg1 or {}), **kwargs}
        return _Patch(self, changes)

    def to_dict(self):
        """Return all settings by name."""
        kinds = (bool, int, float, str, list, dict, set, tuple, type(None))
        return {
            name: value for name, value in vars(self).items() if not name.startswith("__") and isinstance(value, kinds)
        }

    shallow_copy_dict = get_config_copy = to_dict

    def load_config(self, maybe_pickled_config):
        """Set all settings of a dictionary."""
        for name, value in maybe_pickled_config.items():
            setattr(self, name, value)


class _Patch:
    """Settings with other values for a while."""

    def __init__(self, module, changes):
        self.module, self.changes, self.before = module, changes, []

    def __enter__(self):
        owners = [(name, *_owner(self.module, name)) for name in self.changes]
        self.before.append([(owner, key, getattr(owner, key)) for _, owner, key in owners])
        for name, owner, key in owners:
            setattr(owner, key, self.changes[name])

    def __exit__(self, *error):
        for owner, key, value in self.before.pop():
            setattr(owner, key, value)

    def __call__(self, fn):
        @functools.wraps(fn)
        def patched(*args, **kwargs):
            with self:
                return fn(*args, **kwargs)

        return patched


def _owner(module, name):
    """Return (the object that holds a setting, its attribute) for a name such as "triton.cudagraphs"."""
    *path, key = name.split(".")
    for part in path:
        module = getattr(module, part)
    return module, key


def install_config_module(module):
    """Make a module one of settings; `module` is the module or its name."""
    found = sys.modules[module] if isinstance(module, str) else module
    found.__class__ = ConfigModule
