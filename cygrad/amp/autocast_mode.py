"""autocast: runs matrix products and convolutions in lower precision, losses in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import cygrad
from cygrad._core.errors.sites import warn
from cygrad._core.registry import autocast as core
from cygrad._core.runtime.interrupt_safe import Block

__all__ = [
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "op_lists",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
]


class autocast(Block):
    """Inside `with autocast("cpu"):` ops choose a suitable precision; also usable as a decorator.

    Matrix products, convolutions and attention cast their operands to `dtype`, by default bfloat16 (which needs the
    package `ml_dtypes`; float16 does not). Losses, matrix norms, Fourier transforms and the like compute in float32.
    All other ops use the dtypes of their operands. float64 is never cast. `op_lists()` returns the classification.
    `autocast("cuda")` does the same for GPU tensors, with separate lists (softmax, norms, sums, powers and exponentials
    also in float32), by default in float16, and leaves other tensors alone; without a GPU it warns and has no effect.
    For devices that only PyTorch has (`autocast("mps")`, ...) the mode can be set, and asked for; no tensor is there.

    The mode is thread-local, can be nested, and can be disabled locally by `autocast("cpu", enabled=False)`.
    Casts of parameters are cached until the outermost mode ends, unless `cache_enabled` is false or the parameter
    changes. Run the forward pass and the loss inside it, not `backward`.

    >>> import cygrad
    >>> layer, x = cygrad.nn.Linear(2, 3), cygrad.ones(1, 2)
    >>> with cygrad.autocast("cpu", dtype=cygrad.float16):
    ...     print(layer(x).dtype)
    torch.float16
    """

    _ended = staticmethod(core.note_user)

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _check_device_type(device_type)
        self.device = core.known_device(device_type)
        if not core.supports(self.device):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{self.device}'")
        self.fast_dtype = core.get_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = core.state.cache_enabled if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled) and self._is_possible()

    def _is_possible(self) -> bool:
        if self.device == "cuda" and not cygrad.cuda.is_available():
            warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.\n"
                'cygrad runs on the CPU: use autocast("cpu").'
            )
            return False
        supported = {"torch.bfloat16", "torch.float16"}
        if str(self.fast_dtype) not in supported:
            name = self.device.upper()
            warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            return False
        return True

    @property
    def _context(self) -> autocast:
        return self

    def _plan(self) -> Any:
        return core.plan_of_mode(self.device, self._enabled, self.fast_dtype, self._cache_enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap `func` to run in this mode."""

        @functools.wraps(func)
        def in_autocast(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled):
                return func(*args, **kwargs)

        return in_autocast


