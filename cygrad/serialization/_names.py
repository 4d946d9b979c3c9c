"""PyTorch's names of functions and classes, as pickles contain them, and ours.

A file names a class by module and name. What PyTorch has too is written by PyTorch's name, `torch.nn.modules.linear
Linear`, so that PyTorch finds its own class, and is found here by either name. Most modules are called alike; the
tables below have those that are not. `find` needs no table for them: PyTorch offers a class in the packages above its
module too, and so do we.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import cygrad
from cygrad.nn.modules._module.state import _PreLoadHook

_PRIVATE = ("_compiled", "_core", "_cython", "_kernels", "_library", "_ops", "as_torch", "serialization", "viz")
_PUBLISHERS = ("nn.functional", "", "special", "linalg", "fft", "storage")  # offer functions of private modules

_LAYERS = {  # modules below `torch.nn.modules`
    "activation": "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU Mish MultiheadAttention PReLU "
    "RReLU ReLU ReLU6 SELU SiLU Softplus Softshrink Threshold",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm",
    "channelshuffle": "ChannelShuffle",
    "container": "ParameterDict ParameterList",
    "conv": "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
    "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d "
    "LazyInstanceNorm3d",
    "linear": "LazyLinear",
    "linear_cross_entropy_options": "LinearCrossEntropyOptions",
    "loss": "CosineEmbeddingLoss HingeEmbeddingLoss LinearCrossEntropyLoss MarginRankingLoss MultiLabelMarginLoss "
    "MultiLabelSoftMarginLoss MultiMarginLoss SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss",
    "pooling": "FractionalMaxPool2d FractionalMaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    "rnn": "GRUCell LSTMCell RNNCell RNNCellBase",
}
_DISTRIBUTIONS = {  # modules below `torch.distributions`; the others bear the class's name in lower case
    "ContinuousBernoulli": "continuous_bernoulli",
    "ExponentialFamily": "exp_family",
    "GeneralizedPareto": "generalized_pareto",
    "HalfCauchy": "half_cauchy",
    "HalfNormal": "half_normal",
    "InverseGamma": "inverse_gamma",
    "LKJCholesky": "lkj_cholesky",
    "LogNormal": "log_normal",
    "LogisticNormal": "logistic_normal",
    "LowRankMultivariateNormal": "lowrank_multivariate_normal",
    "MixtureSameFamily": "mixture_same_family",
    "MultivariateNormal": "multivariate_normal",
    "NegativeBinomial": "negative_binomial",
    "OneHotCategorical": "one_hot_categorical",
    "OneHotCategoricalStraightThrough": "one_hot_categorical",
    "RelaxedBernoulli": "relaxed_bernoulli",
    "RelaxedOneHotCategorical": "relaxed_categorical",
    "StudentT": "studentT",
    "TransformedDistribution": "transformed_distribution",
    "VonMises": "von_mises",
}
_OTHERS = {
    "AdamW": "optim.adamw",
    "Adafactor": "optim",
    "DataParallel": "nn.parallel.data_parallel",
    "Generator": "_C",
    "IterDataPipe": "utils.data.datapipes.datapipe",
    "MapDataPipe": "utils.data.datapipes.datapipe",
    "Muon": "optim",
    "PackedSequence": "nn.utils.rnn",
    "default_collate": "utils.data._utils.collate",
    "default_convert": "utils.data._utils.collate",
    "functional_datapipe": "utils.data.datapipes._decorator",
    "get_worker_info": "utils.data._utils.worker",
    "guaranteed_datapipes_determinism": "utils.data.datapipes._decorator",
}
_RENAMED = {"torch.nn.modules.module._WrappedHook": _PreLoadHook}  # by PyTorch's names
_PACKAGES = ("optim.lr_scheduler", "cuda")  # PyTorch defines in the package what we have in modules below it


def of_torch(value: Any, name: str | None = None) -> tuple[str, str] | None:
    """Return PyTorch's module and name of one of our classes or functions; None for what is not ours, or private."""
    module: Any = getattr(value, "__module__", None) or type(value).__module__
    name = name or getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if type(module) is not str or type(name) is not str or module.partition(".")[0] != "cygrad":
        return None
    own = module.partition(".")[2]
    if (module, name) in _own_functions():
        return _own_functions()[module, name]
    if own.partition(".")[0] in _PRIVATE:
        return _published(value, name)
    place = f"torch.{_elsewhere(own, name)}".removesuffix(".")
    return place, name


def _elsewhere(own: str, name: str) -> str:
    """Return PyTorch's module below `torch`, given ours below `cygrad`."""
    if name in _OTHERS:
        return _OTHERS[name]
    if own.startswith("nn.modules"):
        return next((f"nn.modules.{place}" for place, names in _layers().items() if name in names), own)
    if own.startswith("distributions."):
        if own == "distributions.constraints" or not hasattr(cygrad.distributions, name):
            return own
        if name.endswith("Transform"):
            return "distributions.transforms"
        return f"distributions.{_DISTRIBUTIONS.get(name, name.lower())}"
    return next((package for package in _PACKAGES if own.startswith(package)), own)


@cache
def _layers() -> dict[str, set[str]]:
    return {place: set(names.split()) for place, names in _LAYERS.items()}


def _published(value: Any, name: str) -> tuple[str, str] | None:
    """Return the public name of something that is defined in a private module."""
    for publisher in _PUBLISHERS:
        module = sys.modules.get(f"cygrad.{publisher}".removesuffix("."))
        if module is not None and getattr(module, name, None) is value:
            return f"torch.{publisher}".removesuffix("."), name
    return None


@cache
def _own_functions() -> dict[tuple[str, str], tuple[str, str]]:
    """PyTorch's names of the functions that rebuild what a file holds, by ours."""
    from cygrad.serialization import _rebuilding  # which needs this module

    found = {}
    for path, value in {**_rebuilding.FUNCTIONS, **_RENAMED}.items():
        module, _, name = path.rpartition(".")
        found[value.__module__, value.__name__] = module, name
    return found


def find(module: str, name: str) -> Any:
    """Return what PyTorch's `module` and `name` mean here. Raises AttributeError if there is nothing of that name."""
    path = f"{module}.{name}"
    special = specials().get(path)
    if special is not None:
        return special
    parts = module.split(".")[1:]
    if not parts or parts[0] not in _PRIVATE or parts[0] == "serialization":
        for end in range(len(parts), -1, -1):
            found = _in_module(".".join(["cygrad", *parts[:end]]), name)
            if found is not None:
                return found
    raise AttributeError(
        f"cygrad has no {path}\n  load the file in PyTorch, and save the state_dict() of what it holds"
    )


def _in_module(module: str, name: str) -> Any:
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@cache
def specials() -> dict[str, Any]:
    """Our functions and classes for PyTorch's names of things that are in no public module here."""
    from cygrad.serialization import _rebuilding  # which needs this module

    functions: dict[str, Callable[..., Any]] = _rebuilding.FUNCTIONS
    return {**functions, **_RENAMED, **_rebuilding.STORAGE_TYPES, "torch._C.Generator": cygrad.Generator}
