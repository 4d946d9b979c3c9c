"""Saves a module's state to a flat dictionary and loads it back.

Note [Loading leaves a model whole or untouched]
------------------------------------------------
`load_state_dict` first checks every tensor against its counterpart and only records the copies to be
made; they are made once all of them fit. A checkpoint of a different architecture thus changes nothing.
The list of copies travels in `local_metadata`, like PyTorch's `assign_to_params_buffers`, so that
modules that override `_load_from_state_dict` need not be aware of it. Post-load hooks may forgive
missing and unexpected keys, so if there are any, the copies are made before they run.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.__future__ import get_swap_module_params_on_conversion
from cygrad.nn.parameter import Buffer, Parameter, is_lazy
from cygrad.utils import swap_tensors
from cygrad.utils.hooks import HookDict, RemovableHandle, add_hook
from cygrad.utils.interop import as_tensor, is_tensor_like
from cygrad.utils.warning import warn

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The result of `load_state_dict`: missing and unexpected keys."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        missing, unexpected = self
        return f"_IncompatibleKeys(missing_keys={missing}, unexpected_keys={unexpected})"


class _PreLoadHook:
    """A pre-load hook that takes the module as its first argument, or with `module=None` none.

    The module is referred to weakly, since it holds the hook.
    """

    def __init__(self, function: Callable[..., Any], module: Any) -> None:
        self._take(function, module)

    def _take(self, function: Callable[..., Any], module: Any) -> None:
        self.function = function
        self.module: Any = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any) -> None:
        self.function(*args) if self.module is None else self.function(self.module(), *args)

    def __getstate__(self) -> dict[str, Any]:  # that of PyTorch's class
        with_module = self.module is not None
        return {"hook": self.function, "with_module": with_module, "module": self.module() if with_module else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._take(state["hook"], state.get("module"))


class Stateful:
    """Writes and reads `state_dict`. Base of `Module`."""

    _version = 1  # version of a class's state layout; written into `state_dict()._metadata`

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: HookDict
    _state_dict_hooks: HookDict
    _load_state_dict_pre_hooks: HookDict
    _load_state_dict_post_hooks: HookDict

    def _init_state_hooks(self) -> None:
        state = self.__dict__
        state["_state_dict_pre_hooks"] = HookDict()
        state["_state_dict_hooks"] = HookDict()
        state["_load_state_dict_pre_hooks"] = HookDict()
        state["_load_state_dict_post_hooks"] = HookDict()

    # Writing

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return all parameters and persistent buffers by dotted name, in an `OrderedDict`.

        The tensors share memory with the module's and are detached unless `keep_vars`. Entries are
        added to `destination` if given, each name prefixed with `prefix`.

        >>> import cygrad
        >>> list(cygrad.nn.Sequential(cygrad.nn.Linear(2, 3)).state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            warn("Positional args are being deprecated, use kwargs instead.", FutureWarning)
            given = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars}
            return self.state_dict(**{**given, **dict(zip(given, args))})
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata

        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write this module's own state, excluding submodules. Meant to be overridden."""
        for name, tensor in self._local_state().items():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _local_state(self) -> dict[str, Tensor]:
        hidden = self._non_persistent_buffers_set
        state: dict[str, Tensor] = {}
        for name, parameter in self._parameters.items():
            if parameter is not None:
                state[name] = parameter
        for name, tensor in self._buffers.items():
            if tensor is not None and name not in hidden:
                state[name] = tensor
        return state

    def get_extra_state(self) -> Any:
        """Return non-tensor state to include in `state_dict`. Meant to be overridden."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. "
            f"Only classes that override it have extra state, and {type(self).__name__} does not."
        )

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned. Meant to be overridden."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. "
            f"Only classes that override it have extra state, and {type(self).__name__} does not."
        )

    # Reading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the tensors of `state_dict` into the parameters and buffers of the same names.

        With `strict` the names must match exactly. With `assign` the tensors themselves become the
        parameters and buffers, dtype included. Values may be cygrad or PyTorch tensors.

        Returns the missing and the unexpected keys. Raises a `RuntimeError` that lists every
        mismatch, with nothing changed.

        >>> from cygrad import nn
        >>> model = nn.Linear(2, 1)
        >>> model.load_state_dict(nn.Linear(2, 1).state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        result = IncompatibleKeys([], [])
        errors: list[str] = []
        copies: list[Callable[[], str | None]] = []
        metadata = getattr(state_dict, "_metadata", None) or {}
        # A copy, since hooks may add, rename and remove entries.
        state = OrderedDict(state_dict)

        def load(module: Any, local_state: Mapping[str, Any], prefix: str) -> None:
            local_metadata = dict(metadata.get(prefix[:-1], {}), pending_copies=copies)
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            # Always strict: the result lists missing and unexpected keys regardless of how they are handled.
            module._load_from_state_dict(local_state, prefix, local_metadata, True, *result, errors)

        loaded: list[Any] = []
        _walk(self, state, "", load, loaded)
        has_hooks = any(module._load_state_dict_post_hooks for module in loaded)
        if not errors and (has_hooks or not strict or not any(result)):
            errors += _run(copies)
        for module in loaded:
            _run_post_load_hooks(module, result)
        if strict:
            errors[:0] = _key_errors(result)
        if errors:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors))
                + _advice(state, result)
            )
        return result

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own state, excluding submodules. Meant to be overridden."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        copies: list[Callable[[], str | None]] = []
        local_state = self._local_state()
        for name, tensor in local_state.items():
            key = prefix + name
            if is_lazy(tensor) and is_lazy(state_dict.get(key)):
                continue
            if key in state_dict:
                error, value = _matched(key, tensor, state_dict[key])
                if error:
                    error_msgs.append(error)
                else:
                    if tensor.is_meta and not value.is_meta and not assign:
                        _warn_of_meta(key)
                    copies.append(partial(self._take, name, key, tensor, value, assign))
            elif strict:
                missing_keys.append(key)

        key = prefix + EXTRA_STATE
        takes_extra = _overrides(self, "set_extra_state")
        if takes_extra and key in state_dict:
            copies.append(partial(self.set_extra_state, state_dict[key]))
        elif takes_extra and strict:
            missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)
        if strict:
            unexpected_keys += _unknown_keys(state_dict, prefix, local_state, self._modules)

        if "pending_copies" in local_metadata:
            local_metadata["pending_copies"].extend(copies)
        else:
            error_msgs += _run(copies)

    def _take(self, name: str, key: str, tensor: Tensor, value: Tensor, assign: bool) -> str | None:
        """Copy or assign one tensor; return an error message on failure."""
        how = "swapping" if get_swap_module_params_on_conversion() else "copying"
        try:
            if how == "swapping":
                with cygrad.no_grad():
                    _swap(tensor, value, assign)
            elif assign:
                if isinstance(tensor, Parameter):
                    if not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=tensor.requires_grad)
                    else:
                        value.requires_grad_(tensor.requires_grad)
                setattr(self, name, value)
            else:
                with cygrad.no_grad():
                    tensor.copy_(value)
        except Exception as error:
            return (
                f'While {how} the parameter named "{key}", whose dimensions in the model are '
                f"{tensor.size()} and whose dimensions in the checkpoint are {value.size()}, "
                f"an exception occurred : {error.args}."
            )
        return None

    # Hooks

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads this module."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict` has read this module.

        The hook may change the dictionary and must return None.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like `register_state_dict_post_hook`, for hooks that may return another dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a hook before this module's part of a `state_dict` is loaded.

        `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)` may change the dictionary and the lists.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        hook = _PreLoadHook(hook, self) if with_module else hook
        return add_hook(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading.

        It may remove names from the lists `missing_keys` and `unexpected_keys`; what remains is
        an error if loading is strict.
        """
        return add_hook(self._load_state_dict_post_hooks, hook)


