"""What the CPU can do.

>>> import cygrad
>>> cygrad.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
True
"""

from importlib import import_module

__all__ = ["get_cpu_capability"]

# PyTorch's levels, the best first, and the instructions that NumPy looks for.
_LEVELS = {"AVX512": ("AVX512F", "AVX512DQ", "AVX512BW", "AVX512VL"), "AVX2": ("AVX2", "FMA3")}


def get_cpu_capability():
    """Return the widest instructions that loops can use: "AVX512", "AVX2", or "DEFAULT" for neither.

    >>> import cygrad
    >>> cygrad.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    True
    """
    try:
        features = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (AttributeError, ImportError):  # names of NumPy's own
        return "DEFAULT"
    return next((level for level, names in _LEVELS.items() if all(map(features.get, names))), "DEFAULT")
