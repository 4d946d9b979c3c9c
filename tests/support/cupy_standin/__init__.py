"""A strict stand-in for CuPy that runs on NumPy and the CPU, so that GPU code can be tested on any machine.

    import cupy_standin

    with cupy_standin.installed():
        import cupy

        with cupy_standin.watch() as seen:
            x = cupy.ones(3) + 1
        assert not seen.synchronizations

It offers exactly CuPy's names and parameters (recorded in `names.json`), never converts to NumPy implicitly, returns
0-dim arrays where NumPy returns scalars, records synchronizations, and runs the CUDA C++ of kernels on the CPU.
"""

import sys
from contextlib import contextmanager

from .state import on_synchronize, watch

ROOTS = ("cupy", "cupyx", "cupy_backends")
__all__ = ["install", "installed", "is_installed", "on_synchronize", "watch"]


def install():
    """Register the stand-in as `cupy`, with its own allocator; return a function that undoes this."""
    from . import memory
    from .modules import all_modules

    allocator, memory.common_allocator = memory.common_allocator, memory.default_pool.malloc
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ROOTS}
    modules = all_modules()
    for name in before:
        del sys.modules[name]
    sys.modules.update(modules)

    def undo():
        for name, module in modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        sys.modules.update(before)
        memory.common_allocator = allocator

    return undo


def is_installed():
    """Whether `import cupy` finds the stand-in. The real CuPy does not report events to watchers."""
    return hasattr(getattr(sys.modules.get("cupy"), "ndarray", None), "_of")


@contextmanager
def installed():
    """Make the stand-in importable as `cupy` within the block and yield the module."""
    undo = install()
    try:
        yield sys.modules["cupy"]
    finally:
        undo()
