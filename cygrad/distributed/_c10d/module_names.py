"""Further names of modules, where PyTorch spreads over several what is in one here."""

import sys

__all__ = ["also_named"]


def also_named(package, **modules):
    """Let `package.name` mean a module, for each `name=module`; dots are written as two underscores."""
    for name, module in modules.items():
        parent, _, child = f"{package}.{name.replace('__', '.')}".rpartition(".")
        sys.modules[f"{parent}.{child}"] = module
        setattr(sys.modules[parent], child, module)