def _walk(
    module: Any, state: Mapping[str, Any], prefix: str, load: Callable[[Any, Any, str], None], loaded: list[Any]
) -> None:
    """Call `load(module, its part of the state, prefix)` for a module and all below; list them, children first."""
    load(module, state, prefix)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            _walk(child, {k: v for k, v in state.items() if k.startswith(below)}, below, load, loaded)
    loaded.append(module)


def _run(copies: list[Callable[[], str | None]]) -> list[str]:
    """Make the copies and return the error messages of those that failed."""
    return [error for error in [copy() for copy in copies] if error]


def _overrides(module: Any, method: str) -> bool:
    return getattr(type(module), method) is not getattr(Stateful, method)


def _matched(key: str, tensor: Tensor, value: Any) -> tuple[str | None, Any]:
    """Return the checkpoint's value as a tensor of the right shape, or an error message."""
    if not is_tensor_like(value):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(value)}"
        ), None
    value = as_tensor(value)
    if tensor.ndim == 0 and tuple(value.shape) == (1,):
        value = value[0]  # old checkpoints stored scalars with shape (1,)
    if value.shape != tensor.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {tensor.shape}."
        ), None
    return None, value


def _swap(tensor: Tensor, value: Tensor, assign: bool) -> None:
    """Give a parameter or buffer what its method `module_load` makes of the checkpoint's value."""
    new = tensor.module_load(value, assign=assign)
    if new is value or new is tensor:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(tensor, Parameter):
        is_parameter = isinstance(new, Parameter)
        new = new.requires_grad_(tensor.requires_grad) if is_parameter else Parameter(new, tensor.requires_grad)
    elif isinstance(tensor, Buffer) and type(new) is Tensor:
        new = Buffer(new, persistent=tensor.persistent)
    swap_tensors(tensor, new)