def op_lists(device_type: str = "cpu") -> dict[str, list[str]]:
    """Return the ops that autocast runs in lower precision, in float32, and in the widest dtype of operands or state.

    For GPUs (`op_lists("cuda")`) there are also some that it rejects.

    >>> import cygrad
    >>> cygrad.amp.op_lists()["widest"]
    ['cat', 'index_copy', 'stack']
    """
    return core.policies(device_type)


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast supports this device type.

    >>> import cygrad
    >>> cygrad.amp.is_autocast_available("cpu")
    True
    """
    return core.supports(core.known_device(device_type))


# --- Custom functions --


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable[..., Any]:
    """Decorate the `forward` of an `autograd.Function` that should support autocast.

    With `cast_inputs`, floating-point inputs (except float64) are cast to this dtype if autocast is on, and `forward`
    runs with autocast off. Decorate `backward` with `custom_bwd`.

    >>> import cygrad
    >>> from cygrad.amp import custom_bwd, custom_fwd
    >>> class Square(cygrad.autograd.Function):
    ...     @staticmethod
    ...     @custom_fwd(device_type="cpu", cast_inputs=cygrad.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> with cygrad.autocast("cpu", dtype=cygrad.float16):
    ...     Square.apply(cygrad.tensor([3.0], dtype=cygrad.float16)).dtype
    torch.float32
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx, on = args[0], core.is_enabled(device_type)
        ctx._dtype = core.get_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate `backward` so that it runs in the autocast state of `forward`; see `custom_fwd`.

    >>> import cygrad
    >>> class Double(cygrad.autograd.Function):
    ...     @staticmethod
    ...     @cygrad.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @cygrad.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.autocast("cpu"):
    ...     Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return backward


def _cast(value: Any, dtype: Any) -> Any:
    """Cast the tensors in a value, however nested, to `dtype`."""
    if core.is_eligible(value):
        return value.to(dtype)
    if isinstance(value, Mapping):
        return {_cast(key, dtype): _cast(item, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(item, dtype) for item in value])
    return value


# --- State --


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is enabled for a device type in this thread.

    >>> import cygrad
    >>> cygrad.is_autocast_enabled("cpu")
    False
    """
    return core.is_enabled(device_type)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Enable or disable autocast for a device type ("cuda" if only the flag is given); prefer `autocast`.

    >>> import cygrad
    >>> cygrad.set_autocast_enabled("cpu", True)
    >>> cygrad.is_autocast_enabled("cpu")
    True
    >>> cygrad.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    core.set_enabled(device_type, enabled)


def get_autocast_dtype(device_type: str) -> Any:
    """Return the dtype in which autocast computes matrix products on a device type.

    >>> import cygrad
    >>> cygrad.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    return core.get_dtype(device_type)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the dtype in which autocast computes matrix products on a device type.

    >>> import cygrad
    >>> cygrad.set_autocast_dtype("cpu", cygrad.float16)
    >>> cygrad.get_autocast_dtype("cpu")
    torch.float16
    >>> cygrad.set_autocast_dtype("cpu", cygrad.bfloat16)
    """
    core.set_dtype(device_type, dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are cached until autocast ends.

    >>> import cygrad
    >>> cygrad.is_autocast_cache_enabled()
    True
    """
    return core.state.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Enable or disable caching of parameter casts until autocast ends.

    >>> import cygrad
    >>> cygrad.set_autocast_cache_enabled(False)
    >>> cygrad.is_autocast_cache_enabled()
    False
    >>> cygrad.set_autocast_cache_enabled(True)
    """
    core.state.cache_enabled = bool(enabled)


def clear_autocast_cache() -> None:
    """Clear the cache of parameter casts.

    `autocast` does so itself when its outermost block ends.

    >>> import cygrad
    >>> cygrad.clear_autocast_cache()
    """
    core.clear_cache()


def autocast_increment_nesting() -> int:
    """Increment and return the autocast nesting depth.

    >>> import cygrad
    >>> cygrad.autocast_increment_nesting(), cygrad.autocast_decrement_nesting()
    (1, 0)
    """
    core.note_user(True)
    core.state.nesting += 1
    return core.state.nesting


def autocast_decrement_nesting() -> int:
    """Decrement and return the autocast nesting depth.

    >>> import cygrad
    >>> cygrad.autocast_increment_nesting(), cygrad.autocast_decrement_nesting()
    (1, 0)
    """
    core.state.nesting -= 1
    core.note_user()
    return core.state.nesting


def _warn_old(call: str, new: str) -> None:
    warn(f"torch.{call} is deprecated. Please use torch.{new} instead.", DeprecationWarning)


def is_autocast_cpu_enabled() -> bool:
    """Deprecated alias of `is_autocast_enabled("cpu")`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"), cygrad.autocast("cpu"):
    ...     print(cygrad.is_autocast_cpu_enabled())
    True
    """
    _warn_old("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return core.is_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Deprecated alias of `set_autocast_enabled("cpu", enabled)`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.set_autocast_cpu_enabled(True)
    >>> cygrad.is_autocast_enabled("cpu")
    True
    >>> cygrad.set_autocast_enabled("cpu", False)
    """
    _warn_old("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    core.set_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> Any:
    """Deprecated alias of `get_autocast_dtype("cpu")`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     print(cygrad.get_autocast_cpu_dtype())
    torch.bfloat16
    """
    _warn_old("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return core.get_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Deprecated alias of `set_autocast_dtype("cpu", dtype)`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.set_autocast_cpu_dtype(cygrad.float16)
    >>> cygrad.get_autocast_dtype("cpu")
    torch.float16
    >>> cygrad.set_autocast_dtype("cpu", cygrad.bfloat16)
    """
    _warn_old("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    core.set_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """Deprecated alias of `get_autocast_dtype("cuda")`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     print(cygrad.get_autocast_gpu_dtype())
    torch.float16
    """
    _warn_old("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return core.get_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Deprecated alias of `set_autocast_dtype("cuda", dtype)`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.set_autocast_gpu_dtype(cygrad.float16)
    >>> cygrad.get_autocast_dtype("cuda")
    torch.float16
    """
    _warn_old("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    core.set_dtype("cuda", dtype)


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
