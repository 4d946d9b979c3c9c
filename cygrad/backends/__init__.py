"""Settings of PyTorch's backend libraries; only those of GPUs and of opt_einsum have an effect."""

import importlib.util as _util
import sys as _sys
from contextlib import contextmanager as _contextmanager
from contextlib import nullcontext as _nullcontext
from importlib import import_module as _import_module
from importlib.machinery import ModuleSpec as _ModuleSpec
from types import ModuleType as _ModuleType

from cygrad._library import later as _later
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

_contractions = _later("cygrad._ops.linalg.contractions")  # only programs that call `einsum` need it


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


class _OptEinsum(_ModuleType):
    """The type of `opt_einsum`: a module whose settings are those that `einsum` reads."""

    @property
    def enabled(self):
        """Whether it orders the operands of `einsum`; True at first."""
        return _contractions.search["enabled"]

    @enabled.setter
    def enabled(self, value):
        _set_search(enabled=value)

    @property
    def strategy(self):
        """How it looks for an order: "auto", "greedy", "optimal" or another name that the package knows."""
        return _contractions.search["strategy"]

    @strategy.setter
    def strategy(self, value):
        _set_search(strategy=value, is_known=_knows_strategy)  # functions take PyTorch's three alone


_STRATEGIES = ("auto", "greedy", "optimal")


def _get_opt_einsum():
    """Return the package, or None if it is not installed."""
    return _import_module("opt_einsum") if _find_opt_einsum() else None


def _knows_strategy(name):
    """Whether a strategy is one of PyTorch's, or opt_einsum is installed and has a search of this name."""
    package = _get_opt_einsum()
    if name in _STRATEGIES or package is None or not isinstance(name, str):
        return name in _STRATEGIES
    try:
        package.paths.get_path_fn(name)
    except KeyError:
        return False
    return True


def _set_search(enabled=None, strategy=None, is_known=_STRATEGIES.__contains__):
    """Change the settings that are given, and return both as they were. Raises ValueError for those without a sense."""
    search = _contractions.search
    before = search["enabled"], search["strategy"]
    if enabled is None:
        enabled = before[0]
    elif enabled and not _find_opt_einsum():
        raise ValueError(
            "opt_einsum is not available, so setting `enabled` to True has no effect: einsum multiplies from left to "
            "right.\n  to fix it: pip install opt_einsum"
        )
    if strategy is None:
        strategy = before[1]
    elif not is_known(strategy):
        raise ValueError(f"`strategy` must be one of the following: [auto, greedy, optimal] but is {strategy}")
    elif not enabled:
        raise ValueError(
            f"opt_einsum is not enabled, so setting a `strategy` to {strategy} will not be meaningful\n"
            "  to fix it: set `enabled` to True as well"
        )
    search.update(enabled=bool(enabled), strategy=strategy)
    return before


@_contextmanager
def _search_flags(enabled=None, strategy=None):
    """A block with these settings of the search for the order of the operands of `einsum`."""
    before = _set_search(enabled, strategy)
    try:
        yield
    finally:
        _contractions.search.update(zip(("enabled", "strategy"), before))


def _module(name, doc, kind=_ModuleType, **members):
    module = kind(f"{__name__}.{name}", doc)
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
    _OptEinsum,
    flags=_search_flags,
    get_opt_einsum=_get_opt_einsum,
    is_available=_find_opt_einsum,
    set_flags=_set_search,
)
