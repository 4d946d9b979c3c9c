"""The names of PyTorch's compiled module `torch._C` that libraries ask for, each with what it means here."""

import weakref
from operator import attrgetter
from typing import Any

import cygrad
from cygrad._C._dispatch import DispatchKey, DispatchKeySet, Tag, _ExcludeDispatchKeyGuard, _IncludeDispatchKeyGuard
from cygrad._C._jit import *  # noqa: F403
from cygrad._C._types import *  # noqa: F403
from cygrad._core.engine.backward import execution_order, number_of_pass, will_execute
from cygrad._core.registry.disabled import disabled as _disabled_torch_function_impl
from cygrad._core.registry.torch_function import DisableTorchFunction, DisableTorchFunctionSubclass, is_taken
from cygrad._core.registry.torch_function import EnableTorchFunction as _EnableTorchFunction
from cygrad._core.transforms import forward_mode
from cygrad.overrides._modes import _is_torch_function_mode_enabled, _len_torch_function_stack

__all__ = [
    "DeviceObjType",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "DispatchKey",
    "DispatchKeySet",
    "Tag",
    "_EnableTorchFunction",
    "_ExcludeDispatchKeyGuard",
    "_IncludeDispatchKeyGuard",
    "_disabled_torch_function_impl",
    "_is_torch_function_mode_enabled",
    "_len_torch_function_stack",
]

_MODULES = (
    "_autograd",
    "_distributed_c10d",
    "_distributed_rpc",
    "_fft",
    "_functions",
    "_functorch",
    "_linalg",
    "_nn",
    "_sparse",
    "_special",
)  # imported on first use
_TensorMeta = type(cygrad.Tensor)
_OF_PACKAGE = {
    "FileCheck": "testing.FileCheck",
    "StorageBase": "StorageBase",
    "TensorBase": "Tensor",
    "_TensorBase": "Tensor",
}
_OF_PACKAGE |= {"_LinAlgError": "linalg.LinAlgError", "parse_schema": "ops._schema.parse_schema"}
_OF_PACKAGE |= {"FunctionSchema": "ops._schema.FunctionSchema", "Argument": "ops._schema.Argument"}
_OF_PACKAGE |= {name: f"serialization.{name}" for name in ("PyTorchFileReader", "PyTorchFileWriter")}
_OF_PACKAGE |= {name: name for name in ("Generator", "Size", "Stream", "Event", "device", "dtype", "layout")}
_OF_PACKAGE |= {"default_generator": "default_generator"}
_OF_PACKAGE |= {"_DisableFuncTorch": "_C._functorch._DisableFuncTorch"}
_OF_PACKAGE |= {"_DisableTorchDispatch": "utils._mode_utils.no_dispatch"}
_OF_PACKAGE |= {"_infer_size": "broadcast_shapes", "is_grad_enabled": "is_grad_enabled"}
_TABLES = ("_VariableFunctions", "_VariableFunctionsClass")
has_lapack = True  # NumPy's


class DeviceObjType:
    """The type of devices in TorchScript, of which there are no objects.

    >>> import cygrad
    >>> isinstance(cygrad.device("cpu"), cygrad.DeviceObjType)
    False
    """

    def __init__(self, *args: Any) -> None:
        raise TypeError("torch._C.DeviceObjType: No constructor defined!")


def _get_accelerator(check: Any = None) -> Any:
    """Return the accelerator as a device; the CPU if there is none."""
    return cygrad.accelerator.current_accelerator() or cygrad.device("cpu")


def _get_default_device() -> str:
    """Return the kind of the default device of new tensors."""
    return cygrad.get_default_device().type


def _get_privateuse1_backend_name() -> str:
    """Return the name of the backend that a program has added to PyTorch: none is."""
    return "privateuseone"


def _get_cudnn_enabled() -> bool:
    """The setting `backends.cudnn.enabled`."""
    return cygrad.backends.cudnn.enabled


def _get_mkldnn_enabled() -> bool:
    """The setting `backends.mkldnn.enabled`."""
    return cygrad.backends.mkldnn.enabled


def _get_deterministic_algorithms() -> bool:
    """Whether deterministic algorithms are asked for."""
    return cygrad.are_deterministic_algorithms_enabled()


def _get_deterministic_fill_uninitialized_memory() -> bool:
    """Whether `empty` fills its results while deterministic algorithms are requested."""
    return cygrad.utils.deterministic.fill_uninitialized_memory


def _set_deterministic_fill_uninitialized_memory(fill: bool) -> None:
    """Set `utils.deterministic.fill_uninitialized_memory`."""
    cygrad.utils.deterministic.fill_uninitialized_memory = fill


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """Same as `backends.cuda.allow_fp16_bf16_reduction_math_sdp`."""
    cygrad.backends.cuda.allow_fp16_bf16_reduction_math_sdp(enabled)


def _is_alias_of(first: Any, second: Any) -> bool:
    """Whether two tensors use the same memory."""
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def _are_functorch_transforms_active() -> bool:
    """Whether the caller runs inside `vmap`, `grad` or another transform of `cygrad.func`."""
    from cygrad._C import _functorch  # which asks the engine

    return _functorch.maybe_current_level() is not None


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Any) -> None:
        if not isinstance(tensor, cygrad.Tensor):
            raise TypeError(f"_WeakTensorRef(): argument must be a Tensor, not {type(tensor).__name__}")
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Have tangents propagated inside dual levels, or not. Raises TypeError for anything but a bool."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    forward_mode.set_enabled(enabled)


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents are propagated inside dual levels."""
    return forward_mode.is_enabled()


def _current_graph_task_id() -> int:
    """Return the number of the backward pass of this thread, which grows with each; -1 outside of a pass."""
    return number_of_pass()


def _current_graph_task_execution_order() -> list[Any]:
    """Return the nodes of the backward pass of this thread in the order in which they run.

    Raises RuntimeError outside of a pass.
    """
    return execution_order()


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the backward pass of this thread runs a node, has run it, or asks for the gradient that arrives there.

    Raises RuntimeError outside of a pass, for anything but a node, and inside `autograd.grad` for the node of a leaf
    whose gradient is asked for.
    """
    return will_execute(node)


def _is_torch_function_enabled() -> bool:
    """Whether classes of tensors receive calls."""
    return not is_taken()


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes receive calls."""
    return is_taken() > 2


def _log_api_usage_once(event: str) -> None:
    """Do nothing: no use is reported."""


def _show_config() -> str:
    """Return how the package was built."""
    from cygrad import __config__  # few programs need it

    return __config__.show()


def __getattr__(name: str) -> Any:
    if name in _OF_PACKAGE:
        return attrgetter(_OF_PACKAGE[name])(cygrad)
    if name in _MODULES:
        from importlib import import_module  # needed only for these

        return import_module(f"{__name__}.{name}")
    if name in _TABLES:
        from cygrad._C import _function_tables  # needed only for these

        return getattr(_function_tables, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