def _warn_of_meta(key: str) -> None:
    warn(
        f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
        "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
        "corresponding key in the module instead of copying them in place?)"
    )


def _unknown_keys(state_dict: Any, prefix: str, local_state: Any, modules: Any) -> list[str]:
    unknown = []
    for key in state_dict:
        if key.startswith(prefix) and key != prefix + EXTRA_STATE:
            first, dot, _ = key[len(prefix) :].partition(".")
            if first not in (modules if dot else local_state):
                unknown.append(key)
    return unknown


def _run_post_load_hooks(module: Any, keys: IncompatibleKeys) -> None:
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                "return new values, if incompatible_keys need to be modified, it should be done "
                "inplace."
            )


def _key_errors(keys: IncompatibleKeys) -> list[str]:
    errors = []
    for kind, names in (("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys)):
        if names:
            quoted = ", ".join(f'"{name}"' for name in names)
            errors.append(f"{kind} key(s) in state_dict: {quoted}. ")
    return errors


def _advice(state: Mapping[str, Any], keys: IncompatibleKeys) -> str:
    """Suggest tensors in place of arrays, or a rename if all keys miss or carry a common prefix, as wrappers add it."""
    if any(isinstance(value, np.ndarray) for value in state.values()):
        return "\nLoad tensors: {k: torch.from_numpy(v) for k, v in state_dict.items()}"
    missing, unexpected = keys
    if not missing or len(missing) != len(unexpected):
        return ""
    for longer, shorter, fixed in (
        (unexpected, missing, "{{k.removeprefix({!r}): v for k, v in state_dict.items()}}"),
        (missing, unexpected, "{{{!r} + k: v for k, v in state_dict.items()}}"),
    ):
        prefix = longer[0].removesuffix(shorter[0])
        if prefix and [prefix + name for name in shorter] == longer:
            return "\nThe names differ only by a prefix. Load this: " + fixed.format(prefix)
    return ""
