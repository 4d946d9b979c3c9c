"""Further names of modules, where PyTorch spreads over several what is in one here."""

import sys

__all__ = ["also_named"]


def also_named(package, **modules):
    """Let `package.name` mean a module, for each `name=module`."""
    vars(sys.modules[package]).setdefault("__path__", [])  # a module with further ones is a package
    for name, module in modules.items():
        sys.modules[f"{package}.{name}"] = module
        setattr(sys.modules[package], name, module)
