"""Automatic differentiation: `backward`, `grad`, `Function`, grad modes, and the legacy `Variable`."""

from importlib import import_module

from cygrad._core.engine.backward import backward, grad
from cygrad._core.runtime.thread_state import is_observed
from cygrad._core.types.size import Size
from cygrad.autograd import forward_ad as forward_ad
from cygrad.autograd import function as function
from cygrad.autograd import functional as functional
from cygrad.autograd import grad_mode as grad_mode
from cygrad.autograd import graph as graph
from cygrad.autograd.anomaly_mode import detect_anomaly, is_anomaly_enabled, nan_check, set_detect_anomaly
from cygrad.autograd.function import Function
from cygrad.autograd.grad_mode import _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from cygrad.autograd.grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from cygrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from cygrad.autograd.variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "nan_check",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _profiler_enabled():
    """Whether a profiler observes this thread."""
    return is_observed()


def _calculate_shape(output, grad, is_grads_batched):
    """Return the shapes that `grad` compares: of an output, or a `GradientEdge`, and of the gradient for it."""
    if isinstance(output, graph.GradientEdge):
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        return Size(output.node._input_metadata[output.output_nr].shape), grad.shape
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


_MODULES = ("_functions", "profiler", "profiler_legacy", "profiler_util")  # imported on first use
_SWITCH = ("ProfilerConfig", "ProfilerState", "_disable_profiler", "_enable_profiler", "_prepare_profiler")


def __getattr__(name):
    if name in _SWITCH:
        return getattr(import_module("cygrad.autograd._profiler_switch"), name)
    if name == "SavedTensor":
        return import_module("cygrad._core.saved.saved_tensor_hooks").SavedTensor
    if name in ("ProfilerActivity", "kineto_available"):
        return getattr(import_module("cygrad.profiler"), name)
    if name not in _MODULES:
        raise AttributeError(f"module 'cygrad.autograd' has no attribute {name!r}")
    return import_module(f"cygrad.autograd.{name}")  # bound in this namespace by the import
