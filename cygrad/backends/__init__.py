"""Settings of PyTorch's backend libraries, accepted for compatibility; only the GPU ones have an effect."""

import importlib.util as _util
import sys as _sys
from contextlib import contextmanager as _contextmanager
from contextlib import nullcontext as _nullcontext
from importlib.machinery import ModuleSpec as _ModuleSpec
from types import ModuleType as _ModuleType

from cygrad.backends import _absent, cpu, cuda, cudnn, quantized

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
    "xnnpack",
]


@_contextmanager
def __allow_nonbracketed_mutation():
    """A block in which settings may be changed one by one, as they always may here."""
    yield


def flags_frozen():
    """Whether settings can only be changed by `flags` contexts: always False."""
    return False


def disable_global_flags():
    """Accepted: PyTorch then lets settings be changed by `flags` contexts alone; here they always can be."""


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
    module.__spec__ = _ModuleSpec(module.__name__, None)
    module.__dict__.update(members, __all__=sorted(members))
    _sys.modules[module.__name__] = module
    return module


cusparselt = _module(
    "cusparselt",
    "NVIDIA's library for half of the elements, which is not used.",
    is_available=_no,
    **_absent.answering(f"{__name__}.cusparselt", {"get_max_alg_id": None, "version": None}),
)
kleidiai = _module("kleidiai", "Arm's kernels, which are not used.", is_available=_no)
miopen = _module("miopen", "AMD's neural network library, which is not used.", flags=_block, immediate=False)
nnpack = _module("nnpack", "NNPACK, which is not used.", flags=_block, is_available=_no)
xnnpack = _module("xnnpack", "XNNPACK, which is not used.", enabled=False)
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
_OF_MACOS = ("get_core_count", "get_name", "is_macos13_or_newer", "is_macos_or_newer")
mps = _module(
    "mps",
    "Apple GPUs, which are not used.",
    is_available=_no,
    is_built=_no,
    **_absent.refusing(f"{__name__}.mps", _absent.without_backend("MPS", dict.fromkeys(_OF_MACOS, "isOnMacOSorNewer"))),
)
openmp = _module("openmp", "OpenMP, which is not used: threads are our own (`set_num_threads`).", is_available=_no)
opt_einsum = _module(
    "opt_einsum",
    "The package opt_einsum, which orders three or more operands of `einsum` if it is installed.",
    is_available=_find_opt_einsum,
)
