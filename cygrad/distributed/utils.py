"""Helpers that wrappers of modules share."""

from typing import Any

from cygrad import Tensor
from cygrad.distributed.fsdp._precision import cast_floating
from cygrad.nn.modules import Module
from cygrad.nn.parallel.scatter_gather import _moved

__all__: list[str] = []


def _pack_kwargs(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Positional and keyword arguments as one tuple, and the names of the latter."""
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(flat_args: tuple[Any, ...], kwarg_keys: tuple[str, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that `_pack_kwargs` has put together."""
    if len(kwarg_keys) > len(flat_args):
        raise AssertionError(f"too many keys {len(kwarg_keys)} vs. {len(flat_args)}")
    split = len(flat_args) - len(kwarg_keys)
    return flat_args[:split], dict(zip(kwarg_keys, flat_args[split:]))


def _cast_forward_inputs(dtype: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Arguments with their floating-point tensors in a dtype."""
    return cast_floating(args, dtype), cast_floating(kwargs, dtype)


def _recursive_to(inputs: Any, target_device: Any, use_side_stream_for_tensor_copies: bool = False) -> list[Any]:
    """A list of the inputs, however nested, with all tensors on a device."""
    return [_moved(inputs, target_device)]


def _to_kwargs(
    inputs: Any, kwargs: Any, target_device: Any, use_side_stream_for_tensor_copies: bool = False
) -> tuple[Any, Any]:
    """Tuples of positional and of keyword arguments, on a device."""
    return (_moved(inputs, target_device),), (_moved(kwargs or {}, target_device),)


def _apply_to_tensors(fn: Any, container: Any) -> Any:
    """Nested data with `fn` applied to all tensors."""
    if isinstance(container, Tensor):
        return fn(container)
    if isinstance(container, dict):
        return type(container)((key, _apply_to_tensors(fn, each)) for key, each in container.items())
    if isinstance(container, tuple) and hasattr(container, "_fields"):
        return type(container)(*(_apply_to_tensors(fn, each) for each in container))
    if isinstance(container, (list, tuple, set)):
        return type(container)(_apply_to_tensors(fn, each) for each in container)
    return container


def _replace_by_prefix(state_dict: dict[str, Any], old_prefix: str, new_prefix: str) -> None:
    """Replace the beginning of names, in place."""
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for name in list(state_dict):
        if name.startswith(old_prefix):
            state_dict[new_prefix + name[len(old_prefix) :]] = state_dict.pop(name)


def _sync_module_states(
    module: Module,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Any,
    broadcast_buffers: bool = True,
) -> None:
    """Give all processes the parameters and buffers of process `src`."""
    tensors = [p.detach() for name, p in module.named_parameters() if name not in params_and_buffers_to_ignore]
    if broadcast_buffers:
        tensors += [b.detach() for name, b in module.named_buffers() if name not in params_and_buffers_to_ignore]
    _sync_params_and_buffers(process_group, tensors, broadcast_bucket_size, src)


def _sync_params_and_buffers(process_group: Any, module_states: list[Tensor], bucket_size: int, src: int) -> None:
    """Give all processes the tensors of process `src`."""
    if module_states:
        process_group.broadcast(module_states, src).wait()


def _verify_param_shape_across_processes(process_group: Any, tensors: Any, logger: Any = None) -> None:
    """Raise if the shapes of tensors differ between processes, which one process's do not."""


def _p_assert(cond: Any, s: str, raise_assertion_error: bool = True) -> None:
    """Raise AssertionError, or print the text, unless a condition holds."""
    if cond:
        return
    if raise_assertion_error:
        raise AssertionError(s)
    print(s)
