"""The entries of TensorBoard's logs: `scalar`, `histogram`, `image`, `hparams`, ..., those of tensorboardX.

They take arrays and numbers. Importing a name raises ImportError without tensorboardX.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        functions = import_module("tensorboardX.summary")  # optional
    except ImportError:
        raise ImportError(
            f"{__name__}.{name} needs the package tensorboardX, which is not installed\n  pip install tensorboardX"
        ) from None
    if not hasattr(functions, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(functions, name)
