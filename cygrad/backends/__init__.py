"""Settings of PyTorch's backend libraries, accepted for compatibility; only the GPU ones have an effect."""

import importlib.util as _util
import sys as _sys
from contextlib import nullcontext as _nullcontext
from types import ModuleType as _ModuleType

from cygrad.backends import cuda, cudnn

__all__ = ["cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def _no():
    """Whether the backend is in use: always False."""
    return False


def _block(*args, **settings):
    """Return a context that does nothing."""
    return _nullcontext()


def _find_opt_einsum():
    """Whether opt_einsum is installed."""
    return _util.find_spec("opt_einsum") is not None


def _get_fastpath_enabled():
    """Return the setting, initially True."""
    return mha._enabled


def _set_fastpath_enabled(value):
    """Store the setting."""
    mha._enabled = value


def _module(name, doc, **members):
    module = _ModuleType(f"{__name__}.{name}", doc)
    module.__dict__.update(members, __all__=sorted(members))
    _sys.modules[module.__name__] = module
    return module


mha = _module(
    "mha",
    "PyTorch's fast path for attention in evaluation mode. The setting has no effect here.",
    get_fastpath_enabled=_get_fastpath_enabled,
    set_fastpath_enabled=_set_fastpath_enabled,
)
mha._enabled = True
mkl = _module(
    "mkl",
    "Intel's linear algebra library, which is not used: products use NumPy's BLAS or our own kernels.",
    is_available=_no,
    verbose=_block,
)
mkldnn = _module(
    "mkldnn",
    "Intel's neural network library, which is not used. Settings are stored but have no effect.",
    deterministic=False,
    enabled=True,
    flags=_block,
    is_available=_no,
    verbose=_block,
)
mps = _module("mps", "Apple GPUs, which are not used.", is_available=_no, is_built=_no)
openmp = _module("openmp", "OpenMP, which is not used: threads are our own (`set_num_threads`).", is_available=_no)
opt_einsum = _module(
    "opt_einsum",
    "The package opt_einsum, which orders three or more operands of `einsum` if it is installed.",
    is_available=_find_opt_einsum,
)
